/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_SCAN and the shrink guard, which checks the end state. */
#include "tests/unit/db/write/scan_fixture.h"

static void too_many_that_go_are_held_and_the_rest_applied(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 14);
    scan(f, files, 10);
    int64_t good_at = state_of(f).good_at;
    set_state(files, 3, SOURCE_FILE_GONE);
    files[3].state = SOURCE_FILE_EMPTY;
    files[4].state = SOURCE_FILE_IGNORED;
    files[5].lastmod = "2026-05-05";
    files[6].state = SOURCE_FILE_QUARANTINED;
    files[6].problem = "truncated";
    run_sql(f, "UPDATE source_state SET scanned_at = 1000, good_at = 900");
    struct change_result r = scan(f, files, 11);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.would_remove, 5);
    assert_non_null(strstr(r.detail, "max_removed=5"));
    assert_int_equal(r.removed, 0);
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.unchanged, 3);
    assert_int_equal(entry_count(f), 11);
    assert_lastmod(f, ROOT "x/5.xml", "2026-05-05");
    /* Their rows stay, so that the next scan finds the same difference. */
    for (int i = 0; i < 5; i++) {
        char path[32];
        snprintf(path, sizeof path, "x/%d.xml", i);
        assert_true(kept(f, path).found && kept(f, path).file.has_entry);
        assert_int_equal(kept(f, path).file.state, SOURCE_FILE_LISTED);
    }
    assert_int_equal(kept(f, "x/6.xml").file.state, SOURCE_FILE_QUARANTINED);
    struct source_state s = state_of(f);
    assert_int_equal(s.held, 5);
    assert_int_equal(s.files, 11);
    assert_true(s.scanned_at >= good_at);
    assert_int_equal(s.good_at, 900);

    /* Held as long as it lasts, then approved. */
    r = scan(f, files, 5);
    assert_int_equal(r.would_remove, 5);
    struct scan_files all = {.files = files, .count = 5};
    struct change change = scan_change;
    change.max_removed = 4;
    assert_int_equal(apply_files(f, change, &all).would_remove, 5);
    change.max_removed = 5;
    r = apply_files(f, change, &all);
    assert_int_equal(r.removed, 5);
    assert_int_equal(r.would_remove, 0);
    s = state_of(f);
    assert_int_equal(s.held, 0);
    assert_true(s.good_at == s.scanned_at);
    assert_int_equal(s.files, 8);
    /* The peak starts again from there: one of six may go. */
    files[5].state = SOURCE_FILE_GONE;
    assert_int_equal(scan(f, files + 5, 1).removed, 1);
    free_files(files, 14);
}

static void what_is_held_may_come_back(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 10);
    scan(f, files, 10);
    set_state(files, 9, SOURCE_FILE_GONE);
    assert_int_equal(scan(f, files, 9).would_remove, 9);
    assert_int_equal(state_of(f).held, 9);
    int64_t revision = revision_of(f);
    assert_int_equal(scan(f, NULL, 0).would_remove, 0);
    assert_int_equal(state_of(f).held, 0);
    assert_int_equal(revision_of(f), revision);
    free_files(files, 10);
}

static void a_share_may_go(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 10);
    scan(f, files, 10);
    set_state(files, 3, SOURCE_FILE_GONE);
    assert_int_equal(scan(f, files, 3).removed, 3);
    /* Against the peak of the last days, not against what is left. */
    set_state(files, 4, SOURCE_FILE_GONE);
    assert_int_equal(scan(f, files + 3, 1).would_remove, 1);
    free_files(files, 10);
}

static void the_last_entry_does_not_go(void **state)
{
    struct write_fixture *f = *state;
    SCAN_ONE(f, .path = "a.xml");
    assert_int_equal(SCAN_ONE(f, .path = "a.xml", .state = SOURCE_FILE_GONE).would_remove, 1);
    assert_int_equal(SCAN_ONE(f, .path = "a.xml", .state = SOURCE_FILE_EMPTY).would_remove, 1);
    assert_int_equal(entry_count(f), 1);
    /* With the guard off it does. */
    f->options.shrink_percent = 0;
    fixture_reopen(f);
    assert_int_equal(SCAN_ONE(f, .path = "a.xml", .state = SOURCE_FILE_EMPTY).removed, 1);
    assert_int_equal(entry_count(f), 0);
}

