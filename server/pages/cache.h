/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The cache of resources: the pages and the served files that are in memory, in one table, against
 * one budget, with one list of waiters and one eviction. Each kind has a loader: the publisher
 * builds pages, served_file.c reads files.
 *
 * A *place* is one page or file, in memory or not. However many requests wait for it, it is loaded
 * once, on its loader's threads.
 *
 * The budget covers all resources: those in places, replaced ones that are still being sent, and
 * those being loaded. Files may use 1/CACHE_FILES_SHARE of it. Beyond the budget files are evicted
 * before pages, of each kind the least used that nobody reads: evicting one that is read would free
 * nothing. As the last resort, readers of replaced pages and slow readers of files are cut off.
 *
 * Thread safe: any thread may call anything but cache_free. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/pages/resource.h"

#define CACHE_FILES_SHARE 4u /* files may use a quarter of the budget */
/* Files that are in memory or remembered; the least used are forgotten. */
#define CACHE_MAX_FILES 16384u

struct cache;
struct workers;

struct cache_options {
    uint64_t budget_bytes;
    /* Called when resources that are being read use too much memory: cuts off the longest readers,
     * until at least `bytes` of the kind (replaced pages, or files) will be free, including those
     * of earlier calls. Must not block. NULL: nobody is cut off. */
    void (*cut_slow_readers)(void *context, enum held_kind kind, uint64_t bytes);
    void *cut_context;
};

/* NULL when out of memory. */
struct cache *cache_new(const struct cache_options *options);
/* No loader, place or resource of it may be left. Accepts NULL. */
void cache_free(struct cache *c);

struct cache_stats {
    uint64_t resources, bytes; /* with those still being sent; bytes with those being loaded */
    uint64_t evictions;
};
void cache_stats_get(struct cache *c, enum held_kind kind, struct cache_stats *out);

/* ---- places ------------------------------------------------------------------------------- */

struct place_key {
    enum held_kind kind;
    uint32_t number;  /* of a page in its index */
    int64_t of;       /* the page's index, or the file's source */
    uint64_t era;     /* of a page: which catalogue; see publisher_state.h */
    const char *name; /* of a page its catalogue's epoch; of a file its path */
};

/* The first member of a larger struct of its kind. */
struct place {
    struct place_key key; /* the name is owned */
    struct cache *cache;
    atomic_uint references;
    atomic_bool used; /* used since the last pass of the eviction */
    /* Guards `current` alone, for place_resource. */
    pthread_mutex_t lock;
    /* Under the cache's lock, as is all below; changed under both locks, so read under either. */
    struct resource *current;        /* owned reference; NULL: not in memory */
    uint64_t version;                /* of `current`: of a page its catalogue's revision */
    uint64_t wanted;                 /* nothing older may be installed */
    int64_t fresh_until_ms;          /* clock_now_ms; of a file, which is checked again later */
    bool loading;                    /* a loader is loading it */
    int64_t load_of;                 /* the site whose turn the load takes */
    bool listed;                     /* in the table and in a list; a removed place never returns */
    struct resource_waiter *waiters; /* waiting requests, the newest first */
    struct place *newer, *older;
    uint64_t hash;
};

/* Finds the place, or makes one of `size` bytes, which begin with a struct place; the rest is zero.
 * With a reference for the caller; NULL when out of memory. */
struct place *cache_place(struct cache *c, const struct place_key *key, size_t size);
/* The same if the place exists, else NULL. */
struct place *cache_find(struct cache *c, const struct place_key *key);
void place_ref(struct place *p);
void place_unref(struct place *p); /* accepts NULL */

/* The resource in memory, with a reference for the caller, or NULL. For a GET of a page: takes no
 * lock that pages share. */
struct resource *place_resource(struct place *p);
/* The same for a caller that does not serve it: it does not count as a use. */
struct resource *place_peek(struct place *p);
/* The same for a file by its key, if it is fresh. */
struct resource *cache_fresh(struct cache *c, const struct place_key *key);

/* The next place of the kind for which `is` is true, from *at (0 at first) on, with a reference, or
 * NULL. `is` is called under the cache's lock. Places that come or go meanwhile may be missed. */
struct place *cache_next(struct cache *c, enum held_kind kind, size_t *at,
                         bool (*is)(void *context, struct place *p), void *context);
/* Removes all places of the kind for which `keep` is false, with their resources. A place lives as
 * long as somebody has a reference, without a resource. */
void cache_sweep(struct cache *c, enum held_kind kind, bool (*keep)(void *context, struct place *p),
                 void *context);

/* ---- contents ---------------------------------------------------------------------- */

/* Counts a resource until the last reference to it is gone. Call it before the resource is shared.
 */
void cache_count(struct cache *c, struct resource *r);
/* Raises the version that is wanted of a place. */
void cache_want(struct place *p, uint64_t version);

enum cache_install {
    CACHE_INSTALLED,
    CACHE_OUTDATED,   /* older than the wanted version: load again */
    CACHE_SUPERSEDED, /* the current one is as new or newer, or the place is gone */
};
/* Makes `r` the current resource if invariant 3 of publisher.h allows it, and then takes over the
 * caller's reference; otherwise the caller keeps it. */
enum cache_install cache_install(struct place *p, struct resource *r, uint64_t version);
/* Drops the resource of a place from memory. */
void cache_drop(struct place *p);
/* Evicts until the budget is met, but never `keep` (NULL: any). */
void cache_enforce(struct cache *c, const struct place *keep);

/* Makes room to load `bytes` of a file; waits for other loads. False: files that are being read use
 * too much. `cut`: first cuts off their slow readers and waits some seconds for their memory. There
 * is always room for the only file. Not on an HTTP thread. */
bool cache_reserve(struct cache *c, uint64_t bytes, bool cut);
/* Ends what cache_reserve began, once what was loaded is counted. */
void cache_settle(struct cache *c, uint64_t bytes);
/* When a file that had been in memory was last forgotten (Unix seconds); 0: never. */
int64_t cache_forgot_at(struct cache *c);
/* Files of this source are loaded again before they are served. */
void cache_invalidate(struct cache *c, int64_t source);

/* ---- loading ------------------------------------------------------------------------------ */

/* One attempt to load. In: the resource in the place, or the result of the previous attempt. */
struct load {
    struct resource *resource; /* owned; out: the resource now, counted, or NULL */
    enum await_result result;  /* DONE if there is a resource; else NONE or UNAVAILABLE */
    uint64_t version;          /* version of the result; in: the wanted one. UINT64_MAX: stop */
    int64_t fresh_until_ms;    /* as in struct place */
    bool forget;               /* the place need not be remembered */
    bool passing;              /* for the waiters only, not kept: the file was replaced */
};

struct loader {
    /* Called on a loader's thread. The place stays valid, and no other thread loads it. */
    void (*load)(void *context, struct place *p, struct load *load);
    void *context;
    struct workers *workers;
};
/* Call it before the first use of that kind. Call cache_sweep for the kind after the workers have
 * stopped. */
void cache_set_loader(struct cache *c, enum held_kind kind, const struct loader *loader);

/* Calls `done` with a place's resource, not older than `wanted` is now: at once if it is in memory
 * and fresh, else after loading it. If that version no longer exists, since the catalogue was
 * restored to an earlier state, `done` gets the present one; UNAVAILABLE if none exists. A load
 * takes a turn of the site whose request begins it (workers_run). */
void cache_await(struct place *p, int64_t site_id, resource_awaited *done, void *context);
