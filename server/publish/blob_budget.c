#include "server/publish/blob_state.h"

static void released(void *context, size_t bytes)
{
    struct blob_cache *cache = context;
    atomic_fetch_sub(&cache->bytes, bytes);
}

bool blob_budget_evict(struct blob_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    struct blob_entry *e = cache->entries.held.oldest;
    struct blob *b = e == NULL ? NULL : blob_entries_drop(&cache->entries, e);
    pthread_mutex_unlock(&cache->lock);
    if (b == NULL)
        return false;
    atomic_fetch_add(&cache->evictions, 1);
    blob_unref(b);
    return true;
}

bool blob_budget_reserve(struct blob_cache *cache, uint64_t bytes)
{
    for (;;) {
        pthread_mutex_lock(&cache->lock);
        uint64_t held = atomic_load(&cache->bytes);
        bool fits = held == 0 || held + bytes <= cache->options.budget_bytes;
        if (fits) {
            cache->reserved += bytes;
            atomic_fetch_add(&cache->bytes, bytes);
        } else if (cache->entries.held.count == 0) {
            if (cache->reserved == 0) {
                pthread_mutex_unlock(&cache->lock);
                return false;
            }
            pthread_cond_wait(&cache->load_ended, &cache->lock);
        }
        pthread_mutex_unlock(&cache->lock);
        if (fits)
            return true;
        blob_budget_evict(cache);
    }
}

void blob_budget_settle(struct blob_cache *cache, uint64_t bytes, struct blob *b)
{
    pthread_mutex_lock(&cache->lock);
    if (b != NULL) {
        atomic_fetch_add(&cache->bytes, b->len + b->gzip_len);
        b->released = released;
        b->released_context = cache;
    }
    cache->reserved -= bytes;
    atomic_fetch_sub(&cache->bytes, bytes);
    pthread_cond_broadcast(&cache->load_ended);
    pthread_mutex_unlock(&cache->lock);
}
