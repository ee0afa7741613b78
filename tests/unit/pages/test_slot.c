/* The install rule (publisher.h, invariant 3), and the slots' table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "server/pages/site_map.h"

static struct resource *at_revision(uint64_t revision)
{
    struct resource *s = resource_new(HELD_PAGE);
    s->revision = revision;
    return s;
}

static void only_newer_and_wanted_is_installed(void **state)
{
    (void)state;
    struct page_place *slot = page_place_new("epoch", 1, 1);
    struct resource *old = at_revision(5), *same = at_revision(5), *stale = at_revision(7),
                    *fresh = at_revision(9);
    assert_int_equal(page_place_install(slot, old), SLOT_INSTALLED);
    assert_int_equal(page_place_install(slot, same), SLOT_SUPERSEDED);
    page_place_want(slot, 8);
    page_place_want(slot, 6); /* never lowered */
    assert_int_equal(page_place_install(slot, stale), SLOT_OUTDATED);
    assert_int_equal(page_place_install(slot, fresh), SLOT_INSTALLED);
    struct resource *now = page_place_snapshot(slot);
    assert_ptr_equal(now, fresh);
    resource_unref(now);
    resource_unref(same);
    resource_unref(stale);
    page_place_unref(slot);
}

/* Whoever budgets has to tell who lives for its readers alone. */
static void what_a_slot_lets_go_is_retired(void **state)
{
    (void)state;
    struct page_place *slot = page_place_new("epoch", 1, 1);
    struct resource *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = at_revision((uint64_t)i + 1);
        resource_ref(s[i]);
    }
    assert_int_equal(page_place_install(slot, s[0]), SLOT_INSTALLED);
    assert_int_equal(page_place_install(slot, s[1]), SLOT_INSTALLED);
    assert_true(atomic_load(&s[0]->held.retired));
    assert_false(atomic_load(&s[1]->held.retired));
    page_place_drop(slot);
    assert_true(atomic_load(&s[1]->held.retired));
    assert_int_equal(page_place_install(slot, s[2]), SLOT_INSTALLED);
    assert_false(atomic_load(&s[2]->held.retired));
    page_place_unref(slot);
    assert_true(atomic_load(&s[2]->held.retired));
    for (int i = 0; i < 3; i++)
        resource_unref(s[i]);
}

static void no_page(void *context, enum await_result result, struct resource *snapshot)
{
    (void)context;
    (void)result;
    (void)snapshot;
}

static void one_build_for_many_waiters(void **state)
{
    (void)state;
    struct page_place *slot = page_place_new("epoch", 1, 1);
    bool start, again;
    struct resource_waiter *first = malloc(sizeof *first), *second = malloc(sizeof *second);
    *first = *second = (struct resource_waiter){.done = no_page};
    assert_null(slot_wait(slot, first, &start));
    assert_true(start);
    assert_null(slot_wait(slot, second, &start));
    assert_false(start);
    /* A commit came while it was built: the waiters stay for the next attempt. */
    page_place_want(slot, 4);
    assert_null(page_place_finish(slot, 3, false, &again));
    assert_true(again);
    struct resource_waiter *waiters = page_place_finish(slot, 4, false, &again);
    assert_false(again);
    assert_ptr_equal(waiters, second);
    assert_ptr_equal(waiters->next, first);
    free(first);
    free(second);
    page_place_unref(slot);
}

static void the_table_finds_keeps_and_sweeps(void **state)
{
    (void)state;
    struct place_table table = {.epoch = "epoch"};
    assert_null(place_table_find(&table, 1, 1));
    for (uint32_t n = 1; n <= 1000; n++)
        place_table_get(&table, n % 7, n)->seen_in_registry = n % 2 == 0;
    assert_int_equal(table.count, 1000);
    struct page_place *kept = place_table_find(&table, 2 % 7, 2);
    struct page_place *gone = place_table_find(&table, 1, 1);
    page_place_ref(gone);
    page_place_install(gone, at_revision(1));
    place_table_sweep(&table);
    assert_int_equal(table.count, 500);
    assert_ptr_equal(place_table_find(&table, 2, 2), kept);
    assert_false(kept->seen_in_registry);
    assert_null(place_table_find(&table, 1, 1));
    assert_null(page_place_snapshot(gone));
    page_place_unref(gone);
    place_table_clear(&table);
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
