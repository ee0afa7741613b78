#include "server/publish/blob_entries.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t hash_of(size_t source, const char *path)
{
    return XXH3_64bits_withSeed(path, strlen(path), source);
}

static struct blob_entry *find(const struct blob_entries *t, uint64_t hash, size_t source,
                               const char *path)
{
    struct blob_entry *e = t->buckets[hash & (BLOB_BUCKETS - 1)];
    while (e != NULL && (e->hash != hash || e->source != source || strcmp(e->path, path) != 0))
        e = e->next;
    return e;
}

struct blob_entry *blob_entries_find(const struct blob_entries *t, size_t source, const char *path)
{
    return find(t, hash_of(source, path), source, path);
}

static void unlink_entry(struct blob_entry *e)
{
    struct blob_list *l = e->list;
    if (l == NULL)
        return;
    *(e->newer != NULL ? &e->newer->older : &l->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &l->oldest) = e->newer;
    l->count--;
    e->list = NULL;
}

void blob_entries_use(struct blob_entries *t, struct blob_entry *e)
{
    struct blob_list *l = e->blob != NULL ? &t->held : &t->remembered;
    unlink_entry(e);
    e->list = l;
    e->newer = NULL;
    e->older = l->newest;
    *(l->newest != NULL ? &l->newest->newer : &l->oldest) = e;
    l->newest = e;
    l->count++;
}

struct blob_entry *blob_entries_get(struct blob_entries *t, size_t source, const char *path)
{
    uint64_t hash = hash_of(source, path);
    struct blob_entry *e = find(t, hash, source, path);
    if (e != NULL)
        return e;
    size_t size = strlen(path) + 1;
    e = calloc(1, sizeof *e + size);
    if (e == NULL)
        return NULL;
    e->hash = hash;
    e->source = source;
    memcpy(e->path, path, size);
    struct blob_entry **bucket = &t->buckets[hash & (BLOB_BUCKETS - 1)];
    e->next = *bucket;
    *bucket = e;
    blob_entries_use(t, e);
    return e;
}

struct blob *blob_entries_drop(struct blob_entries *t, struct blob_entry *e)
{
    struct blob *b = e->blob;
    e->blob = NULL;
    if (b != NULL)
        blob_entries_use(t, e);
    return b;
}

void blob_entries_remove(struct blob_entries *t, struct blob_entry *e)
{
    struct blob_entry **at = &t->buckets[e->hash & (BLOB_BUCKETS - 1)];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_entry(e);
    free(e);
}
