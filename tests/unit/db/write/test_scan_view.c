/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What views show about sources and files, of a large scan, and random ones. */
#include <time.h>

#include "tests/unit/db/write/scan_fixture.h"

static struct catalogue_view *view(struct write_fixture *f)
{
    struct catalogue_view *v = NULL;
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    return v;
}

struct seen {
    struct catalogue_view *v;
    size_t count;
    size_t ends_after;
    char text[512];
};

static bool see_file(void *context, const struct source_file *file)
{
    struct seen *seen = context;
    struct source_file again;
    bool found;
    /* The one beside it may be asked for meanwhile. */
    assert_int_equal(catalogue_view_source_file(seen->v, SOURCE, "b.xml", &again, &found),
                     CATALOGUE_OK);
    assert_true(found && strcmp(again.path, "b.xml") == 0);
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, sizeof seen->text - len, "%s:%d:%d ", file->path, file->state,
             file->has_entry);
    return ++seen->count != seen->ends_after;
}

static void files_are_reported_by_path(void **state)
{
    struct write_fixture *f = *state;
    static const struct source_file files[] = {
        {.path = "b.xml"},
        {.path = "a/z.xml"},
        {.path = "a.xml", .state = SOURCE_FILE_QUARANTINED, .problem = "truncated"},
        {.path = "B.xml", .state = SOURCE_FILE_EMPTY},
    };
    scan(f, FILES(files));
    struct seen seen = {.v = view(f)};
    assert_int_equal(catalogue_view_source_files(seen.v, SOURCE, SOURCE_FILES_ALL, see_file, &seen),
                     CATALOGUE_OK);
    assert_string_equal(seen.text, "B.xml:1:0 a.xml:3:0 a/z.xml:0:1 b.xml:0:1 ");
    seen = (struct seen){.v = seen.v, .ends_after = 2};
    assert_int_equal(catalogue_view_source_files(seen.v, SOURCE, SOURCE_FILES_ALL, see_file, &seen),
                     CATALOGUE_OK);
    assert_int_equal(seen.count, 2);
    /* What is not a source has nothing. */
    struct source_state s;
    struct source_file file;
    bool found = true;
    assert_int_equal(catalogue_view_source_state(seen.v, "nobody", &s), CATALOGUE_OK);
    assert_true(s.scanned_at == 0 && s.files == 0);
    assert_int_equal(catalogue_view_source_file(seen.v, "nobody", "b.xml", &file, &found),
                     CATALOGUE_OK);
    assert_false(found);
    assert_int_equal(catalogue_view_source_files(seen.v, "nobody", SOURCE_FILES_ALL, NULL, NULL),
                     CATALOGUE_OK);
    catalogue_view_end(seen.v);
}

/* By indexes that the statements name: without them they could not be prepared. */
static void what_is_wrong_is_reported_alone(void **state)
{
    struct write_fixture *f = *state;
    static const struct source_file files[] = {
        {.path = "d.xml", .remarks = "x"},
        {.path = "a.xml", .state = SOURCE_FILE_QUARANTINED, .problem = "truncated"},
        {.path = "b.xml"},
        {.path = "c.xml", .remarks = "y"},
        {.path = "e.xml", .state = SOURCE_FILE_QUARANTINED, .problem = "doctype"},
    };
    struct source_state s;
    scan(f, FILES(files));
    struct seen seen = {.v = view(f)};
    assert_int_equal(catalogue_view_source_state(seen.v, SOURCE, &s), CATALOGUE_OK);
    assert_true(s.remarked == 2 && s.quarantined == 2);
    assert_int_equal(
        catalogue_view_source_files(seen.v, SOURCE, SOURCE_FILES_REMARKED, see_file, &seen),
        CATALOGUE_OK);
    assert_int_equal(
        catalogue_view_source_files(seen.v, SOURCE, SOURCE_FILES_REFUSED, see_file, &seen),
        CATALOGUE_OK);
    assert_string_equal(seen.text, "c.xml:0:1 d.xml:0:1 a.xml:3:0 e.xml:3:0 ");
    seen = (struct seen){.v = seen.v, .ends_after = 1};
    assert_int_equal(
        catalogue_view_source_files(seen.v, SOURCE, SOURCE_FILES_REMARKED, see_file, &seen),
        CATALOGUE_OK);
    assert_int_equal(seen.count, 1);
    catalogue_view_end(seen.v);
}

/* ---- the check ------------------------------------------------------------------------- */

static void the_check_knows_the_files(void **state)
{
    static const char *const damages[] = {
        "UPDATE source_file_row SET state = 9",
        "UPDATE source_file_row SET problem = 'truncated'",
        "UPDATE source_file_row SET refused = 1",
        "UPDATE source_file_row SET hash = x'00'",
        "UPDATE source_file_row SET site = NULL",
        "UPDATE source_file_row SET loc = 'HTTPS://www.example.com/s/a.xml'",
        "UPDATE source_file_row SET path = '/a.xml'",
        "UPDATE source_state SET files = 2",
        "UPDATE source_state SET listed = 0",
        "UPDATE source_state SET quarantined = 1",
        "DELETE FROM source_state",
        "PRAGMA foreign_keys = OFF; INSERT INTO source_state VALUES(99, 0, 0, 0, 0, 0, 0, 0, 0)",
        "DROP INDEX source_file_loc",
    };
    struct write_fixture *f = *state;
    SCAN_ONE(f, .path = "a.xml");
    run_sql(f, "CREATE TEMP TABLE kept_file AS SELECT * FROM source_file_row");
    run_sql(f, "CREATE TEMP TABLE kept_state AS SELECT * FROM source_state");
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        uint64_t problems = 0;
        run_sql(f, "%s", damages[i]);
        assert_int_equal(catalogue_check(f->c, NULL, NULL, &problems), CATALOGUE_OK);
        if (problems == 0)
            fail_msg("not found: %s", damages[i]);
        run_sql(f,
                "DELETE FROM source_state; INSERT INTO source_state SELECT * FROM kept_state;"
                "DELETE FROM source_file_row; INSERT INTO source_file_row SELECT * FROM kept_file");
    }
    run_sql(f, "CREATE INDEX source_file_loc ON source_file_row(site, loc)"
               " WHERE site IS NOT NULL AND loc <> path");
}

