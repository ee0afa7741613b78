/* The entries of the cache of blobs: a table by (source, path), and two lists by use, of those that
 * hold a blob and of those that only remember one. Internal to publish; under the cache's lock. */
#ifndef SITEMAPD_PUBLISH_BLOB_ENTRIES_H
#define SITEMAPD_PUBLISH_BLOB_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/publish/blob.h"
#include "server/publish/blob_cache.h"
#include "server/publish/blob_load.h"

#define BLOB_BUCKETS 16384u /* a power of two */

struct blob_waiter {
    struct blob_waiter *next;
    blob_awaited *done;
    void *context;
};

struct blob_entry {
    struct blob_entry *next; /* in its bucket */
    struct blob_list *list;
    struct blob_entry *newer, *older;
    struct blob_cache *cache;
    uint64_t hash;

    struct blob *blob; /* owned reference; NULL: none in memory */
    struct blob_file file;
    bool settled;       /* of `file`, when it was read */
    int64_t checked_ms; /* when the file was last looked at; 0: it must be */

    /* What was served last, kept when the blob goes, so that its date never goes back. */
    char etag[SNAPSHOT_ETAG_SIZE]; /* "": nothing yet */
    int64_t modified_at;
    bool shared_second; /* another content was served with that date */

    /* While `loading` the entry stays, and the loader alone changes what is above. */
    bool loading;
    bool again; /* what is being loaded may be too old already */
    struct blob_waiter *waiters;

    size_t source;
    char path[];
};

struct blob_list {
    struct blob_entry *newest, *oldest;
    size_t count;
};

struct blob_entries {
    struct blob_entry *buckets[BLOB_BUCKETS];
    struct blob_list held, remembered; /* with a blob; without */
};

struct blob_entry *blob_entries_find(const struct blob_entries *t, size_t source, const char *path);
/* Finds or makes; NULL when out of memory. */
struct blob_entry *blob_entries_get(struct blob_entries *t, size_t source, const char *path);
/* It is the most recently used now; moves it to the list where it belongs. */
void blob_entries_use(struct blob_entries *t, struct blob_entry *e);
/* Takes the blob off; the caller owns the reference. */
struct blob *blob_entries_drop(struct blob_entries *t, struct blob_entry *e);
/* Takes the entry out and frees it; it has no blob and nobody waits. */
void blob_entries_remove(struct blob_entries *t, struct blob_entry *e);

#endif
