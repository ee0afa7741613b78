#include "server/publish/blob_cache.h"

#include <stdlib.h>

#include "server/publish/await.h"
#include "server/publish/blob_state.h"

#define MAX_QUEUED 4096u

/* Forgets the least used entries where there are too many; returns the blob of one, to be freed
 * outside the lock. */
static struct blob *trim(struct blob_entries *t)
{
    struct blob *b = NULL;
    if (t->held.count + t->remembered.count <= BLOB_CACHE_MAX_ENTRIES)
        return NULL;
    struct blob_entry *e = t->remembered.oldest;
    while (e != NULL && e->loading)
        e = e->newer;
    if (e == NULL)
        for (e = t->held.oldest; e != NULL && e->loading; e = e->newer)
            ;
    if (e == NULL)
        return NULL;
    b = blob_entries_drop(t, e);
    blob_entries_remove(t, e);
    return b;
}

/* ---- who asks ----------------------------------------------------------------------------- */

/* A reference to the entry's blob where it is fresh, under the lock. */
static struct blob *fresh(struct blob_cache *cache, struct blob_entry *e)
{
    if (e == NULL || e->blob == NULL || e->checked_ms == 0 ||
        await_now_ms() - e->checked_ms >= cache->options.fresh_ms)
        return NULL;
    blob_entries_use(&cache->entries, e);
    blob_ref(e->blob);
    return e->blob;
}

struct blob *blob_cache_get(struct blob_cache *cache, size_t source, const char *path)
{
    pthread_mutex_lock(&cache->lock);
    struct blob *b = fresh(cache, blob_entries_find(&cache->entries, source, path));
    pthread_mutex_unlock(&cache->lock);
    return b;
}

void blob_cache_await(struct blob_cache *cache, size_t source, const char *path, blob_awaited *done,
                      void *context)
{
    bool start = false;
    struct blob *b = NULL, *forgotten = NULL;
    struct blob_waiter *w = malloc(sizeof *w);
    pthread_mutex_lock(&cache->lock);
    struct blob_entry *e = w == NULL ? NULL : blob_entries_get(&cache->entries, source, path);
    if (e != NULL)
        b = fresh(cache, e);
    if (e != NULL && b == NULL) {
        *w = (struct blob_waiter){e->waiters, done, context};
        e->waiters = w;
        start = !e->loading;
        if (start) { /* no worker has the entry */
            e->cache = cache;
            e->loading = true;
        }
        forgotten = trim(&cache->entries);
    }
    pthread_mutex_unlock(&cache->lock);
    blob_unref(forgotten);
    if (e == NULL || b != NULL) {
        free(w);
        done(context, b != NULL ? BLOB_FOUND : BLOB_BUSY, b);
    } else if (start && !workers_run(cache->workers, blob_check_run, e)) {
        blob_check_refuse(e);
    }
}

void blob_cache_invalidate(struct blob_cache *cache, size_t source)
{
    struct blob_list *lists[] = {&cache->entries.held, &cache->entries.remembered};
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < 2; i++)
        for (struct blob_entry *e = lists[i]->newest; e != NULL; e = e->older)
            if (e->source == source) {
                e->checked_ms = 0;
                e->again = e->loading;
            }
    pthread_mutex_unlock(&cache->lock);
}

void blob_cache_stats_get(struct blob_cache *cache, struct blob_cache_stats *out)
{
    *out = (struct blob_cache_stats){
        .bytes = atomic_load(&cache->bytes),
        .checks = atomic_load(&cache->checks),
        .loads = atomic_load(&cache->loads),
        .evictions = atomic_load(&cache->evictions),
        .failures = atomic_load(&cache->failures),
    };
    pthread_mutex_lock(&cache->lock);
    out->files = cache->entries.held.count;
    pthread_mutex_unlock(&cache->lock);
}

/* ---- life --------------------------------------------------------------------------------- */

struct blob_cache *blob_cache_new(const struct blob_cache_options *options)
{
    struct blob_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->options = *options;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->load_ended, NULL);
    cache->workers = workers_new(options->threads, MAX_QUEUED);
    if (cache->workers == NULL) {
        blob_cache_free(cache);
        return NULL;
    }
    return cache;
}

void blob_cache_stop(struct blob_cache *cache)
{
    if (cache == NULL)
        return;
    workers_free(cache->workers);
    cache->workers = NULL;
}

void blob_cache_free(struct blob_cache *cache)
{
    if (cache == NULL)
        return;
    blob_cache_stop(cache);
    while (blob_budget_evict(cache))
        ;
    while (cache->entries.remembered.oldest != NULL)
        blob_entries_remove(&cache->entries, cache->entries.remembered.oldest);
    pthread_cond_destroy(&cache->load_ended);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
