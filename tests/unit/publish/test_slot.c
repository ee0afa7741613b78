/* The install rule (publisher.h, invariant 3), and the slots' table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "server/publish/slot.h"

static struct snapshot *at_revision(uint64_t revision)
{
    struct snapshot *s = snapshot_new();
    s->revision = revision;
    return s;
}

static void only_newer_and_wanted_is_installed(void **state)
{
    (void)state;
    struct slot *slot = slot_new("epoch", 1, 1);
    struct snapshot *old = at_revision(5), *same = at_revision(5), *stale = at_revision(7),
                    *fresh = at_revision(9);
    assert_int_equal(slot_install(slot, old), SLOT_INSTALLED);
    assert_int_equal(slot_install(slot, same), SLOT_SUPERSEDED);
    slot_want(slot, 8);
    slot_want(slot, 6); /* never lowered */
    assert_int_equal(slot_install(slot, stale), SLOT_OUTDATED);
    assert_int_equal(slot_install(slot, fresh), SLOT_INSTALLED);
    struct snapshot *now = slot_snapshot(slot);
    assert_ptr_equal(now, fresh);
    snapshot_unref(now);
    snapshot_unref(same);
    snapshot_unref(stale);
    slot_unref(slot);
}

/* Whoever budgets has to tell who lives for its readers alone. */
static void what_a_slot_lets_go_is_retired(void **state)
{
    (void)state;
    struct slot *slot = slot_new("epoch", 1, 1);
    struct snapshot *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = at_revision((uint64_t)i + 1);
        snapshot_ref(s[i]);
    }
    assert_int_equal(slot_install(slot, s[0]), SLOT_INSTALLED);
    assert_int_equal(slot_install(slot, s[1]), SLOT_INSTALLED);
    assert_true(atomic_load(&s[0]->retired));
    assert_false(atomic_load(&s[1]->retired));
    slot_drop(slot);
    assert_true(atomic_load(&s[1]->retired));
    assert_int_equal(slot_install(slot, s[2]), SLOT_INSTALLED);
    assert_false(atomic_load(&s[2]->retired));
    slot_unref(slot);
    assert_true(atomic_load(&s[2]->retired));
    for (int i = 0; i < 3; i++)
        snapshot_unref(s[i]);
}

static void no_page(void *context, enum await_result result, struct snapshot *snapshot)
{
    (void)context;
    (void)result;
    (void)snapshot;
}

static void one_build_for_many_waiters(void **state)
{
    (void)state;
    struct slot *slot = slot_new("epoch", 1, 1);
    bool start, again;
    struct page_waiter *first = malloc(sizeof *first), *second = malloc(sizeof *second);
    *first = *second = (struct page_waiter){NULL, no_page, NULL};
    assert_null(slot_wait(slot, first, &start));
    assert_true(start);
    assert_null(slot_wait(slot, second, &start));
    assert_false(start);
    /* A commit came while it was built: the waiters stay for the next attempt. */
    slot_want(slot, 4);
    assert_null(slot_finish(slot, 3, false, &again));
    assert_true(again);
    struct page_waiter *waiters = slot_finish(slot, 4, false, &again);
    assert_false(again);
    assert_ptr_equal(waiters, second);
    assert_ptr_equal(waiters->next, first);
    free(first);
    free(second);
    slot_unref(slot);
}

static void the_table_finds_keeps_and_sweeps(void **state)
{
    (void)state;
    struct slot_table table = {.epoch = "epoch"};
    assert_null(slot_table_find(&table, 1, 1));
    for (uint32_t n = 1; n <= 1000; n++)
        slot_table_get(&table, n % 7, n)->seen_in_registry = n % 2 == 0;
    assert_int_equal(table.count, 1000);
    struct slot *kept = slot_table_find(&table, 2 % 7, 2);
    struct slot *gone = slot_table_find(&table, 1, 1);
    slot_ref(gone);
    slot_install(gone, at_revision(1));
    slot_table_sweep(&table);
    assert_int_equal(table.count, 500);
    assert_ptr_equal(slot_table_find(&table, 2, 2), kept);
    assert_false(kept->seen_in_registry);
    assert_null(slot_table_find(&table, 1, 1));
    assert_null(slot_snapshot(gone));
    slot_unref(gone);
    slot_table_clear(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_newer_and_wanted_is_installed),
        cmocka_unit_test(what_a_slot_lets_go_is_retired),
        cmocka_unit_test(one_build_for_many_waiters),
        cmocka_unit_test(the_table_finds_keeps_and_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
