/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A publisher with pages on disk, for the tests of what keeps them. */
#pragma once

#include <sys/stat.h>

#include "tests/unit/lib/scratch.h"
#include "tests/unit/pages/publish_world.h"

struct fixture {
    char folder[64], path[96], pages[112];
    struct catalogue *catalogue;
    struct cache *cache;
    struct publisher *publisher;
    int level;
    uint64_t store_bytes, budget;
    uint32_t settle_ms, least_ms; /* an hour: only a stop stores */
    uint64_t last;                /* revision written */
};

/* Writes an entry; reads then wait for it. */
static inline uint64_t put_entry(struct fixture *f, const char *name, const char *lastmod)
{
    f->last = put(f->catalogue, name, lastmod);
    return f->last;
}

/* Seen where a test fails. */
static inline void record_event(void *context, const char *event, const char *detail)
{
    (void)context;
    print_message("%s: %s\n", event, detail);
}

static inline void start(struct fixture *f)
{
    f->catalogue = open_catalogue(f->path, true);
    f->cache = make_cache(f->budget);
    struct publisher_options options = {
        .catalogue = f->catalogue,
        .cache = f->cache,
        .compression_level = f->level,
        .page_store_folder = f->pages,
        .page_store_bytes = f->store_bytes,
        .page_store_settle_ms = f->settle_ms,
        .page_store_least_ms = f->least_ms,
        .build_threads = 1,
        .event = record_event,
    };
    assert_int_equal(publisher_start(&options, &f->publisher), CATALOGUE_OK);
}

static inline void stop(struct fixture *f)
{
    publisher_stop(f->publisher);
    cache_free(f->cache);
    catalogue_close(f->catalogue);
    f->publisher = NULL;
    f->catalogue = NULL;
}

static inline void restart(struct fixture *f)
{
    stop(f);
    start(f);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder, "test_page_keeper");
    snprintf(f->path, sizeof f->path, "%s/catalogue.db", f->folder);
    snprintf(f->pages, sizeof f->pages, "%s.pages", f->path);
    f->level = 6;
    f->store_bytes = 1 << 20;
    f->budget = 1 << 20;
    f->settle_ms = f->least_ms = 3600000;
    start(f);
    add_site(f->catalogue, ORIGIN PAGE);
    put_entry(f, "one", "2026-01-01");
    *state = f;
    return 0;
}

static inline void shell(const char *command)
{
    assert_int_equal(system(command), 0);
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    stop(f);
    scratch_remove(f->folder);
    free(f);
    return 0;
}

/* ---- reading as a crawler does ---- */

static inline struct resource *get_path(struct fixture *f, const char *path)
{
    await_revision(f->publisher, f->last);
    struct resource *snapshot = get_page(f->publisher, path);
    assert_non_null(snapshot);
    return snapshot;
}

static inline struct resource *get(struct fixture *f)
{
    return get_path(f, PAGE);
}

/* What a publisher that stores nothing makes of the same catalogue. */
static inline void assert_as_rendered(struct fixture *f, const struct resource *served)
{
    struct fixture plain = *f;
    plain.catalogue = open_catalogue(plain.path, false);
    plain.cache = make_cache(1 << 20);
    struct publisher_options options = {
        .catalogue = plain.catalogue,
        .cache = plain.cache,
        .compression_level = f->level,
        .build_threads = 1,
        .event = record_event,
    };
    assert_int_equal(publisher_start(&options, &plain.publisher), CATALOGUE_OK);
    struct resource *expected = get(&plain);
    assert_int_equal(served->gzip_len, expected->gzip_len);
    assert_memory_equal(served->gzip, expected->gzip, served->gzip_len);
    assert_string_equal(served->etag_gzip, expected->etag_gzip);
    assert_string_equal(served->etag_identity, expected->etag_identity);
    assert_string_equal(served->etag_file, expected->etag_file);
    assert_int_equal(served->raw_len, expected->raw_len);
    assert_int_equal(served->entries, expected->entries);
    assert_int_equal(served->revision, expected->revision);
    assert_int_equal(served->changed_at, expected->changed_at);
    assert_int_equal(served->same_second, expected->same_second);
    assert_int_equal(served->segment_count, expected->segment_count);
    resource_unref(expected);
    stop(&plain);
}

/* Serves the page, compares, and returns whether it was loaded. */
static inline bool loads(struct fixture *f)
{
    struct publisher_stats before = stats_of(f->publisher);
    struct resource *s = get(f);
    struct publisher_stats after = stats_of(f->publisher);
    assert_as_rendered(f, s);
    resource_unref(s);
    bool loaded = after.pages_loaded > before.pages_loaded;
    assert_int_equal(after.segments_rendered > before.segments_rendered, !loaded);
    assert_int_equal(after.pages_built_cold > before.pages_built_cold, !loaded);
    return loaded;
}

static inline bool is_stored(struct fixture *f, const char *name)
{
    char path[160];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", f->pages, name);
    return stat(path, &found) == 0;
}

/* Without end: a test that hangs is ended by its runner. */
static inline void wait_stored(struct fixture *f, const char *name, bool there)
{
    while (is_stored(f, name) != there)
        usleep(5000);
}
