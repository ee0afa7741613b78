#include "server/publish/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct slot *slot_new(const char *epoch, int64_t index_id, uint32_t number)
{
    struct slot *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    snprintf(s->epoch, sizeof s->epoch, "%s", epoch);
    s->index_id = index_id;
    s->number = number;
    atomic_init(&s->references, 1);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

/* Outside the slot's lock: freeing half a megabyte takes its time. */
static void retire(struct snapshot *s)
{
    if (s == NULL)
        return;
    atomic_store_explicit(&s->retired, true, memory_order_relaxed);
    snapshot_unref(s);
}

void slot_ref(struct slot *s)
{
    atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
}

void slot_unref(struct slot *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1)
        return;
    retire(s->current);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void slot_want(struct slot *s, uint64_t revision)
{
    pthread_mutex_lock(&s->lock);
    if (s->wanted < revision)
        s->wanted = revision;
    pthread_mutex_unlock(&s->lock);
}

/* A coarse clock is enough to tell the least used, and costs no system call. */
static void touch(struct slot *s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t tick = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    atomic_store_explicit(&s->used, tick, memory_order_relaxed);
}

struct snapshot *slot_snapshot(struct slot *s)
{
    touch(s);
    pthread_mutex_lock(&s->lock);
    struct snapshot *snapshot = s->current;
    if (snapshot != NULL)
        snapshot_ref(snapshot);
    pthread_mutex_unlock(&s->lock);
    return snapshot;
}

enum slot_install slot_install(struct slot *s, struct snapshot *snapshot)
{
    enum slot_install result = SLOT_INSTALLED;
    struct snapshot *old = NULL;
    pthread_mutex_lock(&s->lock);
    if (snapshot->revision < s->wanted) {
        result = SLOT_OUTDATED;
    } else if (s->current != NULL && snapshot->revision <= s->current->revision) {
        result = SLOT_SUPERSEDED;
    } else {
        old = s->current;
        s->current = snapshot;
    }
    pthread_mutex_unlock(&s->lock);
    retire(old);
    return result;
}

bool slot_drop(struct slot *s)
{
    pthread_mutex_lock(&s->lock);
    struct snapshot *old = s->current;
    s->current = NULL;
    pthread_mutex_unlock(&s->lock);
    retire(old);
    return old != NULL;
}

struct snapshot *slot_wait(struct slot *s, struct page_waiter *waiter, bool *start)
{
    *start = false;
    pthread_mutex_lock(&s->lock);
    struct snapshot *snapshot = s->current;
    if (snapshot != NULL) {
        snapshot_ref(snapshot);
    } else {
        waiter->next = s->waiters;
        s->waiters = waiter;
        *start = !s->building;
        s->building = true;
    }
    pthread_mutex_unlock(&s->lock);
    return snapshot;
}

struct page_waiter *slot_finish(struct slot *s, uint64_t revision, bool force, bool *again)
{
    struct page_waiter *waiters = NULL;
    pthread_mutex_lock(&s->lock);
    *again = !force && revision < s->wanted;
    if (!*again) {
        waiters = s->waiters;
        s->waiters = NULL;
        s->building = false;
    }
    pthread_mutex_unlock(&s->lock);
    return waiters;
}
