/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Rows of sites, hashed by site id, with chains; and counts in such rows. */
#include "server/base/site_table.h"

#include <stdlib.h>

#define FIRST_CAPACITY 8u

static struct site_row **bucket_of(const struct site_table *t, int64_t site_id)
{
    uint64_t h = (uint64_t)site_id * 0x9e3779b97f4a7c15u;

    return &t->buckets[(h ^ h >> 32) & (t->capacity - 1)];
}

static void insert(struct site_table *t, struct site_row *row)
{
    struct site_row **bucket = bucket_of(t, row->site_id);

    row->next = *bucket;
    *bucket = row;
}

/* Without memory for it, the table stays as it is: chains become longer. */
static void grow(struct site_table *t)
{
    size_t capacity = t->capacity != 0 ? t->capacity * 2 : FIRST_CAPACITY;
    struct site_row **buckets = calloc(capacity, sizeof *buckets);
    struct site_table old = *t;

    if (buckets == NULL)
        return;
    t->buckets = buckets;
    t->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++)
        for (struct site_row *row = old.buckets[i], *next; row != NULL; row = next) {
            next = row->next;
            insert(t, row);
        }
    free(old.buckets);
}

void *site_table_find(const struct site_table *t, int64_t site_id)
{
    struct site_row *row = t->count > 0 ? *bucket_of(t, site_id) : NULL;

    while (row != NULL && row->site_id != site_id)
        row = row->next;
    return row;
}

void *site_table_add(struct site_table *t, int64_t site_id, size_t size)
{
    struct site_row *row = site_table_find(t, site_id);

    if (row != NULL)
        return row;
    if (t->count >= t->capacity)
        grow(t);
    row = t->capacity > 0 ? calloc(1, size) : NULL;
    if (row == NULL && t->count == 0)
        site_table_done(t); /* no buckets without rows */
    if (row == NULL)
        return NULL;
    row->site_id = site_id;
    insert(t, row);
    t->count++;
    return row;
}

void site_table_remove(struct site_table *t, void *row)
{
    struct site_row *removed = row, **link = bucket_of(t, removed->site_id);

    while (*link != removed)
        link = &(*link)->next;
    *link = removed->next;
    free(removed);
    if (--t->count == 0)
        site_table_done(t);
}

void *site_table_next(const struct site_table *t, const void *row)
{
    const struct site_row *at = row;

    if (at != NULL && at->next != NULL)
        return at->next;
    size_t bucket = at != NULL ? (size_t)(bucket_of(t, at->site_id) - t->buckets) + 1 : 0;
    while (bucket < t->capacity && t->buckets[bucket] == NULL)
        bucket++;
    return bucket < t->capacity ? t->buckets[bucket] : NULL;
}

void site_table_done(struct site_table *t)
{
    for (size_t i = 0; i < t->capacity; i++)
        for (struct site_row *row = t->buckets[i], *next; row != NULL; row = next) {
            next = row->next;
            free(row);
        }
    free(t->buckets);
    *t = (struct site_table){0};
}

/* ---- shares --------------------------------------------------------------------------------- */

struct use {
    struct site_row row;
    uint64_t taken;
};

/* Under the lock. */
static bool take(struct site_uses *u, int64_t site_id, uint64_t count, bool has_room)
{
    if (!has_room)
        return false;
    if (site_id == 0) {
        u->all_sites += count;
    } else {
        struct use *use = site_table_add(&u->by_site, site_id, sizeof *use);
        if (use == NULL)
            return false;
        use->taken += count;
    }
    u->taken += count;
    return true;
}

/* Under the lock. */
static uint64_t taken_by(const struct site_uses *u, int64_t site_id)
{
    const struct use *use = site_table_find(&u->by_site, site_id);

    return site_id == 0 ? u->all_sites : use != NULL ? use->taken : 0;
}

bool site_uses_take(struct site_uses *u, int64_t site_id, uint64_t count, uint64_t most)
{
    pthread_mutex_lock(&u->lock);
    uint64_t own = site_id != 0 ? taken_by(u, site_id) : 0;
    bool takes = take(u, site_id, count, site_has_room(own, u->taken, count, most));
    pthread_mutex_unlock(&u->lock);
    return takes;
}

bool site_uses_take_own(struct site_uses *u, int64_t site_id, uint64_t count, uint64_t own_most)
{
    pthread_mutex_lock(&u->lock);
    bool takes = take(u, site_id, count, taken_by(u, site_id) + count <= own_most);
    pthread_mutex_unlock(&u->lock);
    return takes;
}

void site_uses_give(struct site_uses *u, int64_t site_id, uint64_t count)
{
    pthread_mutex_lock(&u->lock);
    struct use *use = site_id != 0 ? site_table_find(&u->by_site, site_id) : NULL;
    u->taken -= count;
    if (site_id == 0)
        u->all_sites -= count;
    else if (use != NULL && (use->taken -= count) == 0)
        site_table_remove(&u->by_site, use);
    pthread_mutex_unlock(&u->lock);
}

uint64_t site_uses_taken(struct site_uses *u)
{
    pthread_mutex_lock(&u->lock);
    uint64_t taken = u->taken;
    pthread_mutex_unlock(&u->lock);
    return taken;
}
