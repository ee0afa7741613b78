/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_SCAN where a site is full: pages of 50,000 are filled to their last place. */
#include "tests/unit/db/write/scan_fixture.h"

#define SMALL "https://small.example"

static struct change_result scan_small(struct write_fixture *f, const struct source_file *files,
                                       size_t count, struct scan_report *report)
{
    struct change change = scan_change;
    change.index_name = SMALL "/index.xml";
    return scan_reporting(f, change, files, count, report);
}

static void room_that_comes_free_is_used(void **state)
{
    struct write_fixture *f = *state;
    enum { COUNT = 50001 };
    add_site(f, SMALL, 1);
    add_index(f, SMALL "/index.xml");
    struct source_file *files = make_files("x", 0, COUNT);
    char(*locs)[48] = calloc(COUNT, sizeof *locs);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(locs[i], sizeof locs[i], SMALL "/%zu.xml", i);
        files[i].loc = locs[i];
    }
    struct scan_report report;
    struct change_result r = scan_small(f, files, COUNT, &report);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 50000);
    assert_int_equal(r.rejected, 1);
    assert_int_equal(report.rejections, 1);
    assert_int_equal(report.code, RULE_SITE_FULL);
    assert_int_equal(report.row, 50001);
    struct kept_file k = kept(f, "x/50000.xml");
    assert_true(k.file.refused);
    assert_string_equal(k.problem, "too-many-pages");
    assert_true(k.file.urls == 10 && k.file.hash[1] == 7);
    /* One goes, though it is reported last. */
    const struct source_file next[] = {files[50000],
                                       {.path = "x/7.xml", .state = SOURCE_FILE_GONE}};
    r = scan_small(f, next, 2, &report);
    assert_int_equal(r.removed, 1);
    assert_int_equal(r.created, 1);
    assert_int_equal(position_of(f, SMALL "/50000.xml"), 7);
    assert_false(kept(f, "x/50000.xml").file.refused);
    assert_int_equal(state_of(f).quarantined, 0);
    free(locs);
    free_files(files, COUNT);
}

/* The cap was lowered under what there is: pages that empty are lost, and a third of what was to
 * come finds no room. Then nothing is done, rather than more removed than the guard allows. */
static void room_that_is_lost_does_not_cheat_the_guard(void **state)
{
    struct write_fixture *f = *state;
    enum { COUNT = LIMIT_PAGE_ENTRIES * 3 / 2 };
    struct source_file *old = make_files("x", 0, COUNT), *new = make_files("y", 0, COUNT);
    struct source_file *both = calloc(2 * COUNT, sizeof *both);
    scan(f, old, COUNT);
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site, .fields = {.set = SITE_SET_MAX_PAGES, .max_pages = 1}}};
    assert_int_equal(apply(f, &change).status, CATALOGUE_OK);
    set_state(old, COUNT, SOURCE_FILE_GONE);
    memcpy(both, old, COUNT * sizeof *both);
    memcpy(both + COUNT, new, COUNT * sizeof *both);
    int64_t revision = revision_of(f);
    struct change_result r = scan(f, both, 2 * COUNT);
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.code, RULE_SHRINK_GUARD);
    assert_int_equal(r.would_remove, COUNT);
    assert_int_equal(r.removed + r.created, 0);
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(entry_count(f), COUNT);

    struct scan_files all = {.files = both, .count = 2 * COUNT};
    change = scan_change;
    change.max_removed = COUNT;
    r = apply_files(f, change, &all);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.removed, COUNT);
    assert_int_equal(r.created, LIMIT_PAGE_ENTRIES);
    assert_int_equal(r.rejected, COUNT - LIMIT_PAGE_ENTRIES);
    free(both);
    free_files(old, COUNT);
    free_files(new, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(room_that_comes_free_is_used),
        TEST(room_that_is_lost_does_not_cheat_the_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
