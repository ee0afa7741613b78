/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A resource: immutable bytes ready to send with their validators, of a page or of a served file.
 * Shared by reference counting and counted against a budget. Thread safe.
 *
 * A page's bytes are one gzip member made of independently deflated pieces (head, one for each
 * segment, tail), each ended on a byte boundary, so that a changed segment is spliced in without
 * touching the others; it is inflated only while it is sent. A file's bytes are as on disk,
 * and compressed once if that makes them smaller.
 *
 * The sender of a resource's bytes holds a reference until the last byte is sent (http: from
 * queueing to the completion of the request). So the attachment may point into the buffers without
 * a reference of its own, and there is no cycle: after the last unref nobody sends it. A retired
 * resource lives, and counts against the budget, as long as its slowest reader. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESOURCE_ETAG_SIZE 40

enum representation {
    REPRESENT_IDENTITY,
    REPRESENT_GZIP,
    REPRESENT_FILE, /* .xml.gz of a page: the bytes of gzip as a file */
    REPRESENTATIONS,
};

struct snapshot_segment {
    uint32_t offset, len; /* of its deflated piece in `gzip`; len 0: no entries */
    uint32_t raw_len;     /* bytes of XML */
    uint32_t crc;         /* CRC-32 of the XML */
    uint32_t crc_shift;   /* of `raw_len`, for crc32_combine_op; 0: not made yet (gzip_page.c) */
    uint32_t entries;
    uint64_t hash[2]; /* XXH3-128 of the XML */
};

/* The memory that replies hold while they are sent, so that slow readers can be cut off to release
 * it. The sender (http) does the accounting here. */
enum held_kind { HELD_PAGE, HELD_FILE, HELD_KINDS };

struct held {
    /* Set before it is shared. */
    enum held_kind kind;
    uint64_t bytes;      /* bytes that become free when nobody holds it */
    atomic_bool retired; /* of a page: no place has it any more, only its readers */
    /* Under the lock of http's readers. */
    unsigned readers;
    bool ending; /* its readers were cut; counted while there are any */
};

struct resource {
    const uint8_t *bytes; /* uncompressed; owned, from malloc. NULL: a page */
    size_t raw_len;       /* uncompressed */
    const uint8_t *gzip;  /* compressed; owned, from malloc. NULL: a file that is not */
    size_t gzip_len;
    char etag_identity[RESOURCE_ETAG_SIZE];
    char etag_gzip[RESOURCE_ETAG_SIZE];
    char etag_file[RESOURCE_ETAG_SIZE]; /* pages only */
    const char *content_type;           /* unless REPRESENT_FILE; static */
    int64_t changed_at;                 /* Unix seconds: its last change; 0: not known */
    int64_t dated_at; /* the date in its prebuilt replies, which is not later than they are */
    /* As shared_date of struct validators. For a file, the cache sets it to false once that second
     * is over, while others may read it. */
    atomic_bool same_second;

    /* Of a page. */
    int64_t index_id, site_id;
    uint32_t number; /* in its index, from 1 */
    uint32_t entries;
    uint64_t revision;                  /* of the catalogue it was read at */
    uint64_t page_revision, page_stamp; /* of the page's record there */
    uint32_t segment_count;             /* up to the last segment with entries */
    struct snapshot_segment *segments;  /* owned, from malloc */

    /* What the sender (http) attaches, by the publisher's `attach` hook, before the resource is
     * installed; freed with it. NULL: its replies are made on request. */
    void *attachment;
    void (*attachment_free)(void *attachment);

    struct held held;
    atomic_uint references;
    /* Notifies the budget that held.bytes have been freed; may be NULL. Called by the last unref,
     * on any thread, without locks; must not block. */
    void (*released)(void *context, size_t bytes);
    void *released_context;
};

/* An all-zero resource with one reference, the caller's; NULL when out of memory. The caller fills
 * it before sharing it; resource_unref accepts a half-filled one. */
struct resource *resource_new(enum held_kind kind);
/* From now on it counts against the budget, with the bytes of its buffers. Call this before it is
 * shared. */
void resource_count(struct resource *r, void (*released)(void *context, size_t bytes),
                    void *context);
void resource_ref(struct resource *r);
/* The last unref frees attachment, buffers and resource, then calls `released`. Accepts NULL. Any
 * thread. */
void resource_unref(struct resource *r);

/* ---- who waits for one -------------------------------------------------------------------- */

enum await_result {
    AWAIT_DONE,        /* here it is */
    AWAIT_NONE,        /* none exists: a page without entries, no such file */
    AWAIT_REPLACED,    /* the file is gone or was replaced by another one */
    AWAIT_UNAVAILABLE, /* it cannot be read now, or no memory: try again later */
    AWAIT_STOPPING,
};
/* Called exactly once, at once or on another thread, with a reference (AWAIT_DONE) or NULL. Must
 * not block. */
typedef void resource_awaited(void *context, enum await_result result, struct resource *resource);
