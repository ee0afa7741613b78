/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Rows of sites and shares of sites: each site has its own, whatever its id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "server/base/site_table.h"

/* ---- memory that runs out ------------------------------------------------------------------- */

static _Thread_local unsigned allocations_left = UINT32_MAX;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    if (allocations_left == 0)
        return NULL;
    allocations_left -= allocations_left != UINT32_MAX;
    return __real_calloc(count, size);
}

/* ---- rows ----------------------------------------------------------------------------------- */

struct own {
    struct site_row row;
    int64_t twice;
};

static const int64_t ids[] = {0,   -1,  1,    257,       513,       2,        258,
                              255, 256, 4096, INT64_MAX, INT64_MIN, 1LL << 32};
#define IDS (sizeof ids / sizeof *ids)

static void a_site_has_its_own_row(void **state)
{
    enum { MORE = 5000 };
    struct site_table t = {0};
    assert_null(site_table_find(&t, 1));
    assert_null(site_table_next(&t, NULL));
    for (size_t i = 0; i < IDS + MORE; i++) {
        int64_t id = i < IDS ? ids[i] : (int64_t)(10000 + i * 256);
        assert_null(site_table_find(&t, id));
        struct own *own = site_table_add(&t, id, sizeof *own);
        assert_non_null(own);
        assert_int_equal(own->twice, 0);
        own->twice = (int64_t)((uint64_t)id * 2);
        assert_ptr_equal(site_table_add(&t, id, sizeof *own), own);
    }
    assert_int_equal(t.count, IDS + MORE);
    size_t seen = 0;
    for (struct own *own = site_table_next(&t, NULL), *next; own != NULL; own = next, seen++) {
        next = site_table_next(&t, own);
        assert_int_equal(own->twice, (int64_t)((uint64_t)own->row.site_id * 2));
        assert_ptr_equal(site_table_find(&t, own->row.site_id), own);
        site_table_remove(&t, own);
    }
    assert_int_equal(seen, IDS + MORE);
    assert_int_equal(t.count, 0);
    assert_null(t.buckets);
}

static void done_frees_all_rows(void **state)
{
    struct site_table t = {0};
    for (size_t i = 0; i < IDS; i++)
        assert_non_null(site_table_add(&t, ids[i], sizeof(struct own)));
    site_table_done(&t);
    assert_null(site_table_find(&t, ids[0]));
    site_table_done(&t);
}

static void memory_may_run_out(void **state)
{
    struct site_table t = {0};
    for (unsigned left = 0; left < 2; left++) { /* the buckets, and the row */
        allocations_left = left;
        assert_null(site_table_add(&t, 1, sizeof(struct own)));
        assert_null(t.buckets);
    }
    allocations_left = UINT32_MAX;
    for (int64_t id = 0; id < 8; id++)
        assert_non_null(site_table_add(&t, id, sizeof(struct own)));
    allocations_left = 0;
    assert_null(site_table_add(&t, 8, sizeof(struct own)));
    assert_non_null(site_table_add(&t, 7, sizeof(struct own)));
    allocations_left = UINT32_MAX;
    assert_non_null(site_table_add(&t, 8, sizeof(struct own)));
    assert_int_equal(t.count, 9);
    site_table_done(&t);

    struct site_uses u = {0};
    allocations_left = 0;
    assert_false(site_uses_take(&u, 1, 1, 10));
    assert_false(site_uses_take_own(&u, 1, 1, 10));
    assert_int_equal(site_uses_taken(&u), 0);
    assert_true(site_uses_take(&u, 0, 1, 10));
    site_uses_give(&u, 0, 1);
    allocations_left = UINT32_MAX;
}

/* ---- shares --------------------------------------------------------------------------------- */

static unsigned take_all(struct site_uses *u, int64_t site_id, uint64_t most)
{
    unsigned count = 0;
    while (site_uses_take(u, site_id, 1, most))
        count++;
    return count;
}

static void a_site_gets_at_most_what_is_free(void **state)
{
    struct site_uses u = {0};
    assert_int_equal(take_all(&u, 3, 64), 32);
    assert_int_equal(take_all(&u, 3 + 256, 64), 16); /* as any other site */
    assert_int_equal(take_all(&u, 256, 64), 8);
    assert_int_equal(take_all(&u, 0, 64), 8); /* all that is left */
    assert_int_equal(take_all(&u, 512, 64), 0);
    assert_int_equal(site_uses_taken(&u), 64);
    site_uses_give(&u, 3, 30);
    assert_false(site_uses_take(&u, 3, 31, 64));
    assert_true(site_uses_take(&u, 3, 14, 64));
    assert_false(site_uses_take(&u, 3, 1, 64));
    site_uses_give(&u, 3, 16);
    site_uses_give(&u, 3 + 256, 16);
    site_uses_give(&u, 256, 8);
    assert_null(u.by_site.buckets);
    site_uses_give(&u, 0, 8);
    assert_int_equal(site_uses_taken(&u), 0);
}

static void what_a_site_uses_itself_is_bounded(void **state)
{
    struct site_uses u = {0};
    static const int64_t sites[] = {3, 3 + 256, 0, 256};
    for (size_t i = 0; i < 4; i++) {
        assert_true(site_uses_take_own(&u, sites[i], 2, 2));
        assert_false(site_uses_take_own(&u, sites[i], 1, 2));
    }
    assert_int_equal(site_uses_taken(&u), 8);
    for (size_t i = 0; i < 4; i++)
        site_uses_give(&u, sites[i], 2);
    assert_int_equal(site_uses_taken(&u), 0);
    assert_null(u.by_site.buckets);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20000, MOST = 40, OWN_MOST = 3 };

static struct site_uses shared, own_shared;
static atomic_uint held, own_held[2];

static void *use_it(void *context)
{
    int64_t number = (int64_t)(intptr_t)context;
    for (unsigned i = 0; i < ROUNDS; i++) {
        int64_t site_id = number % 2 == 0 ? 7 : 7 + 256 * (1 + i % 5);
        if (site_uses_take(&shared, site_id, 9, MOST)) {
            if (atomic_fetch_add(&held, 9) + 9 > MOST)
                abort();
            atomic_fetch_sub(&held, 9);
            site_uses_give(&shared, site_id, 9);
        }
        int64_t pair = number / 2;
        if (site_uses_take_own(&own_shared, pair * 256, 2, OWN_MOST)) {
            if (atomic_fetch_add(&own_held[pair], 2) != 0) /* there is room for one of the two */
                abort();
            atomic_fetch_sub(&own_held[pair], 2);
            site_uses_give(&own_shared, pair * 256, 2);
        }
    }
    return NULL;
}

static void threads_may_take_and_give(void **state)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_it, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(site_uses_taken(&shared) + site_uses_taken(&own_shared), 0);
    assert_null(shared.by_site.buckets);
    assert_null(own_shared.by_site.buckets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_has_its_own_row),
        cmocka_unit_test(done_frees_all_rows),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(a_site_gets_at_most_what_is_free),
        cmocka_unit_test(what_a_site_uses_itself_is_bounded),
        cmocka_unit_test(threads_may_take_and_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
