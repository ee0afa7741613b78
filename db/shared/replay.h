/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The file as a replay of the log: its place there, which is in the file and moves in each
 * record's own transaction, and records of others, applied to it one by one. What cannot be applied
 * leaves nothing behind. Internal to db/shared; the writer's thread. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "db/shared/log.h"
#include "db/status.h"

struct replay;

/* Who wants to know. */
struct replay_events {
    /* Last thing in the transaction of record `seq`. */
    void (*ends)(void *context, uint64_t seq);
    /* The file is there; `skipped`: by another process. */
    void (*moved)(void *context, const struct shared_position *at, bool skipped);
    /* Whether to break off. */
    bool (*stops)(void *context);
    /* As shared_take's. */
    bool (*writes_wait)(void *context);
    void *context;
};

/* The file is open and nothing under way. NULL: out of memory, or the engine failed. */
struct replay *replay_new(sqlite3 *db, const struct replay_events *events);
void replay_free(struct replay *r); /* takes NULL */

/* The file's form when this was made. */
int replay_schema(const struct replay *r);
/* `*found`: false: the file has nothing of a log yet. */
enum catalogue_status replay_read_at(struct replay *r, struct shared_position *at, bool *found);
/* In a transaction. */
enum catalogue_status replay_write_at(struct replay *r, const struct shared_position *at);

/* A call of the log that applies what it gives. `*take` is good until the next one. */
void replay_start(struct replay *r, struct shared_take *take);
/* Behind it: what is half done is rolled back. OK; CORRUPT: a record does not fit (replay_why):
 * divergence; NEWER: one is of a form that this release does not know; else it could not be written
 * now. */
enum catalogue_status replay_end(struct replay *r);
const char *replay_why(const struct replay *r);
/* Whether the file has another form since: all that hangs on it is to be rebuilt. */
bool replay_migrated(const struct replay *r);

/* A transaction of the caller's own; to be rolled back where its COMMIT failed. */
enum catalogue_status replay_begin(struct replay *r);
enum catalogue_status replay_commit(struct replay *r);
void replay_roll_back(struct replay *r); /* nothing where none is open */
