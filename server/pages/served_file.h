/* The cache of served files: resources by (source, path), loaded by threads of its own, once
 * however many ask. What it answers is at most a second old (SERVED_FILE_CACHE_FRESH_MS): a younger
 * hit is served from memory; for an older one a worker looks at the file first, and reads it only
 * where its device, inode, size or times have moved.
 *
 * Half of what a file weighs is the compressed form. All of it, what is being loaded and what was
 * replaced but is still being sent, counts against the budget: the least used that nobody reads are
 * evicted; where slow readers hold the rest, those that have been at it longest are cut off. A load
 * is refused only where that gives nothing within some seconds. A file that is alone is
 * always taken, however small the budget.
 *
 * A file's date never goes back while the cache remembers it: content that comes with a date not
 * later than the one last served (rsync -t, a rollback) gets the time of its detection, and the
 * same content under a new date keeps its old one. Where it has forgotten one, a date of before may
 * have been told of another content.
 *
 * A file that is being written while it is read (its size or times move) is tried again, a few
 * times; then the last whole one is served on, or none where there is none.
 *
 * Thread safe. */
#ifndef SITEMAPD_PAGES_SERVED_FILE_H
#define SITEMAPD_PAGES_SERVED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "server/pages/resource.h"

/* One part of so many of snapshot_budget is the files', where any are served. */
#define SERVED_FILE_CACHE_SNAPSHOT_SHARE 4u
#define SERVED_FILE_CACHE_FRESH_MS       1000u
/* Files that are in memory or remembered; the least used are forgotten. */
#define SERVED_FILE_CACHE_MAX_ENTRIES 16384u

struct served_file_cache;

struct served_file_cache_options {
    uint64_t budget_bytes;
    int compression_level; /* as pages' */
    unsigned threads;
    uint32_t fresh_ms; /* SERVED_FILE_CACHE_FRESH_MS; tests: others */
    /* Opens a file for reading, never one that `path` should not lead to: a descriptor, or -1 with
     * errno. On the cache's threads; may wait for the disk. */
    int (*open)(void *context, size_t source, const char *path);
    void *open_context;
    /* What is read holds more than the budget leaves: takes back at least `bytes` from those who
     * read files slowly, the longest first, soon. What it is about to take back already counts.
     * Must not block; any thread. NULL: nobody is cut off. */
    void (*cut_slow_readers)(void *context, uint64_t bytes);
    void *cut_context;
};

/* NULL when out of memory or threads. */
struct served_file_cache *served_file_cache_new(const struct served_file_cache_options *options);
/* Ends the threads; who waits is answered first. Nobody may ask any more; invalidating is fine.
 * So: the listeners are stopped, then the cache, then what `open` needs. Takes NULL. */
void served_file_cache_stop(struct served_file_cache *cache);
/* Stops, and frees all. Nobody may hold a resource of it, or invalidate, any more. Takes NULL. */
void served_file_cache_free(struct served_file_cache *cache);

/* A fresh one with a reference for the caller, or NULL: await it. Never waits for I/O. */
struct resource *served_file_cache_get(struct served_file_cache *cache, size_t source,
                                       const char *path);

/* Asks for a file. AWAIT_NONE: there is no such file, it cannot be read, or is larger than a
 * sitemap may be; AWAIT_UNAVAILABLE: no memory, the disk fails, it is being written. `path` is
 * copied. */
void served_file_cache_await(struct served_file_cache *cache, size_t source, const char *path,
                             resource_awaited *done, void *context);

/* The files of a source may have changed: each is looked at before it is served again. For who
 * learns of changes (a scan). Any thread. */
void served_file_cache_invalidate(struct served_file_cache *cache, size_t source);

struct served_file_cache_stats {
    uint64_t files, bytes; /* in memory; bytes with those that are still being sent */
    uint64_t checks;       /* files looked at */
    uint64_t loads;        /* and read */
    uint64_t evictions;
    uint64_t failures; /* loads that ended UNAVAILABLE, or served an older one for it */
};
void served_file_cache_stats_get(struct served_file_cache *cache,
                                 struct served_file_cache_stats *out);

#endif
