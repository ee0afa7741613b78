/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The catalogue: sites, indexes, entries, tokens, kept durably; one writer, many readers. This is
 * the header that others include; its subjects are headers of their own: what may be changed
 * (db/change.h), what can be read (db/view.h), an entry (db/entry.h), with which machines it is
 * shared (db/shared.h), the outcome of a call (db/status.h). Here: the handle, watching,
 * maintenance.
 *
 * These headers hide SQLite, which comments in db/ call the engine: no transaction, rowid or SQL.
 * A write is submitted and answered later (catalogue_submit); every read takes a view of one
 * consistent revision; catalogue_wait says when there is something newer. Once a view showed
 * revision R, nothing <= R appears later. Strings are ordered by bytes. Times are Unix seconds, by
 * catalogue_options.clock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/change.h"
#include "db/day.h"
#include "db/engine.h"
#include "db/history.h"
#include "db/indexnow.h"
#include "db/shared.h"
#include "db/status.h"
#include "db/view.h"
#include "server/base/histogram.h"

struct catalogue;

struct catalogue_options {
    const char *path; /* of the file; made with its parent folder (0700) if absent */
    bool must_exist;  /* do not make it */
    bool server;      /* this handle checkpoints and purges; BUSY if that of another process
                         already does */
    uint32_t write_timeout_ms;  /* how long a write may wait for the queue and foreign locks */
    uint32_t max_queued;        /* writes waiting at once; more: CATALOGUE_BUSY at once */
    uint32_t shrink_percent;    /* shrink guard: 30; 0 turns it off */
    uint32_t default_max_pages; /* LIMIT_SITE_PAGES */
    uint64_t history_keep_ms;   /* how long history is kept; 0: no history */
    uint64_t history_max_bytes; /* of the history, in the file; the oldest is dropped first */
    /* Log hook of a server. The event is "catalogue-changed": another process wrote to the file;
     * `detail` says what. Called within two seconds, at most once a second, on the writer's thread:
     * it must not wait. NULL: no notification. */
    void (*event)(void *context, const char *event, const char *detail);
    void *event_context;
    struct catalogue_shared shared; /* with which others; texts are borrowed for the call */
    int64_t (*clock)(void);         /* Unix seconds, any thread; NULL: the system's */
};

/* Opens (making or migrating the file where needed) and starts the writer. On failure `*out` is
 * NULL and `why` holds a sentence for people. Thread safe. */
enum catalogue_status catalogue_open(const struct catalogue_options *options,
                                     struct catalogue **out, char *why, size_t why_size);
/* Finishes what is queued and stops the writer: when it returns every `done` was called. What is
 * submitted from now on is answered CANCELLED; views stay usable. For an orderly stop: call it
 * before freeing what `done` callbacks use. Accepts NULL. */
void catalogue_finish(struct catalogue *c);
/* Gives up the writes that are not committed yet: they are answered CANCELLED, nothing of them is
 * applied, and new ones are rejected. A COMMIT that has begun is finished. For a stop that must not
 * wait. Accepts NULL. Thread safe. */
void catalogue_abandon(struct catalogue *c);
/* Does what catalogue_finish does if nobody has, then checkpoints and closes. No view may be open.
 * Accepts NULL. */
void catalogue_close(struct catalogue *c);

/* A spool for the rows of a change, its file beside the catalogue's. NULL: out of memory. Thread
 * safe. */
struct spool *catalogue_spool(const struct catalogue *c, uint64_t max_bytes);

/* A nameless file beside the catalogue's, for what does not fit into memory; -1 with errno. Thread
 * safe. */
int catalogue_scratch(const struct catalogue *c);

/* ---- watching -------------------------------------------------------------------------- */

enum catalogue_wait_result {
    CATALOGUE_WAIT_TIMEOUT,
    CATALOGUE_WAIT_CHANGED,  /* there may be a revision newer than the last view of the caller */
    CATALOGUE_WAIT_LOST,     /* the file is gone or was replaced; it is reopened when it is back */
    CATALOGUE_WAIT_REOPENED, /* it is back, maybe another file with another epoch */
};
/* Waits until the catalogue may have changed: returns at once after a commit of this handle, within
 * CATALOGUE_POLL_MS after one of another process. One thread (the publisher's) calls this. */
#define CATALOGUE_POLL_MS 100
enum catalogue_wait_result catalogue_wait(struct catalogue *c, uint32_t timeout_ms);
/* Number of the file that this handle has open at its path, counted up with each replacement.
 * Revisions of different files must not be compared. Read after a commit was reported, it is the
 * number of that commit's file or a later one; read before a view begins, of the view's file or an
 * earlier one. Thread safe. */
uint64_t catalogue_files(const struct catalogue *c);
/* Ends a running or the next catalogue_wait at once (CHANGED). Thread safe. */
void catalogue_wake(struct catalogue *c);
/* The same as if its time were over (TIMEOUT, where nothing changed). Thread safe. */
void catalogue_nudge(struct catalogue *c);

/* If another process serves the catalogue, waits long enough for it to see and read this handle's
 * commits: CATALOGUE_POLL_MS and some more. Not for a server's handle. */
void catalogue_await_server(const struct catalogue *c);

/* ---- maintenance ----------------------------------------------------------------------- */

/* A consistent copy into a new file while others read and write. `progress`, after every 4 MiB, may
 * be NULL. It may wait, which slows the copy down; if it returns false the copy ends: CANCELLED. */
