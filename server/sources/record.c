#include "server/sources/record.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64u << 10)

struct record_block {
    struct record_block *next;
    size_t used, size;
    char text[];
};

struct record *record_add(struct record_list *list, const struct record *record)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity + list->capacity / 2 : 64;
        struct record *at = realloc(list->at, capacity * sizeof at[0]);
        if (at == NULL)
            return NULL;
        list->at = at;
        list->capacity = capacity;
    }
    list->at[list->count] = *record;
    return &list->at[list->count++];
}

const char *record_keep(struct record_list *list, const char *text, bool *failed)
{
    if (text == NULL)
        return NULL;
    size_t size = strlen(text) + 1;
    struct record_block *block = list->blocks;
    if (block == NULL || block->size - block->used < size) {
        size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = malloc(sizeof *block + room);
        if (block == NULL) {
            *failed = true;
            return NULL;
        }
        *block = (struct record_block){.next = list->blocks, .size = room};
        list->blocks = block;
    }
    char *copy = block->text + block->used;
    memcpy(copy, text, size);
    block->used += size;
    return copy;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct record *)a)->path, ((const struct record *)b)->path);
}

void record_sort(struct record_list *list)
{
    bool sorted = true;
    for (size_t i = 1; i < list->count && sorted; i++)
        sorted = compare(&list->at[i - 1], &list->at[i]) <= 0;
    if (!sorted)
        qsort(list->at, list->count, sizeof list->at[0], compare);
}

void record_unique(struct record_list *list)
{
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++)
        if (left == 0 || compare(&list->at[left - 1], &list->at[i]) != 0)
            list->at[left++] = list->at[i];
    list->count = left;
}

/* The first whose path is not less. */
static size_t lower_bound(const struct record_list *list, const char *path)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(list->at[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct record *record_find(const struct record_list *list, const char *path)
{
    size_t at = lower_bound(list, path);
    return at < list->count && strcmp(list->at[at].path, path) == 0 ? &list->at[at] : NULL;
}

void record_see_below(struct record_list *list, const char *folder)
{
    size_t len = strlen(folder);
    /* Between "a" and "a/b" there may be "a.xml". */
    for (size_t i = lower_bound(list, folder);
         i < list->count && strncmp(list->at[i].path, folder, len) == 0; i++)
        if (list->at[i].path[len] == '/')
            list->at[i].seen = true;
}

bool record_from_file(struct record_list *list, const struct source_file *f)
{
    bool failed = false;
    struct record record = {
        .path = record_keep(list, f->path, &failed),
        .lastmod = record_keep(list, f->lastmod, &failed),
        .newest_lastmod = record_keep(list, f->newest_lastmod, &failed),
        .problem = record_keep(list, f->problem, &failed),
        .detail = record_keep(list, f->detail, &failed),
        .device = f->device,
        .inode = f->inode,
        .size = f->size,
        .mtime_ns = f->mtime_ns,
        .hash = {f->hash[0], f->hash[1]},
        .urls = f->urls,
        .bytes = f->bytes,
        .line = f->line,
        .column = f->column,
        .state = f->state,
        .one_lastmod = f->one_lastmod,
        .future = f->future,
        .has_entry = f->has_entry,
        .refused = f->refused,
        .nowhere = f->loc == NULL,
    };
    return !failed && record_add(list, &record) != NULL;
}

void record_to_file(const struct record *r, const char *loc, struct source_file *out)
{
    *out = (struct source_file){
        .path = r->path,
        .loc = loc,
        .state = r->state,
        .device = r->device,
        .inode = r->inode,
        .size = r->size,
        .mtime_ns = r->mtime_ns,
        .hash = {r->hash[0], r->hash[1]},
        .lastmod = r->lastmod,
        .urls = r->urls,
        .bytes = r->bytes,
        .newest_lastmod = r->newest_lastmod,
        .one_lastmod = r->one_lastmod,
        .future = r->future,
        .problem = r->problem,
        .detail = r->detail,
        .line = r->line,
        .column = r->column,
        .has_entry = r->has_entry,
    };
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool record_equal(const struct record *a, const struct record *b)
{
    return a->state == b->state && a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->mtime_ns == b->mtime_ns && a->hash[0] == b->hash[0] &&
           a->hash[1] == b->hash[1] && a->urls == b->urls && a->bytes == b->bytes &&
           a->one_lastmod == b->one_lastmod && a->future == b->future && a->line == b->line &&
           a->column == b->column && same_text(a->lastmod, b->lastmod) &&
           same_text(a->newest_lastmod, b->newest_lastmod) && same_text(a->problem, b->problem) &&
           same_text(a->detail, b->detail);
}

void record_list_done(struct record_list *list)
{
    while (list->blocks) {
        struct record_block *next = list->blocks->next;
        free(list->blocks);
        list->blocks = next;
    }
    free(list->at);
    *list = (struct record_list){0};
}
