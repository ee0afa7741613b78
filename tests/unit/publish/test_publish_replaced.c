/* The publisher where another catalogue takes the place of its own: what a reader asked for under
 * the old one's ids is never answered with the new one's entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/publish/publisher.h"

#define ORIGIN "https://www.example.com"

static struct catalogue *make_catalogue(const char *path, const char *index, const char *loc)
{
    struct catalogue *c;
    char why[256];
    struct catalogue_options options = {
        .path = path,
        .server = true,
        .write_timeout_ms = 5000,
        .max_queued = 10,
        .default_max_pages = LIMIT_SITE_PAGES,
    };
    struct change changes[] = {
        {.kind = CHANGE_SITE_ADD, .site = {.origin = ORIGIN}},
        {.kind = CHANGE_INDEX_ADD, .index_url = index},
        {.kind = CHANGE_ENTRY_PUT,
         .source = "test",
         .entry = {.loc = loc, .position = POSITION_NONE}},
    };
    if (catalogue_open(&options, &c, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct change_result result;
        assert_int_equal(catalogue_apply(c, &changes[i], &result), CATALOGUE_OK);
        entry_record_done(&result.entry);
    }
    return c;
}

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool called;
    enum await_result result;
    struct snapshot *snapshot;
};

static void hear(void *context, enum await_result result, struct snapshot *snapshot)
{
    struct heard *h = context;
    pthread_mutex_lock(&h->lock);
    h->called = true;
    h->result = result;
    h->snapshot = snapshot;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static enum await_result await_page(struct publisher *p, struct slot *slot)
{
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    publisher_await_page(p, slot, hear, &h);
    pthread_mutex_lock(&h.lock);
    while (!h.called)
        pthread_cond_wait(&h.moved, &h.lock);
    pthread_mutex_unlock(&h.lock);
    snapshot_unref(h.snapshot);
    return h.result;
}

static void sleep_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static void an_old_slot_is_not_filled_from_the_new_file(void **state)
{
    char folder[] = "/tmp/test_replaced.XXXXXX", path[96], other[96], command[128];
    struct publisher *p;
    struct route_found found;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/catalogue.db", folder);
    snprintf(other, sizeof other, "%s/other.db", folder);
    catalogue_close(make_catalogue(other, ORIGIN "/b.xml", ORIGIN "/theirs.xml"));
    struct catalogue *c = make_catalogue(path, ORIGIN "/a.xml", ORIGIN "/mine.xml");
    struct publisher_options options = {
        .catalogue = c,
        .compression_level = 6,
        .snapshot_budget_bytes = 1u << 20,
        .build_threads = 1,
    };
    assert_int_equal(publisher_start(&options, &p), CATALOGUE_OK);
    const struct routing *old = publisher_routing(p);
    routing_find(old, "any", "/a.xml", &found);
    assert_int_equal(found.kind, ROUTE_PAGE);

    assert_int_equal(rename(other, path), 0);
    const struct routing *now = publisher_routing(p);
    while (now == old) {
        publisher_routing_done(now);
        sleep_ms(5);
        now = publisher_routing(p);
    }
    /* Both files call their index number 1. */
    assert_int_equal(await_page(p, found.slot), AWAIT_UNAVAILABLE);
    assert_null(slot_snapshot(found.slot));
    routing_find(now, "any", "/a.xml", &found);
    assert_int_not_equal(found.kind, ROUTE_PAGE);
    routing_find(now, "any", "/b.xml", &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    assert_int_equal(await_page(p, found.slot), AWAIT_DONE);

    publisher_routing_done(now);
    publisher_routing_done(old);
    publisher_stop(p);
    catalogue_close(c);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_slot_is_not_filled_from_the_new_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
