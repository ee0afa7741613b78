#include "server/sources/remote/due.h"

#include <stdlib.h>

static double load_of(const struct due *due)
{
    return 1.0 / (due->interval_s > 0 ? due->interval_s : 1);
}

static void swap(struct due *a, struct due *b)
{
    struct due c = *a;
    *a = *b;
    *b = c;
}

static void sink(struct due_heap *h, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && h->at[child + 1].at < h->at[child].at)
            child++;
        if (h->at[i].at <= h->at[child].at)
            return;
        swap(&h->at[i], &h->at[child]);
    }
}

bool due_add(struct due_heap *h, struct due due)
{
    if (h->count == h->capacity) {
        size_t capacity = h->capacity ? h->capacity + h->capacity / 2 : 8;
        struct due *at = realloc(h->at, capacity * sizeof *at);
        if (at == NULL)
            return false;
        h->at = at;
        h->capacity = capacity;
    }
    size_t i = h->count++;
    h->at[i] = due;
    h->load += load_of(&due);
    for (; i > 0 && h->at[(i - 1) / 2].at > h->at[i].at; i = (i - 1) / 2)
        swap(&h->at[(i - 1) / 2], &h->at[i]);
    return true;
}

struct due due_take(struct due_heap *h)
{
    struct due first = h->at[0];
    h->at[0] = h->at[--h->count];
    sink(h, 0);
    h->load = h->count > 0 ? h->load - load_of(&first) : 0;
    return first;
}

static void order(struct due_heap *h)
{
    h->load = 0;
    for (size_t i = 0; i < h->count; i++)
        h->load += load_of(&h->at[i]); /* anew: sums of what comes and goes drift */
    for (size_t i = h->count / 2; i-- > 0;)
        sink(h, i);
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

size_t due_move(struct due_heap *h, const int64_t *ids, size_t count, uint32_t at)
{
    size_t found = 0, left = 0;
    for (size_t i = 0; i < h->count; i++) {
        bool is = count > 0 && bsearch(&h->at[i].id, ids, count, sizeof *ids, compare) != NULL;
        found += is;
        if (is && at == 0)
            continue;
        h->at[left] = h->at[i];
        if (is && at < h->at[left].at)
            h->at[left].at = at;
        left++;
    }
    h->count = left;
    if (found > 0)
        order(h);
    return found;
}

void due_shift(struct due_heap *h, int64_t seconds)
{
    for (size_t i = 0; i < h->count; i++) {
        int64_t at = (int64_t)h->at[i].at + seconds;
        h->at[i].at = at < 1 ? 1 : at > UINT32_MAX ? UINT32_MAX : (uint32_t)at;
    }
}

void due_done(struct due_heap *h)
{
    free(h->at);
    *h = (struct due_heap){0};
}
