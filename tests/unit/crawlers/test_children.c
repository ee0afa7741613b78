/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who fetched which sitemap beside the pages: rows, room, and what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/crawlers/ledger.h"

#define T0 1700000000

static int setup(void **state)
{
    *state = children_new();
    return *state == NULL;
}

static int teardown(void **state)
{
    children_free(*state);
    return 0;
}

static bool visit(struct children *c, int64_t site, uint64_t child, uint8_t crawler, int64_t now)
{
    return children_visit(c, site, child, crawler, VISIT_OK, 200, now);
}

static void a_row_has_the_last_visit_and_the_last_good_one(void **state)
{
    struct children *c = *state;
    struct crawler_child rows[CRAWLERS_MAX];
    assert_int_equal(children_rows_of(c, 1, 7, rows), 0);
    assert_true(visit(c, 1, 7, 2, T0));
    assert_true(children_visit(c, 1, 7, 2, VISIT_NOT_MODIFIED, 304, T0 + 10));
    assert_true(children_visit(c, 1, 7, 2, VISIT_OTHER, 200, T0 + 20)); /* cut off */
    assert_int_equal(children_rows_of(c, 1, 7, rows), 1);
    assert_int_equal(rows[0].fetched_at, T0 + 20);
    assert_int_equal(rows[0].good_at, T0 + 10);
    assert_int_equal(rows[0].status, 200);
    assert_int_equal(rows[0].ok + 10 * rows[0].not_modified + 100 * rows[0].other, 111);
    /* Another crawler, sitemap and site are others. */
    assert_true(visit(c, 1, 7, 3, T0) && visit(c, 1, 8, 2, T0) && visit(c, 2, 7, 2, T0));
    assert_int_equal(children_rows_of(c, 1, 7, rows), 2);
    assert_int_equal(children_rows_of(c, 1, 8, rows), 1);
    assert_int_equal(children_rows_of(c, 2, 7, rows), 1);
    children_clear(c);
    assert_int_equal(children_rows_of(c, 1, 7, rows), 0);
}

static size_t known(struct children *c, int64_t site, uint64_t from, uint64_t to)
{
    struct crawler_child rows[CRAWLERS_MAX];
    size_t count = 0;
    for (uint64_t child = from; child < to; child++)
        count += children_rows_of(c, site, child, rows);
    return count;
}

/* However much a site has: its latest are known, and another's stay. */
static void a_site_gives_up_its_own_oldest(void **state)
{
    struct children *c = *state;
    const uint64_t most = 2 * (uint64_t)CRAWLERS_MAX_CHILDREN;
    for (uint64_t child = 1; child <= 100; child++)
        assert_true(visit(c, 2, child, 1, T0));
    for (uint64_t child = 1; child <= most; child++) {
        assert_true(visit(c, 1, child, 1, T0 + (int64_t)child));
        assert_true(visit(c, 1, 1, 1, T0 + (int64_t)child)); /* it comes all the time */
    }
    assert_int_equal(known(c, 2, 1, 101), 100);
    size_t kept = known(c, 1, 1, most + 1);
    assert_in_range(kept, CRAWLERS_MAX_CHILDREN / 2, CRAWLERS_MAX_CHILDREN * 3 / 4 + 1);
    assert_int_equal(known(c, 1, 1, 2), 1);
    assert_int_equal(known(c, 1, most - kept + 2, most + 1), kept - 1);
    /* A third finds some, too. */
    for (uint64_t child = 1; child <= 1000; child++)
        assert_true(visit(c, 3, child, 1, T0));
    assert_int_equal(known(c, 3, 1, 1001), 1000);
}

static void what_is_taken_comes_back_to_its_place(void **state)
{
    struct children *c = *state, *later = children_new();
    static struct crawler_child out[CRAWLERS_MAX_CHILDREN];
    struct crawler_child rows[CRAWLERS_MAX];
    size_t at = 0, count = 0, got;
    for (uint64_t child = 1; child <= 1000; child++)
        assert_true(visit(c, 1 + (int64_t)(child % 3), child, 4, T0 + (int64_t)child));
    while ((got = children_collect(c, &at, out + count, 64)) > 0)
        count += got;
    assert_int_equal(count, 1000);
    at = 0;
    assert_int_equal(children_collect(c, &at, out, 64), 0);
    assert_true(visit(c, 1, 3, 4, T0 + 5000));
    at = 0;
    assert_int_equal(children_collect(c, &at, out, 64), 1); /* only what is news */
    assert_int_equal(out[0].fetched_at, T0 + 5000);
    children_retry(c);
    at = 0;
    assert_int_equal(children_collect(c, &at, out, CRAWLERS_MAX_CHILDREN), 1000);
    assert_non_null(later);
    for (size_t i = 0; i < 1000; i++) {
        children_restore(later, &out[i]);
        children_restore(later, &out[i]); /* twice is once */
    }
    struct crawler_child wrong = out[0];
    wrong.place = CRAWLERS_MAX_CHILDREN + 1;
    wrong.child = 5000;
    children_restore(later, &wrong);
    wrong.place = 0;
    children_restore(later, &wrong);
    assert_int_equal(children_rows_of(later, wrong.site_id, 5000, rows), 0);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(children_rows_of(later, out[i].site_id, out[i].child, rows), 1);
        assert_int_equal(rows[0].place, out[i].place);
        assert_int_equal(rows[0].fetched_at, out[i].fetched_at);
    }
    at = 0;
    assert_int_equal(children_collect(later, &at, out, 64), 0); /* it is kept already */
    assert_true(visit(later, 9, 1, 1, T0));
    children_free(later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_has_the_last_visit_and_the_last_good_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_site_gives_up_its_own_oldest, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_taken_comes_back_to_its_place, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
