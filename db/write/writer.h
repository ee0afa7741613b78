/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The writer: one thread, one connection, the queue in front of it. It takes all the small changes
 * that wait into one transaction (group commit: they share one fsync) and each bulk, replace or
 * scan into its own, by turns, so that a small change waits for at most one bulk. Internal to db/.
 *
 * Invariants:
 * 1. A request belongs to the queue, or to the writer's thread, or is answered; `done` is called
 *    once, without the queue's lock: by the writer, or, for requests that expire in the queue, by a
 *    thread that does nothing else.
 * 2. Requests are taken from the queue only once BEGIN has succeeded or failed for good: while
 *    another process holds the lock they wait in the queue, and each expires at its own deadline.
 * 3. BUSY, UNAVAILABLE, … are answered only for changes that are not, and never will be, in the
 *    file. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/file/checkpoint.h"
#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/file/server_lock.h"
#include "db/tx/tx.h"
#include "db/write/outside.h"
#include "db/write/queue.h"
#include "server/base/thread.h"

/* The size of a change's block; and copying the change's pointers into it (change.c). */
size_t change_block_bytes(const struct change *change);
void change_keep(struct change *change, void *room);

/* If catalogue_options.write_timeout_ms is 0. */
#define WRITER_TIMEOUT_DEFAULT_MS 10000u
/* How often an idle writer looks around after a commit, of any process, and for the end of a
 * failure. */
#define WRITER_IDLE_MS 1000
/* How often it looks for what nothing reports: commits that the watch has missed, a lock file that
 * is gone, and rows, history and outcomes that are too old. */
#define WRITER_TRIM_MS 5000
/* Nice value of a server's writer, lower in priority than the threads that answer crawlers: with
 * equal priority one GET in a hundred waited for the scheduler's next tick, 4 ms, while a list used
 * the core (docs/benchmarks.md). On an idle machine the writer is as fast as without it; on a busy
 * core it gets a quarter. With less, all that wait for its lock would wait for the other work. */
#define WRITER_NICE 5

/* Time after the last list at which an idle writer makes the allocator return freed memory to the
 * kernel. */
#define WRITER_GIVE_BACK_MS 3000

struct writer;

/* The thread that applies long changes that may write nothing (rehearsal.c). */
struct rehearsal {
    struct writer *writer;
    struct queue queue;
    struct thread thread;
    struct tx_shared shared;
    atomic_int_fast64_t began_ms;  /* by clock_now_ms: when the current change began */
    atomic_uint_fast64_t answered; /* requests that needed no further turn of the writer */
};

struct writer {
    struct catalogue *catalogue;
    struct queue queue;
    struct thread thread;
    struct rehearsal rehearsal;
    struct thread expiry; /* answers expired requests, whatever the writer does */
    bool finished;        /* both were joined */
    struct tx_shared shared;
    atomic_int_fast64_t busy_since_ms; /* by clock_now_ms; 0: no requests are taken */
    atomic_bool reopen_wanted;

    atomic_bool was_served;

    /* The writer's thread only, once it runs. */
    sqlite3 *db; /* NULL: a reopening failed */
    struct tx tx;
    struct checkpoint checkpoint;
    struct server_lock lock;
    struct outside outside;
    struct file_identity file; /* the file of `db` */
    bool alone_next;           /* a bulk waited while small changes had their turn */
    bool purge_pending;        /* there may be rows of removed indexes */
    int64_t lock_until_ms;     /* how long the busy handler waits */
    bool waits_for_queue;      /* the busy handler gives up when the queue is empty */
    int64_t give_back_at_ms;   /* when to return freed memory; 0: done */
    int64_t idle_at_ms;        /* when to look around again */
    int64_t look_at_ms;        /* when to look at everything, even if nothing moved */
    struct log_index index;    /* as of the last look around */
    int64_t trim_at_ms;        /* when to look for old history */
    int64_t forget_at_ms;      /* for old outcomes */
    int64_t expire_at_ms;      /* for expired page URLs */
    atomic_bool expires;       /* a batch of these is queued */
    int64_t upgrade_at_ms;     /* shared: when to try the migration again */
    int64_t list_at_ms;        /* shared: when a list may try again */

