/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A whole server without sockets: a catalogue in a folder of its own, its publisher and workers.
 * Asked as in ask.h. */
#pragma once

#include "tests/unit/api/ask.h"

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
    char path[96], why[256] = "";
    struct publisher_options publisher = {
        .compression_level = 6, .build_threads = 1, .attach = attach_nothing};

    scratch_name(w->folder, "sitemapd-routes");
    assert_non_null(mkdtemp(w->folder));
    snprintf(path, sizeof path, "%s/catalogue.db", w->folder);
    const struct catalogue_options options = {.path = path,
                                              .server = true,
                                              .clock = world_clock,
                                              .write_timeout_ms = 60000,
                                              .max_queued = 100,
                                              .shrink_percent = 30,
                                              .default_max_pages = 500};
    if (catalogue_open(&options, &w->app.catalogue, why, sizeof why) != CATALOGUE_OK) {
        print_error("%s\n", why);
        return -1;
    }
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
    char command[96];

    publisher_quiesce(w->app.publisher);
    workers_free(w->app.readers);
    workers_free(w->app.searchers);
    publisher_stop(w->app.publisher);
    cache_free(w->cache);
    catalogue_close(w->app.catalogue);
    auth_free(w->app.auth);
    snprintf(command, sizeof command, "rm -rf '%s'", w->folder);
    if (system(command) != 0)
        return -1;
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
