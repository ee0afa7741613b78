/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A whole server without sockets: a catalogue in a folder of its own, its publisher and workers.
 * Asked as in ask.h. */
#pragma once

#include "tests/unit/api/ask.h"
#include "tests/unit/lib/catalogue_fixture.h"

/* ---- setup ------------------------------------------------------------------------------- */

static _Atomic int64_t world_ahead_s; /* of the catalogue's clock */

static inline int64_t world_clock(void)
{
    return (int64_t)time(NULL) + world_ahead_s;
}

static inline bool attach_nothing(void *context, struct resource *s)
{
    (void)context;
    (void)s;
    return true;
}

static inline int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    char path[96];
    struct publisher_options publisher = {
        .compression_level = 6, .build_threads = 1, .attach = attach_nothing};

    scratch_make(w->folder, "sitemapd-routes");
    snprintf(path, sizeof path, "%s/catalogue.db", w->folder);
    struct catalogue_options options = fixture_options(path);
    options.server = true;
    options.clock = world_clock;
    options.default_max_pages = 500;
    w->app.catalogue = fixture_catalogue(&options);
    publisher.catalogue = w->app.catalogue;
    w->cache = cache_new(&(struct cache_options){.budget_bytes = 1u << 26});
    assert_non_null(w->cache);
    publisher.cache = w->cache;
    assert_int_equal(publisher_start(&publisher, &w->app.publisher), CATALOGUE_OK);
    w->app.readers = workers_new(2, 64);
    w->app.searchers = workers_new(1, 64);
    w->app.auth = auth_new();
    w->app.max_body_bytes = 65536;
    w->app.max_bulk_bytes = 1u << 24;
    w->app.max_bulk_entries = 100000;
    w->app.spool_room.max_bytes = 1u << 30;
    w->app.max_rejections = 5;
    token_sha256(TOKEN, strlen(TOKEN), w->sha256);
    w->app.environment_token_sha256 = w->sha256;
    *state = w;
    return 0;
}

static inline int world_teardown(void **state)
{
    struct world *w = *state;

    publisher_quiesce(w->app.publisher);
    workers_free(w->app.readers);
    workers_free(w->app.searchers);
    publisher_stop(w->app.publisher);
    cache_free(w->cache);
    catalogue_close(w->app.catalogue);
    auth_free(w->app.auth);
    scratch_remove(w->folder);
    free(w);
    return 0;
}

/* The same with one site and its index. */
static inline int world_with_site(void **state)
{
    if (world_setup(state) != 0)
        return -1;
    expect(ask(*state, HTTP_POST, "/v1/sites", "{\"origin\":\"" ORIGIN "\"}"), 201, ORIGIN);
    return 0;
}
