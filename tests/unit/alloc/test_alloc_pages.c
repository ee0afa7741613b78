/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The publisher: where memory runs out a page is not there for a while, but never an old one after
 * a write was acknowledged; and it comes back by itself. */
#include "tests/unit/alloc/alloc.h"

#include <sqlite3.h>

#include "server/base/str.h"
#include "tests/unit/lib/scratch.h"
#include "tests/unit/pages/publish_world.h"

struct world {
    char folder[64], path[96];
    struct catalogue *c;
    struct cache *cache;
    struct publisher *p;
    unsigned number;
};

/* What waits for memory gets it after a while. */
static void wait_relenting(struct heard *h)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&h->lock);
    while (h->calls == 0)
        if (pthread_cond_clockwait(&h->moved, &h->lock, CLOCK_MONOTONIC, &until) != 0)
            break;
    if (h->calls == 0)
        alloc_disarm();
    while (h->calls == 0)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

/* The page's snapshot: as it is in memory, else built. NULL with `*result` where it could not be.
 */
static struct resource *get_or_not(struct world *w, enum await_result *result)
{
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    const struct page_map *routing = publisher_page_map(w->p);
    struct site_target found;
    *result = AWAIT_DONE;
    page_map_find(routing, "any", PAGE, &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    struct resource *s = place_resource(found.page);
    if (s == NULL) {
        cache_await(found.page, 1, hear_page, &h);
        wait_relenting(&h);
        *result = h.result;
        s = h.snapshot;
    }
    publisher_page_map_done(routing);
    return s;
}

static void stop(struct world *w)
{
    publisher_stop(w->p);
    cache_free(w->cache);
}

static bool start(struct world *w)
{
    const struct cache_options cache = {.budget_bytes = 1u << 24};
    w->cache = cache_new(&cache);
    if (w->cache == NULL)
        return false;
    struct publisher_options options = {
        .catalogue = w->c, .cache = w->cache, .compression_level = 6, .build_threads = 1};
    enum catalogue_status status = publisher_start(&options, &w->p);
    if (status != CATALOGUE_OK) {
        assert_null(w->p);
        assert_int_equal(status, CATALOGUE_NO_MEMORY);
        cache_free(w->cache);
    }
    return status == CATALOGUE_OK;
}

static bool start_get_stop(void *context)
{
    struct world *w = context;
    enum await_result result;
    if (!start(w))
        return false;
    struct resource *s = get_or_not(w, &result);
    bool good = s != NULL;
    assert_true(good || result == AWAIT_UNAVAILABLE);
    if (good)
        assert_true(s->entries >= 1);
    resource_unref(s);
    stop(w);
    return good;
}

static bool put_number(struct world *w)
{
    char loc[120];
    struct change_result result;
    snprintf(loc, sizeof loc, ORIGIN "/%u.xml", w->number % 700); /* also over a segment's end */
    char lastmod[] = "2026-01-01T00:00:00Z";
    snprintf(lastmod + 11, 10, "%02u:%02u:%02uZ", w->number / 3600 % 24, w->number / 60 % 60,
             w->number % 60);
    w->number++;
    struct change change = {
        .kind = CHANGE_ENTRY_PUT,
        .source = "tests",
        .entry = {
            .loc = loc, .lastmod = lastmod, .lastmod_state = FIELD_SET, .position = POSITION_NONE}};
    enum catalogue_status status = catalogue_apply(w->c, &change, &result);
    entry_record_done(&result.entry);
    if (status == CATALOGUE_NO_MEMORY)
        return false;
    assert_int_equal(status, CATALOGUE_OK);

    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    publisher_await_revision(w->p, result.revision, hear_revision, &h);
    wait_relenting(&h);
    if (h.result != AWAIT_DONE)
        return false;
    /* Invariant 4: acknowledged, so nothing older is shown. */
    enum await_result got;
    struct resource *s = get_or_not(w, &got);
    if (s != NULL)
        assert_true(s->revision >= result.revision);
    bool good = s != NULL;
    resource_unref(s);
    return good;
}

static bool put_and_get(void *context)
{
    return put_number(context);
}

static void test_publisher(void **state)
{
    static struct world w;
    scratch_make(w.folder, "sitemapd-alloc");
    snprintf(w.path, sizeof w.path, "%s/c.db", w.folder);
    w.c = open_catalogue(w.path, true);
    add_site(w.c, ORIGIN PAGE);
    put(w.c, "first", NULL);
    alloc_sweep("start, get, stop", start_get_stop, &w);
    assert_true(start(&w));
    alloc_sweep("put and get", put_and_get, &w);
    stop(&w);
    catalogue_close(w.c);
    scratch_remove(w.folder);
}

int main(void)
{
    /* Each of the engine's allocations may fail, not only those too large for a connection's own.
     */
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_publisher)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
