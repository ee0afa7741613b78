/* A snapshot: one immutable page ready to send. Its gzip bytes are one contiguous buffer, a gzip
 * member made of independently deflated pieces (head, one for each segment, tail), each ended on a
 * byte boundary, so that a changed segment is spliced in without touching the others.
 *
 * Shared by reference counting; never changed after it was built. Thread safe.
 *
 * Whoever sends a snapshot's bytes holds a reference until the last byte has left (http: from
 * queueing to the completion of the request). So what is attached may point into `gzip` without a
 * reference of its own, and there is no cycle: the last unref means that nobody sends. A retired
 * snapshot lives, and counts against the budget, as long as its slowest reader. */
#ifndef SITEMAPD_PUBLISH_SNAPSHOT_H
#define SITEMAPD_PUBLISH_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/limits.h"

#define SNAPSHOT_ETAG_SIZE 40

struct snapshot_segment {
    uint32_t offset, len; /* of its deflated piece in `gzip`; len 0: no entries */
    uint32_t raw_len;     /* bytes of XML */
    uint32_t crc;         /* CRC-32 of the XML */
    uint32_t crc_shift;   /* of `raw_len`, for crc32_combine_op; 0: not made yet (seal.c) */
    uint32_t entries;
    uint64_t hash[2]; /* XXH3-128 of the XML */
};

struct snapshot {
    const uint8_t *gzip; /* the whole gzip member; owned, from malloc */
    size_t gzip_len;
    uint64_t raw_len; /* bytes of the page uncompressed */
    uint32_t entries;
    uint64_t revision;                      /* of the catalogue it was read at */
    uint64_t page_revision, page_stamp;     /* of the page's record there */
    int64_t changed_at;                     /* Unix seconds: the page's last change */
    bool same_second;                       /* see negotiate_not_modified */
    char etag_gzip[SNAPSHOT_ETAG_SIZE];     /* `.xml` with Content-Encoding: gzip */
    char etag_identity[SNAPSHOT_ETAG_SIZE]; /* `.xml` as it is */
    char etag_file[SNAPSHOT_ETAG_SIZE];     /* `.xml.gz` */
    uint32_t segment_count;                 /* up to the last segment with entries */
    struct snapshot_segment *segments;      /* owned, from malloc */

    /* The one slot for whoever sends it (http): set before the snapshot is installed, by the
     * publisher's `attach` hook, freed with it. */
    void *attachment;
    void (*attachment_free)(void *attachment);

    atomic_uint references;
    atomic_bool retired; /* no slot holds it any more: it lives for its readers alone */
    /* Tells the budget that `gzip_len` bytes are free again, after they are; may be NULL. Called by
     * the last unref, on any thread, with no lock held by it; must not block. */
    void (*released)(void *context, size_t bytes);
    void *released_context;
};

/* An all-zero snapshot with one reference, the caller's; NULL when out of memory. Until it is
 * shared the caller fills it as it likes: snapshot_unref takes a half-filled one. */
struct snapshot *snapshot_new(void);
void snapshot_ref(struct snapshot *s);
/* The last unref frees attachment, buffer and snapshot, then calls `released`. NULL is taken. Any
 * thread. */
void snapshot_unref(struct snapshot *s);

#endif
