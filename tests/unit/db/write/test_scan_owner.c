/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources beside the API and beside each other, in one index; and files that have no place. */
#include "tests/unit/db/write/scan_fixture.h"

static struct change_result scan_by_scope(struct write_fixture *f, const struct source_file *files,
                                          size_t count)
{
    struct scan_files s = {.files = files, .count = count};
    struct change change = scan_change;
    change.index_name = NULL;
    return apply_files(f, change, &s);
}

static void what_another_owns_stays_theirs(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ROOT "a.xml", "2020-01-01"); /* by "tests" */
    static const struct source_file files[] = {
        {.path = "a.xml", .lastmod = "2026-01-01", .hash = {3, 4}, .urls = 5}, {.path = "b.xml"}};
    struct scan_report report;
    struct change_result r = scan_reporting(f, scan_change, FILES(files), &report);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.rejected, 1);
    assert_int_equal(report.rejections, 1);
    assert_int_equal(report.code, RULE_OWNED_BY_ANOTHER);
    assert_non_null(strstr(report.detail, "\"tests\""));
    assert_lastmod(f, ROOT "a.xml", "2020-01-01");
    struct kept_file k = kept(f, "a.xml");
    assert_int_equal(k.file.state, SOURCE_FILE_QUARANTINED);
    assert_true(k.file.refused);
    assert_false(k.file.has_entry);
    assert_string_equal(k.problem, "owned-by-another");
    assert_string_equal(k.detail, report.detail);
    /* What it holds is kept as it was sent: it need not be read again. */
    assert_true(k.file.hash[0] == 3 && k.file.urls == 5);
    assert_string_equal(k.lastmod, "2026-01-01");

    /* Told once, though it is tried again; and its age is that of the first time. */
    run_sql(f, "UPDATE source_file_row SET problem_since = 1000 WHERE refused");
    r = scan_reporting(f, scan_change, files, 1, &report);
    assert_int_equal(r.rejected, 1);
    assert_int_equal(report.rejections, 0);
    assert_false(r.changed);
    assert_int_equal(kept(f, "a.xml").file.problem_since, 1000);

    /* A file that goes takes nothing of theirs along. */
    r = SCAN_ONE(f, .path = "a.xml", .state = SOURCE_FILE_GONE);
    assert_int_equal(r.removed, 0);
    assert_int_equal(r.would_remove, 0);
    assert_lastmod(f, ROOT "a.xml", "2020-01-01");
    scan(f, files, 1);

    /* Theirs no longer. */
    drop(f, ROOT "a.xml");
    r = scan_reporting(f, scan_change, files, 1, &report);
    assert_int_equal(r.created, 1);
    k = kept(f, "a.xml");
    assert_int_equal(k.file.state, SOURCE_FILE_LISTED);
    assert_true(k.file.has_entry && !k.file.refused);
    assert_int_equal(state_of(f).quarantined, 0);
}

static void two_sources_leave_each_other_alone(void **state)
{
    struct write_fixture *f = *state;
    static const struct source_file files[] = {{.path = "a.xml"}, {.path = "b.xml"}};
    scan(f, files, 1);
    struct scan_files s = {.files = files, .count = 2};
    struct change change = scan_change;
    change.source = "other";
    struct change_result r = apply_files(f, change, &s);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.rejected, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM source_file"), 3);
    assert_int_equal(state_of(f).files, 1);
    /* The same path, of the other source. */
    static const struct source_file gone[] = {{.path = "a.xml", .state = SOURCE_FILE_GONE}};
    s = (struct scan_files){.files = gone, .count = 1};
    change = scan_change;
    change.source = "other";
    assert_int_equal(apply_files(f, change, &s).removed, 0);
    assert_true(kept(f, "a.xml").file.has_entry);
}

static void an_upsert_by_the_api_keeps_the_owner_and_lasts_until_the_file_changes(void **state)
{
    struct write_fixture *f = *state;
    struct source_file file = {.path = "a.xml", .lastmod = "2026-01-01"};
    scan(f, &file, 1);
    struct change_result r = put(f, ROOT "a.xml", "2026-02-02");
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.updated, 1);
    assert_string_equal(r.entry.source, SOURCE);
    entry_record_done(&r.entry);
    assert_lastmod(f, ROOT "a.xml", "2026-02-02");
    file.lastmod = "2026-03-03";
    assert_int_equal(scan(f, &file, 1).updated, 1);
    assert_lastmod(f, ROOT "a.xml", "2026-03-03");
    assert_true(kept(f, "a.xml").file.has_entry);
}

