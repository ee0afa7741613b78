/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies records of other nodes to the file one by one, each in a transaction that also moves the
 * file's position in the log. A record that cannot be applied changes nothing. Internal to
 * db/shared; the writer's thread. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "db/shared/log.h"
#include "db/status.h"

struct replay;

/* Callbacks. */
struct replay_events {
    /* Called last in the transaction of record `seq`. */
    void (*ends)(void *context, uint64_t seq);
    /* The file is at this position; `skipped`: another process applied the record. */
    void (*moved)(void *context, const struct shared_position *at, bool skipped);
    /* Whether to stop. */
    bool (*stops)(void *context);
    /* As in struct shared_take. */
    bool (*writes_wait)(void *context);
    void *context;
};

/* Without an open transaction. NULL: out of memory, or SQLite failed. */
struct replay *replay_new(sqlite3 *db, const struct replay_events *events);
void replay_free(struct replay *r); /* accepts NULL */

/* The file's schema at replay_new. */
int replay_schema(const struct replay *r);
/* `*found` is false if the file has no position yet. */
enum catalogue_status replay_read_at(struct replay *r, struct shared_position *at, bool *found);
/* In a transaction. */
enum catalogue_status replay_write_at(struct replay *r, const struct shared_position *at);

/* Fills `*take` for a call of the log whose records are applied; valid until the next call. */
void replay_start(struct replay *r, struct shared_take *take);
/* After that call: rolls back an incomplete record. CORRUPT: a record does not fit (replay_why), a
 * divergence; NEWER: a record has a schema that this release does not know; other failures are
 * temporary. */
enum catalogue_status replay_end(struct replay *r);
const char *replay_why(const struct replay *r);
/* Whether the file's schema has changed: everything that depends on it must be rebuilt. */
bool replay_migrated(const struct replay *r);

/* Begins a transaction of the caller, who rolls it back if its COMMIT failed. */
enum catalogue_status replay_begin(struct replay *r);
enum catalogue_status replay_commit(struct replay *r);
void replay_roll_back(struct replay *r); /* does nothing if none is open */
