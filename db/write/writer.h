/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The writer: one thread, one connection, the queue in front of it. It takes all the small changes
 * that wait into one transaction (group commit: they share one fsync) and each bulk, replace or
 * scan into its own, by turns, so that a small change waits for at most one bulk. Internal to db/.
 *
 * Invariants:
 * 1. A request belongs to the queue, or to the writer's thread, or is answered; `done` is called
 *    once, after the lock of the queue was released: by the writer, or for what expires in the
 * queue by a thread that does nothing else.
 * 2. Requests are taken from the queue only once BEGIN has succeeded (or can't): while another
 *    process holds the lock they wait in the queue, and each expires at its own deadline.
 * 3. BUSY, UNAVAILABLE, … are answered only for what is not, and will not be, in the file. */
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

/* How many bytes what the change points to takes; and its move there (change.c). */
size_t change_block_bytes(const struct change *change);
void change_keep(struct change *change, void *room);

/* Where catalogue_options.write_timeout_ms is 0. */
#define WRITER_TIMEOUT_DEFAULT_MS 10000u
/* How often an idle writer looks around: other processes' log, removed indexes, trouble. */
#define WRITER_IDLE_MS 1000
/* How often it is looked whether something is too old. */
#define WRITER_TRIM_MS 5000
/* A server's writer gives way to the threads that answer crawlers. A thread that wakes within its
 * own last share of the core is not let in before the next tick (4 ms), and a list keeps the core
 * for seconds: of equal weight, one GET in a hundred waited for that (docs/benchmarks.md). Alone,
 * it is as fast as ever; against a core full of other work, it has a quarter: less, and those who
 * wait for its lock would wait for that work. */
#define WRITER_NICE 5

/* What a list has freed lies in the allocator's arenas until that is asked to give it to the
 * kernel: so long after the last list, by a writer with nothing to do. */
#define WRITER_GIVE_BACK_MS 3000

struct writer;

/* Where long changes are tried first that may turn out to write nothing (rehearsal.c). */
struct rehearsal {
    struct writer *writer;
    struct queue queue;
    struct thread thread;
    struct tx_shared shared;
    atomic_int_fast64_t began_ms;  /* by clock_now_ms: when the one at hand began */
    atomic_uint_fast64_t answered; /* requests that needed no further turn of the writer */
};

struct writer {
    struct catalogue *catalogue;
    struct queue queue;
    struct thread thread;
    struct rehearsal rehearsal;
    struct thread expiry; /* answers whose time is over, whatever the writer is at */
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
    struct file_identity file; /* that `db` has open */
    bool alone_next;           /* a bulk waited while small changes had their turn */
    bool purge_pending;        /* there may be rows of removed indexes */
    int64_t lock_until_ms;     /* how long the busy handler waits */
    bool waits_for_queue;      /* and gives up when nothing is queued any more */
    int64_t give_back_at_ms;   /* what the last list has freed; 0: given */
    int64_t idle_at_ms;        /* when to look around again */
    int64_t purge_at_ms;       /* when what was removed may be old enough */
    struct log_index index;    /* as of the last look around */
    int64_t trim_at_ms;        /* when to look whether the history is too old */
    int64_t forget_at_ms;      /* and what is kept for repeats */
    int64_t expire_at_ms;      /* and page URLs of urlsets */
    atomic_bool expires;       /* a batch of these waits */
    int64_t upgrade_at_ms;     /* shared: when to try the migration again */
    int64_t list_at_ms;        /* shared: when what goes alone may try again */

    atomic_uint_fast64_t commits, batched, committed, held;
    atomic_uint_fast64_t history_bytes, history_from, history_dropped;
    atomic_int_fast64_t registered_at;
    _Atomic int64_t clock_offset; /* as the transaction's */
    _Atomic int64_t changed_at; /* of the file's last change, as its clock said; 0: none is known */
    atomic_uint_fast64_t failed[CATALOGUE_CANCELLED + 1];
    struct histogram write_ns, commit_ns, batch;
    pthread_mutex_t trouble_lock; /* guards what follows */
    bool writable;
    char trouble[256];
    bool followed; /* `tried` needs no other try */
    struct file_identity tried;
};

/* Opens the file (making or migrating it) and starts the thread. The catalogue's path and options
 * are set. On failure `*out` is NULL and `why` holds a sentence. */
enum catalogue_status writer_start(struct catalogue *c, struct writer **out, char *why,
                                   size_t why_size);
/* Finishes what is queued and ends the thread, once. Takes NULL. */
void writer_finish(struct writer *w);
/* After writer_finish: checkpoints, closes. Takes NULL. */
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

/* For what the writer's thread does besides (maintenance.c): whether there is a file to write to; a
 * transaction's begin, for what is queued or not, its commit, and that it failed; and that the
 * file changed. */
enum catalogue_status writer_usable(struct writer *w);
enum catalogue_status writer_begin(struct writer *w, bool for_queue, enum queue_turn turn);
enum catalogue_status writer_commit(struct writer *w);
void writer_saw(struct writer *w);
void writer_record_failed(struct writer *w, enum catalogue_status status, const char *why);
/* A sentence for what could not be begun in time: BUSY. Static. */
const char *writer_lock_holder(const struct writer *w);

/* rehearsal.c */

/* Starts the thread. False: it could not be started. */
bool rehearsal_start(struct rehearsal *r, struct writer *writer);
/* Takes the request over, to answer it or to hand it back to the writer's queue. The writer's
 * thread. */
void rehearsal_pop(struct rehearsal *r, struct write_request *request);
/* Ends what is under way, which is answered CANCELLED. Thread safe. */
void rehearsal_abandon(struct rehearsal *r);
/* Ends the thread; what waits is answered CANCELLED. Behind the writer's own thread, once. */
void rehearsal_finish(struct rehearsal *r);

/* maintenance.c: what the writer does between writes, a bounded batch at a time: rows of removed
 * indexes, page URLs that are too old, history and kept answers beyond their bounds; and what an
 * idle one looks at. Each is called by the writer's thread, in no transaction. */

/* Drops a batch of a removed index's rows. True where there may be more. */
bool maintenance_purge(struct writer *w);
/* Drops a batch of whatever is too old, or queues its removal. True where it did. */
bool maintenance_run(struct writer *w);
/* Once in WRITER_IDLE_MS: what other processes did, memory to give back, the log's length, and
 * whether a trouble is over. */
void maintenance_watch(struct writer *w);
