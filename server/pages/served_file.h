/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Served files: the cache's loader of files, by (source, path). What it answers is at most a second
 * old (SERVED_FILES_FRESH_MS): a younger hit is served from memory; for an older one a worker looks
 * at the file first, and reads it only where its device, inode, size or times have moved.
 *
 * A file's date never goes back while the cache remembers it: content that comes with a date not
 * later than the one last served (rsync -t, a rollback) gets the time of its detection, and the
 * same content under a new date keeps its old one. Where it has forgotten one, a date of before may
 * have been notified of another content.
 *
 * A file that is being written while it is read (its size or times move) is tried again, a few
 * times; then the last whole one is served on, or none where there is none.
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
    /* Opens a file for reading, never one that `path` should not lead to: a descriptor, and where
     * what is served begins in it (0 unless set); or -1 with errno. On threads of their own; may
     * wait for the disk. */
    int (*open)(void *context, size_t source, const char *path, uint64_t *from);
    void *open_context;
};

/* NULL when out of memory or threads. */
struct served_files *served_files_new(const struct served_files_options *options);
/* Ends the threads; who waits is answered first. Nobody may ask any more; invalidating is fine.
 * So: the listeners are stopped, then this, then what `open` needs. Takes NULL. */
void served_files_stop(struct served_files *files);
/* Stops, takes all files out of the cache, and frees. Takes NULL. */
void served_files_free(struct served_files *files);

/* A fresh one with a reference for the caller, or NULL: await it. Never waits for I/O. */
struct resource *served_files_get(struct served_files *files, size_t source, const char *path);

/* Asks for a file. AWAIT_NONE: there is no such file, it cannot be read, or is larger than a
 * sitemap may be; AWAIT_UNAVAILABLE: no memory, the disk fails, it is being written. `path` is
 * copied. */
void served_files_await(struct served_files *files, size_t source, const char *path,
                        resource_awaited *done, void *context);

/* The files of a source may have changed: each is looked at before it is served again. For who
 * learns of changes (a scan). Any thread. */
void served_files_invalidate(struct served_files *files, size_t source);

struct served_files_stats {
    uint64_t files, bytes; /* in memory; bytes with those that are still being sent */
    uint64_t checks;       /* files looked at */
    uint64_t loads;        /* and read */
    uint64_t evictions;
    uint64_t failures; /* loads that ended UNAVAILABLE, or served an older one for it */
};
void served_files_stats_get(struct served_files *files, struct served_files_stats *out);
