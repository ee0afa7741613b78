/* What the files of the cache of blobs share. Internal to publish. */
#ifndef SITEMAPD_PUBLISH_BLOB_STATE_H
#define SITEMAPD_PUBLISH_BLOB_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/publish/blob_cache.h"
#include "server/publish/blob_entries.h"
#include "server/publish/workers.h"

struct blob_cache {
    struct blob_cache_options options;
    struct workers *workers; /* NULL: stopped */
    pthread_mutex_t lock;
    /* under lock: */
    struct blob_entries entries;
    uint64_t reserved; /* bytes of loads under way */
    pthread_cond_t load_ended;

    atomic_uint_fast64_t bytes; /* of all blobs, `reserved` included */
    atomic_uint_fast64_t checks, loads, evictions, failures;
};

/* blob_budget.c. Makes room for a load of `bytes`, evicting the least used; other loads are waited
 * for, readers are not: false where they hold too much. */
bool blob_budget_reserve(struct blob_cache *cache, uint64_t bytes);
/* The load is over; `b` (NULL: it failed) counts for itself from here on. */
void blob_budget_settle(struct blob_cache *cache, uint64_t bytes, struct blob *b);
/* Drops the least used blob; false where there is none. */
bool blob_budget_evict(struct blob_cache *cache);

/* blob_check.c. The job of a worker: looks at the file of an entry that is `loading`, reads it if
 * it must, answers who waits. */
void blob_check_run(void *entry);
/* The same where no worker takes it: who waits is answered BUSY. */
void blob_check_refuse(struct blob_entry *e);

#endif
