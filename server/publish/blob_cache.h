/* The cache of served files: blobs by (source, path), loaded by threads of its own, once however
 * many ask. What it answers is at most a second old (BLOB_CACHE_FRESH_MS): a younger hit is served
 * from memory; for an older one a worker looks at the file first, and reads it only where its
 * device, inode, size or times have moved.
 *
 * Half of what a file weighs is the compressed form. All of it, what is being loaded and what was
 * replaced or evicted but is still being sent, counts against the budget: the least used are
 * evicted, and where that is not enough, since slow readers hold the rest, a load is refused (BUSY)
 * until they are done. A file that is alone is always taken, however small the budget.
 *
 * A file's date never goes back while the cache remembers it: content that comes with a date not
 * later than the one last served (rsync -t, a rollback) gets the time of its detection, and the
 * same content under a new date keeps its old one.
 *
 * A file that is being written while it is read (its size or times move) is tried again, a few
 * times; then the last whole one is served on, or BUSY where there is none.
 *
 * Thread safe. `lock` is held for pointers only, never over I/O, compression or a callback. */
#ifndef SITEMAPD_PUBLISH_BLOB_CACHE_H
#define SITEMAPD_PUBLISH_BLOB_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "server/publish/blob.h"

/* One part of so many of snapshot_budget is the files', where any are served. */
#define BLOB_CACHE_SNAPSHOT_SHARE 4u
#define BLOB_CACHE_FRESH_MS       1000u
/* Files that are in memory or remembered; the least used are forgotten. */
#define BLOB_CACHE_MAX_ENTRIES 16384u

struct blob_cache;

struct blob_cache_options {
    uint64_t budget_bytes;
    int compression_level; /* as pages' */
    unsigned threads;
    uint32_t fresh_ms; /* BLOB_CACHE_FRESH_MS; tests: others */
    /* Opens a file for reading, never one that `path` should not lead to: a descriptor, or -1 with
     * errno. On the cache's threads; may wait for the disk. */
    int (*open)(void *context, size_t source, const char *path);
    void *open_context;
};

/* NULL when out of memory or threads. */
struct blob_cache *blob_cache_new(const struct blob_cache_options *options);
/* Ends the threads; who waits is answered first. Nobody may ask any more; invalidating is fine.
 * So: the listeners are stopped, then the cache, then what `open` needs. Takes NULL. */
void blob_cache_stop(struct blob_cache *cache);
/* Stops, and frees all. Nobody may hold a blob of it, or invalidate, any more. Takes NULL. */
void blob_cache_free(struct blob_cache *cache);

/* A fresh blob with a reference for the caller, or NULL: await it. Never waits for I/O. */
struct blob *blob_cache_get(struct blob_cache *cache, size_t source, const char *path);

enum blob_result {
    BLOB_FOUND,
    BLOB_NONE, /* there is no such file, it cannot be read, or is larger than a sitemap may be */
    BLOB_BUSY, /* no memory, the disk fails, it is being written: try again later */
};
/* Asks for a file: `done` is called exactly once, at once or on another thread, with a reference to
 * a blob (FOUND) or NULL. It must not block. `path` is copied. */
typedef void blob_awaited(void *context, enum blob_result result, struct blob *blob);
void blob_cache_await(struct blob_cache *cache, size_t source, const char *path, blob_awaited *done,
                      void *context);

/* The files of a source may have changed: each is looked at before it is served again. For who
 * learns of changes (a scan). Any thread. */
void blob_cache_invalidate(struct blob_cache *cache, size_t source);

struct blob_cache_stats {
    uint64_t files, bytes; /* in memory; bytes with those that are still being sent */
    uint64_t checks;       /* files looked at */
    uint64_t loads;        /* and read */
    uint64_t evictions;
    uint64_t failures; /* loads that ended BUSY, or served an older one for it */
};
void blob_cache_stats_get(struct blob_cache *cache, struct blob_cache_stats *out);

#endif
