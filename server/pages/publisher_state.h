/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The members of a publisher, for publish.c and the keeper of stored pages (page_store_writer.c).
 * Internal to pages. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/base/thread.h"
#include "server/pages/alias_watch.h"
#include "server/pages/await.h"
#include "server/pages/gzip_page.h"
#include "server/pages/page_map.h"
#include "server/pages/page_store.h"
#include "server/pages/publisher.h"
#include "server/pages/workers.h"

#define BUILD_MAX_THREADS 16u

#define AHEAD_MOST 256

struct publisher {
    struct publisher_options options;
    struct catalogue *catalogue;
    atomic_bool styled;                /* as the policies say */
    struct publish_policies *policies; /* owned; NULL: none. pass_lock */

    pthread_rwlock_t page_map_lock;
    const struct page_map *routing; /* owned reference */
    void (*map_moved)(void *context);
    void *map_moved_context;

    struct await_list awaits;

    /* Held by a pass while it finds changed pages and raises each `wanted`, and while policies
     * change. Never while a page is rendered or compressed, and by no build. */
    pthread_mutex_t pass_lock;
    struct builder *builder; /* the passes' own */
    char epoch[EPOCH_SIZE];  /* of the catalogue seen; "" before the first pass. pass_lock */
    uint64_t era, mark, policies_number; /* as in struct page_map_of. pass_lock */
    uint64_t registry_revision;          /* pass_lock */
    bool *touched;                       /* which sites of the registry a pass changes. pass_lock */
    size_t touched_room;

    struct workers *builds;
    pthread_mutex_t builders_lock;
    struct builder *idle_builders[BUILD_MAX_THREADS];
    unsigned idle_builder_count;

    struct page_store_writer *keeper; /* NULL: pages are not stored */

    struct thread thread;

    atomic_uint_fast64_t seen;
    atomic_uint_fast64_t entries;
    atomic_int_fast64_t changed_at;
    atomic_int_fast64_t moved_at; /* publisher_moved_at */
    atomic_uint_fast64_t segments_rendered, pages_published, pages_built_cold, pages_loaded,
        publish_failures;
    atomic_uint_fast64_t fresh_ns; /* clock_now_ns when `seen` was last known to be the newest */
    struct histogram publish_ns, build_ns;

    /* Only for passes and the thread: the system's clock minus CLOCK_BOOTTIME, 0 at first; whether
     * a change is in the future; the pages whose last change is (`ahead_more`: there are more). */
    int64_t clock_offset;
    bool clock_behind;
    struct page_ahead {
        int64_t index_id, changed_at;
        uint32_t number;
    } ahead[AHEAD_MOST];
    unsigned ahead_count;
    bool ahead_more;
    atomic_int_fast64_t newest_at; /* publisher_newest_at */
    struct alias_watch alias_watch;

    pthread_mutex_t trouble_lock;
    bool readable;
    char trouble[256];
};

/* The keeper of stored pages: a thread of low priority that writes the pages in memory to the page
 * store once they have not changed for a while, and the rest at a stop. Only the stop ever waits
 * for it, for a bounded time. */

/* Starts it by the publisher's options. NULL if these turn it off, or when out of memory or
 * threads: there is no store then, and all functions take NULL. */
struct page_store_writer *page_store_writer_start(struct publisher *p);
/* A page that may have to be stored is in memory, or will be soon. Any thread. */
void page_store_writer_page_made(struct page_store_writer *k);
/* The registry has changed: pages may be gone. Any thread. */
void page_store_writer_pages_moved(struct page_store_writer *k);
/* Ends the thread, stores pages that are not stored yet, for a bounded time, and frees the keeper.
 * The pages must still be in the cache. */
void page_store_writer_stop(struct page_store_writer *k);

/* The snapshot of a cold page from the store, or NULL. For build threads. */
struct resource *page_store_writer_load(struct page_store_writer *k, struct builder *b,
                                        struct page_place *s, uint64_t revision,
                                        const struct page_record *page);

uint64_t page_store_writer_bytes(struct page_store_writer *k);
