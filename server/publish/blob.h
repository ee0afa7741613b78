/* A blob: immutable bytes of a served file with their validators, in one or two representations,
 * shared by reference counting and counted against a budget, as snapshots are. */
#ifndef SITEMAPD_PUBLISH_BLOB_H
#define SITEMAPD_PUBLISH_BLOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/publish/snapshot.h"

struct blob {
    uint8_t *bytes; /* as in the file; owned */
    size_t len;
    uint8_t *gzip; /* the same compressed; NULL: a .gz file, or not worth it; owned */
    size_t gzip_len;
    const char *content_type;      /* static */
    char etag[SNAPSHOT_ETAG_SIZE]; /* of `bytes`: a hash of them */
    char etag_gzip[SNAPSHOT_ETAG_SIZE];
    int64_t modified_at; /* Last-Modified, Unix seconds; 0: none */
    /* See negotiate_not_modified. Others may read it while the cache, once that second is over,
     * turns it false. */
    atomic_bool same_second;

    atomic_uint references;
    void (*released)(void *context, size_t bytes); /* as in struct snapshot */
    void *released_context;
};

/* All zero with one reference; NULL when out of memory. */
struct blob *blob_new(void);
void blob_ref(struct blob *b);
/* The last unref frees all. NULL is taken. Any thread. */
void blob_unref(struct blob *b);

#endif
