/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Begins, commits and rolls back a transaction, with the effects of a shared catalogue and the
 * history. */
#include "db/write/commit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/file/connection.h"
#include "db/history/recorder.h"
#include "db/read/registry_store.h"
#include "db/shared/effects.h"
#include "db/write/apply/entry.h"
#include "db/write/occupancy.h"

/* The error of the recorders of the transaction's rows. */
static enum catalogue_status recording_status(const struct tx *tx)
{
    enum catalogue_status status = recorder_status(tx->recorder);
    return status == CATALOGUE_OK && tx->log != NULL ? effects_status(tx->log->effects) : status;
}

static enum catalogue_status relieve_recording(struct tx *tx)
{
    enum catalogue_status status =
        tx->log != NULL ? effects_status(tx->log->effects) : CATALOGUE_OK;
    return status == CATALOGUE_OK && recorder_is_full(tx->recorder)
               ? recorder_relieve(tx->recorder, tx)
               : status;
}

static const struct tx_listeners recording = {relieve_recording, recording_status};

bool tx_init(struct tx *tx, const struct catalogue_options *options, sqlite3 *db)
{
    memset(tx, 0, sizeof *tx);
    tx->options = options;
    tx->db = db;
    tx->listeners = &recording;
    tx->registry_stale = true;
    statements_init(&tx->statements, db);
    tx->occupancy = occupancy_new();
    /* Prepared now: a rollback after running out of memory must not need memory. */
    if (options->history_keep_ms > 0) {
        tx->recorder = recorder_new(db);
        if (tx->recorder == NULL)
            return false;
        recorder_listen(tx->recorder);
    }
    return tx->occupancy != NULL && put_run_init(tx) == CATALOGUE_OK &&
           statements_get(&tx->statements, ST_ROLLBACK) != NULL;
}

void tx_done(struct tx *tx)
{
    statements_done(&tx->statements);
    recorder_free(tx->recorder);
    registry_unref(tx->registry);
    occupancy_free(tx->occupancy);
    memset(tx, 0, sizeof *tx);
}

/* Stores SQLite's message, which its next call overwrites. */
static void record_why(struct tx *tx)
{
    int code = sqlite3_errcode(tx->db);
    bool failed = code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
    snprintf(tx->why, sizeof tx->why, "%s", failed ? sqlite3_errmsg(tx->db) : "");
}

/* Forgets the cached state unless the file still has the revision that was last written or read. */
static enum catalogue_status read_catalogue(struct tx *tx)
{
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, ST_CATALOGUE_READ, &row);
    const char *epoch = row != NULL ? (const char *)sqlite3_column_text(row, 0) : NULL;
    if (status == CATALOGUE_OK && row != NULL &&
        epoch == NULL) /* out of memory, as for the stamp below */
        status = CATALOGUE_NO_MEMORY;
    if (status == CATALOGUE_OK && (epoch == NULL || strlen(epoch) >= sizeof tx->epoch))
        status = CATALOGUE_CORRUPT;
    if (status == CATALOGUE_OK) {
        uint64_t revision = (uint64_t)sqlite3_column_int64(row, 1);
        bool same_file = strcmp(epoch, tx->epoch) == 0;
        if (!same_file || revision != tx->revision) {
            occupancy_drop(tx->occupancy);
            tx->source_id = 0;
        }
        memcpy(tx->epoch, epoch, strlen(epoch) + 1);
        tx->revision = revision;
        tx->registry_revision = (uint64_t)sqlite3_column_int64(row, 2);
        tx->serial = sqlite3_column_int64(row, 3);
        tx->changed_at = sqlite3_column_int64(row, 4);
        const char *newest = (const char *)sqlite3_column_text(row, 5);
        snprintf(tx->stamp, sizeof tx->stamp, "%s", newest != NULL ? newest : "");
        if (newest == NULL) /* out of memory; SQLite has ended the transaction */
            status = CATALOGUE_NO_MEMORY;
        tx->history_from = (uint64_t)sqlite3_column_int64(row, 6);
        tx->history_bytes = sqlite3_column_int64(row, 7);
        if (!same_file || tx->registry_of != tx->registry_revision)
            tx->registry_stale = true;
    }
    sqlite3_reset(row);
    return status;
}

enum catalogue_status tx_refresh(struct tx *tx)
{
    return sqlite3_get_autocommit(tx->db) ? read_catalogue(tx) : CATALOGUE_OK;
}

