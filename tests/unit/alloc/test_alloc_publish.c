/* The publisher: where memory runs out a page is not there for a while, but never an old one after
 * a write was acknowledged; and it comes back by itself. */
#include "tests/unit/alloc/alloc.h"

#include <pthread.h>
#include <time.h>

#include "server/publish/publisher.h"
#include "server/rules/str.h"

#define ORIGIN "https://www.example.com"
#define PATH   "/sitemap_index.xml"

struct world {
    char folder[64], path[96];
    struct catalogue *c;
    struct publisher *p;
    unsigned number;
};

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool called;
    enum await_result result;
    struct snapshot *snapshot;
};

static void hear_page(void *context, enum await_result result, struct snapshot *snapshot)
{
    struct heard *h = context;
    pthread_mutex_lock(&h->lock);
    h->called = true;
    h->result = result;
    h->snapshot = snapshot;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static void hear_revision(void *context, enum await_result result)
{
    hear_page(context, result, NULL);
}

/* What waits for memory gets it after a while. */
static void wait_heard(struct heard *h)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&h->lock);
    while (!h->called)
        if (pthread_cond_timedwait(&h->moved, &h->lock, &until) != 0)
            break;
    if (!h->called)
        alloc_disarm();
    while (!h->called)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

/* The page's snapshot: as it is in memory, else built. NULL with `*result` where it could not be.
 */
static struct snapshot *get(struct world *w, enum await_result *result)
{
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    const struct routing *routing = publisher_routing(w->p);
    struct route_found found;
    *result = AWAIT_DONE;
    routing_find(routing, "any", PATH, &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    struct snapshot *s = slot_snapshot(found.slot);
    if (s == NULL) {
        publisher_await_page(w->p, found.slot, hear_page, &h);
        wait_heard(&h);
        *result = h.result;
        s = h.snapshot;
    }
    publisher_routing_done(routing);
    return s;
}

static bool start(struct world *w)
{
    struct publisher_options options = {.catalogue = w->c,
                                        .compression_level = 6,
                                        .snapshot_budget_bytes = 1u << 24,
                                        .build_threads = 1};
    enum catalogue_status status = publisher_start(&options, &w->p);
    if (status != CATALOGUE_OK) {
        assert_null(w->p);
        assert_int_equal(status, CATALOGUE_NO_MEMORY);
    }
    return status == CATALOGUE_OK;
}

static bool start_get_stop(void *context)
{
    struct world *w = context;
    enum await_result result;
    if (!start(w))
        return false;
    struct snapshot *s = get(w, &result);
    bool good = s != NULL;
    assert_true(good || result == AWAIT_UNAVAILABLE);
    if (good)
        assert_true(s->entries >= 1);
    snapshot_unref(s);
    publisher_stop(w->p);
    return good;
}

static bool put(struct world *w)
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
    wait_heard(&h);
    if (h.result != AWAIT_DONE)
        return false;
    /* Invariant 4: acknowledged, so nothing older is shown. */
    enum await_result got;
    struct snapshot *s = get(w, &got);
    if (s != NULL)
        assert_true(s->revision >= result.revision);
    bool good = s != NULL;
    snapshot_unref(s);
    return good;
}

static bool put_and_get(void *context)
{
    return put(context);
}

static void test_publisher(void **state)
{
    static struct world w;
    char why[256], command[96];
    (void)state;
    strcpy(w.folder, "/tmp/sitemapd-alloc-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.path, sizeof w.path, "%s/c.db", w.folder);
    struct catalogue_options options = {.path = w.path,
                                        .server = true,
                                        .write_timeout_ms = 5000,
                                        .max_queued = 100,
                                        .default_max_pages = LIMIT_SITE_PAGES};
    assert_int_equal(catalogue_open(&options, &w.c, why, sizeof why), CATALOGUE_OK);
    struct change changes[] = {
        {.kind = CHANGE_SITE_ADD, .site = {.origin = ORIGIN}},
        {.kind = CHANGE_INDEX_ADD, .index_url = ORIGIN PATH},
        {.kind = CHANGE_ENTRY_PUT,
         .source = "tests",
         .entry = {.loc = ORIGIN "/first.xml", .position = POSITION_NONE}},
    };
    for (size_t i = 0; i < 3; i++) {
        struct change_result result;
        assert_int_equal(catalogue_apply(w.c, &changes[i], &result), CATALOGUE_OK);
        entry_record_done(&result.entry);
    }
    alloc_sweep("start, get, stop", start_get_stop, &w);
    assert_true(start(&w));
    alloc_sweep("put and get", put_and_get, &w);
    publisher_stop(w.p);
    catalogue_close(w.c);
    snprintf(command, sizeof command, "rm -rf '%s'", w.folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_publisher)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
