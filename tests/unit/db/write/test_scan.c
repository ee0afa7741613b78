/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_SCAN: what becomes of files, one by one. */
#include "tests/unit/db/write/scan_fixture.h"

static void a_new_file_is_listed_with_all_it_holds(void **state)
{
    struct write_fixture *f = *state;
    struct change_result r = SCAN_ONE(
        f, .path = "a.xml", .device = UINT64_MAX, .inode = 1ull << 63, .size = 512, .mtime_ns = -5,
        .hash = {0x8000000000000001, 2}, .lastmod = "2026-03-01T10:00:00Z", .urls = 3, .bytes = 450,
        .newest_lastmod = "2026-02-01", .one_lastmod = true, .future = true);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 1);
    assert_true(r.changed);
    assert_lastmod(f, ROOT "a.xml", "2026-03-01T10:00:00Z");

    struct kept_file k = kept(f, "a.xml");
    assert_true(k.found);
    assert_int_equal(k.file.state, SOURCE_FILE_LISTED);
    assert_string_equal(k.loc, ROOT "a.xml");
    assert_true(k.file.device == UINT64_MAX && k.file.inode == 1ull << 63);
    assert_int_equal(k.file.size, 512);
    assert_int_equal(k.file.mtime_ns, -5);
    assert_true(k.file.hash[0] == 0x8000000000000001 && k.file.hash[1] == 2);
    assert_string_equal(k.lastmod, "2026-03-01T10:00:00Z");
    assert_int_equal(k.file.urls, 3);
    assert_int_equal(k.file.bytes, 450);
    assert_string_equal(k.newest, "2026-02-01");
    assert_true(k.file.one_lastmod && k.file.future && k.file.has_entry);
    assert_false(k.file.refused);
    assert_string_equal(k.problem, "-");

    struct source_state s = state_of(f);
    assert_true(s.scanned_at > 0 && s.good_at == s.scanned_at);
    assert_int_equal(s.files, 1);
    assert_int_equal(s.listed, 1);
    assert_int_equal(s.quarantined, 0);
}

static void the_date_is_what_is_reported(void **state)
{
    struct write_fixture *f = *state;
    SCAN_ONE(f, .path = "a.xml", .lastmod = "2026-03-01");
    assert_int_equal(SCAN_ONE(f, .path = "a.xml", .lastmod = "2020-01-01").updated, 1);
    assert_lastmod(f, ROOT "a.xml", "2020-01-01");
    assert_int_equal(SCAN_ONE(f, .path = "a.xml").updated, 1);
    assert_lastmod(f, ROOT "a.xml", NULL);
}

static void a_touch_makes_no_revision_and_is_kept(void **state)
{
    struct write_fixture *f = *state;
    SCAN_ONE(f, .path = "a.xml", .mtime_ns = 1, .lastmod = "2026-03-01", .hash = {1, 1});
    int64_t revision = revision_of(f);
    struct change_result r =
        SCAN_ONE(f, .path = "a.xml", .mtime_ns = 2, .lastmod = "2026-03-01", .hash = {1, 1});
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.unchanged, 1);
    assert_false(r.changed);
    assert_int_equal(r.revision, revision);
    fixture_reopen(f);
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(kept(f, "a.xml").file.mtime_ns, 2);
}

static void what_is_no_sitemap_has_no_entry_and_is_kept(void **state)
{
    struct write_fixture *f = *state;
    static const struct source_file files[] = {
        {.path = "robots.txt", .state = SOURCE_FILE_IGNORED, .inode = 4},
        {.path = "empty.xml", .state = SOURCE_FILE_EMPTY, .hash = {1, 2}},
        {.path = "a.xml"},
    };
    struct change_result r = scan(f, FILES(files));
    assert_int_equal(r.created, 1);
    assert_int_equal(entry_count(f), 1);
    assert_int_equal(kept(f, "robots.txt").file.state, SOURCE_FILE_IGNORED);
    assert_int_equal(kept(f, "robots.txt").file.inode, 4);
    assert_int_equal(kept(f, "empty.xml").file.state, SOURCE_FILE_EMPTY);
    assert_true(kept(f, "empty.xml").file.hash[1] == 2);
    assert_false(kept(f, "empty.xml").file.has_entry);
    assert_int_equal(state_of(f).files, 3);
    assert_int_equal(state_of(f).listed, 1);
}