static void the_guard_checks_the_end(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 20);
    scan(f, files, 10);
    /* Nine renamed: as many come as go. */
    set_state(files, 9, SOURCE_FILE_GONE);
    struct change_result r = scan(f, files, 19);
    assert_int_equal(r.would_remove, 0);
    assert_int_equal(r.removed, 9);
    assert_int_equal(r.created, 9);
    assert_int_equal(entry_count(f), 10);
    /* Nine of what comes are another's, so that they are no gain. */
    for (size_t i = 0; i < 9; i++) {
        char loc[128];
        snprintf(loc, sizeof loc, ROOT "x/%zu.xml", i);
        put_plain(f, loc, NULL);
        files[i].state = SOURCE_FILE_LISTED;
    }
    set_state(files + 10, 9, SOURCE_FILE_GONE);
    r = scan(f, files, 19);
    assert_int_equal(r.would_remove, 9);
    assert_int_equal(r.rejected, 9);
    assert_int_equal(r.unchanged, 1);
    free_files(files, 20);
}

/* The entries of others count, as in every set. */
static void the_guard_checks_the_whole_index(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 3);
    scan(f, files, 3);
    for (int i = 0; i < 7; i++) {
        char loc[128];
        snprintf(loc, sizeof loc, ORIGIN "/api/%d.xml", i);
        put_plain(f, loc, NULL);
    }
    set_state(files, 3, SOURCE_FILE_GONE);
    assert_int_equal(scan(f, files, 3).removed, 3);
    assert_int_equal(entry_count(f), 7);
    free_files(files, 3);
}

static void each_index_is_guarded_and_all_are_approved_at_once(void **state)
{
    struct write_fixture *f = *state;
    add_index(f, ORIGIN "/s/x/index.xml");
    struct source_file *files = make_files("x", 0, 10), *others = make_files("y", 0, 10);
    struct source_file both[20];
    memcpy(both, files, 10 * sizeof *files);
    memcpy(both + 10, others, 10 * sizeof *others);
    struct scan_files s = {.files = both, .count = 20};
    struct change change = scan_change;
    change.index_name = NULL; /* by scope */
    assert_int_equal(apply_files(f, change, &s).created, 20);
    assert_int_equal(number_of(f, "SELECT count(*) FROM page WHERE entries = 10"), 2);
    /* Six of one: too much; one of the other: held with them. */
    set_state(both, 6, SOURCE_FILE_GONE);
    both[10].state = SOURCE_FILE_GONE;
    struct change_result r = apply_files(f, change, &s);
    assert_int_equal(r.would_remove, 7);
    change.max_removed = 6;
    assert_int_equal(apply_files(f, change, &s).would_remove, 7);
    change.max_removed = 7;
    assert_int_equal(apply_files(f, change, &s).removed, 7);
    free_files(files, 10);
    free_files(others, 10);
}

/* What the source's new index gains the old one loses. */
static void moves_to_the_sources_other_index_are_held(void **state)
{
    struct write_fixture *f = *state;
    const char *in_old = "SELECT sum(entries) FROM page WHERE index_id = 1";
    int64_t other = add_index(f, ORIGIN "/other.xml");
    struct source_file *files = make_files("x", 0, 11);
    scan(f, files, 10);
    put_plain(f, ORIGIN "/more.xml", NULL);
    assert_int_equal(number_of(f, in_old), 11);
    int64_t registered_at = number_of(f, "SELECT min(registered_at) FROM sitemap");

    struct scan_files s = {.files = files, .count = 11};
    struct change change = scan_change;
    change.index_name = "/other.xml";
    change.max_removed = 9;
    struct change_result r = apply_files(f, change, &s);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.would_remove, 10);
    assert_int_equal(r.created, 1); /* what is new is taken */
    assert_int_equal(number_of(f, in_old), 11);
    assert_int_equal(state_of(f).held, 10);
    change.max_removed = 10;
    r = apply_files(f, change, &s);
    assert_int_equal(r.would_remove, 0);
    assert_int_equal(r.updated, 10);
    assert_int_equal(number_of(f, in_old), 1);
    assert_int_equal(number_of(f, "SELECT sum(entries) FROM page WHERE index_id = %lld", other),
                     11);
    assert_int_equal(number_of(f, "SELECT min(registered_at) FROM sitemap"), registered_at);
    assert_int_equal(state_of(f).held, 0);
    /* The old index's peak starts again from there. */
    assert_int_equal(number_of(f, "SELECT max(entries) FROM index_peak WHERE index_id = 1"), 1);
    /* Back again, three of eleven: as few as may go. */
    change = scan_change;
    s.count = 3;
    assert_int_equal(apply_files(f, change, &s).updated, 3);
    assert_int_equal(number_of(f, in_old), 4);
    free_files(files, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(too_many_that_go_are_held_and_the_rest_applied),
        TEST(what_is_held_may_come_back),
        TEST(a_share_may_go),
        TEST(the_last_entry_does_not_go),
        TEST(the_guard_checks_the_end),
        TEST(the_guard_checks_the_whole_index),
        TEST(each_index_is_guarded_and_all_are_approved_at_once),
        TEST(moves_to_the_sources_other_index_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
