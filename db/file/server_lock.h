/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Ensures that a catalogue has one server, by a lock on `<database>.lock`, beside the file that
 * symbolic links lead to. The kernel releases it when the process ends. The lock belongs to the
 * path, not to the database's file, so that a backup may be renamed to the path of a running
 * server. Commands do not take it. Internal to db/; one thread at a time.
 *
 * It is a POSIX lock, since the kernel can name its owner. Such a lock is lost when its process
 * closes any descriptor of the file, so nothing else may open the file.
 *
 * The lock file stays, and records the state of the catalogue that was served last: inode, epoch,
 * revision and stamp. A database that is not a later state of it counts as another file, whatever
 * its epoch: a backup was renamed or copied there, perhaps while no server was running, and then
 * written by commands. The stamps show it: each transaction draws one at random, and the lineage in
 * the database has the last 200. If there were more transactions since, the database counts as
 * another file, too. Then clients of /v1/changes have to begin again, and nothing else happens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "db/status.h"

/* A state of a catalogue's file. */
struct served {
    uintmax_t inode;
    uintmax_t revision;
    char epoch[33]; /* "": none */
    char stamp[17]; /* "": none; then only the revision is compared */
};

struct server_lock {
    int fd;               /* 0: no lock is held */
    bool noted;           /* the lock file has the state `served` */
    struct served served; /* the state that this process served last, even under another lock */
};

/* Takes the lock for the database at `path`, which exists, and releases the lock held so far; if
 * both are the same, nothing happens. A deleted lock file is made again. BUSY: another process has
 * the lock; `why` names it if it is in this process's pid namespace. After a failure the old lock
 * is still held. */
enum catalogue_status server_lock_hold(struct server_lock *lock, const char *path, char *why,
                                       size_t why_size);
/* Whether `now` is the state that was served last or a later one, by the stamps in `lineage`. True
 * also if that state is unknown, as after an upgrade: then the file keeps its epoch. */
bool server_lock_knows(const struct server_lock *lock, const struct served *now,
                       const char *lineage);
/* The state that was served last. False: unknown. */
bool server_lock_last_served(const struct server_lock *lock, struct served *out);
/* The same for the database at `path`, without taking its lock. A process that holds the lock must
 * not call it: it would lose the lock. */
bool server_lock_peek(const char *path, struct served *out);
/* Records the state. Call it after the commit that made it durable: after a power cut the lock file
 * may be behind the catalogue, never ahead. */
void server_lock_record(struct server_lock *lock, const struct served *now);
void server_lock_done(struct server_lock *lock);

/* Whether a process serves the database at `path` now. A process that holds the lock must not call
 * it: it would lose the lock. Thread safe. */
bool server_lock_is_held(const char *path);
