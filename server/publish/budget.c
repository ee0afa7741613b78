#include "server/publish/state.h"

static void released(void *context, size_t bytes)
{
    struct publisher *p = context;
    atomic_fetch_sub(&p->snapshot_bytes, bytes);
    atomic_fetch_sub(&p->snapshots, 1);
}

bool budget_admit(struct publisher *p, struct snapshot *s)
{
    /* From here on the last unref counts it out again, also where attaching fails. */
    atomic_fetch_add(&p->snapshot_bytes, s->gzip_len);
    atomic_fetch_add(&p->snapshots, 1);
    s->released = released;
    s->released_context = p;
    return p->options.attach == NULL || p->options.attach(p->options.attach_context, s);
}

/* The slot with a snapshot that was read longest ago, with a reference. */
static struct slot *least_used(struct publisher *p, const struct slot *keep)
{
    struct slot *found = NULL;
    uint64_t oldest = UINT64_MAX;
    pthread_mutex_lock(&p->table_lock);
    for (size_t i = 0; i < p->slots.capacity; i++) {
        struct slot *s = p->slots.buckets[i];
        if (s == NULL || s == keep)
            continue;
        uint64_t used = atomic_load_explicit(&s->used, memory_order_relaxed);
        if (used >= oldest)
            continue;
        pthread_mutex_lock(&s->lock);
        bool hot = s->current != NULL;
        pthread_mutex_unlock(&s->lock);
        if (hot) {
            oldest = used;
            found = s;
        }
    }
    if (found != NULL)
        slot_ref(found);
    pthread_mutex_unlock(&p->table_lock);
    return found;
}

void budget_enforce(struct publisher *p, const struct slot *keep)
{
    uint64_t budget = atomic_load(&p->budget_bytes);
    uint64_t bytes;
    while ((bytes = atomic_load(&p->snapshot_bytes)) > budget) {
        struct slot *victim = least_used(p, keep);
        if (victim == NULL) {
            /* What is left is this page, and what slow readers hold. */
            if (p->options.cut_slow_readers != NULL)
                p->options.cut_slow_readers(p->options.cut_context, bytes - budget);
            return;
        }
        if (slot_drop(victim))
            atomic_fetch_add(&p->evictions, 1);
        slot_unref(victim);
    }
}
