/* When the write-ahead log goes back into the file. Only the server's writer does it, between two
 * transactions, only where the log has grown, and only where something was committed since it last
 * went back whole: SQLite before 3.51.3 has a rare bug when two checkpoints run back to back
 * beside a commit (https://www.sqlite.org/wal.html "WAL-reset bug"). A handle that is no server's
 * leaves it to the engine's close. Internal to db/; the writer's thread. */
#ifndef SITEMAPD_DB_FILE_CHECKPOINT_H
#define SITEMAPD_DB_FILE_CHECKPOINT_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "server/base/histogram.h"

/* The log goes back each time it has grown by so much: some tens of milliseconds of work. One
 * transaction is never split: a bulk of a million entries makes a log of some hundred megabytes,
 * which goes back in one step of a second or so after it. */
#define CHECKPOINT_WAL_BYTES (4 << 20)
/* What is left of such a log on disk afterwards. */
#define CHECKPOINT_WAL_KEPT (64 << 20)

struct checkpoint {
    sqlite3 *db;
    int frame_bytes;
    int frames;   /* in the log at our last commit */
    int done;     /* of these back in the file, as of our last checkpoint */
    int next;     /* frames at which the next one is due */
    bool pending; /* something was committed since the last complete one */
    /* The log as the last complete one left it: another process's commits show here. */
    off_t wal_size;
    struct timespec wal_time;
    atomic_uint_fast64_t wal_bytes; /* of the log, not back in the file */
    atomic_uint_fast64_t count;
    struct histogram took_ns;
};

/* Counts on this connection from now on. Call it again after a reopening; the counters stay. */
void checkpoint_attach(struct checkpoint *cp, sqlite3 *db, bool server);
/* After a commit: checkpoints if it is due. */
void checkpoint_after_commit(struct checkpoint *cp);
/* When idle: the same for what other processes have committed. */
void checkpoint_when_idle(struct checkpoint *cp);
/* Before closing: all of it, and the log is emptied. */
void checkpoint_at_close(struct checkpoint *cp);

#endif
