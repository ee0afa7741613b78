/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A publisher whose builds stop at a gate, for the tests of the publisher. */
#pragma once

#include <stdatomic.h>

#include "server/base/str.h"
#include "tests/unit/lib/scratch.h"
#include "tests/unit/pages/gunzip.h"
#include "tests/unit/pages/publish_world.h"

struct fixture {
    char folder[64], path[96];
    struct catalogue *catalogue;
    struct cache *cache;
    struct publisher *publisher;
    /* The gate: while it is closed, build N stops between its read and its installation until N
     * are let through. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool closed;
    int arrived, let_through;
    atomic_int builds;
    /* What readers were to give back. */
    atomic_int cuts;
    atomic_uint_fast64_t cut_bytes;
};

static inline void pause_build(void *context, int64_t index_id, uint32_t page, uint64_t revision)
{
    struct fixture *f = context;
    (void)index_id;
    (void)page;
    (void)revision;
    atomic_fetch_add(&f->builds, 1);
    pthread_mutex_lock(&f->lock);
    int mine = ++f->arrived;
    pthread_cond_broadcast(&f->moved);
    while (f->closed && f->let_through < mine)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static inline void cut_readers(void *context, enum held_kind kind, uint64_t bytes)
{
    struct fixture *f = context;
    assert_int_equal(kind, HELD_PAGE);
    atomic_fetch_add(&f->cuts, 1);
    atomic_store(&f->cut_bytes, bytes);
}

static inline void close_gate(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    f->closed = true;
    f->arrived = f->let_through = 0;
    pthread_mutex_unlock(&f->lock);
}

static inline void wait_arrived(struct fixture *f, int builds)
{
    pthread_mutex_lock(&f->lock);
    while (f->arrived < builds)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static inline void let_through(struct fixture *f, int builds)
{
    pthread_mutex_lock(&f->lock);
    f->let_through = builds;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

static inline void open_gate(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    f->closed = false;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

static inline void start_publisher(struct fixture *f, uint64_t budget)
{
    const struct cache_options cache = {
        .budget_bytes = budget, .cut_slow_readers = cut_readers, .cut_context = f};
    f->cache = cache_new(&cache);
    assert_non_null(f->cache);
    struct publisher_options options = {
        .catalogue = f->catalogue,
        .cache = f->cache,
        .compression_level = 6,
        .build_threads = 2,
        .build_pause = pause_build,
        .build_pause_context = f,
    };
    assert_int_equal(publisher_start(&options, &f->publisher), CATALOGUE_OK);
}

static inline void stop_publisher(struct fixture *f)
{
    publisher_stop(f->publisher);
    cache_free(f->cache);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder, "test_publisher");
    snprintf(f->path, sizeof f->path, "%s/catalogue.db", f->folder);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    f->catalogue = open_catalogue(f->path, true);
    add_site(f->catalogue, ORIGIN PAGE);
    start_publisher(f, 1u << 30);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    stop_publisher(f);
    catalogue_close(f->catalogue);
    scratch_remove(f->folder);
    free(f);
    return 0;
}

/* ---- reading ---- */

static inline bool page_holds(struct fixture *f, const char *what)
{
    struct resource *s = get_page(f->publisher, PAGE);
    if (s == NULL)
        return false;
    char *text = gunzip(s);
    bool holds = strstr(text, what) != NULL;
    free(text);
    resource_unref(s);
    return holds;
}

static inline void assert_equals_plain_render(struct fixture *f)
{
    struct catalogue_view *v;
    struct registry *registry;
    struct str plain = STR_INIT;
    assert_int_equal(catalogue_view_begin(f->catalogue, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_registry(v, &registry), CATALOGUE_OK);
    enum catalogue_status status =
        publish_render_page(v, registry->sites[0].indexes[0].id, 1, false, &plain);
    registry_unref(registry);
    catalogue_view_end(v);
    struct resource *s = get_page(f->publisher, PAGE);
    if (status == CATALOGUE_NOT_FOUND) {
        assert_null(s);
    } else {
        assert_non_null(s);
        char *text = gunzip(s);
        assert_string_equal(text, str_text(&plain));
        free(text);
    }
    resource_unref(s);
    str_done(&plain);
}