static void what_becomes_empty_loses_its_entry(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 10);
    scan(f, files, 10);
    struct change_result r = SCAN_ONE(f, .path = "x/3.xml", .state = SOURCE_FILE_EMPTY);
    assert_int_equal(r.removed, 1);
    r = SCAN_ONE(f, .path = "x/4.xml", .state = SOURCE_FILE_IGNORED);
    assert_int_equal(r.removed, 1);
    assert_int_equal(position_of(f, ROOT "x/3.xml"), -1);
    assert_int_equal(kept(f, "x/3.xml").file.state, SOURCE_FILE_EMPTY);
    assert_int_equal(state_of(f).files, 10);
    assert_int_equal(state_of(f).listed, 8);
    /* And has it again, in the first place that is free. */
    r = scan(f, files + 3, 1);
    assert_int_equal(r.created, 1);
    assert_int_equal(position_of(f, ROOT "x/3.xml"), 3);
    free_files(files, 10);
}

static void what_is_gone_makes_room_first(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 10);
    scan(f, files, 10);
    static const struct source_file renamed[] = {{.path = "x/new.xml"},
                                                 {.path = "x/6.xml", .state = SOURCE_FILE_GONE}};
    struct change_result r = scan(f, FILES(renamed));
    assert_int_equal(r.removed, 1);
    assert_int_equal(r.created, 1);
    assert_int_equal(position_of(f, ROOT "x/new.xml"), 6);
    assert_false(kept(f, "x/6.xml").found);
    /* Gone twice, or what never was: nothing. */
    r = scan(f, renamed + 1, 1);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.removed, 0);
    assert_false(r.changed);
    free_files(files, 10);
}

static void quarantine_keeps_the_last_good_entry(void **state)
{
    struct write_fixture *f = *state;
    SCAN_ONE(f, .path = "a.xml", .lastmod = "2026-01-01", .hash = {5, 6}, .urls = 9, .bytes = 99,
             .newest_lastmod = "2025-12-31", .size = 1);
    int64_t revision = revision_of(f);
    struct change_result r =
        SCAN_ONE(f, .path = "a.xml", .state = SOURCE_FILE_QUARANTINED, .size = 2, .mtime_ns = 3,
                 .problem = "truncated", .detail = "ends too early", .line = 7, .column = 8);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision);
    assert_lastmod(f, ROOT "a.xml", "2026-01-01");
    struct kept_file k = kept(f, "a.xml");
    assert_int_equal(k.file.state, SOURCE_FILE_QUARANTINED);
    assert_int_equal(k.file.size, 2);
    assert_int_equal(k.file.mtime_ns, 3);
    assert_string_equal(k.problem, "truncated");
    assert_string_equal(k.detail, "ends too early");
    assert_int_equal(k.file.line, 7);
    assert_int_equal(k.file.column, 8);
    assert_true(k.file.has_entry);
    assert_false(k.file.refused);
    /* What it held when it was good. */
    assert_true(k.file.hash[0] == 5 && k.file.hash[1] == 6);
    assert_string_equal(k.lastmod, "2026-01-01");
    assert_int_equal(k.file.urls, 9);
    assert_string_equal(k.newest, "2025-12-31");
    assert_int_equal(state_of(f).quarantined, 1);
    assert_int_equal(state_of(f).listed, 0);
    /* Good again. */
    r = SCAN_ONE(f, .path = "a.xml", .lastmod = "2026-01-02", .hash = {7, 7}, .urls = 1);
    assert_int_equal(r.updated, 1);
    k = kept(f, "a.xml");
    assert_int_equal(k.file.state, SOURCE_FILE_LISTED);
    assert_string_equal(k.problem, "-");
    assert_string_equal(k.detail, "-");
    assert_int_equal(k.file.problem_since, 0);
    assert_int_equal(state_of(f).quarantined, 0);
}

static void a_problem_is_as_old_as_its_word(void **state)
{
    struct write_fixture *f = *state;
    struct source_file bad = {
        .path = "a.xml", .state = SOURCE_FILE_QUARANTINED, .problem = "truncated"};
    scan(f, &bad, 1);
    assert_true(kept(f, "a.xml").file.problem_since >= (int64_t)1700000000);
    assert_false(kept(f, "a.xml").file.has_entry);
    run_sql(f, "UPDATE source_file_row SET problem_since = 1000");
    bad.detail = "still";
    bad.size = 4;
    scan(f, &bad, 1);
    assert_int_equal(kept(f, "a.xml").file.problem_since, 1000);
    assert_string_equal(kept(f, "a.xml").detail, "still");
    bad.problem = "doctype";
    scan(f, &bad, 1);
    assert_true(kept(f, "a.xml").file.problem_since > 1000);
    /* Gone without ever having had an entry. */
    bad.state = SOURCE_FILE_GONE;
    struct change_result r = scan(f, &bad, 1);
    assert_int_equal(r.removed, 0);
    assert_int_equal(state_of(f).files, 0);
    assert_int_equal(state_of(f).quarantined, 0);
}

