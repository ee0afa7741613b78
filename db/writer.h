/* The writer: one thread, one connection, the queue in front of it. It takes all the small changes
 * that wait into one transaction (group commit: they share one fsync) and each bulk, replace or
 * scan into its own, by turns, so that a small change waits for at most one bulk. Internal to db/.
 *
 * Invariants:
 * 1. A request belongs to the queue, or to the writer's thread, or is answered; `done` is called
 *    once, after the lock of the queue was let go.
 * 2. Requests are taken from the queue only once BEGIN has succeeded (or can't): while another
 *    process holds the lock they wait in the queue, and each expires at its own deadline.
 * 3. BUSY, UNAVAILABLE, … are answered only for what is not, and will not be, in the file. */
#ifndef SITEMAPD_DB_WRITER_H
#define SITEMAPD_DB_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "db/checkpoint.h"
#include "db/handle.h"
#include "db/queue.h"
#include "db/tx.h"

/* Where catalogue_options.write_timeout_ms is 0. */
#define WRITER_TIMEOUT_DEFAULT_MS 10000u
/* Changes of one group commit: bounds how long the first waits for the last. */
#define WRITER_BATCH_MAX 512
/* Between two looks at a lock that another process holds. */
#define WRITER_LOCK_STEP_MS 5
/* How often an idle writer looks around: other processes' log, removed indexes, trouble. */
#define WRITER_IDLE_MS 1000
/* The engine's page cache: for small changes, and for a bulk, after which it is given back. */
#define WRITER_CACHE_KIB      4096
#define WRITER_BULK_CACHE_KIB 65536

struct writer {
    struct catalogue *catalogue;
    struct queue queue;
    pthread_t thread;
    bool finished; /* the thread was joined */
    atomic_bool reopen_wanted;

    /* The writer's thread only, once it runs. */
    sqlite3 *db; /* NULL: a reopening failed */
    struct tx tx;
    struct checkpoint checkpoint;
    dev_t device; /* of the file that `db` has open */
    ino_t inode;
    bool alone_next;       /* a bulk waited while small changes had their turn */
    bool purge_pending;    /* there may be rows of removed indexes */
    int64_t lock_until_ms; /* how long the busy handler waits */
    bool waits_for_queue;  /* and gives up when nothing is queued any more */
    int64_t idle_at_ms;    /* when to look around again */

    atomic_uint_fast64_t commits, batched, committed, held;
    atomic_uint_fast64_t failed[CATALOGUE_CANCELLED + 1];
    struct histogram write_ns, commit_ns, batch;
    pthread_mutex_t trouble_lock; /* guards what follows */
    bool writable;
    char trouble[256];
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
void writer_stats(struct writer *w, struct catalogue_stats *out);

/* ---- inner parts (writer_file.c), the writer's thread only */

/* Opens the connection and all that hangs on it. */
enum catalogue_status writer_connect(struct writer *w, bool create, char *why, size_t why_size);
void writer_disconnect(struct writer *w);
/* OK while the path still names the file that is open. */
enum catalogue_status writer_usable(struct writer *w);
/* Reopens if the watch asked for it. */
void writer_follow(struct writer *w);
/* Remembers for /readyz how the last attempt went; `why` may be NULL. */
void writer_note(struct writer *w, enum catalogue_status status, const char *why);
/* Answers what has waited too long. */
void writer_answer_expired(struct writer *w);
/* Answers a list of requests that were not applied. Any thread. */
void writer_answer_failed(struct writer *w, struct request *list, enum catalogue_status status,
                          const char *why);

#endif
