#include "db/tx.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/connection.h"
#include "db/fill.h"
#include "db/registry_load.h"

bool tx_init(struct tx *tx, const struct catalogue_options *options, sqlite3 *db)
{
    memset(tx, 0, sizeof *tx);
    tx->options = options;
    tx->db = db;
    tx->registry_stale = true;
    statements_init(&tx->statements, db);
    tx->fill = fill_new();
    /* Prepared in time: a rollback must not need memory where memory has run out. */
    return tx->fill != NULL && statements_get(&tx->statements, ST_ROLLBACK) != NULL;
}

void tx_done(struct tx *tx)
{
    statements_done(&tx->statements);
    registry_unref(tx->registry);
    fill_free(tx->fill);
    memset(tx, 0, sizeof *tx);
}

sqlite3_stmt *tx_statement(struct tx *tx, enum statement which)
{
    return statements_get(&tx->statements, which);
}

enum catalogue_status tx_failure(struct tx *tx)
{
    enum catalogue_status status = connection_status(sqlite3_extended_errcode(tx->db));
    return status == CATALOGUE_OK ? CATALOGUE_UNAVAILABLE : status;
}

/* Keeps what the engine said, before the next call of it. */
static void note_why(struct tx *tx)
{
    int code = sqlite3_errcode(tx->db);
    bool failed = code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
    snprintf(tx->why, sizeof tx->why, "%s", failed ? sqlite3_errmsg(tx->db) : "");
}

static enum catalogue_status run_plain(struct tx *tx, enum statement which)
{
    sqlite3_stmt *statement = tx_statement(tx, which);
    return statement ? statement_run(statement) : tx_failure(tx);
}

/* What we remember is true only of the revision that we wrote (or read) last. */
static enum catalogue_status read_catalogue(struct tx *tx)
{
    sqlite3_stmt *row = tx_statement(tx, ST_CATALOGUE_READ);
    if (!row)
        return tx_failure(tx);
    bool found;
    enum catalogue_status status = statement_first(row, &found);
    const char *epoch = found ? (const char *)sqlite3_column_text(row, 0) : NULL;
    if (status == CATALOGUE_OK && (!epoch || strlen(epoch) >= sizeof tx->epoch))
        status = CATALOGUE_CORRUPT;
    if (status == CATALOGUE_OK) {
        uint64_t revision = (uint64_t)sqlite3_column_int64(row, 1);
        bool same_file = strcmp(epoch, tx->epoch) == 0;
        if (!same_file || revision != tx->revision) {
            fill_drop(tx->fill);
            tx->source_id = 0;
        }
        memcpy(tx->epoch, epoch, strlen(epoch) + 1);
        tx->revision = revision;
        tx->registry_revision = (uint64_t)sqlite3_column_int64(row, 2);
        tx->serial = sqlite3_column_int64(row, 3);
        tx->changed_at = sqlite3_column_int64(row, 4);
        if (!same_file || tx->registry_of != tx->registry_revision)
            tx->registry_stale = true;
    }
    sqlite3_reset(row);
    return status;
}

static int64_t clock_not_before(int64_t earliest)
{
    int64_t now = (int64_t)time(NULL);
    return now > earliest ? now : earliest;
}

enum catalogue_status tx_begin(struct tx *tx)
{
    if (!sqlite3_get_autocommit(tx->db))
        tx_rollback(tx); /* the last one could not be, for lack of memory */
    enum catalogue_status status = run_plain(tx, ST_BEGIN);
    if (status != CATALOGUE_OK) {
        note_why(tx);
        return status;
    }
    status = read_catalogue(tx);
    if (status != CATALOGUE_OK) {
        tx_rollback(tx);
        return status;
    }
    tx->now = clock_not_before(tx->changed_at);
    tx->first_serial = tx->serial;
    tx->changed = false;
    tx->registry_changed = false;
    return CATALOGUE_OK;
}

void tx_rollback(struct tx *tx)
{
    note_why(tx);
    /* Some engine errors have rolled back already. */
    if (!sqlite3_get_autocommit(tx->db))
        run_plain(tx, ST_ROLLBACK);
    fill_drop(tx->fill);
    tx->registry_stale = true;
    tx->source_id = 0;
    tx->epoch[0] = '\0';
}

/* The last statements of a transaction: pages, segments, peaks, then the catalogue's row. */
static enum catalogue_status stamp(struct tx *tx)
{
    uint64_t revision = tx->revision + 1;
    int64_t now = clock_not_before(tx->now);
    bool pages_differ = false;
    enum catalogue_status status = fill_write(tx, revision, now, &pages_differ);
    if (status != CATALOGUE_OK)
        return status;
    uint64_t registry_revision = tx->registry_revision;
    if (pages_differ || tx->registry_changed)
        registry_revision++;

    sqlite3_stmt *row = tx_statement(tx, ST_CATALOGUE_WRITE);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, (sqlite3_int64)revision);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)registry_revision);
    sqlite3_bind_int64(row, 3, tx->serial);
    sqlite3_bind_int64(row, 4, now);
    status = statement_run(row);
    if (status != CATALOGUE_OK)
        return status;
    tx->revision = revision;
    tx->registry_revision = registry_revision;
    tx->changed_at = now;
    /* The writer reads sites, hosts and indexes of it, never its list of pages. */
    tx->registry_of = registry_revision;
    return CATALOGUE_OK;
}

enum catalogue_status tx_commit(struct tx *tx)
{
    enum catalogue_status status = tx->changed ? stamp(tx) : CATALOGUE_OK;
    if (status == CATALOGUE_OK)
        status = run_plain(tx, ST_COMMIT);
    if (status == CATALOGUE_OK && !sqlite3_get_autocommit(tx->db))
        status = CATALOGUE_UNAVAILABLE;
    if (status != CATALOGUE_OK) {
        tx_rollback(tx);
        return status;
    }
    fill_settle(tx->fill);
    return CATALOGUE_OK;
}

enum catalogue_status tx_registry(struct tx *tx, const struct registry **out)
{
    if (tx->registry_stale) {
        struct registry *fresh;
        enum catalogue_status status = registry_load(tx->db, &fresh);
        if (status != CATALOGUE_OK)
            return status;
        registry_unref(tx->registry);
        tx->registry = fresh;
        tx->registry_of = tx->registry_revision;
        tx->registry_stale = false;
    }
    *out = tx->registry;
    return CATALOGUE_OK;
}

void tx_registry_touch(struct tx *tx)
{
    tx->changed = true;
    tx->registry_changed = true;
    tx->registry_stale = true;
}

enum catalogue_status tx_source(struct tx *tx, const char *name, bool make, int64_t *id)
{
    if (tx->source_id != 0 && strcmp(tx->source_name, name) == 0) {
        *id = tx->source_id;
        return CATALOGUE_OK;
    }
    sqlite3_stmt *find = tx_statement(tx, ST_SOURCE_FIND);
    if (!find)
        return tx_failure(tx);
    statement_bind_text(find, 1, name);
    enum catalogue_status status = statement_number(find, 0, id);
    if (status == CATALOGUE_OK && *id == 0 && make) {
        sqlite3_stmt *add = tx_statement(tx, ST_SOURCE_ADD);
        if (!add)
            return tx_failure(tx);
        statement_bind_text(add, 1, name);
        status = statement_run(add);
        *id = sqlite3_last_insert_rowid(tx->db);
    }
    if (status == CATALOGUE_OK && *id != 0 && strlen(name) < sizeof tx->source_name) {
        memcpy(tx->source_name, name, strlen(name) + 1);
        tx->source_id = *id;
    }
    return status;
}
