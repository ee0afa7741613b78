/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The catalogue: where memory runs out a read, a check or a backup says so. */
#include "tests/unit/alloc/db_world.h"

#include <sqlite3.h>

static bool count_page(void *context, const struct page_record *page, const char *url)
{
    (void)page;
    *(unsigned *)context += strcmp(url, INDEX) == 0;
    return true;
}

static bool count_entry(void *context, const struct entry_record *record)
{
    assert_non_null(record->loc);
    ++*(unsigned *)context;
    return true;
}

static bool read_all(void *context)
{
    struct world *w = context;
    struct catalogue_view *v;
    struct catalogue_revisions revisions;
    struct registry *registry = NULL;
    struct entry_record record;
    unsigned count = 0, pages = 0;
    if (!fine(catalogue_view_begin(w->c, &v)))
        return false;
    bool good = fine(catalogue_view_revisions(v, &revisions)) &&
                fine(catalogue_view_registry(v, &registry));
    registry_unref(registry);
    good = good && fine(catalogue_view_pages_since(v, 0, 0, count_page, &pages));
    struct entry_list list = {.prefix = ORIGIN};
    good = good && fine(catalogue_view_list(v, &list, count_entry, &count));
    list = (struct entry_list){.index_id = 1};
    good = good && fine(catalogue_view_list(v, &list, count_entry, &count));
    memset(&record, 0, sizeof record);
    if (good) {
        assert_int_equal(pages, 1);
        assert_int_equal(count, 2 * revisions.entries);
        good = fine(catalogue_view_entry_by_loc(v, 1, ORIGIN "/kept.xml", &record));
        if (good)
            assert_string_equal(record.loc, ORIGIN "/kept.xml");
        if (good)
            entry_record_done(&record);
    }
    catalogue_view_end(v);
    return good;
}

static void count_change(void *context, const struct history_change *change)
{
    assert_true(change->revision > 0);
    ++*(unsigned *)context;
}

static void count_row(void *context, const struct entry_record *before,
                      const struct entry_record *after)
{
    assert_true(before == NULL && after != NULL);
    ++*(unsigned *)context;
}

static bool read_history(void *context)
{
    struct world *w = context;
    struct catalogue_view *v;
    unsigned changes = 0, rows = 0, differences = 0;
    uint64_t looked_at, next;
    bool more;
    if (!fine(catalogue_view_begin(w->c, &v)))
        return false;
    const struct history_query query = {.loc = ORIGIN "/kept.xml", .limit = 10};
    const struct history_difference diff = {
        .site_id = 1, .index_id = 1, .to = 1000, .each = count_row, .context = &differences};
    bool good = fine(catalogue_view_history(v, &query, count_change, &changes, &looked_at, &next));
    for (uint64_t revision = 1; good && revision <= 3; revision++)
        good = fine(catalogue_view_history_rows(v, revision, 0, 1, count_row, &rows, &more));
    good = good && fine(catalogue_view_history_diff(v, &diff));
    if (good) {
        assert_int_equal(changes, 1);
        assert_int_equal(rows, 1);
        assert_int_equal(differences, 1);
    }
    catalogue_view_end(v);
    return good;
}

static bool check_all(void *context)
{
    struct world *w = context;
    uint64_t count = 0;
    bool good = fine(catalogue_check(w->c, report_problem, NULL, &count));
    assert_int_equal(count, 0);
    return good;
}

static bool back_up(void *context)
{
    struct world *w = context;
    char path[128], why[256] = "";
    snprintf(path, sizeof path, "%s/copy.db", w->folder);
    bool good = fine(catalogue_backup(w->c, path, NULL, NULL, why, sizeof why));
    assert_int_equal(access(path, F_OK) == 0, good);
    unlink(path);
    return good;
}

static void test_reads(void **state)
{
    struct world *w = world_make();
    fill(w);
    alloc_sweep("views", read_all, w);
    alloc_sweep("history", read_history, w);
    alloc_sweep("check", check_all, w);
    alloc_sweep("backup", back_up, w);
    catalogue_close(w->c);
    world_remove(w);
}

int main(void)
{
    /* Each of the engine's allocations may fail, not only those too large for a connection's own.
     */
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
