/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The child store: copies on disk of the sitemaps that remote sources with `serve` list, so that
 * this server serves them itself, also while their origin is down. A copy is the sitemap as it was
 * last read and found good, its content codings removed (RFC 9110 8.4).
 *
 * A copy is written by the thread that polls, read by those that load served files, and looked
 * after by a thread of the store: it removes what is no longer listed, keeps the store within its
 * bound, and asks for what is missing.
 *
 * Whether a sitemap is served is the catalogue's to say, at each look: only while a source with
 * `serve` lists it. So a copy that is left over is never served.
 *
 * Thread safe, but for a struct child_copy, which is one thread's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/limits.h"

struct catalogue;
struct child_store;

struct child_store_options {
    const char *folder; /* copied; made with the first copy */
    uint64_t max_bytes; /* of all copies */
    struct catalogue *catalogue;
    /* Whether the source of this name serves what it lists. Any thread. */
    bool (*serves)(void *context, const char *source);
    /* Calls `each` with the name of each source that does, until that is false. The store's thread.
     */
    void (*each_source)(void *context, bool (*each)(void *each_context, const char *source),
                        void *each_context);
    /* Has a sitemap fetched whose copy is missing or old, and waits until that is over (`done`) or
     * (NULL) does not wait. Any thread; must not block otherwise. */
    void (*fetch)(void *context, int64_t site_id, const char *loc, void (*done)(void *done_context),
                  void *done_context);
    /* A copy of the site is another now. The thread that polls; must not block. */
    void (*changed)(void *context, int64_t site_id);
    /* Something to log. `level`: 0 error, 1 warning, 2 info. */
    void (*event)(void *context, int level, const char *event, const char *detail);
    void *context;
};

/* NULL when out of memory. Reads and writes nothing yet. */
struct child_store *child_store_new(const struct child_store_options *options);
/* Starts its thread. False: it could not be started. */
bool child_store_start(struct child_store *s);
/* Another bound, or other sources: it looks after all of it soon. */
void child_store_retune(struct child_store *s, uint64_t max_bytes);
/* Ends its thread; whom it waits for must still answer. Takes NULL. */
void child_store_stop(struct child_store *s);
void child_store_free(struct child_store *s); /* takes NULL */

/* ---- writing */

struct child_copy;
/* Begins a copy, which is `packed` (gzip, RFC 1952) as it is written where it says so. NULL where
 * it cannot be made (the disk, memory): the event is reported. */
struct child_copy *child_copy_begin(struct child_store *s, int64_t site_id, const char *loc,
                                    bool packed);
/* Appends. What goes wrong shows when it is kept. */
void child_copy_write(struct child_copy *copy, const char *bytes, size_t len);
/* Puts it in the place of the copy before and frees it. `hash` is the content's as in struct
 * check_record, `date` (Unix seconds) what Last-Modified is to say. False where it could not be:
 * the copy before stays, and the event is reported. */
bool child_copy_keep(struct child_copy *copy, const uint64_t hash[2], int64_t date);
void child_copy_drop(struct child_copy *copy); /* takes NULL */
/* Whether there is a copy of this content. Reads the disk. */
bool child_store_has(struct child_store *s, int64_t site_id, const char *loc,
                     const uint64_t hash[2]);
/* The date of the copy where it is of this content, else `missing`. Unix seconds. Reads the disk.
 */
int64_t child_store_date(struct child_store *s, int64_t site_id, const char *loc,
                         const uint64_t hash[2], int64_t missing);

/* ---- reading */

/* Opens the copy of the sitemap at a normalised loc: a descriptor, which is the caller's, and where
 * the sitemap begins in it; a copy that is old is fetched again meanwhile. -1 with errno: ENOENT
 * where no source with `serve` lists it, ENODATA where one does and there is no copy. Reads the
 * catalogue and the disk. */
int child_store_open(struct child_store *s, int64_t site_id, const char *loc, uint64_t *from);

/* ---- for server/sources/child_changes.h: files by their names in the folder */

#define CHILD_HASH_CHARS 32
#define CHILD_CHANGED    "changed/" /* within a site's folder: replaced copies */
/* "SITE/changed/HASH.now" */
#define CHILD_PATH_SIZE (20 + 1 + sizeof CHILD_CHANGED + CHILD_HASH_CHARS + 4)
/* The name of a file: `within` "" or CHILD_CHANGED, `hash` the loc's, `end` "" or a suffix. */
void child_store_path(int64_t site_id, const char *within, const char *hash, const char *end,
                      char out[CHILD_PATH_SIZE]);
/* The folder, -1: there is none yet; the store's. */
int child_store_folder(struct child_store *s);
/* From now on, keeps the copies of a site that are replaced; until that was not called for ten
 * minutes. */
void child_store_want_changes(struct child_store *s, int64_t site_id);
/* Between the two, no other thread gives a name of the store to another file. For a few system
 * calls. */
void child_store_lock_places(struct child_store *s);
void child_store_unlock_places(struct child_store *s);
/* Opens a file for the caller: where the sitemap begins in it, and its loc. -1 with errno: ENOENT
 * also where it is not a copy. */
int child_store_open_file(struct child_store *s, const char *name, uint64_t *from,
                          char loc[LOC_MAX_CHARS + 1]);

struct child_store_stats {
    uint64_t copies, bytes; /* on disk, as of the last look */
    uint64_t missing;       /* listed, good and without a copy, as of the last look */
    bool failing;           /* the last copy could not be written */
    bool full;              /* there is more than the bound lets be kept */
};
void child_store_stats_get(struct child_store *s, struct child_store_stats *out);
