/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The cache: the install rule (publisher.h, invariant 3), who waits, the table, the one budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/pages/cache.h"
#include "server/pages/workers.h"

struct world {
    struct cache *cache;
    struct workers *workers;
    uint64_t cut[HELD_KINDS];
    /* What the loader finds, one attempt after another. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool closed;
    int attempts;
    uint32_t numbers[8]; /* of the places, in the order of the attempts */
    uint64_t versions[8];
    struct heard *late; /* each attempt is overtaken; a caller behind the fourth one's */
};

static void cut(void *context, enum held_kind kind, uint64_t bytes)
{
    ((struct world *)context)->cut[kind] += bytes;
}

static struct resource *resource_of(struct world *w, enum held_kind kind, size_t bytes)
{
    struct resource *r = resource_new(kind);
    assert_non_null(r);
    r->bytes = malloc(bytes);
    r->raw_len = bytes;
    cache_count(w->cache, r);
    return r;
}

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int calls;
    enum await_result result;
    struct resource *last;
};

static void hear(void *context, enum await_result result, struct resource *r)
{
    struct heard *h = context;
    pthread_mutex_lock(&h->lock);
    h->result = result;
    resource_unref(h->last);
    h->last = r;
    h->calls++;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static void load(void *context, struct place *p, struct load *l)
{
    struct world *w = context;
    pthread_mutex_lock(&w->lock);
    int attempt = w->attempts++;
    w->numbers[attempt] = p->key.number;
    pthread_cond_broadcast(&w->moved);
    while (w->closed)
        pthread_cond_wait(&w->moved, &w->lock);
    l->version = w->versions[attempt];
    pthread_mutex_unlock(&w->lock);
    if (w->late != NULL && attempt < 4)
        cache_want(p, l->version + 1);
    if (w->late != NULL && attempt == 3)
        cache_await(p, 1, hear, w->late);
    resource_unref(l->resource);
    l->resource = resource_of(w, HELD_PAGE, 10);
    l->result = AWAIT_DONE;
}

static void set_closed(struct world *w, bool closed)
{
    pthread_mutex_lock(&w->lock);
    w->closed = closed;
    pthread_cond_broadcast(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

static bool none(void *context, struct place *p)
{
    (void)context;
    (void)p;
    return false;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    const struct cache_options options = {
        .budget_bytes = 1000, .cut_slow_readers = cut, .cut_context = w};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
    w->cache = cache_new(&options);
    w->workers = workers_new(2, 10);
    struct loader loader = {load, w, w->workers};
    cache_set_loader(w->cache, HELD_PAGE, &loader);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    workers_free(w->workers);
    cache_sweep(w->cache, HELD_PAGE, none, NULL);
    cache_sweep(w->cache, HELD_FILE, none, NULL);
    cache_free(w->cache);
    free(w);
    return 0;
}

static struct place *place_of(struct world *w, enum held_kind kind, uint32_t number)
{
    struct place_key key = {.kind = kind, .number = number, .name = "name"};
    struct place *p = cache_place(w->cache, &key, sizeof *p);
    assert_non_null(p);
    return p;
}

static bool is_in_memory(struct place *p)
{
    struct resource *r = place_peek(p);
    resource_unref(r);
    return r != NULL;
}

static struct cache_stats stats_of(struct world *w, enum held_kind kind)
{
    struct cache_stats stats;
    cache_stats_get(w->cache, kind, &stats);
    return stats;
}

static void only_newer_and_wanted_is_installed(void **state)
{
    struct world *w = *state;
    struct place *p = place_of(w, HELD_PAGE, 1);
    struct resource *r[4];
    for (int i = 0; i < 4; i++)
        r[i] = resource_of(w, HELD_PAGE, 1);
    assert_int_equal(cache_install(p, r[0], 5), CACHE_INSTALLED);
    assert_int_equal(cache_install(p, r[1], 5), CACHE_SUPERSEDED);
    cache_want(p, 8);
    cache_want(p, 6); /* never lowered */
    assert_int_equal(cache_install(p, r[2], 7), CACHE_OUTDATED);
    assert_int_equal(cache_install(p, r[3], 9), CACHE_INSTALLED);
    struct resource *now = place_resource(p);
    assert_ptr_equal(now, r[3]);
    resource_unref(now);
    resource_unref(r[1]);
    resource_unref(r[2]);
    place_unref(p);
}

/* The budget has to know what is kept for its readers alone. */
static void what_a_place_lets_go_is_retired(void **state)
{
    struct world *w = *state;
    struct place *p = place_of(w, HELD_PAGE, 1);
    struct resource *r[4];
    for (int i = 0; i < 4; i++) {
        r[i] = resource_of(w, HELD_PAGE, 1);
        resource_ref(r[i]);
    }
    assert_int_equal(cache_install(p, r[0], 1), CACHE_INSTALLED);
    assert_int_equal(cache_install(p, r[1], 2), CACHE_INSTALLED);
    assert_true(atomic_load(&r[0]->held.retired));
    assert_false(atomic_load(&r[1]->held.retired));
    cache_drop(p);
    assert_true(atomic_load(&r[1]->held.retired));
    assert_int_equal(cache_install(p, r[2], 3), CACHE_INSTALLED);
    cache_sweep(w->cache, HELD_PAGE, none, NULL);
    assert_true(atomic_load(&r[2]->held.retired));
    /* Nobody would find it there. */
    assert_int_equal(cache_install(p, r[3], 4), CACHE_SUPERSEDED);
    resource_unref(r[3]);
    place_unref(p);
    for (int i = 0; i < 4; i++)
        resource_unref(r[i]);
    assert_int_equal(stats_of(w, HELD_PAGE).resources, 0);
}

static void wait_heard(struct heard *h, int calls)
{
    pthread_mutex_lock(&h->lock);
    while (h->calls < calls)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static void wait_attempts(struct world *w, int attempts)
{
    pthread_mutex_lock(&w->lock);
    while (w->attempts < attempts)
        pthread_cond_wait(&w->moved, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

#define HEARD                                                                                      \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER                       \
    }

static void one_load_for_many_who_wait(void **state)
{
    struct world *w = *state;
    struct place *p = place_of(w, HELD_PAGE, 1);
    struct heard h = HEARD;
    w->versions[0] = 3;
    w->versions[1] = 4;
    w->closed = true;
    for (int i = 0; i < 10; i++)
        cache_await(p, 1, hear, &h);
    wait_attempts(w, 1);
    cache_want(p, 4); /* a commit came meanwhile */
    set_closed(w, false);
    wait_heard(&h, 10);
    assert_int_equal(w->attempts, 2);
    struct resource *now = place_resource(p);
    assert_ptr_equal(now, h.last);
    resource_unref(now);
    cache_await(p, 1, hear, &h); /* it is there */
    assert_int_equal(h.calls, 11);
    resource_unref(h.last);
    place_unref(p);
}

/* Each attempt is overtaken: the last one answers who asked before, and who asked later waits on.
 */
static void a_load_that_loses_every_race_ends(void **state)
{
    struct world *w = *state;
    struct place *p = place_of(w, HELD_PAGE, 1);
    struct heard early = HEARD, late = HEARD;
    for (uint64_t i = 0; i < 5; i++)
        w->versions[i] = i + 1;
    w->late = &late;
    cache_await(p, 1, hear, &early);
    wait_heard(&early, 1);
    wait_heard(&late, 1);
    assert_int_equal(w->attempts, 5);
    assert_int_equal(early.result, AWAIT_DONE);
    assert_int_equal(late.result, AWAIT_DONE);
    assert_ptr_not_equal(early.last, late.last);
    struct resource *now = place_resource(p);
    assert_ptr_equal(now, late.last);
    resource_unref(now);
    resource_unref(early.last);
    resource_unref(late.last);
    place_unref(p);
}

/* The file was restored to an earlier state: what is wanted never comes, and what is there is not
 * kept. */
static void who_waits_for_a_lost_revision_is_answered(void **state)
{
    struct world *w = *state;
    struct place *p = place_of(w, HELD_PAGE, 1);
    struct heard h = HEARD;
    w->versions[0] = w->versions[1] = 3;
    cache_want(p, 5);
    for (int i = 1; i <= 2; i++) {
        cache_await(p, 1, hear, &h);
        wait_heard(&h, i);
        assert_int_equal(h.result, AWAIT_DONE);
        assert_non_null(h.last);
        assert_int_equal(w->attempts, i);
    }
    assert_false(is_in_memory(p));
    resource_unref(h.last);
    place_unref(p);
}

/* Many loads for one site do not hold up those for another. */
static void sites_take_turns(void **state)
{
    struct world *w = *state;
    const int64_t sites[] = {1, 1, 1, 1, 2, 2};
    const uint32_t order[] = {0, 1, 4, 2, 5, 3};
    struct heard h = HEARD;
    struct workers *one = workers_new(1, 10);
    struct loader loader = {load, w, one};
    cache_set_loader(w->cache, HELD_PAGE, &loader);
    w->closed = true;
    for (uint32_t i = 0; i < 6; i++) {
        struct place *p = place_of(w, HELD_PAGE, i);
        w->versions[i] = 1;
        cache_await(p, sites[i], hear, &h);
        place_unref(p);
        wait_attempts(w, 1); /* the others wait for the thread */
    }
    set_closed(w, false);
    wait_heard(&h, 6);
    assert_memory_equal(w->numbers, order, sizeof order);
    resource_unref(h.last);
    workers_free(one);
}

static bool is_even(void *context, struct place *p)
{
    (void)context;
    return p->key.number % 2 == 0;
}

static void the_table_finds_keeps_and_sweeps(void **state)
{
    struct world *w = *state;
    for (uint32_t n = 1; n <= 1000; n++) {
        struct place *p = place_of(w, n % 3 == 0 ? HELD_FILE : HELD_PAGE, n);
        struct place *again = place_of(w, n % 3 == 0 ? HELD_FILE : HELD_PAGE, n);
        assert_ptr_equal(p, again);
        place_unref(p);
        place_unref(p);
    }
    struct place *gone = place_of(w, HELD_PAGE, 1);
    assert_int_equal(cache_install(gone, resource_of(w, HELD_PAGE, 1), 1), CACHE_INSTALLED);
    cache_sweep(w->cache, HELD_PAGE, is_even, NULL);
    assert_false(is_in_memory(gone));
    place_unref(gone);
    for (uint32_t n = 1; n <= 1000; n++) {
        struct place_key key = {n % 3 == 0 ? HELD_FILE : HELD_PAGE, n, 0, 0, "name"};
        struct place *p = cache_find(w->cache, &key);
        assert_int_equal(p != NULL, n % 3 == 0 || n % 2 == 0);
        place_unref(p);
        key.era = 1;
        assert_null(cache_find(w->cache, &key));
    }
    size_t at = 0, pages = 0;
    for (struct place *p; (p = cache_next(w->cache, HELD_PAGE, &at, is_even, NULL)) != NULL;
         pages++)
        place_unref(p);
    assert_int_equal(pages, 334);
}

/* Files are remembered up to a number. */
static void files_are_forgotten(void **state)
{
    struct world *w = *state;
    for (uint32_t n = 1; n <= CACHE_MAX_FILES + 1; n++)
        place_unref(place_of(w, HELD_FILE, n));
    for (uint32_t n = 1; n <= 2; n++) {
        struct place_key key = {HELD_FILE, n, 0, 0, "name"};
        struct place *p = cache_find(w->cache, &key);
        assert_int_equal(p != NULL, n > 1);
        place_unref(p);
    }
}

/* The one budget: files go before pages, the least used first, and what is read stays as long as
 * anything else may go. */
static void the_budget_is_one(void **state)
{
    struct world *w = *state;
    struct place *page[3], *file[2];
    struct resource *read;
    for (uint32_t i = 0; i < 3; i++) {
        page[i] = place_of(w, HELD_PAGE, i);
        assert_int_equal(cache_install(page[i], resource_of(w, HELD_PAGE, 200), 1),
                         CACHE_INSTALLED);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(cache_reserve(w->cache, 120, false));
        file[i] = place_of(w, HELD_FILE, i);
        assert_int_equal(cache_install(file[i], resource_of(w, HELD_FILE, 120), 1),
                         CACHE_INSTALLED);
        cache_settle(w->cache, 120);
    }
    /* A quarter of the budget is the files': one more, and the first goes, though there is room. */
    assert_int_equal(stats_of(w, HELD_FILE).bytes, 240);
    assert_true(cache_reserve(w->cache, 100, false));
    cache_settle(w->cache, 100);
    assert_false(is_in_memory(file[0]));
    assert_true(is_in_memory(file[1]));
    cache_enforce(w->cache, NULL);
    assert_true(is_in_memory(file[1])); /* 720 of 1000 */

    struct place *large = place_of(w, HELD_PAGE, 9);
    resource_unref(place_resource(page[0]));
    read = place_resource(page[2]);
    assert_int_equal(cache_install(large, resource_of(w, HELD_PAGE, 300), 1), CACHE_INSTALLED);
    cache_enforce(w->cache, large); /* 1020 */
    assert_false(is_in_memory(file[1]));
    assert_true(is_in_memory(page[1]));
    assert_int_equal(cache_install(large, resource_of(w, HELD_PAGE, 450), 2), CACHE_INSTALLED);
    cache_enforce(w->cache, large); /* 1050: the page that was used stays, and what is read */
    assert_true(is_in_memory(page[0]));
    assert_false(is_in_memory(page[1]));
    assert_int_equal(cache_install(large, resource_of(w, HELD_PAGE, 900), 3), CACHE_INSTALLED);
    cache_enforce(w->cache, large); /* all others go, and who reads is cut */
    assert_false(is_in_memory(page[0]));
    assert_false(is_in_memory(page[2]));
    assert_true(is_in_memory(large));
    assert_int_equal(w->cut[HELD_PAGE], 100);
    assert_int_equal(w->cut[HELD_FILE], 0);
    resource_unref(read);
    assert_int_equal(stats_of(w, HELD_PAGE).bytes, 900);
    assert_int_equal(stats_of(w, HELD_PAGE).evictions, 3);
    assert_int_equal(stats_of(w, HELD_FILE).evictions, 2);
    for (int i = 0; i < 3; i++)
        place_unref(page[i]);
    for (int i = 0; i < 2; i++)
        place_unref(file[i]);
    place_unref(large);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_newer_and_wanted_is_installed),
        TEST(what_a_place_lets_go_is_retired),
        TEST(one_load_for_many_who_wait),
        TEST(a_load_that_loses_every_race_ends),
        TEST(sites_take_turns),
        TEST(who_waits_for_a_lost_revision_is_answered),
        TEST(the_table_finds_keeps_and_sweeps),
        TEST(files_are_forgotten),
        TEST(the_budget_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
