/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The catalogue: sites, indexes, entries, tokens, kept durably; one writer, many readers. Other
 * modules include this header, which declares the handle, watching and maintenance. The rest has
 * headers of its own: writes (db/change.h), reads (db/view.h), entries (db/entry.h), catalogues
 * that several machines share (db/shared.h), the outcome of a call (db/status.h).
 *
 * These headers hide SQLite: no transaction, rowid or SQL. A write is submitted and answered later
 * (catalogue_submit). Every read takes a view of one consistent revision. catalogue_wait reports
 * newer revisions. Once a view showed revision R, nothing <= R appears later. Strings are ordered
 * by bytes. Times are Unix seconds of catalogue_options.clock. */
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
    const char *path; /* of the file; created with its parent folder (0700) if missing */
    bool must_exist;  /* do not create the file */
    bool server; /* this handle checkpoints and purges; BUSY if another process serves the file */
    uint32_t write_timeout_ms; /* how long a write may wait for the queue and for other processes */
    uint32_t max_queued; /* writes that may wait; another one is answered CATALOGUE_BUSY at once */
    uint32_t shrink_percent;    /* shrink guard: 30; 0 turns it off */
    uint32_t default_max_pages; /* LIMIT_SITE_PAGES */
    uint64_t history_keep_ms;   /* how long history is kept; 0: no history */
    uint64_t
        history_max_bytes; /* of the history in the file; the oldest changes are dropped first */
    /* Log hook of a server. The event is "catalogue-changed": another process wrote to the file;
     * `detail` says what. Called within two seconds, at most once a second, on the writer's thread:
     * it must not wait. NULL: no notification. */
    void (*event)(void *context, const char *event, const char *detail);
    void *event_context;
    struct catalogue_shared shared; /* strings are borrowed for the call */
    int64_t (*clock)(void);         /* Unix seconds, any thread; NULL: the system's */
};

/* Opens the file, which is created or migrated if needed, and starts the writer. On failure `*out`
 * is NULL and `why` gets a sentence for people. Thread safe. */
enum catalogue_status catalogue_open(const struct catalogue_options *options,
                                     struct catalogue **out, char *why, size_t why_size);
/* Applies the queued writes and stops the writer: afterwards every `done` was called. Writes
 * submitted from now on are answered CANCELLED; views stay usable. Call it before freeing what
 * `done` callbacks use. Accepts NULL. */
void catalogue_finish(struct catalogue *c);
/* For a stop that must not wait: answers all writes that are not committed yet with CANCELLED,
 * without applying them, and rejects new ones. Finishes a COMMIT that has begun. Accepts NULL.
 * Thread safe. */
void catalogue_abandon(struct catalogue *c);
/* Calls catalogue_finish if nobody has, then checkpoints and closes. No view may be open. Accepts
 * NULL. */
void catalogue_close(struct catalogue *c);

/* A spool for the rows of a change, with its file beside the catalogue's. NULL: out of memory.
 * Thread safe. */
struct spool *catalogue_spool(const struct catalogue *c, uint64_t max_bytes);

/* Opens a nameless file beside the catalogue's, for data that does not fit into memory; -1 with
 * errno. Thread safe. */
int catalogue_scratch(const struct catalogue *c);

/* ---- watching -------------------------------------------------------------------------- */

enum catalogue_wait_result {
    CATALOGUE_WAIT_TIMEOUT,
    CATALOGUE_WAIT_CHANGED, /* there may be a revision newer than the last view of the caller */
    CATALOGUE_WAIT_LOST, /* the file is gone or was replaced; a file at the path is opened later */
    CATALOGUE_WAIT_REOPENED, /* the file is back, or another file with another epoch */
};
/* Waits until the catalogue may have changed: returns at once after a commit of this handle, within
 * CATALOGUE_POLL_MS after a commit of another process. For one thread, the publisher's. */
#define CATALOGUE_POLL_MS 100
enum catalogue_wait_result catalogue_wait(struct catalogue *c, uint32_t timeout_ms);
/* Number of the file that this handle has open, one more with each replacement. Revisions of
 * different files must not be compared. If it is read after a commit was reported, it is the number
 * of that commit's file or a later one; if it is read before a view begins, of the view's file or
 * an earlier one. Thread safe. */
uint64_t catalogue_files(const struct catalogue *c);
/* A number that grows whenever the catalogue may have changed: after each revision of this handle,
 * and as soon as catalogue_wait has noticed a commit of another process or another file. A thread
 * that finds it unchanged need not read the catalogue. Thread safe. */
uint64_t catalogue_news(const struct catalogue *c);
/* Makes the current or the next catalogue_wait return CHANGED at once. Thread safe. */
void catalogue_wake(struct catalogue *c);
/* Makes it return as if its timeout had passed (TIMEOUT if nothing changed). Thread safe. */
void catalogue_nudge(struct catalogue *c);

