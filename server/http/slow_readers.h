/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which client reads which page or file, and how much memory requests use, so that slow clients can
 * be made to give up memory, and *places* (one for each page that may be inflated at a time). Knows
 * connections by their descriptor only; no microhttpd here. Thread safe.
 *
 * Four rules. Each ends the connections of the longest readers first:
 * 1. Of an address no more than READERS_PER_ADDRESS are slow (READERS_SLOW_MS) at a time.
 * 2. The number of places is bounded. An address that has half of them gets another only in
 *    exchange for a slow one of its own, if there is any. If all are taken, the address with the
 *    most loses one to an address with fewer; otherwise a slow reader loses its place. A place is
 *    refused only if nobody is slow and no address has more than the others.
 * 3. Memory that must be freed: of retired pages, or of files that are read slowly.
 * 4. All memory that requests keep for themselves alone, for a body that arrives or a reply of the
 *    API, is at most `own_most` bytes. Beyond that the site whose tokens use the most loses a
 *    request; requests without a token count as one more site.
 * A reader that was cut no longer counts for places, for its address or for own bytes.
 *
 * A descriptor is used between enter and leave alone. The listener calls leave when the request is
 * completed, before the connection is closed, so the descriptor is never another connection's. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/base/site_table.h"
#include "server/http/address.h"
#include "server/pages/resource.h"

/* Replies up to this size are not tracked: one write puts them into the socket's buffer, or they
 * hold as little as the connection itself. */
#define READERS_MIN_BYTES   16384u
#define READERS_SLOW_MS     2000 /* a reader of one reply is slow after this time */
#define READERS_PER_ADDRESS 64u
#define READERS_OWN_MOST    ((uint64_t)256 << 20)
#define READERS_NO_TOKEN    (-1) /* in place of a site id; 0: tokens for all sites */

struct reader;
struct readers {
    pthread_mutex_t lock;        /* guards all that follows, and each struct held */
    struct reader *first, *last; /* readers, the longest first */
    struct peers peers;          /* of all readers */
    struct peers keepers;        /* of those that keep a place */
    uint32_t places, taken;
    uint64_t ending_bytes[HELD_KINDS]; /* bytes of cut readers that are not free yet */
    uint64_t own_most;                 /* limit, set before the first reader; READERS_OWN_MOST */
    uint64_t own_bytes;
    struct site_table own_of; /* the part of each site */
    uint64_t cut_for_memory, cut_for_others, cut_for_own;
};

/* One reply on its way out. Zero while unused. */
struct reader {
    struct readers *of; /* NULL: unused */
    struct reader *previous, *next;
    struct held *held; /* NULL: it only keeps own memory */
    uint64_t own;
    struct site_own *own_of;    /* `own` counts there; NULL: it is 0 */
    struct peer *peer, *keeper; /* NULL: not counted */
    int64_t since_ms;
    int fd;
    bool place; /* it has a place */
    bool cut;
};

/* What a reply needs. */
struct reading {
    struct held *held;
    const char *address; /* of the client, as text; NULL: not counted, since it speaks for many */
    int fd;
    bool place;     /* it needs a place */
    int64_t now_ms; /* of the monotonic clock */
};

/* `places`: how many replies may be made while they are read. */
void readers_init(struct readers *r, uint32_t places);
/* No reader may be left. */
void readers_done(struct readers *r);

/* `reader` begins to read `what->held`, of which the caller has a reference until it has left.
 * False if it needs a place and none is free. */
bool readers_enter(struct readers *r, struct reader *reader, const struct reading *what);
/* Rule 4: the request keeps `own` bytes now. Enters `reader` if it has not entered; `site_id`: of
 * its token, or READERS_NO_TOKEN. If there is no memory to count it, the reader itself is cut. */
void readers_keep(struct readers *r, struct reader *reader, int fd, int64_t site_id, uint64_t own);
/* The reader has ended; one that never entered is accepted. Returns the bytes that the caller's
 * reference frees, if what is held was to be freed and this was its last reader; else 0. They count
 * as about to be free until readers_freed. */
uint64_t readers_leave(struct reader *reader);
/* The caller has released its reference. Required: otherwise other readers would be cut for the
 * same bytes. */
void readers_freed(struct readers *r, enum held_kind kind, uint64_t bytes);

/* Rule 3: cuts all readers of one resource after another, until `bytes` of that kind are about to
 * be free, including those of earlier calls. Never blocks for long; any thread. */
void readers_cut(struct readers *r, enum held_kind kind, uint64_t bytes, int64_t now_ms);
/* Number of readers whose connections were ended since the start: by rule 3, by rules 1 and 2, by
 * rule 4. */
void readers_count_cut(struct readers *r, uint64_t *for_memory, uint64_t *for_others,
                       uint64_t *for_own);