static void an_entry_that_was_removed_comes_back(void **state)
{
    struct write_fixture *f = *state;
    struct source_file file = {.path = "a.xml", .lastmod = "2026-01-01"};
    scan(f, &file, 1);
    assert_int_equal(drop(f, ROOT "a.xml").removed, 1);
    assert_int_equal(kept(f, "a.xml").file.state, SOURCE_FILE_LISTED);
    assert_false(kept(f, "a.xml").file.has_entry);
    assert_int_equal(scan(f, &file, 1).created, 1);
    assert_true(kept(f, "a.xml").file.has_entry);
    /* Removed and registered by somebody else: it is theirs now. */
    drop(f, ROOT "a.xml");
    put_plain(f, ROOT "a.xml", NULL);
    assert_false(kept(f, "a.xml").file.has_entry);
    assert_int_equal(scan(f, &file, 1).rejected, 1);
}

static void a_file_without_a_place_waits_for_one(void **state)
{
    static const struct {
        const char *loc, *word;
    } cases[] = {
        {"https://elsewhere.example/a.xml", "outside-site"},
        {ORIGIN INDEX, "loc-is-index-page"},
        {"ftp://www.example.com/a.xml", "loc-scheme"},
        {"/a.xml", "loc-relative"},
    };
    struct write_fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct change_result r = SCAN_ONE(f, .path = "a.xml", .loc = cases[i].loc);
        assert_int_equal(r.status, CATALOGUE_OK);
        assert_int_equal(r.rejected, 1);
        struct kept_file k = kept(f, "a.xml");
        assert_true(k.file.refused);
        assert_string_equal(k.problem, cases[i].word);
        assert_true(k.detail[0] != '\0');
    }
    assert_int_equal(state_of(f).quarantined, 1);
    assert_int_equal(SCAN_ONE(f, .path = "a.xml").created, 1);
    assert_int_equal(state_of(f).quarantined, 0);
    /* A place that is lost: the URL of the folder is another site's now. Its entry is the last
     * one, so that it stays. */
    struct change_result r = SCAN_ONE(f, .path = "a.xml", .loc = "https://elsewhere.example/a.xml");
    assert_int_equal(r.would_remove, 1);
    assert_int_equal(entry_count(f), 1);
    assert_int_equal(kept(f, "a.xml").file.state, SOURCE_FILE_LISTED);
}

static void an_index_that_went_takes_the_entries_and_leaves_the_files(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 5);
    scan(f, files, 5);
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE, .index_remove = {.index_id = f->index}, .max_removed = 5};
    assert_int_equal(apply(f, &change).removed, 5);
    assert_true(kept(f, "x/1.xml").found);
    assert_false(kept(f, "x/1.xml").file.has_entry);
    assert_int_equal(state_of(f).files, 5);
    /* By scope nothing holds them. */
    assert_int_equal(scan(f, files, 5).code, RULE_INDEX_UNKNOWN);
    assert_int_equal(scan_by_scope(f, files, 5).rejected, 5);
    assert_true(kept(f, "x/1.xml").file.refused);
    /* Before and after the purge of what is left of the old one. */
    f->index = add_index(f, ORIGIN INDEX);
    assert_int_equal(scan(f, files, 3).created, 3);
    for (int i = 0; i < 3; i++) {
        struct change purge = {.kind = CHANGE_PURGE};
        apply(f, &purge);
    }
    assert_int_equal(scan_by_scope(f, files + 3, 2).created, 2);
    assert_int_equal(state_of(f).listed, 5);
    assert_true(kept(f, "x/4.xml").file.has_entry);
    free_files(files, 5);
}

static void a_site_that_went_and_came_is_another_one(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 5);
    scan(f, files, 5);
    struct change change = {
        .kind = CHANGE_SITE_REMOVE, .site_remove = {.site_id = f->site}, .max_removed = 5};
    assert_int_equal(apply(f, &change).removed, 5);
    assert_false(kept(f, "x/1.xml").file.has_entry);
    assert_int_equal(scan_by_scope(f, files, 5).rejected, 5);
    assert_string_equal(kept(f, "x/1.xml").problem, "site-unknown");
    f->site = add_site(f, ORIGIN, 500);
    f->index = add_index(f, ORIGIN INDEX);
    /* Nothing is removed with the old site's entries: they are gone. */
    struct change_result r = scan(f, files, 5);
    assert_int_equal(r.created, 5);
    assert_int_equal(r.removed, 0);
    assert_true(kept(f, "x/1.xml").file.has_entry);
    free_files(files, 5);
}

