/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies records of other nodes to the file, each in a transaction with the node's place in the
 * log. */
#include "db/shared/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/bind.h"
#include "db/file/connection.h"
#include "db/file/schema.h"
#include "db/shared/effects.h"

/* A record of this size gets the page cache of a bulk. */
#define LARGE_BYTES (4u << 20)

struct replay {
    sqlite3 *db;
    struct replay_events events;
    struct effects_applier *applier;
    sqlite3_stmt *read_at, *write_at, *begin, *commit, *rollback;
    int schema;
    bool migrated;
    /* State of a call, and of the record that is being applied. */
    enum catalogue_status status;
    bool skips;
    uint64_t record_bytes;
};

/* Step and reset. */
static enum catalogue_status run(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement), reset = sqlite3_reset(statement);
    return connection_status(rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset);
}

enum catalogue_status replay_read_at(struct replay *r, struct shared_position *at, bool *found)
{
    int rc = sqlite3_step(r->read_at);
    *found = rc == SQLITE_ROW;
    if (*found) {
        const void *chain = sqlite3_column_blob(r->read_at, 1);
        at->seq = (uint64_t)sqlite3_column_int64(r->read_at, 0);
        if (chain != NULL && sqlite3_column_bytes(r->read_at, 1) == SHARED_CHAIN_BYTES)
            memcpy(at->chain, chain, SHARED_CHAIN_BYTES);
    }
    sqlite3_reset(r->read_at);
    return connection_status(rc);
}

enum catalogue_status replay_write_at(struct replay *r, const struct shared_position *at)
{
    sql_bind(r->write_at, at->seq, sql_bytes(at->chain, SHARED_CHAIN_BYTES));
    return run(r->write_at);
}

enum catalogue_status replay_begin(struct replay *r)
{
    return run(r->begin);
}

enum catalogue_status replay_commit(struct replay *r)
{
    return run(r->commit);
}

static void set_cache(struct replay *r, int kib)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA cache_size=-%d", kib);
    sqlite3_exec(r->db, sql, NULL, NULL, NULL);
}

void replay_roll_back(struct replay *r)
{
    if (!sqlite3_get_autocommit(r->db))
        run(r->rollback);
    if (r->record_bytes >= LARGE_BYTES) {
        set_cache(r, CONNECTION_CACHE_KIB);
        sqlite3_db_release_memory(r->db);
    }
    r->record_bytes = 0;
}

/* ---- records of others */

static bool begin_record(void *context, const struct shared_record *record)
{
    struct replay *r = context;
    struct shared_position at = {0};
    bool found;
    r->record_bytes = 0;
    if (r->events.stops(r->events.context))
        return false;
    if (record->schema > SCHEMA_VERSION) {
        r->status = CATALOGUE_NEWER;
        return false;
    }
    r->status = run(r->begin);
    if (r->status == CATALOGUE_OK)
        r->status = replay_read_at(r, &at, &found);
    if (r->status != CATALOGUE_OK)
        return false;
    r->skips = at.seq >= record->position.seq; /* another process has applied it */
    if (!r->skips && at.seq + 1 != record->position.seq)
        r->status = CATALOGUE_UNAVAILABLE;
    effects_apply_begin(r->applier);
    return r->status == CATALOGUE_OK;
}

static bool apply_bytes(void *context, const void *bytes, size_t size)
{
    struct replay *r = context;
    if (r->skips)
        return true;
    if (r->record_bytes < LARGE_BYTES && r->record_bytes + size >= LARGE_BYTES)
        set_cache(r, CONNECTION_BULK_CACHE_KIB);
    r->record_bytes += size;
    r->status = effects_apply(r->applier, bytes, size);
    return r->status == CATALOGUE_OK && !r->events.stops(r->events.context);
}

/* Another process may have migrated it. */
static bool has_other_schema(const struct replay *r)
{
    bool shared;
    int schema;
    return schema_version(r->db, &schema, &shared) && schema != r->schema;
}

static bool end_record(void *context, const struct shared_record *record)
{
    struct replay *r = context;
    if (!r->skips) {
        r->status = effects_apply_end(r->applier);
        if (r->status == CATALOGUE_OK)
            r->status = replay_write_at(r, &record->position);
        if (r->status == CATALOGUE_OK && !effects_apply_migrated(r->applier))
            r->events.ends(r->events.context, record->position.seq);
        if (r->status == CATALOGUE_OK)
            r->status = run(r->commit);
    }
    replay_roll_back(r); /* does nothing after a commit */
    if (r->status != CATALOGUE_OK)
        return false;
    r->events.moved(r->events.context, &record->position, r->skips);
    r->migrated |= r->skips ? has_other_schema(r) : effects_apply_migrated(r->applier);
    return true;
}

static bool writes_wait(void *context)
{
    struct replay *r = context;
    return r->events.writes_wait(r->events.context);
}

void replay_start(struct replay *r, struct shared_take *take)
{
    r->status = CATALOGUE_OK;
    *take = (struct shared_take){.begin = begin_record,
                                 .bytes = apply_bytes,
                                 .end = end_record,
                                 .writes_wait = writes_wait,
                                 .context = r};
}

enum catalogue_status replay_end(struct replay *r)
{
    replay_roll_back(r);
    return r->status;
}

const char *replay_why(const struct replay *r)
{
    return effects_apply_why(r->applier);
}

bool replay_migrated(const struct replay *r)
{
    return r->migrated;
}

int replay_schema(const struct replay *r)
{
    return r->schema;
}

/* ---- making */

struct replay *replay_new(sqlite3 *db, const struct replay_events *events)
{
    bool shared;
    struct replay *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->db = db;
    r->events = *events;
    r->applier = effects_applier_new(db);
    r->read_at = connection_prepare(db, "SELECT seq, chain FROM local_shared WHERE one = 1");
    r->write_at =
        connection_prepare(db, "UPDATE local_shared SET seq = ?1, chain = ?2 WHERE one = 1");
    r->begin = connection_prepare(db, "BEGIN IMMEDIATE");
    r->commit = connection_prepare(db, "COMMIT");
    r->rollback = connection_prepare(db, "ROLLBACK");
    if (r->applier != NULL && r->read_at != NULL && r->write_at != NULL && r->begin != NULL &&
        r->commit != NULL && r->rollback != NULL && schema_version(db, &r->schema, &shared))
        return r;
    replay_free(r);
    return NULL;
}

void replay_free(struct replay *r)
{
    if (r == NULL)
        return;
    effects_applier_free(r->applier);
    sqlite3_stmt *const statements[] = {r->read_at, r->write_at, r->begin, r->commit, r->rollback};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        sqlite3_finalize(statements[i]);
    free(r);
}
