#include <stdlib.h>

#include "server/publish/slot.h"

#define FIRST_CAPACITY 64

static size_t bucket_of(const struct slot_table *t, int64_t index_id, uint32_t number)
{
    uint64_t hash =
        (uint64_t)index_id * 0x9e3779b97f4a7c15u ^ (uint64_t)number * 0xc2b2ae3d27d4eb4fu;
    hash ^= hash >> 29;
    return (size_t)hash & (t->capacity - 1);
}

struct slot *slot_table_find(const struct slot_table *t, int64_t index_id, uint32_t number)
{
    if (t->capacity == 0)
        return NULL;
    for (size_t i = bucket_of(t, index_id, number);; i = (i + 1) & (t->capacity - 1)) {
        struct slot *s = t->buckets[i];
        if (s == NULL || (s->index_id == index_id && s->number == number))
            return s;
    }
}

static void place(struct slot_table *t, struct slot *s)
{
    size_t i = bucket_of(t, s->index_id, s->number);
    while (t->buckets[i] != NULL)
        i = (i + 1) & (t->capacity - 1);
    t->buckets[i] = s;
    t->count++;
}

/* Moves the slots (only those marked, if asked) into `capacity` fresh buckets. */
static bool rebuild(struct slot_table *t, size_t capacity, bool only_marked)
{
    struct slot **old = t->buckets;
    size_t old_capacity = t->capacity;
    struct slot **fresh = calloc(capacity, sizeof *fresh);
    if (fresh == NULL)
        return false;
    t->buckets = fresh;
    t->capacity = capacity;
    t->count = 0;
    for (size_t i = 0; i < old_capacity; i++) {
        struct slot *s = old[i];
        if (s == NULL)
            continue;
        if (only_marked && !s->seen_in_registry) {
            slot_drop(s);
            slot_unref(s);
            continue;
        }
        place(t, s);
    }
    free(old);
    return true;
}

struct slot *slot_table_get(struct slot_table *t, int64_t index_id, uint32_t number)
{
    struct slot *s = slot_table_find(t, index_id, number);
    if (s != NULL)
        return s;
    if (t->count * 2 >= t->capacity) {
        size_t capacity = t->capacity == 0 ? FIRST_CAPACITY : t->capacity * 2;
        if (!rebuild(t, capacity, false))
            return NULL;
    }
    s = slot_new(t->epoch, index_id, number);
    if (s != NULL)
        place(t, s);
    return s;
}

void slot_table_sweep(struct slot_table *t)
{
    size_t gone = 0;
    for (size_t i = 0; i < t->capacity; i++)
        gone += t->buckets[i] != NULL && !t->buckets[i]->seen_in_registry;
    /* Out of memory leaves the unused slots in the table: they are found by nobody. */
    if (gone > 0)
        rebuild(t, t->capacity, true);
    for (size_t i = 0; i < t->capacity; i++)
        if (t->buckets[i] != NULL)
            t->buckets[i]->seen_in_registry = false;
}

void slot_table_clear(struct slot_table *t)
{
    for (size_t i = 0; i < t->capacity; i++) {
        if (t->buckets[i] == NULL)
            continue;
        slot_drop(t->buckets[i]);
        slot_unref(t->buckets[i]);
    }
    free(t->buckets);
    t->buckets = NULL;
    t->capacity = t->count = 0;
}
