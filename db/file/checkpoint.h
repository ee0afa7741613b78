/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Decides when to checkpoint: to copy the write-ahead log into the file. Only the server's writer
 * checkpoints, between two transactions, if the log has grown, and if something was committed since
 * the last complete checkpoint: SQLite before 3.51.3 has a rare bug when two checkpoints run back
 * to back beside a commit (https://www.sqlite.org/wal.html "WAL-reset bug"). Other handles leave
 * checkpoints to SQLite's close. Internal to db/; the writer's thread.
 *
 * After a checkpoint the log restarts only if the next transaction finds no reader in it, and under
 * load there always is one: the publisher's next pass begins as the last one ends. So if the log is
 * long, a checkpoint waits for these readers. Readers do not notice: new ones read the file itself.
 * Other writers wait for the lock meanwhile, so the wait is short. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "server/base/histogram.h"

/* Growth of the log between two checkpoints, each of which takes tens of milliseconds. A
 * transaction is not divided: after a bulk of a million entries the log has a few hundred
 * megabytes, and one checkpoint takes about a second. */
#define CHECKPOINT_WAL_BYTES (4 << 20)
/* Size to which a longer log file is truncated. */
#define CHECKPOINT_WAL_KEPT (64 << 20)
/* A checkpoint waits for readers once the log is this long, and again each time it has grown by as
 * much; the wait is CHECKPOINT_WAIT_MS for each such length. During a longer read (an export, a
 * backup) the log grows. */
#define CHECKPOINT_WAL_LONG    (16 << 20)
#define CHECKPOINT_WAIT_MS     50
#define CHECKPOINT_WAIT_MAX_MS 250
/* Between two attempts to make room. */
#define CHECKPOINT_ROOM_MS 1000

struct checkpoint {
    sqlite3 *db;
    int frame_bytes;
    int frames;   /* in the log at this handle's last commit */
    int done;     /* frames that the last checkpoint has copied */
    int next;     /* frames at which the next checkpoint is due */
    bool pending; /* something was committed since the last complete checkpoint */
    int wait_at;  /* frames at which it waits for readers; 0: those of CHECKPOINT_WAL_LONG */
    /* Until when the writer's busy handler waits for readers; 0: no checkpoint is running. */
    int64_t until_ms;
    int64_t room_at_ms;
    /* Set by the writer. `follows`: many records of other nodes are applied between two turns of
     * the writer, so a commit checkpoints. `hurries`: all nodes may be waiting for this one, so the
     * wait for readers begins one CHECKPOINT_WAL_LONG later. */
    bool follows, hurries;
    /* Size of the log file after the last complete checkpoint: shows commits of other processes. */
    off_t wal_size;
    struct timespec wal_time;
    atomic_uint_fast64_t wal_bytes; /* of the log, not checkpointed yet */
    atomic_uint_fast64_t count;
    struct histogram took_ns;
};

/* Uses this connection from now on. Call it again after a reopening; the counters stay. */
void checkpoint_attach(struct checkpoint *cp, sqlite3 *db, bool server);
/* After a commit: checkpoints if due. */
void checkpoint_after_commit(struct checkpoint *cp);
/* When the disk is full: checkpoints the whole log and truncates it, to free its disk space. */
void checkpoint_make_room(struct checkpoint *cp);
/* When idle: checkpoints the log, including commits of other processes, and truncates it. */
void checkpoint_when_idle(struct checkpoint *cp);
/* Before closing: checkpoints the whole log and truncates it. */
void checkpoint_at_close(struct checkpoint *cp);
