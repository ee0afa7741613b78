/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* When the write-ahead log goes back into the file. Only the server's writer does it, between two
 * transactions, only where the log has grown, and only where something was committed since it last
 * went back whole: SQLite before 3.51.3 has a rare bug when two checkpoints run back to back
 * beside a commit (https://www.sqlite.org/wal.html "WAL-reset bug"). A handle that is not a
 * server's leaves it to the engine's close. Internal to db/; the writer's thread.
 *
 * A log that is back in the file restarts only where the next transaction finds no reader in it,
 * and under load there always is one: the publisher's next pass begins as the last one ends. So
 * once it is long, a checkpoint waits for those readers, which no reader notices: who comes
 * meanwhile reads the file itself. The wait keeps the lock from other writers, and is short. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "server/base/histogram.h"

/* The log goes back each time it has grown by so much: tens of milliseconds of work. One
 * transaction is never split: a bulk of a million entries makes a log of a few hundred megabytes,
 * which goes back in one step of a second or so after it. */
#define CHECKPOINT_WAL_BYTES (4 << 20)
/* What is left of such a log on disk afterwards. */
#define CHECKPOINT_WAL_KEPT (64 << 20)
/* From this length on, and each time it has grown by as much again, readers are waited for: so long
 * for each such length. A read that takes longer (an export, a backup) lets it grow meanwhile. */
#define CHECKPOINT_WAL_LONG    (16 << 20)
#define CHECKPOINT_WAIT_MS     50
#define CHECKPOINT_WAIT_MAX_MS 250
/* Between two tries to make room. */
#define CHECKPOINT_ROOM_MS 1000

struct checkpoint {
    sqlite3 *db;
    int frame_bytes;
    int frames;   /* in the log at our last commit */
    int done;     /* of these back in the file, as of our last checkpoint */
    int next;     /* frames at which the next one is due */
    bool pending; /* something was committed since the last complete one */
    int wait_at;  /* frames at which readers are waited for; 0: of CHECKPOINT_WAL_LONG */
    /* Until when the busy handler, which is the writer's, waits for readers; 0: no checkpoint. */
    int64_t until_ms;
    int64_t room_at_ms;
    /* The writer's to set. What others wrote is followed in many transactions between two of its
     * turns: then the log goes back within a commit. While all nodes may wait for this one, it
     * waits for readers one such length later. */
    bool follows, hurries;
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
/* The disk is full, maybe of the log: all of it goes back, and what it took of the disk is free. */
void checkpoint_make_room(struct checkpoint *cp);
/* When idle: what is there goes back, also what other processes have committed, and is free. */
void checkpoint_when_idle(struct checkpoint *cp);
/* Before closing: all of it, and the log is emptied. */
void checkpoint_at_close(struct checkpoint *cp);
