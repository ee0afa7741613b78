/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue and a publisher on it: writing as a client does, waiting, and reading as a crawler
 * does. For every test that has a publisher. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/pages/publisher.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/lib/scratch.h"

#define ORIGIN "https://www.example.com"
#define PAGE   "/sitemap_index.xml"

static inline struct cache *make_cache(uint64_t budget)
{
    struct cache *cache = cache_new(&(struct cache_options){.budget_bytes = budget});
    assert_non_null(cache);
    return cache;
}

static inline struct catalogue *open_catalogue(const char *path, bool server)
{
    struct catalogue_options options = fixture_options(path);
    options.server = server;
    options.history_keep_ms = 3600000;
    options.history_max_bytes = 1 << 20;
    return fixture_catalogue(&options);
}

#define apply fixture_apply

static inline uint64_t put(struct catalogue *c, const char *name, const char *lastmod)
{
    char loc[160];
    snprintf(loc, sizeof loc, ORIGIN "/%s.xml", name);
    struct change change = {
        .kind = CHANGE_ENTRY_PUT,
        .source = "test",
        .entry = {.loc = loc,
                  .lastmod = lastmod,
                  .lastmod_state = lastmod == NULL ? FIELD_ABSENT : FIELD_SET,
                  .position = POSITION_NONE},
    };
    return apply(c, &change);
}

static inline uint64_t drop(struct catalogue *c, const char *name)
{
    char loc[160];
    snprintf(loc, sizeof loc, ORIGIN "/%s.xml", name);
    struct change change = {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = loc}};
    return apply(c, &change);
}

static inline void add_index(struct catalogue *c, const char *url)
{
    apply(c, &(struct change){.kind = CHANGE_INDEX_ADD, .index_add = {.url = url}});
}

/* The site, and its index at `url`. */
static inline void add_site(struct catalogue *c, const char *url)
{
    apply(c, &(struct change){.kind = CHANGE_SITE_ADD, .site_add = {.origin = ORIGIN}});
    add_index(c, url);
}

/* ---- waiting for callbacks ---- */

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int calls;
    enum await_result result;
    struct resource *snapshot;
};

static inline void heard_init(struct heard *h)
{
    memset(h, 0, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->moved, NULL);
}

static inline void hear_page(void *context, enum await_result result, struct resource *snapshot)
{
    struct heard *h = context;
    pthread_mutex_lock(&h->lock);
    h->calls++;
    h->result = result;
    h->snapshot = snapshot;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static inline void hear_revision(void *context, enum await_result result)
{
    hear_page(context, result, NULL);
}

static inline void wait_heard(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    while (h->calls == 0)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static inline void await_revision(struct publisher *p, uint64_t revision)
{
    struct heard h;
    heard_init(&h);
    publisher_await_revision(p, revision, hear_revision, &h);
    wait_heard(&h);
    assert_int_equal(h.result, AWAIT_DONE);
}

/* ---- reading as a crawler does ---- */

/* The page of a place that has none in memory. The caller owns `*out`, NULL if none exists. */
static inline enum await_result await_page(struct place *page, struct resource **out)
{
    struct heard h;
    heard_init(&h);
    cache_await(page, 1, hear_page, &h);
    wait_heard(&h);
    *out = h.snapshot;
    return h.result;
}

/* The page at `path`, built where it is not in memory; NULL where it is not a page. */
static inline struct resource *get_page(struct publisher *p, const char *path)
{
    struct site_target found;
    const struct page_map *routing = publisher_page_map(p);
    struct resource *snapshot = NULL;
    page_map_find(routing, "anything", path, &found);
    if (found.kind == ROUTE_PAGE) {
        snapshot = place_resource(found.page);
        if (snapshot == NULL)
            assert_int_equal(await_page(found.page, &snapshot), AWAIT_DONE);
    }
    publisher_page_map_done(routing);
    return snapshot;
}

static inline struct publisher_stats stats_of(struct publisher *p)
{
    struct publisher_stats s;
    publisher_stats_get(p, &s);
    return s;
}
