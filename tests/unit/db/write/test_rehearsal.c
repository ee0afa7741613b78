/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Long changes that write nothing are answered beside the writer (db/write/rehearsal.c), with the
 * result that the writer itself would have come to. */
#include "db/write/apply/apply.h"
#include "tests/unit/db/write/between.h"
#include "tests/unit/db/write/scan_fixture.h"
#include "tests/unit/db/write/write_stream.h"

#define ROWS 1000

enum { IN_THE_WRITER = 1000000, ALWAYS_GIVE_WAY = -1 };

static uint64_t rehearsed(struct write_fixture *f)
{
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    return stats.rehearsed;
}

struct job {
    const char *name;
    struct change change;
    const char *folder; /* of a list: its rows */
    uint64_t rows;
    bool scans;
};

static struct change_result carry_out(struct write_fixture *f, const struct job *job)
{
    struct change change = job->change;
    if (job->scans) {
        struct source_file *files = make_files(job->folder, 0, job->rows);
        change.index_name = ORIGIN INDEX;
        struct change_result r =
            apply_files(f, change, &(struct scan_files){.files = files, .count = job->rows});
        free_files(files, job->rows);
        return r;
    }
    if (!job->folder)
        return apply(f, &change);
    struct test_stream s = {
        .make = make_numbered, .context = (void *)(uintptr_t)job->folder, .count = job->rows};
    return apply_stream(f, change, &s);
}

static void assert_same(const char *name, const struct change_result *a,
                        const struct change_result *b)
{
    print_message("%s\n", name);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->code, b->code);
    assert_string_equal(a->detail, b->detail);
    assert_int_equal(a->created, b->created);
    assert_int_equal(a->updated, b->updated);
    assert_int_equal(a->unchanged, b->unchanged);
    assert_int_equal(a->removed, b->removed);
    assert_int_equal(a->rejected, b->rejected);
    assert_int_equal(a->spared, b->spared);
    assert_int_equal(a->would_remove, b->would_remove);
    assert_int_equal(a->revision, b->revision);
    assert_int_equal(a->changed, b->changed);
    const char *stamp = strrchr(a->index_state, '-'); /* each file's own, random */
    size_t compared = stamp != NULL ? (size_t)(stamp - a->index_state) + 1 : INDEX_STATE_SIZE;
    assert_int_equal(strncmp(a->index_state, b->index_state, compared), 0);
    assert_int_equal(a->preview_count, b->preview_count);
    assert_int_equal(a->findings.count, b->findings.count);
    for (size_t i = 0; i < a->preview_count; i++) {
        const char *was = a->preview[i].before.loc, *is = b->preview[i].before.loc;
        assert_int_equal(was == NULL, is == NULL);
        assert_true(!was || strcmp(was, is) == 0);
    }
}

static struct write_fixture *open_with_history(void **state)
{
    struct write_fixture *f = *state;
    f->options.history_keep_ms = UINT64_C(86400000);
    fixture_reopen(f);
    return f;
}

static void what_writes_nothing_is_answered_beside_the_writer(void **state)
{
    struct write_fixture *f = open_with_history(state);
    static const struct change list = {
        .kind = CHANGE_REPLACE, .index_name = ORIGIN INDEX, .max_removed = 2 * ROWS};
    assert_int_equal(bulk_numbered(f, "x", ROWS).created, ROWS);
    uint64_t first = (uint64_t)revision_of(f);
    assert_int_equal(bulk_numbered(f, "y", ROWS).created, ROWS);
    uint64_t second = (uint64_t)revision_of(f);
    struct change_result back = apply_plain(
        f,
        &(struct change){.kind = CHANGE_UNDO, .undo = {.revision = second}, .max_removed = ROWS});
    assert_int_equal(back.removed, ROWS);

    struct change dry = list, undo = {.kind = CHANGE_UNDO, .max_removed = 2 * ROWS};
    dry.dry_run = dry.wants_preview = true;
    struct change dry_undo = undo, scan = scan_change;
    dry_undo.dry_run = dry_undo.wants_preview = true;
    undo.undo.revision = second;
    dry_undo.undo.revision = first;
    scan.dry_run = scan.wants_preview = true;
    const struct job jobs[] = {
        {"a list that is there", {.kind = CHANGE_BULK}, "x", ROWS, false},
        {"a replace by what is there", list, "x", ROWS, false},
        {"a dry replace by others", dry, "z", ROWS, false},
        {"a dry replace by fewer", dry, "x", ROWS / 2, false},
        {"a dry list",
         {.kind = CHANGE_BULK, .dry_run = true, .wants_preview = true},
         "z",
         ROWS,
         false},
        {"an undo of what was undone", undo, NULL, 0, false},
        {"a dry undo", dry_undo, NULL, 0, false},
        {"a dry restore",
         {.kind = CHANGE_RESTORE,
          .index_name = ORIGIN INDEX,
          .undo = {.revision = first},
          .max_removed = ROWS,
          .dry_run = true},
         NULL,
         0,
         false},
        {"a dry scan", scan, "s", ROWS, true},
        {"a replace that the guard refuses",
         {.kind = CHANGE_REPLACE, .index_name = ORIGIN INDEX, .max_removed = MAX_REMOVED_GUARDED},
         "z",
         10,
         false},
    };
    int64_t revision = revision_of(f);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        uint64_t before = rehearsed(f);
        apply_step_ms = IN_THE_WRITER;
        struct change_result direct = carry_out(f, &jobs[i]);
        assert_int_equal(rehearsed(f), before);
        apply_step_ms = ALWAYS_GIVE_WAY;
        struct change_result aside = carry_out(f, &jobs[i]);
        assert_same(jobs[i].name, &direct, &aside);
        /* What is refused at its end was carried out up to there: it had written. */
        bool writes = jobs[i].change.dry_run == false && direct.status == CATALOGUE_REFUSED;
        assert_int_equal(rehearsed(f), writes ? before : before + 1);
        change_result_done(&direct);
        change_result_done(&aside);
    }
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(entry_count(f), ROWS);
}

