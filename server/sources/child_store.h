/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The child store: copies on disk of the sitemaps that remote sources with `serve` list, so that
 * this server serves them itself, also while their origin is down. A copy is the last good version
 * of the sitemap, without its content codings (RFC 9110 8.4).
 *
 * The thread that polls writes copies, and the threads that load served files read them. The
 * store's own thread removes copies of sitemaps that are no longer listed, keeps the store within
 * its limit, and requests missing copies.
 *
 * A sitemap is served only while the catalogue shows that a source with `serve` lists it, which is
 * checked each time. So a leftover copy is never served.
 *
 * Thread safe, except that a struct child_copy belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/limits.h"

struct catalogue;
struct child_store;

struct child_store_options {
    const char *folder; /* copied; created with the first copy */
    uint64_t max_bytes; /* of all copies */
    struct catalogue *catalogue;
    /* Whether the source of this name serves what it lists. Any thread. */
    bool (*serves)(void *context, const char *source);
    /* Calls `each` with the name of each such source until it returns false. On the store's thread.
     */
    void (*each_source)(void *context, bool (*each)(void *each_context, const char *source),
                        void *each_context);
    /* Requests that a sitemap is fetched whose copy is missing or old. Calls `done` (may be NULL)
     * when that is over. Any thread; must not block. */
    void (*fetch)(void *context, int64_t site_id, const char *loc, void (*done)(void *done_context),
                  void *done_context);
    /* A copy of the site was replaced. On the thread that polls; must not block. */
    void (*changed)(void *context, int64_t site_id);
    /* Something to log. `level`: 0 error, 1 warning, 2 info. */
    void (*event)(void *context, int level, const char *event, const char *detail);
    void *context;
};

/* NULL when out of memory. Does not use the disk yet. */
struct child_store *child_store_new(const struct child_store_options *options);
/* Starts its thread. False: it could not be started. */
bool child_store_start(struct child_store *s);
/* The limit or the sources have changed: maintenance runs soon. */
void child_store_retune(struct child_store *s, uint64_t max_bytes);
/* Ends its thread; a fetch that the thread waits for must still call `done`. Accepts NULL. */
void child_store_stop(struct child_store *s);
void child_store_free(struct child_store *s); /* accepts NULL */

/* ---- writing */

struct child_copy;
/* Begins a copy. `packed`: compresses it while it is written (gzip, RFC 1952). NULL: the disk or
 * memory failed, which is reported as an event. */
struct child_copy *child_copy_begin(struct child_store *s, int64_t site_id, const char *loc,
                                    bool packed);
/* Appends. child_copy_keep reports failures. */
void child_copy_write(struct child_copy *copy, const char *bytes, size_t len);
/* Replaces the older copy by this one, and frees it. `hash` is that of the content as in struct
 * check_record, `date` (Unix seconds) is served as Last-Modified. False: it failed, the older copy
 * stays, and the event is reported. */
bool child_copy_keep(struct child_copy *copy, const uint64_t hash[2], int64_t date);
void child_copy_drop(struct child_copy *copy); /* accepts NULL */
/* Whether there is a copy with this content. Reads the disk. */
bool child_store_has(struct child_store *s, int64_t site_id, const char *loc,
                     const uint64_t hash[2]);
/* The date of the copy if it has this content, else `missing`. Unix seconds. Reads the disk. */
int64_t child_store_date(struct child_store *s, int64_t site_id, const char *loc,
                         const uint64_t hash[2], int64_t missing);

/* ---- reading */

/* Opens the copy of the sitemap at a normalised loc: a descriptor for the caller to close, and the
 * offset of the sitemap in it. Requests an outdated copy again meanwhile. -1 with errno: ENOENT if
 * no source with `serve` lists it, ENODATA if one does and there is no copy. Reads the catalogue
 * and the disk. */
int child_store_open(struct child_store *s, int64_t site_id, const char *loc, uint64_t *from);

/* ---- for server/sources/child_changes.h: files by their names in the folder */

#define CHILD_HASH_CHARS 32
#define CHILD_CHANGED    "changed/" /* within a site's folder: replaced copies */
/* "SITE/changed/HASH.now" */
#define CHILD_PATH_SIZE (20 + 1 + sizeof CHILD_CHANGED + CHILD_HASH_CHARS + 4)
/* The name of a file: `within` "" or CHILD_CHANGED, `hash` the loc's, `end` "" or a suffix. */
void child_store_path(int64_t site_id, const char *within, const char *hash, const char *end,
                      char out[CHILD_PATH_SIZE]);
/* The folder's descriptor, borrowed; -1: none exists yet. */
int child_store_folder(struct child_store *s);
/* Keeps replaced copies of a site from now on, until this has not been called for ten minutes. */
void child_store_want_changes(struct child_store *s, int64_t site_id);
/* Between the two calls, no other thread changes which file a name of the store means. Hold it only
 * for a few system calls. */
void child_store_lock_places(struct child_store *s);
void child_store_unlock_places(struct child_store *s);
/* Opens a file for the caller; `from` gets the offset of the sitemap, `loc` its loc. -1 with errno:
 * ENOENT also if it is not a copy. */
int child_store_open_file(struct child_store *s, const char *name, uint64_t *from,
                          char loc[LOC_MAX_CHARS + 1]);

struct child_store_stats {
    uint64_t copies, bytes; /* on disk, as of the last maintenance and later writes */
    uint64_t missing;       /* good, listed and without a copy, as of the last maintenance */
    bool failing;           /* the last copy could not be written */
    bool full;              /* not all copies fit the limit */
};
void child_store_stats_get(struct child_store *s, struct child_store_stats *out);
