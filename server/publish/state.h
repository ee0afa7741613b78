/* What a publisher is made of. Internal to publish: pass.c finds changes and publishes hot pages,
 * cold.c builds what is asked for, budget.c evicts, publisher.c starts, stops and answers. */
#ifndef SITEMAPD_PUBLISH_STATE_H
#define SITEMAPD_PUBLISH_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/publish/await.h"
#include "server/publish/builder.h"
#include "server/publish/page_keeper.h"
#include "server/publish/publisher.h"
#include "server/publish/routing.h"
#include "server/publish/slot.h"
#include "server/publish/workers.h"

/* A page with more changed segments than this (a bulk) is dropped, not rebuilt: the next reader
 * builds it on another thread, and acknowledgements do not wait for it. */
#define PASS_MAX_SEGMENTS 50u
/* All that one pass renders; pages beyond it are dropped too. */
#define PASS_MAX_TOTAL_SEGMENTS 800u
/* Cold builds that lose the race against commits this often finish with passes held off. */
#define COLD_MAX_ATTEMPTS 4
/* Pages that may wait for a build thread. */
#define COLD_MAX_QUEUED   4096u
#define BUILD_MAX_THREADS 16u

struct publisher {
    struct publisher_options options; /* its pointers to sites are not used after the start */
    struct catalogue *catalogue;
    struct routing_policies policies; /* pass_lock */

    pthread_rwlock_t routing_lock;
    const struct routing *routing; /* owned reference */

    pthread_mutex_t table_lock;
    struct slot_table slots; /* changed by passes only */

    struct await_list awaits;

    /* Held by a pass from its read to its last installation, and by a cold build that lost too
     * often. Whoever holds it knows that no `wanted` moves. */
    pthread_mutex_t pass_lock;
    struct builder *builder;    /* the passes' own */
    char epoch[33];             /* of the catalogue seen; "" before the first pass. pass_lock */
    uint64_t registry_revision; /* pass_lock */

    struct workers *builds;
    pthread_mutex_t builders_lock;
    struct builder *idle_builders[BUILD_MAX_THREADS];
    unsigned idle_builder_count;

    struct page_keeper *keeper; /* NULL: pages are not stored */

    pthread_t thread;
    bool thread_started;
    atomic_bool stopping;

    atomic_uint_fast64_t budget_bytes;
    atomic_uint_fast64_t snapshot_bytes; /* current and retired */
    atomic_uint_fast64_t snapshots;
    atomic_uint_fast64_t seen;
    atomic_uint_fast64_t entries;
    atomic_uint_fast64_t segments_rendered, pages_published, pages_built_cold, pages_loaded,
        evictions, publish_failures;
    atomic_uint_fast64_t fresh_ns; /* measure_now_ns when `seen` was the newest */
    struct histogram publish_ns, build_ns;

    pthread_mutex_t trouble_lock;
    bool readable;
    char trouble[256];
};

/* ---- pass.c ---- */
/* One pass: everything committed is found and published. On failure the publisher is as before,
 * and the next pass finds the same. */
enum catalogue_status pass_run(struct publisher *p);
/* Forgets the catalogue: another file stands at the path. */
void pass_reset(struct publisher *p);
/* Takes `*policies`, and gives the ones before in its place; where that fails nothing has moved. */
enum catalogue_status pass_swap_policies(struct publisher *p, struct routing_policies *policies);

/* ---- cold.c ---- */
/* Starts the build of a cold slot whose `building` flag the caller has just set. */
void cold_start(struct publisher *p, struct slot *s);

/* ---- budget.c ---- */
/* Counts a fresh snapshot in, attaches the response. False: no memory. */
bool budget_admit(struct publisher *p, struct snapshot *s);
/* Evicts the least used snapshots until the budget holds, sparing `keep`; then the readers of
 * retired ones are cut off. */
void budget_enforce(struct publisher *p, const struct slot *keep);

/* ---- publisher.c ---- */
void publisher_note(struct publisher *p, const char *event, const char *detail);
/* Records whether the catalogue can be read, and tells of the change. */
void publisher_set_readable(struct publisher *p, bool readable, const char *why);

#endif