static void what_writes_is_carried_out_by_the_writer(void **state)
{
    struct write_fixture *f = open_with_history(state);
    apply_step_ms = ALWAYS_GIVE_WAY;
    assert_int_equal(bulk_numbered(f, "x", ROWS).created, ROWS);
    int64_t revision = revision_of(f);
    /* The first half is there already. */
    struct change_result more = bulk_numbered(f, "x", 2 * ROWS);
    assert_int_equal(more.status, CATALOGUE_OK);
    assert_int_equal(more.created, ROWS);
    assert_int_equal(more.unchanged, ROWS);
    assert_true(more.changed);
    assert_int_equal(more.revision, revision + 1);
    assert_int_equal(revision_of(f), revision + 1);
    assert_int_equal(entry_count(f), 2 * ROWS);
    assert_int_equal(rehearsed(f), 0);
    struct change_result back =
        apply_plain(f, &(struct change){.kind = CHANGE_RESTORE,
                                        .index_name = ORIGIN INDEX,
                                        .undo = {.revision = (uint64_t)revision},
                                        .max_removed = ROWS});
    assert_int_equal(back.removed, ROWS);
    assert_int_equal(entry_count(f), ROWS);
}

static bool keep_count(void *context, struct change_result *result, const struct registry *registry,
                       struct str *out)
{
    (void)context, (void)registry;
    str_append_u64(out, result->unchanged);
    return true;
}

static void an_answer_is_kept_for_a_repeat(void **state)
{
    struct write_fixture *f = open_with_history(state);
    static const uint8_t hash[32] = "a list", bearer[32] = "";
    assert_int_equal(bulk_numbered(f, "x", ROWS).created, ROWS);
    apply_step_ms = ALWAYS_GIVE_WAY;
    struct job job = {"with a key",
                      {.kind = CHANGE_BULK,
                       .bearer_sha256 = bearer,
                       .key = "once",
                       .key_sha256 = hash,
                       .outcome = keep_count},
                      "x",
                      ROWS,
                      false};
    struct change_result once = carry_out(f, &job);
    assert_int_equal(once.unchanged, ROWS);
    assert_false(once.repeated);
    struct change_result again = carry_out(f, &job);
    assert_true(again.repeated);
    assert_int_equal(again.outcome.len, 4);
    assert_memory_equal(again.outcome.data, "1000", 4);
    change_result_done(&again);
    change_result_done(&once);
}

/* ---- beside other writes */

/* The private connection sees one revision, while others write, the log grows and is restarted. */
static void others_write_meanwhile(void **state)
{
    struct write_fixture *f = *state;
    f->options.history_keep_ms = UINT64_C(86400000);
    f->options.clock = clock_between;
    fixture_reopen(f);
    add_site(f, B, 0);
    add_index(f, B "/b.xml");
    assert_int_equal(bulk_numbered(f, "x", ROWS).created, ROWS);
    between.c = f->c;
    apply_step_ms = 0;
    between.armed = true;
    struct job jobs[] = {
        {"unchanged", {.kind = CHANGE_BULK}, "x", ROWS, false},
        {"dry",
         {.kind = CHANGE_REPLACE, .index_name = ORIGIN INDEX, .max_removed = ROWS, .dry_run = true},
         "z",
         ROWS,
         false},
    };
    for (int round = 0; round < 20; round++) {
        struct change_result r = carry_out(f, &jobs[round % 2]);
        assert_int_equal(r.status, CATALOGUE_OK);
        assert_int_equal(round % 2 ? r.removed : r.unchanged, ROWS);
        change_result_done(&r);
        if (round % 5 == 4)
            run_sql(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    unsigned others = disarm();
    assert_int_equal(rehearsed(f), 20);
    assert_true(others >= 20);
    assert_int_equal(entry_count(f), ROWS + others);
}

static int open_and_reset(void **state)
{
    apply_step_ms = APPLY_STEP_MS;
    return open_it(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_writes_nothing_is_answered_beside_the_writer,
                                        open_and_reset, close_it),
        cmocka_unit_test_setup_teardown(what_writes_is_carried_out_by_the_writer, open_and_reset,
                                        close_it),
        cmocka_unit_test_setup_teardown(an_answer_is_kept_for_a_repeat, open_and_reset, close_it),
        cmocka_unit_test_setup_teardown(others_write_meanwhile, open_and_reset, close_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