/* ---- a large scan ---------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool count_file(void *context, const struct source_file *file)
{
    *(size_t *)context += file->has_entry;
    return true;
}

static void many_files_at_once(void **state)
{
    enum { COUNT = 20000 };
    struct write_fixture *f = *state;
    struct source_file *files = make_files("products/of/some/department", 0, COUNT);
    struct scan_report report;
    double start = seconds();
    assert_int_equal(scan_reporting(f, scan_change, files, COUNT, &report).created, COUNT);
    print_message("first scan: %.2f s\n", seconds() - start);
    assert_int_equal(report.rejections, 0);

    start = seconds();
    for (size_t i = 0; i < COUNT; i++)
        files[i].mtime_ns++;
    assert_int_equal(scan(f, files, COUNT).unchanged, COUNT);
    print_message("all touched: %.2f s\n", seconds() - start);
    start = seconds();
    for (size_t i = 0; i < COUNT; i++)
        files[i].lastmod = "2026-02-02T00:00:00Z";
    assert_int_equal(scan(f, files, COUNT).updated, COUNT);
    print_message("all changed: %.2f s\n", seconds() - start);
    start = seconds();
    set_state(files, COUNT / 4, SOURCE_FILE_GONE);
    assert_int_equal(scan(f, files, COUNT / 4).removed, COUNT / 4);
    print_message("a quarter gone: %.2f s\n", seconds() - start);
    start = seconds();
    assert_false(SCAN_ONE(f, .path = "new.txt", .state = SOURCE_FILE_IGNORED).changed);
    print_message("one ignored: %.4f s\n", seconds() - start);

    struct catalogue_view *v = view(f);
    size_t count = 0;
    start = seconds();
    assert_int_equal(catalogue_view_source_files(v, SOURCE, SOURCE_FILES_ALL, count_file, &count),
                     CATALOGUE_OK);
    print_message("all files: %.2f s\n", seconds() - start);
    assert_int_equal(count, COUNT - COUNT / 4);
    catalogue_view_end(v);
    free_files(files, COUNT);
}

/* ---- random ---------------------------------------------------------------------------- */

enum { NAMES = 40, ROUNDS = 300 };

/* What a naive scan makes of a file; the guard is off. */
struct model {
    bool kept, listed;
    int date;
};

static uint32_t chance(uint32_t below)
{
    static uint64_t seed = 20260101;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static void expect(struct write_fixture *f, const struct model *models)
{
    int64_t listed = 0, files = 0;
    for (int i = 0; i < NAMES; i++) {
        char loc[128], date[16];
        snprintf(loc, sizeof loc, ROOT "x/%d.xml", i);
        snprintf(date, sizeof date, "20%02d-01-01", models[i].date);
        files += models[i].kept;
        listed += models[i].listed;
        if (models[i].listed)
            assert_lastmod(f, loc, date);
    }
    assert_int_equal(entry_count(f), listed);
    assert_int_equal(number_of(f, "SELECT count(*) FROM source_file"), files);
}

static void random_scans_end_as_a_naive_one(void **state)
{
    struct write_fixture *f = *state;
    struct model models[NAMES] = {0};
    struct source_file *all = make_files("x", 0, NAMES);
    f->options.shrink_percent = 0;
    fixture_reopen(f);
    for (int round = 0; round < ROUNDS; round++) {
        struct source_file some[NAMES];
        char dates[NAMES][16];
        size_t count = 0;
        for (int i = 0; i < NAMES; i++) {
            struct model *m = &models[i];
            char loc[128];
            snprintf(loc, sizeof loc, ROOT "x/%d.xml", i);
            if (chance(20) == 0 && m->listed) {
                assert_int_equal(drop(f, loc).removed, 1);
                m->listed = false;
            }
            if (chance(3) != 0)
                continue;
            struct source_file *file = &some[count];
            *file = all[i];
            file->state = (enum source_file_state)chance(5);
            file->problem = file->state == SOURCE_FILE_QUARANTINED ? "truncated" : NULL;
            if (file->state != SOURCE_FILE_QUARANTINED)
                m->listed = file->state == SOURCE_FILE_LISTED;
            m->kept = file->state != SOURCE_FILE_GONE;
            if (m->listed && file->state == SOURCE_FILE_LISTED)
                m->date = (int)chance(30) + 10;
            snprintf(dates[count], sizeof dates[count], "20%02d-01-01", m->date);
            file->lastmod = dates[count++];
        }
        struct change_result r = scan(f, some, count);
        assert_int_equal(r.status, CATALOGUE_OK);
        assert_int_equal(r.rejected, 0);
        expect(f, models);
    }
    free_files(all, NAMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_reported_by_path),      TEST(what_is_wrong_is_reported_alone),
        TEST(the_check_knows_the_files),       TEST(many_files_at_once),
        TEST(random_scans_end_as_a_naive_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
