/* A slot: the place of one page. Holds its current snapshot, the revision that is wanted of it, and
 * who waits for it. Internal to publish (publisher.h shows it opaque).
 *
 * `lock` is held for pointer swaps only, never over SQL, compression or a callback. */
#ifndef SITEMAPD_PUBLISH_SLOT_H
#define SITEMAPD_PUBLISH_SLOT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/publish/publisher.h"
#include "server/publish/snapshot.h"

struct page_waiter {
    struct page_waiter *next;
    await_page_done *done;
    void *context;
};

#define SLOT_EPOCH_SIZE 33 /* of a catalogue, with its NUL */

struct slot {
    int64_t index_id;
    uint32_t number;
    char epoch[SLOT_EPOCH_SIZE]; /* of the catalogue that the two are of */
    atomic_uint references;      /* the table, routing tables, builds */
    atomic_uint_fast64_t used;   /* tick of the last read, for eviction */
    atomic_uint entries;         /* in the page, as the last pass read it */
    bool seen_in_registry;       /* mark of slot_table_sweep; the publisher's thread only */

    /* What is on disk of it (page_store): the stamp of the state that was stored or loaded, 0: none
     * that is known; and that a file was found which is of no use. */
    atomic_uint_fast64_t stored;
    atomic_bool misfit;
    /* The keeper's alone: the state that it last saw, since when, and when it last wrote. */
    uint64_t watched;
    int64_t watched_since_ms, tried_at_ms;

    pthread_mutex_t lock;
    /* under lock: */
    struct snapshot *current;    /* owned reference; NULL: cold */
    uint64_t wanted;             /* no snapshot older than this may be installed */
    bool building;               /* a cold build is under way */
    struct page_waiter *waiters; /* of that build */
};

struct slot *slot_new(const char *epoch, int64_t index_id, uint32_t number);
void slot_ref(struct slot *s);
void slot_unref(struct slot *s);

/* Raises what is wanted. */
void slot_want(struct slot *s, uint64_t revision);

enum slot_install {
    SLOT_INSTALLED,
    SLOT_OUTDATED,   /* older than what is wanted: build again */
    SLOT_SUPERSEDED, /* the current one is as new or newer */
};
/* Makes `snapshot` the current one if the rule allows (publisher.h, invariant 3), taking over the
 * caller's reference then; otherwise the caller keeps it. */
enum slot_install slot_install(struct slot *s, struct snapshot *snapshot);
/* Forgets the current snapshot: the next reader builds. True where there was one. */
bool slot_drop(struct slot *s);

/* Adds a waiter unless a snapshot is there. Returns the snapshot (a reference for the caller), or
 * NULL: `waiter` was taken over, and `*start` tells that the caller is to start the build. */
struct snapshot *slot_wait(struct slot *s, struct page_waiter *waiter, bool *start);
/* The build is over: takes all waiters off if what it found holds at `revision` (not older than
 * wanted); NULL and `*again` otherwise. With `force` in any case. */
struct page_waiter *slot_finish(struct slot *s, uint64_t revision, bool force, bool *again);

/* All slots of one catalogue by (index, page). Changed by the publisher's thread only, under the
 * owner's lock; read under that lock by others. */
struct slot_table {
    struct slot **buckets; /* open addressing, NULL: free */
    size_t capacity;       /* a power of two, or 0 */
    size_t count;
    char epoch[SLOT_EPOCH_SIZE]; /* which its slots get; "" before the first pass */
};

struct slot *slot_table_find(const struct slot_table *t, int64_t index_id, uint32_t number);
/* Finds or makes. A borrowed pointer; NULL when out of memory. */
struct slot *slot_table_get(struct slot_table *t, int64_t index_id, uint32_t number);
/* Removes the slots whose `seen_in_registry` is false, dropping their snapshots, and clears the
 * marks of the others. */
void slot_table_sweep(struct slot_table *t);
/* Empties the table, dropping all snapshots; its epoch stays. */
void slot_table_clear(struct slot_table *t);

#endif
