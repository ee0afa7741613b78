/* Who reads which page, so that the memory that slow readers hold can be taken back. Knows
 * connections by their descriptor only; no microhttpd here. Thread safe.
 *
 * A descriptor is used by page_readers_cut between enter and leave alone; the listener leaves when
 * the request is completed, before its connection is closed, so that it is never another's. */
#ifndef SITEMAPD_HTTP_PAGE_READERS_H
#define SITEMAPD_HTTP_PAGE_READERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/publish/snapshot.h"

/* Replies up to here are not looked at: they leave with one write into the socket's buffer, or hold
 * as little as the connection itself does. */
#define PAGE_READERS_MIN_BYTES 16384u

/* One snapshot that is read; with the snapshot, zero at first. Touched by page_readers_ only. */
struct page_held {
    const struct snapshot *snapshot;
    unsigned readers;
    bool ending; /* its readers were cut; counted in ending_bytes while there are any */
};

/* One reply on its way out. Zero while it is none. */
struct page_reader {
    struct page_readers *of; /* NULL: is none */
    struct page_reader *previous, *next;
    struct page_held *held;
    int fd;
    bool cut;
};

struct page_readers {
    pthread_mutex_t lock;             /* guards all that follows, and each page_held */
    struct page_reader *first, *last; /* those that have been at it longest come first */
    uint64_t ending_bytes;            /* of snapshots whose readers were cut and are not gone */
    uint64_t cut;                     /* readers, since the start */
};

void page_readers_init(struct page_readers *r);
/* No reader is left. */
void page_readers_done(struct page_readers *r);

/* `reader` begins to read `held`, of which the caller has a reference until it has left. */
void page_readers_enter(struct page_readers *r, struct page_reader *reader, struct page_held *held,
                        int fd);
/* Takes a reader that never entered. Bytes that its snapshot's end was to free, if this was the
 * last to be ended; else 0. They count as about to be free until page_readers_freed. */
uint64_t page_readers_leave(struct page_reader *reader);
/* The caller has given its reference back: else others would be ended for the same bytes. */
void page_readers_freed(struct page_readers *r, uint64_t bytes);

/* Ends the connections of those that read retired snapshots, the ones that have been at it longest
 * first and all of a snapshot together, until `bytes` of snapshots are about to be free. What is
 * about to be from an earlier call counts. Never blocks for long; any thread. */
void page_readers_cut(struct page_readers *r, uint64_t bytes);
/* Readers whose connections were ended, since the start. */
uint64_t page_readers_count_cut(struct page_readers *r);

#endif
