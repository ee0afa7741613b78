/* Which watched sitemap of a host is polled next: a heap by time, 16 bytes each. One thread. */
#ifndef SITEMAPD_SOURCES_REMOTE_DUE_H
#define SITEMAPD_SOURCES_REMOTE_DUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due {
    int64_t id;
    uint32_t at;         /* Unix seconds */
    uint32_t interval_s; /* what it asks of its host: one poll in so many seconds */
};

/* All zero is an empty one. */
struct due_heap {
    struct due *at; /* owned; at[0] is the first */
    size_t count, capacity;
    double load; /* polls a second that all ask for together */
};

bool due_add(struct due_heap *h, struct due due); /* false: out of memory */
/* Takes the first out. The heap is not empty. */
struct due due_take(struct due_heap *h);
/* Those of `ids`, ascending, are due at `at`; with `at` 0 they go. How many were found. */
size_t due_move(struct due_heap *h, const int64_t *ids, size_t count, uint32_t at);
/* The clock was set: all are due so many seconds later. */
void due_shift(struct due_heap *h, int64_t seconds);
void due_done(struct due_heap *h);

#endif