enum catalogue_status tx_begin(struct tx *tx)
{
    if (!sqlite3_get_autocommit(tx->db))
        tx_rollback(tx); /* the last rollback failed for lack of memory */
    enum catalogue_status status = tx_run(tx, ST_BEGIN);
    if (status != CATALOGUE_OK) {
        record_why(tx);
        return status;
    }
    tx->open = true;
    if (tx->log != NULL)
        effects_begin(tx->log->effects);
    status = read_catalogue(tx);
    if (status != CATALOGUE_OK) {
        tx_rollback(tx);
        return status;
    }
    tx_check_clock(tx);
    tx->now = tx_clock(tx); /* whatever the last transaction's clock said */
    tx->stamped_at = 0;
    sqlite3_randomness(sizeof tx->drawn, &tx->drawn);
    tx->found_revision = tx->revision;
    tx->first_serial = tx->serial;
    tx->changed = false;
    tx->registry_changed = false;
    return CATALOGUE_OK;
}

void tx_forget(struct tx *tx)
{
    occupancy_drop(tx->occupancy);
    tx->registry_stale = true;
    registry_unref(tx->registry); /* it may contain uncommitted changes */
    tx->registry = NULL;
    tx->source_id = 0;
    tx->epoch[0] = '\0';
}

void tx_rollback(struct tx *tx)
{
    record_why(tx);
    tx->open = false;
    if (tx->log != NULL)
        effects_stop(tx->log->effects);
    /* Some SQLite errors have rolled back already. */
    if (!sqlite3_get_autocommit(tx->db))
        tx_run(tx, ST_ROLLBACK);
    recorder_drop(tx->recorder);
    tx_forget(tx);
    tx->revision = tx->found_revision;
    if (tx->log != NULL)
        tx->log->drop(tx->log->context);
}

uint64_t tx_end_change(struct tx *tx)
{
    if (tx->changed)
        tx->revision++;
    tx->changed = false;
    return tx->revision;
}

/* The last statements of a transaction: pages, segments, peaks, then the catalogue's row. */
static enum catalogue_status stamp(struct tx *tx)
{
    int64_t now = tx_date(tx);
    bool pages_differ = false;
    enum catalogue_status status = occupancy_write(tx, tx->revision, now, &pages_differ);
    if (status != CATALOGUE_OK)
        return status;
    uint64_t registry_revision = tx->registry_revision;
    if (pages_differ || tx->registry_changed)
        registry_revision++;

    if (tx->recorder == NULL)
        tx->history_from = tx->revision + 1;
    /* A shared catalogue is identified by its log: the newest stamp is enough. */
    status = tx_run(tx, ST_CATALOGUE_WRITE, (sqlite3_int64)tx->revision,
                    (sqlite3_int64)registry_revision, tx->serial, now, tx->drawn,
                    (sqlite3_int64)tx->history_from, tx->history_bytes,
                    16 * (sqlite3_int64)(tx->log ? 1 : TX_LINEAGE));
    if (status != CATALOGUE_OK)
        return status;
    snprintf(tx->stamp, sizeof tx->stamp, "%016" PRIx64, (uint64_t)tx->drawn);
    tx->registry_revision = registry_revision;
    tx->changed_at = now;
    /* The registry stays valid for the writer, which does not use its lists of pages. */
    tx->registry_of = registry_revision;
    return CATALOGUE_OK;
}

enum catalogue_status tx_commit(struct tx *tx)
{
    bool changed = tx_end_change(tx) != tx->found_revision;
    enum catalogue_status status = changed ? stamp(tx) : CATALOGUE_OK;
    if (status == CATALOGUE_OK && tx->log != NULL)
        status = tx->log->append(tx->log->context, tx);
    bool is_everybodys =
        status == CATALOGUE_OK && tx->log != NULL && effects_are_any(tx->log->effects);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_COMMIT);
    if (status == CATALOGUE_OK && !sqlite3_get_autocommit(tx->db))
        status = CATALOGUE_UNAVAILABLE;
    if (status != CATALOGUE_OK && is_everybodys) /* the log has it, so it was applied */
        status = CATALOGUE_OUTCOME_UNKNOWN;
    if (status != CATALOGUE_OK) {
        tx_rollback(tx);
        return status;
    }
    tx->open = false;
    occupancy_settle(tx->occupancy);
    return CATALOGUE_OK;
}