/* If another process serves the catalogue, waits long enough for that process to see this handle's
 * commits. Not for a server's handle. */
void catalogue_await_server(const struct catalogue *c);
/* Whether another process serves the catalogue. Not for a server's handle. */
bool catalogue_is_served(const struct catalogue *c);

/* ---- maintenance ----------------------------------------------------------------------- */

/* Copies one consistent state into a new file while others read and write. Calls `progress` (or
 * NULL) after every 4 MiB. `progress` may wait, which slows the copy down; false ends the copy:
 * CANCELLED. */
enum catalogue_status catalogue_backup(struct catalogue *c, const char *path,
                                       bool (*progress)(void *context, uint64_t done,
                                                        uint64_t total),
                                       void *context, char *why, size_t why_size);
struct catalogue_restore_options {
    bool replace; /* a file at `path` is replaced */
    /* Called with each fault of the backup; a faulty one is not restored. */
    void (*problem)(void *context, const char *sentence);
    void *context;
};

/* Restores a backup of this version or an earlier one to `path`, whole or not at all. The backup is
 * copied, upgraded to this version and checked first. The new file has another epoch, so that
 * earlier cursors of changes are rejected, and never reuses an id of the old one. CONFLICT: there
 * is a file at `path`; BUSY: a process has it open; CORRUPT: the backup is damaged. `why` (of at
 * least one byte) gets a sentence. */
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
    uint64_t statements; /* run by the writer: the cost of writes, independent of time */
    uint64_t busy_ms;    /* age of the batch that the writer is applying; 0: it is idle */
    uint32_t write_timeout_ms;
    uint64_t revision;  /* of this handle's last commit; 0: none yet */
    uint64_t wal_bytes; /* in the WAL, not checkpointed yet; as of the writer's last look */
    /* At most two seconds old; 0: unknown. disk_free_bytes: for this user. */
    uint64_t file_bytes, wal_file_bytes, disk_bytes, disk_free_bytes;
    bool disk_short; /* lists of tokens for one site are rejected, perhaps all that they add */
    /* When a request last registered, replaced or removed entries through this handle, even with
     * the same values; scans and polls do not count. Unix time; 0: not yet. */
    int64_t registered_at;
    /* The history: approximate size; the first revision from which on it is complete; the number of
     * changes dropped for their age or for space. At most two seconds old. */
    uint64_t history_bytes, history_from, history_dropped;
    uint64_t
        held; /* writes that the shrink guard rejected, and scans whose removals it held back */
    uint64_t rehearsed; /* long changes that wrote nothing and that rehearsal.c answered */
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
/* Whether no write fits on the disk, as it was at most two seconds ago. Thread safe, cheap. */
bool catalogue_disk_is_full(const struct catalogue *c);

/* The time of the file's last change by the clock of its writer, at most two seconds old; 0:
 * unknown. If it is more than the slack ahead of this machine's clock, one of the two clocks is
 * wrong. Thread safe, never waits. */
#define CLOCK_SLACK_SECONDS 60
int64_t catalogue_changed_at(const struct catalogue *c);
/* Unix time by the clock that dates changes: in a shared catalogue the log's clock, as the last
 * transaction saw it. Rules use it to decide whether a date is in the future. Thread safe, never
 * waits. */
int64_t catalogue_now(const struct catalogue *c);

/* The schema version that the file had before this handle changed it to `*to`, returned once for
 * each file that was changed; else 0. Not of a shared catalogue (struct shared_state). Thread safe.
 */
int catalogue_upgraded_from(struct catalogue *c, int *to);

/* Whether another file was served from the path before, perhaps by another server: crawlers may
 * hold its pages. For a server's handle. Thread safe, never waits. */
bool catalogue_was_served(const struct catalogue *c);

/* ---- moving a site to another catalogue ------------------------------------------------ */

/* A copy of a site is a file with the whole site, pages and positions included. The other catalogue
 * imports it by CHANGE_SITE_IMPORT and serves the same bytes and validators.
 *
 * Copied: settings, robots.txt, lists, entries, tokens for this site alone, sources of the registry
 * with their file states, results of polls. Not copied: the history, counts of crawlers, sources
 * and tokens of a configuration. */

/* Writes the site, as of one revision, into a new file at `path` that only the owner can read.
 * Calls `goes_on` (or NULL) after each row; false ends the copy: CANCELLED. NOT_FOUND: unknown
 * site. `why` gets a sentence. Any thread. */
enum catalogue_status catalogue_site_copy(struct catalogue *c, int64_t site_id, const char *path,
                                          bool (*goes_on)(void *context), void *context, char *why,
                                          size_t why_size);
/* Checks an untrusted file: CORRUPT if it is not a complete and sound copy of one site, NEWER if a
 * newer release wrote it. `why` gets a sentence that does not name the path. Reads the whole file.
 * Any thread. */
enum catalogue_status catalogue_site_copy_check(const char *path, char *why, size_t why_size);