static void a_moved_folder_moves_its_entries(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 10);
    scan(f, files, 10);
    for (size_t i = 0; i < 10; i++) {
        char *loc = NULL;
        assert_true(asprintf(&loc, ORIGIN "/t/%zu.xml", i) > 0);
        files[i].loc = loc;
    }
    /* The end is as large as the beginning: the shrink guard has nothing to hold. */
    struct change_result r = scan(f, files, 10);
    assert_int_equal(r.would_remove, 0);
    assert_int_equal(r.removed, 10);
    assert_int_equal(r.created, 10);
    assert_int_equal(entry_count(f), 10);
    assert_true(position_of(f, ORIGIN "/t/9.xml") >= 0);
    assert_string_equal(kept(f, "x/9.xml").loc, ORIGIN "/t/9.xml");
    for (size_t i = 0; i < 10; i++)
        free((char *)(uintptr_t)files[i].loc);
    free_files(files, 10);
}

static void locs_are_kept_as_normalised(void **state)
{
    struct write_fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        struct change_result r = SCAN_ONE(f, .path = "\xc3\xa4.xml", .loc = ROOT "\xc3\xa4.xml");
        assert_int_equal(i == 0 ? r.created : r.unchanged, 1);
        assert_int_equal(r.removed, 0);
    }
    assert_string_equal(kept(f, "\xc3\xa4.xml").loc, ROOT "%C3%A4.xml");
    assert_true(kept(f, "\xc3\xa4.xml").file.has_entry);
}

static void a_dry_run_counts_and_writes_nothing(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 10);
    scan(f, files, 9);
    int64_t revision = revision_of(f);
    files[0].state = SOURCE_FILE_GONE;
    files[1].lastmod = "2026-09-09";
    files[2].state = SOURCE_FILE_QUARANTINED;
    files[2].problem = "truncated";
    struct scan_files s = {.files = files, .count = 10};
    struct change change = scan_change;
    change.dry_run = true;
    struct change_result r = apply_files(f, change, &s);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.removed, 1);
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.unchanged, 6);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(state_of(f).quarantined, 0);
    assert_int_equal(state_of(f).files, 9);
    r = scan(f, files, 10);
    assert_int_equal(r.removed + r.updated + r.created, 3);
    free_files(files, 10);
}

static void rows_that_cannot_be_read_change_nothing(void **state)
{
    struct write_fixture *f = *state;
    enum { COUNT = 1000 }; /* more than memory takes */
    struct source_file *files = make_files("x", 0, COUNT);
    const struct scan_files s = {.files = files, .count = COUNT};
    for (int kept_before = 0; kept_before < 2; kept_before++) {
        struct change change = scan_change;
        change.rows = files_rows(&s);
        cut_spools(10000);
        struct change_result r = apply(f, &change);
        assert_int_equal(r.status, CATALOGUE_UNAVAILABLE);
        assert_non_null(strstr(r.detail, "Input/output error"));
        assert_int_equal(r.created, 0);
        assert_int_equal(entry_count(f), kept_before);
        scan(f, files, 1);
    }
    free_files(files, COUNT);
}

static void what_cannot_be_scanned_is_refused_whole(void **state)
{
    struct write_fixture *f = *state;
    struct source_file file = {.path = "a.xml"};
    struct scan_files s = {.files = &file, .count = 1};
    struct change change = scan_change;
    change.index_name = "/other.xml";
    struct change_result r = apply_files(f, change, &s);
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.code, RULE_INDEX_UNKNOWN);
    change = scan_change;
    change.source = "";
    assert_int_equal(apply_files(f, change, &s).code, RULE_NAME);
    assert_int_equal(state_of(f).scanned_at, 0);
}

static void an_empty_scan_is_a_scan(void **state)
{
    struct write_fixture *f = *state;
    int64_t revision = revision_of(f);
    struct change_result r = scan(f, NULL, 0);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision);
    assert_true(state_of(f).scanned_at > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_file_is_listed_with_all_it_holds),
        TEST(the_date_is_what_is_reported),
        TEST(a_touch_makes_no_revision_and_is_kept),
        TEST(what_is_no_sitemap_has_no_entry_and_is_kept),
        TEST(what_becomes_empty_loses_its_entry),
        TEST(what_is_gone_makes_room_first),
        TEST(quarantine_keeps_the_last_good_entry),
        TEST(a_problem_is_as_old_as_its_word),
        TEST(a_moved_folder_moves_its_entries),
        TEST(locs_are_kept_as_normalised),
        TEST(a_dry_run_counts_and_writes_nothing),
        TEST(rows_that_cannot_be_read_change_nothing),
        TEST(what_cannot_be_scanned_is_refused_whole),
        TEST(an_empty_scan_is_a_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
