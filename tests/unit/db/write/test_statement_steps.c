/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Statements that run for each entry or each source read only what belongs to it: between two of
 * them the writer looks whether others wait, and a reader is one of two. Counted in steps of
 * SQLite's virtual machine, whatever the speed of the machine. */
#include "db/file/handle.h"
#include "db/read/view_pool.h"
#include "db/write/writer.h"
#include "tests/unit/db/write/scan_fixture.h"

enum { MANY = 1000, STEPS_MAX = 500 };

/* Checks all statements that ran since the last call. */
static void assert_short(sqlite3 *db)
{
    for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s)) != NULL;) {
        int steps = sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
        int runs = sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 1);
        if (runs > 0 && steps / runs > STEPS_MAX)
            fail_msg("%d steps in %d runs: %s", steps, runs, sqlite3_sql(s));
    }
}

/* Begins to count. */
static void reset(sqlite3 *db)
{
    for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s)) != NULL;) {
        sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
        sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 1);
    }
}

static void scan_many(struct write_fixture *f)
{
    struct source_file *files = make_files("x", 0, MANY);
    for (size_t i = 0; i < MANY; i++)
        files[i].remarks = "x";
    assert_int_equal(scan(f, files, MANY).created, MANY);
    free_files(files, MANY);
}

static bool take_first(void *context, const struct source_file *file)
{
    *(bool *)context |= file->has_entry;
    return false;
}

static void a_source_is_read_without_the_others(void **state)
{
    struct write_fixture *f = *state;
    struct change other = scan_change;
    struct catalogue_view *v;
    const struct source_file one = {.path = "one.xml"};
    bool found = false, owns = false;
    scan_many(f);
    other.source = "other";
    assert_int_equal(apply_files(f, other, &(struct scan_files){.files = &one, .count = 1}).created,
                     1);
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    reset(v->db);
    assert_int_equal(catalogue_view_source_files(v, "other", SOURCE_FILES_ALL, take_first, &found),
                     CATALOGUE_OK);
    assert_true(found);
    assert_int_equal(catalogue_view_source_owns(v, "other", &owns), CATALOGUE_OK);
    assert_true(owns);
    assert_short(v->db);
    catalogue_view_end(v);
}

/* Only the first hundred are reported. */
static void remarks_are_read_one_by_one(void **state)
{
    struct write_fixture *f = *state;
    struct catalogue_view *v;
    bool found = false;
    scan_many(f);
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    reset(v->db);
    assert_int_equal(
        catalogue_view_source_files(v, SOURCE, SOURCE_FILES_REMARKED, take_first, &found),
        CATALOGUE_OK);
    assert_true(found);
    assert_short(v->db);
    catalogue_view_end(v);
}

static struct write_fixture *with_history(void **state)
{
    struct write_fixture *f = *state;
    f->options.history_keep_ms = 1u << 30;
    f->options.history_max_bytes = 1u << 30;
    fixture_reopen(f);
    return f;
}

static struct change_result undo(struct write_fixture *f, uint64_t revision)
{
    reset(f->c->writer->db);
    struct change_result undone = apply_plain(f, &(struct change){.kind = CHANGE_UNDO,
                                                                  .undo = {.revision = revision},
                                                                  .pass_frozen = true,
                                                                  .max_removed = MANY});
    assert_int_equal(undone.status, CATALOGUE_OK);
    assert_short(f->c->writer->db);
    return undone;
}

static void the_undo_of_a_scan_finds_each_file(void **state)
{
    struct write_fixture *f = with_history(state);
    uint64_t revision;
    scan_many(f);
    revision = (uint64_t)revision_of(f);
    run_sql(f, "UPDATE sitemap_index SET frozen = 1");
    run_sql(f, "UPDATE catalogue SET registry_revision = registry_revision + 1,"
               " revision = revision + 1");
    assert_int_equal(undo(f, revision).removed, MANY);
    assert_int_equal(number_of(f, "SELECT count(*) FROM source_file_row"), 0);
}

static void make_dated(void *context, uint64_t n, struct entry *out, char *text)
{
    snprintf(text, 64, ORIGIN "/%" PRIu64 ".xml", n);
    out->loc = text;
    out->lastmod = context;
    out->lastmod_state = FIELD_SET;
}

static void the_undo_of_updates_looks_at_each_entry(void **state)
{
    struct write_fixture *f = with_history(state);
    for (int day = 1; day <= 2; day++) {
        struct test_stream rows = {make_dated, day == 1 ? "2026-01-01" : "2026-01-02", MANY};
        assert_int_equal(
            apply_plain(
                f, &(struct change){.kind = CHANGE_BULK, .source = "tests", .rows = rows_of(&rows)})
                .status,
            CATALOGUE_OK);
    }
    assert_int_equal(undo(f, (uint64_t)revision_of(f)).updated, MANY);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE lastmod = '2026-01-01'"),
                     MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_source_is_read_without_the_others),
        TEST(remarks_are_read_one_by_one),
        TEST(the_undo_of_a_scan_finds_each_file),
        TEST(the_undo_of_updates_looks_at_each_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
