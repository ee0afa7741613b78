/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One server a catalogue, and which one it was: a lock on `<database>.lock`, beside the file that
 * links lead to. The kernel drops it with the process, however that ends. It belongs to the path
 * and not with the database's file, so that a backup may be renamed into that one's place beneath a
 * running server. Commands do not take it. Internal to db/; one thread at a time.
 *
 * It is a POSIX lock, for its owner can be asked for; such a lock is lost when its process closes
 * any descriptor of the file, so nothing else may open it.
 *
 * The file stays, and remembers the state of the catalogue that was served last: its inode, epoch,
 * revision and stamp. A file that is not a later state of that one is another, whatever its epoch
 * says: a backup was renamed or copied in, perhaps while nobody served, and then written by
 * commands. The stamp says so, which each transaction draws at random: the file's lineage holds
 * those of its last 200. Where more were made since, as perhaps at a power cut, which takes back
 * what was remembered, the file is another one too, which costs its readers a list of changes from
 * the start, and no more. */
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
    char stamp[17]; /* "": none; then the revision has to do */
};

struct server_lock {
    int fd;     /* 0: none is held */
    bool noted; /* its file says what `served` does */
    struct served
        served; /* what this process served last; also where another lock was taken since */
};

/* Takes the lock for the database at `path`, which exists, in place of the one that is held. Where
 * that is the same one, nothing happens; where its file was deleted, it is made again. BUSY where
 * another process has it, which `why` names if this one's pid namespace knows it. On failure what
 * was held still is. */
enum catalogue_status server_lock_hold(struct server_lock *lock, const char *path, char *why,
                                       size_t why_size);
/* Whether the file that was served last has come to this state, by the stamps of `lineage`. True
 * also where nothing is known of one, as after an upgrade: then the file's own epoch is all that
 * there is. */
bool server_lock_knows(const struct server_lock *lock, const struct served *now,
                       const char *lineage);
/* What was served last. False: nothing is known of it. */
bool server_lock_last_served(const struct server_lock *lock, struct served *out);
/* The same of the database at `path`, without its lock. Not for a process that may hold it: it
 * would lose it. */
bool server_lock_peek(const char *path, struct served *out);
/* Remembers it. For after the commit that made it durable: at a power cut the memory may be behind
 * the catalogue, never ahead. */
void server_lock_record(struct server_lock *lock, const struct served *now);
void server_lock_done(struct server_lock *lock);

/* Whether a process serves the database at `path` now. Not for a process that may hold the lock:
 * it would lose it. Thread safe. */
bool server_lock_is_held(const char *path);