    atomic_uint_fast64_t commits, batched, committed, held;
    atomic_uint_fast64_t history_bytes, history_from, history_dropped;
    atomic_int_fast64_t registered_at;
    _Atomic int64_t clock_offset; /* as the transaction's */
    _Atomic int64_t changed_at;   /* of the file's last change, by its writer's clock; 0: unknown */
    atomic_uint_fast64_t failed[CATALOGUE_CANCELLED + 1];
    struct histogram write_ns, commit_ns, batch;
    pthread_mutex_t trouble_lock; /* guards the members below */
    bool writable;
    char trouble[256];
    bool followed; /* the file `tried` need not be opened again */
    struct file_identity tried;
};

/* Opens the file (making or migrating it) and starts the thread. The catalogue's path and options
 * are set. On failure `*out` is NULL and `why` holds a sentence. */
enum catalogue_status writer_start(struct catalogue *c, struct writer **out, char *why,
                                   size_t why_size);
/* Finishes what is queued and ends the thread, once. Accepts NULL. */
void writer_finish(struct writer *w);
/* After writer_finish: checkpoints, closes. Accepts NULL. */
void writer_free(struct writer *w);

/* As catalogue_submit, with a context of its own for `done`. Thread safe. */
void writer_submit(struct writer *w, const struct change *change, change_done *done,
                   void *done_context);
/* As catalogue_abandon. Thread safe. */
void writer_abandon(struct writer *w);

/* Answers a request with its result, or a list of requests that were not applied. Any thread. */
void writer_answer(struct writer *w, struct write_request *request);
void writer_answer_failed(struct writer *w, struct write_request *list,
                          enum catalogue_status status, const char *why);
/* Queues a request again that was rehearsed. Any thread. */
void writer_requeue(struct writer *w, struct write_request *request);

/* For maintenance.c: whether there is a file to write to; begin and commit of a transaction,
 * whether for queued requests or not; a failed write; and a change of the file. */
enum catalogue_status writer_usable(struct writer *w);
enum catalogue_status writer_begin(struct writer *w, bool for_queue, enum queue_turn turn);
enum catalogue_status writer_commit(struct writer *w);
void writer_saw(struct writer *w);
void writer_record_failed(struct writer *w, enum catalogue_status status, const char *why);
/* The sentence for BUSY: a transaction that could not begin in time. Static. */
const char *writer_lock_holder(const struct writer *w);

/* rehearsal.c */

/* Starts the thread. False: it could not be started. */
bool rehearsal_start(struct rehearsal *r, struct writer *writer);
/* Takes over the request, to answer it or to return it to the writer's queue. The writer's thread.
 */
void rehearsal_pop(struct rehearsal *r, struct write_request *request);
/* Ends the current change, which is answered CANCELLED. Thread safe. */
void rehearsal_abandon(struct rehearsal *r);
/* Ends the thread; waiting requests are answered CANCELLED. Once, after the writer's own thread has
 * ended. */
void rehearsal_finish(struct rehearsal *r);

/* maintenance.c: the writer's work between writes, a bounded batch at a time: rows of removed
 * indexes, expired page URLs, history and outcomes beyond their bounds; and the checks of an idle
 * writer. The writer's thread calls these outside of a transaction. */

/* Drops a batch of a removed index's rows. True if there may be more. */
bool maintenance_purge(struct writer *w);
/* Drops a batch of old rows, or queues its removal. True if it did. */
bool maintenance_run(struct writer *w);
/* At most once in WRITER_IDLE_MS: looks for commits of other processes, returns freed memory,
 * checks the lock file and the log's length, and whether writes succeed again. Returns for how many
 * milliseconds the writer may then sleep. */
int maintenance_watch(struct writer *w);