static void a_source_that_was_removed_writes_nothing(void **state)
{
    struct write_fixture *f = *state;
    struct source_file *files = make_files("x", 0, 2);
    struct scan_files s = {.files = files, .count = 2};
    struct change add = {.kind = CHANGE_SOURCE_ADD}, of_site = scan_change;
    add.source_put = (struct change_source_put){
        .made = {.name = SOURCE, .site_id = f->site, .directory = "/x", .url = ROOT},
        .set = SOURCE_SET_DIRECTORY | SOURCE_SET_URL};
    of_site.grant.site_id = f->site;
    assert_int_equal(apply_files(f, of_site, &s).status, CATALOGUE_NOT_FOUND);
    assert_int_equal(apply_plain(f, &add).status, CATALOGUE_OK);
    assert_int_equal(apply_files(f, of_site, &s).created, 2);
    struct change remove = {.kind = CHANGE_SITE_REMOVE, .site_remove = {.site_id = f->site}};
    remove.max_removed = 2;
    assert_int_equal(apply(f, &remove).removed, 2);
    assert_int_equal(apply_files(f, of_site, &s).status, CATALOGUE_NOT_FOUND);
    free_files(files, 2);
}

static void an_entry_moved_within_its_site_is_still_the_files(void **state)
{
    struct write_fixture *f = *state;
    add_index(f, ORIGIN "/s/index.xml");
    struct source_file *files = make_files("x", 0, 5);
    assert_int_equal(scan(f, files, 5).created, 5);
    struct change change = put_change(ROOT "x/1.xml", NULL);
    change.entry.index = ORIGIN "/s/index.xml";
    assert_int_equal(apply_plain(f, &change).updated, 1);
    assert_true(kept(f, "x/1.xml").file.has_entry);
    /* By scope it stays where it is; by name it moves back. */
    assert_int_equal(scan_by_scope(f, files + 1, 1).unchanged, 1);
    assert_int_equal(scan(f, files + 1, 1).updated, 1);
    assert_int_equal(
        number_of(f, "SELECT count(*) FROM sitemap WHERE address >> 32 = %lld", f->index), 5);
    free_files(files, 5);
}

/* A CDN's host, which is a site of its own as well: the index decides whose the entry is. */
static void an_index_of_another_site_takes_the_entry_there(void **state)
{
    static const char *const cdn[] = {"cdn.example.net", NULL};
    struct write_fixture *f = *state;
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_CROSS_HOSTS, .cross_hosts = cdn}}};
    assert_int_equal(apply(f, &change).status, CATALOGUE_OK);
    add_site(f, "https://cdn.example.net", 500);
    add_index(f, "https://cdn.example.net/index.xml");
    static const struct source_file files[] = {
        {.path = "a.xml", .loc = "https://cdn.example.net/a.xml"},
        {.path = "b.xml", .loc = "https://cdn.example.net/b.xml"}};
    struct scan_files s = {.files = files, .count = 2};
    change = scan_change;
    change.index_name = ORIGIN INDEX;
    assert_int_equal(apply_files(f, change, &s).created, 2);
    put_plain(f, ORIGIN "/more.xml", NULL);
    change.index_name = "https://cdn.example.net/index.xml";
    change.max_removed = 2;
    struct change_result r = apply_files(f, change, &s);
    assert_int_equal(r.removed, 2);
    assert_int_equal(r.created, 2);
    assert_true(kept(f, "a.xml").file.has_entry);
    assert_int_equal(entry_count(f), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_another_owns_stays_theirs),
        TEST(two_sources_leave_each_other_alone),
        TEST(an_upsert_by_the_api_keeps_the_owner_and_lasts_until_the_file_changes),
        TEST(an_entry_that_was_removed_comes_back),
        TEST(a_file_without_a_place_waits_for_one),
        TEST(an_index_that_went_takes_the_entries_and_leaves_the_files),
        TEST(a_site_that_went_and_came_is_another_one),
        TEST(a_source_that_was_removed_writes_nothing),
        TEST(an_entry_moved_within_its_site_is_still_the_files),
        TEST(an_index_of_another_site_takes_the_entry_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
