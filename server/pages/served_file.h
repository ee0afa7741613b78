/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Served files: the cache's loader of files, by (source, path). A file that was checked within the
 * last second (SERVED_FILES_FRESH_MS) is served from memory; otherwise a worker checks it first,
 * and reads it only if its device, inode, size or times have changed.
 *
 * A file's date never goes back while the cache remembers it: content that comes with a date not
 * later than the one last served (rsync -t, a rollback) gets the time of its detection, and the
 * same content under a new date keeps its old one. After the cache has forgotten a file, a date
 * that was sent before may be sent with other content.
 *
 * If a file is written to while it is read (its size or times change), the read is repeated a few
 * times; then the last complete content, if any, is served. The same applies to a file that is gone
 * or unreadable while the index lists it: the next scan removes its entry, or the shrink guard
 * holds the removal back.
 *
 * Thread safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/pages/cache.h"

#define SERVED_FILES_FRESH_MS 1000u

struct served_files;

struct served_files_options {
    struct cache *cache;   /* borrowed */
    int compression_level; /* as pages' */
    unsigned threads;
    uint32_t fresh_ms; /* SERVED_FILES_FRESH_MS; tests: others */
    /* Opens a file for reading, never one that `path` must not lead to. Returns a descriptor, and
     * in `from` the offset from which it is served (0 unless set); or -1 with errno. Called on
     * threads of their own; may wait for the disk. */
    int (*open)(void *context, size_t source, const char *path, uint64_t *from);
    /* Whether the index lists the file now, and the date of its entry, Unix seconds (0: none).
     * NULL: it lists none. Called like `open`, if there is nothing or something new to serve. */
    bool (*listed)(void *context, size_t source, const char *path, int64_t *lastmod);
    void *context;
};

/* NULL when out of memory or threads. */
struct served_files *served_files_new(const struct served_files_options *options);
/* Answers all waiting requests and ends the threads. After this no file may be requested, but files
 * may be invalidated. So stop the listeners, then this, then what `open` needs. Accepts NULL. */
void served_files_stop(struct served_files *files);
/* Stops, removes all files from the cache, and frees. Accepts NULL. */
void served_files_free(struct served_files *files);

/* The file if it is fresh, with a reference for the caller; NULL: await it. Never waits for I/O. */
struct resource *served_files_get(struct served_files *files, size_t source, const char *path);

/* Requests a file. AWAIT_NONE: the file does not exist, is unreadable, or is larger than a sitemap
 * may be, and the index does not list it; AWAIT_UNAVAILABLE: the same if the index lists it, or out
 * of memory, the disk failed, or the file is being written. `path` is copied. `site_id`: the
 * request's, see cache_await. */
void served_files_await(struct served_files *files, size_t source, const char *path,
                        int64_t site_id, resource_awaited *done, void *context);

/* The files of a source may have changed: each is checked before it is served again. For a scan
 * that finds changes. Any thread. */
void served_files_invalidate(struct served_files *files, size_t source);

struct served_files_stats {
    uint64_t files, bytes; /* in memory; bytes with those that are still being sent */
    uint64_t checks;       /* files checked */
    uint64_t loads;        /* files read */
    uint64_t evictions;
    uint64_t failures; /* loads that ended UNAVAILABLE, or served an older one for it */
};
void served_files_stats_get(struct served_files *files, struct served_files_stats *out);
