/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_SCAN in steps: where other writes wait, a scan gives way to them. The writes come in
 * between by the catalogue's clock, which the writer asks at the begin of each transaction: so each
 * step finds one waiting, whatever the speed of the machine. */
#include "db/write/apply/apply.h"
#include "tests/unit/db/write/between.h"
#include "tests/unit/db/write/scan_fixture.h"

#define FILES_COUNT 5000

static struct write_fixture *open_with_clock(void **state, const char *history)
{
    struct write_fixture *f = *state;
    f->options.clock = clock_between;
    f->options.history_keep_ms = history ? UINT64_C(86400000) : 0;
    fixture_reopen(f);
    add_site(f, B, 0);
    add_index(f, B "/b.xml");
    between.c = f->c;
    between.done = between.submitted = 0;
    between.armed = false;
    apply_step_ms = 0;
    return f;
}

/* The tree "x" was replaced by the tree "y": all of both differ. */
static struct change_result swap(struct write_fixture *f, int64_t max_removed, bool dry,
                                 enum source_file_state state)
{
    struct source_file *files = make_files("x", 0, FILES_COUNT * 2);
    struct source_file *other = make_files("y", 0, FILES_COUNT);
    struct change change = scan_change;
    change.index_name = ORIGIN INDEX;
    change.max_removed = max_removed;
    change.dry_run = dry;
    set_state(files, FILES_COUNT, SOURCE_FILE_GONE);
    for (size_t i = 0; i < FILES_COUNT; i++) {
        free((char *)(uintptr_t)files[FILES_COUNT + i].path);
        files[FILES_COUNT + i] = other[i];
        files[FILES_COUNT + i].state = state;
        files[FILES_COUNT + i].problem = state == SOURCE_FILE_QUARANTINED ? "truncated" : NULL;
    }
    free(other);
    struct change_result r =
        apply_files(f, change, &(struct scan_files){.files = files, .count = FILES_COUNT * 2});
    free_files(files, FILES_COUNT * 2);
    return r;
}

static void fill(struct write_fixture *f)
{
    struct source_file *files = make_files("x", 0, FILES_COUNT);
    struct change change = scan_change;
    change.index_name = ORIGIN INDEX;
    struct change_result r =
        apply_files(f, change, &(struct scan_files){.files = files, .count = FILES_COUNT});
    assert_string_equal(r.detail, "");
    assert_int_equal(r.created, FILES_COUNT);
    free_files(files, FILES_COUNT);
}

static int64_t in_folder(struct write_fixture *f, const char *folder)
{
    return number_of(f, "SELECT count(*) FROM sitemap WHERE loc LIKE '" ROOT "%s/%%'", folder);
}

static void others_write_between_the_steps(void **state)
{
    struct write_fixture *f = open_with_clock(state, "kept");
    fill(f);
    int64_t before = revision_of(f);
    between.armed = true;
    struct change_result r = swap(f, FILES_COUNT, false, SOURCE_FILE_LISTED);
    unsigned others = disarm();
    assert_true(others > 20); /* three passes over 10,000 files, a step each 1,000 */
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, FILES_COUNT);
    assert_int_equal(r.removed, FILES_COUNT);
    assert_int_equal(r.would_remove, 0);
    assert_true(r.changed);
    assert_int_equal(in_folder(f, "x"), 0);
    assert_int_equal(in_folder(f, "y"), FILES_COUNT);
    struct source_state kept = state_of(f);
    assert_int_equal(kept.files, FILES_COUNT);
    assert_int_equal(kept.listed, FILES_COUNT);
    /* Each is a revision, and those of the scan are one group, which holds all that it did. */
    int64_t steps = number_of(f, "SELECT count(*) FROM history_step");
    assert_true(steps > 1);
    assert_int_equal(revision_of(f), before + steps + others);
    assert_int_equal(number_of(f, "SELECT count(DISTINCT part_of) FROM history_step"), 1);
    assert_int_equal(number_of(f, "SELECT sum(created) FROM history WHERE part_of > 0"),
                     FILES_COUNT);

    /* An undo of any of them is one of all, and the guard counts all. */
    struct change undo = {.kind = CHANGE_UNDO,
                          .undo = {.revision = (uint64_t)r.revision},
                          .pass_frozen = true,
                          .max_removed = MAX_REMOVED_GUARDED};
    struct change freeze = {.kind = CHANGE_INDEX_FREEZE,
                            .index_freeze = {.index_id = f->index, .frozen = true}};
    assert_int_equal(apply(f, &freeze).status, CATALOGUE_OK);
    struct change_result back = apply_plain(f, &undo);
    assert_int_equal(back.status, CATALOGUE_OK);
    assert_int_equal(back.created, FILES_COUNT);
    assert_int_equal(back.removed, FILES_COUNT);
    assert_int_equal(in_folder(f, "x"), FILES_COUNT);
    assert_int_equal(in_folder(f, "y"), 0);
}

/* Of a group that only added, an undo only removes: what it comes to all in all is guarded. */
static void the_undo_of_a_group_is_guarded(void **state)
{
    struct write_fixture *f = open_with_clock(state, "kept");
    put_plain(f, ORIGIN "/own.xml", NULL);
    between.armed = true;
    fill(f);
    assert_true(disarm() > 1);
    assert_true(number_of(f, "SELECT count(*) FROM history_step") > 1);
    struct change undo = {.kind = CHANGE_UNDO,
                          .undo = {.revision = (uint64_t)number_of(f, "SELECT max(revision) FROM"
                                                                      " history_step")},
                          .pass_frozen = true,
                          .max_removed = MAX_REMOVED_GUARDED};
    struct change freeze = {.kind = CHANGE_INDEX_FREEZE,
                            .index_freeze = {.index_id = f->index, .frozen = true}};
    assert_int_equal(apply(f, &freeze).status, CATALOGUE_OK);
    assert_int_equal(apply_plain(f, &undo).code, RULE_SHRINK_GUARD);
    assert_int_equal(in_folder(f, "x"), FILES_COUNT);
    undo.max_removed = FILES_COUNT;
    assert_int_equal(apply_plain(f, &undo).removed, FILES_COUNT);
    assert_int_equal(in_folder(f, "x"), 0);
}

static void what_is_held_is_held_in_steps(void **state)
{
    struct write_fixture *f = open_with_clock(state, NULL);
    fill(f);
    between.armed = true;
    struct change_result r = swap(f, MAX_REMOVED_GUARDED, false, SOURCE_FILE_QUARANTINED);
    assert_true(disarm() > 20);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.would_remove, FILES_COUNT);
    assert_int_equal(in_folder(f, "x"), FILES_COUNT);
    assert_int_equal(state_of(f).held, FILES_COUNT);
    assert_int_equal(state_of(f).quarantined, FILES_COUNT);
    assert_int_equal(state_of(f).files, FILES_COUNT * 2);
}

/* Nobody waits: one transaction, one revision. */
static void alone_it_is_one_step(void **state)
{
    struct write_fixture *f = open_with_clock(state, "kept");
    fill(f);
    int64_t before = revision_of(f);
    assert_int_equal(swap(f, FILES_COUNT, false, SOURCE_FILE_LISTED).removed, FILES_COUNT);
    assert_int_equal(revision_of(f), before + 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM history_step"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(others_write_between_the_steps),
        TEST(the_undo_of_a_group_is_guarded),
        TEST(what_is_held_is_held_in_steps),
        TEST(alone_it_is_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