enum catalogue_status catalogue_backup(struct catalogue *c, const char *path,
                                       bool (*progress)(void *context, uint64_t done,
                                                        uint64_t total),
                                       void *context, char *why, size_t why_size);
struct catalogue_restore_options {
    bool replace; /* the file at `path` may be there, and is replaced */
    /* Called with each fault of the backup; a faulty one is not restored. */
    void (*problem)(void *context, const char *sentence);
    void *context;
};

/* Puts a backup, of this version or an earlier one, at `path`, whole or not at all. The backup is
 * copied, upgraded to this version and checked first. The new file has another epoch, so that
 * earlier cursors of changes are rejected, and never reuses an id of the old one. CONFLICT: there
 * is a file at `path`; BUSY: a process has it open; CORRUPT: the backup is. `why` (of at least one
 * byte) gets a sentence. */
enum catalogue_status catalogue_restore(const char *backup, const char *path,
                                        const struct catalogue_restore_options *options, char *why,
                                        size_t why_size);
/* Checks the file's integrity and that counts, bytes, segments and pages agree with the entries.
 * Calls `problem` with a sentence for each finding. Returns OK even with findings; `*count` is
 * their number. */
enum catalogue_status catalogue_check(struct catalogue *c,
                                      void (*problem)(void *context, const char *sentence),
                                      void *context, uint64_t *count);

struct catalogue_stats {
    uint64_t commits, batched_changes, queue_depth, max_queued, checkpoints;
    uint64_t statements; /* that the writer began: the cost of writes, independent of time */
    uint64_t busy_ms;    /* age of the batch that the writer is applying; 0: it is idle */
    uint32_t write_timeout_ms;
    uint64_t revision;  /* of this handle's last commit; 0: none yet */
    uint64_t wal_bytes; /* in the WAL, not checkpointed yet; as of this handle's last step */
    /* As of the last second or two; 0: unknown. disk_free_bytes: for this user. */
    uint64_t file_bytes, wal_file_bytes, disk_bytes, disk_free_bytes;
    bool disk_short; /* lists of tokens for one site are rejected, perhaps all that they add */
    /* When entries were last registered, replaced or removed through this handle, even if nothing
     * changed by it; scans and polls do not count. Unix time; 0: not yet. */
    int64_t registered_at;
    /* Of the history: its size, roughly; the first revision that is whole in it; how many changes
     * were dropped for their age or for space. As of the last second or two. */
    uint64_t history_bytes, history_from, history_dropped;
    uint64_t held; /* writes that the shrink guard rejected, and scans whose removals it held */
    uint64_t rehearsed; /* long changes that wrote nothing and were answered by rehearsal.c */
    uint64_t failed[CATALOGUE_CANCELLED + 1]; /* writes not applied, by status; OK and REFUSED: 0 */
    /* In the bounds of histogram_times: from the lock to the end of the COMMIT; the COMMIT alone.
     */
    struct histogram_values write_ns, commit_ns;
    struct histogram_values checkpoint_ns;
    struct histogram_values batch; /* changes in one transaction, in the bounds catalogue_batches */
    bool writable;                 /* the last commit or probe succeeded */
    char trouble[256];             /* why not, "" if writable */
};
extern const struct histogram_bounds catalogue_batches;
/* Counters for metrics and /readyz. Thread safe, never waits. */
void catalogue_stats_get(struct catalogue *c, struct catalogue_stats *out);

/* The time of the file's last change by the clock of its writer, as seen within the last two
 * seconds; 0: unknown. If it is ahead of this machine's clock by more than the slack, one of them
 * is wrong. Thread safe, never waits. */
#define CLOCK_SLACK_SECONDS 60
int64_t catalogue_changed_at(const struct catalogue *c);
/* Unix time, as changes are dated: of a shared catalogue by the log's clock, as the last
 * transaction saw it. Rules compare with it whether a date is in the future. Thread safe, never
 * waits. */
int64_t catalogue_now(const struct catalogue *c);

/* The schema version that the file had before this handle changed it to `*to`, returned once for
 * each file that was changed; else 0. Not of a shared catalogue (struct shared_state). Thread safe.
 */
int catalogue_upgraded_from(struct catalogue *c, int *to);

/* Whether a file was served from the path before this one, perhaps by another server: crawlers may
 * hold its pages. For a server's handle. Thread safe, never waits. */
bool catalogue_was_served(const struct catalogue *c);

/* ---- a site on its way to another catalogue -------------------------------------------- */

/* A copy is a file with the whole site, pages and positions included, so that the other catalogue,
 * which imports it by CHANGE_SITE_IMPORT, serves the same bytes and validators.
 *
 * Copied: settings, robots.txt, lists, entries, tokens for this site alone, sources of the registry
 * with their file states, results of polls. Not copied: the history, counts of crawlers, what a
 * configuration declares. */

/* Writes the site as of one revision into a new file at `path`, for the owner alone. NOT_FOUND:
 * there is no such site. `why` gets a sentence. Any thread. */
enum catalogue_status catalogue_site_copy(struct catalogue *c, int64_t site_id, const char *path,
                                          char *why, size_t why_size);
/* Checks a file that may be anybody's: CORRUPT where it is not the whole and sound copy of one
 * site, NEWER where it is a newer release's. `why` gets a sentence that does not name the path.
 * Reads all of it. Any thread. */
enum catalogue_status catalogue_site_copy_check(const char *path, char *why, size_t why_size);
