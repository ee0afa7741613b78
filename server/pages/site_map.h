/* A slot: the place of one page. Holds its current snapshot, the revision that is wanted of it, and
 * who waits for it. Internal to publish (publisher.h shows it opaque).
 *
 * `lock` is held for pointer swaps only, never over SQL, compression or a callback. */
#ifndef SITEMAPD_PAGES_SITE_MAP_H
#define SITEMAPD_PAGES_SITE_MAP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/pages/publisher.h"
#include "server/pages/resource.h"

#define SLOT_EPOCH_SIZE 33 /* of a catalogue, with its NUL */

struct page_place {
    int64_t index_id;
    uint32_t number;
    char epoch[SLOT_EPOCH_SIZE]; /* of the catalogue that the two are of */
    atomic_uint references;      /* the table, routing tables, builds */
    atomic_uint_fast64_t used;   /* tick of the last read, for eviction */
    atomic_uint entries;         /* in the page, as the last pass read it */
    bool seen_in_registry;       /* mark of place_table_sweep; the publisher's thread only */

    /* What is on disk of it (page_store): the stamp of the state that was stored or loaded, 0: none
     * that is known; and that a file was found which is of no use. */
    atomic_uint_fast64_t stored;
    atomic_bool misfit;
    /* The keeper's alone: the state that it last saw, since when, and when it last wrote. */
    uint64_t watched;
    int64_t watched_since_ms, tried_at_ms;

    pthread_mutex_t lock;
    /* under lock: */
    struct resource *current;        /* owned reference; NULL: cold */
    uint64_t wanted;                 /* no snapshot older than this may be installed */
    bool building;                   /* a cold build is under way */
    struct resource_waiter *waiters; /* of that build */
};

struct page_place *page_place_new(const char *epoch, int64_t index_id, uint32_t number);
void page_place_ref(struct page_place *s);
void page_place_unref(struct page_place *s);

/* Raises what is wanted. */
void page_place_want(struct page_place *s, uint64_t revision);

enum page_place_install {
    SLOT_INSTALLED,
    SLOT_OUTDATED,   /* older than what is wanted: build again */
    SLOT_SUPERSEDED, /* the current one is as new or newer */
};
/* Makes `snapshot` the current one if the rule allows (publisher.h, invariant 3), taking over the
 * caller's reference then; otherwise the caller keeps it. */
enum page_place_install page_place_install(struct page_place *s, struct resource *snapshot);
/* Forgets the current snapshot: the next reader builds. True where there was one. */
bool page_place_drop(struct page_place *s);

/* Adds a waiter unless a snapshot is there. Returns the snapshot (a reference for the caller), or
 * NULL: `waiter` was taken over, and `*start` tells that the caller is to start the build. */
struct resource *slot_wait(struct page_place *s, struct resource_waiter *waiter, bool *start);
/* What was built holds at `revision`. Takes all waiters off and ends the build, unless it is older
 * than wanted: then `*again`, and with `last` those are taken off who asked before more was wanted.
 * Where none is left the build has ended. */
struct resource_waiter *page_place_finish(struct page_place *s, uint64_t revision, bool last,
                                          bool *again);

/* All slots of one catalogue by (index, page). Changed by the publisher's thread only, under the
 * owner's lock; read under that lock by others. */
struct place_table {
    struct page_place **buckets; /* open addressing, NULL: free */
    size_t capacity;             /* a power of two, or 0 */
    size_t count;
    char epoch[SLOT_EPOCH_SIZE]; /* which its slots get; "" before the first pass */
};

struct page_place *place_table_find(const struct place_table *t, int64_t index_id, uint32_t number);
/* Finds or makes. A borrowed pointer; NULL when out of memory. */
struct page_place *place_table_get(struct place_table *t, int64_t index_id, uint32_t number);
/* Removes the slots whose `seen_in_registry` is false, dropping their snapshots, and clears the
 * marks of the others. */
void place_table_sweep(struct place_table *t);
/* Empties the table, dropping all snapshots; its epoch stays. */
void place_table_clear(struct place_table *t);

/* The routing table: from a request's host and path to a page, robots.txt or an alias; made whole
 * from one registry and never changed. Internal to publish. */

/* Makes the table of `registry` (a reference is taken), with a slot from `slots` for each page,
 * which it marks `seen_in_registry`. `policies` is NULL where there are none. The caller owns the
 * one reference. NULL: out of memory. */
struct site_map *site_map_new(const struct registry *registry,
                              const struct publish_policies *policies, struct place_table *slots);
/* Whether all pages of `old` are pages here, and all its sites sites. */
bool site_map_keeps(const struct site_map *r, const struct site_map *old);
void site_map_ref(const struct site_map *r);

/* True where `path` (with query, if any) is a page of the site at hand that has entries. */
typedef bool robots_has_page(void *context, const char *path);

#endif
