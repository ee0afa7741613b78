/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Inserts new entries, one after another, by one statement. A statement of its own for each entry
 * opens the table and the index on locs again, and searches both from the root: a quarter of the
 * work of a bulk.
 *
 * The statement selects from a virtual table whose rows are the entries of the run. When SQLite
 * steps to the next row, the entry that it has inserted is completed and the caller prepares the
 * next one: each entry finds the catalogue as the one before has left it, as with a statement for
 * each. What the caller then runs on the same connection only makes SQLite search again. The table
 * must have no trigger: SQLite would read all rows before it inserts the first (sqlite3Insert). */
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "db/file/connection.h"
#include "db/history/recorder.h"
#include "db/write/apply/entry.h"

/* More would save another percent. */
#define RUN_ROWS 32

struct put_run {
    struct tx *tx;
    struct put *put;                                 /* the entry at hand */
    struct sql_value values[ENTRY_COLUMN_COUNT + 1]; /* of its row */
    put_next *next;
    void *context;
    struct recorder_row reported;
    enum catalogue_status status;
    unsigned rows;
    bool ends; /* the current entry is not inserted by this statement */
    bool more;
};

struct run_table {
    sqlite3_vtab base;
    struct tx *tx;
};

static struct put_run *run_of(sqlite3_vtab_cursor *cursor)
{
    return ((struct run_table *)cursor->pVtab)->tx->run;
}

/* Makes the row of the current entry, and announces it to the recorder. */
static void announce(struct put_run *run)
{
    struct put *put = run->put;
    run->status = put_make_row(run->tx, put);
    run->ends = run->status != CATALOGUE_OK;
    memcpy(run->values, SQL_VALUES(ENTRY_VALUES(list_scope(put->index), put->url.text, &put->row)),
           sizeof run->values);
    run->reported = (struct recorder_row){.site = list_scope(put->index),
                                          .loc = put->url.text,
                                          .loc_len = put->url.len,
                                          .after = &put->row};
    recorder_report(run->tx->recorder, &run->reported);
}

/* A failure ends the statement with SQLite's message about it, which tx_rollback keeps. */
static int run_result(const struct put_run *run, sqlite3_vtab_cursor *cursor)
{
    if (run->status == CATALOGUE_OK)
        return SQLITE_OK;
    cursor->pVtab->zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(run->tx->db));
    return SQLITE_ABORT;
}

static int run_first(sqlite3_vtab_cursor *cursor, int plan, const char *name, int argc,
                     sqlite3_value **argv)
{
    struct put_run *run = run_of(cursor);
    (void)plan, (void)name, (void)argc, (void)argv;
    announce(run);
    return run_result(run, cursor);
}

/* Counts the entry like a statement. False: what is done between two statements is due
 * (tx.c). */
static bool goes_on(struct put_run *run)
{
    struct tx_shared *shared = run->tx->shared;
    if (++run->rows == RUN_ROWS || recorder_is_full(run->tx->recorder))
        return false;
    if (shared == NULL)
        return true;
    atomic_fetch_add_explicit(&shared->statements, 1, memory_order_relaxed);
    return !atomic_load_explicit(&shared->abandoned, memory_order_relaxed);
}

static int run_next(sqlite3_vtab_cursor *cursor)
{
    struct put_run *run = run_of(cursor);
    struct tx *tx = run->tx;
    recorder_reported(tx->recorder);
    run->ends = true;
    /* SQLite sets it with the row, before the statement ends. */
    if (sqlite3_last_insert_rowid(tx->db) != run->put->row.address) {
        run->status = put_is_known(tx, run->put);
        return run_result(run, cursor);
    }
    run->status = put_inserted(tx, run->put);
    if (run->status == CATALOGUE_OK)
        run->status = run->next(run->context, &run->more);
    if (run->status == CATALOGUE_OK && run->more && !run->put->row.found && goes_on(run))
        announce(run);
    return run_result(run, cursor);
}

static int run_eof(sqlite3_vtab_cursor *cursor)
{
    return run_of(cursor)->ends;
}

static int run_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int column)
{
    sql_result(to, &run_of(cursor)->values[column]);
    return SQLITE_OK;
}

static int run_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = run_of(cursor)->rows;
    return SQLITE_OK;
}

static int run_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
    *out = sqlite3_malloc64(sizeof **out);
    if (*out == NULL)
        return SQLITE_NOMEM;
    memset(*out, 0, sizeof **out);
    return SQLITE_OK;
}

static int run_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int run_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedRows = RUN_ROWS;
    return SQLITE_OK;
}

static int run_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                       sqlite3_vtab **out, char **why)
{
    (void)argc, (void)argv, (void)why;
    struct run_table *table;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(" ENTRY_COLUMNS ")");
    if (rc != SQLITE_OK)
        return rc;
    table = sqlite3_malloc64(sizeof *table);
    if (table == NULL)
        return SQLITE_NOMEM;
    *table = (struct run_table){.tx = context};
    *out = &table->base;
    return SQLITE_OK;
}

static int run_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* No xCreate: the table exists on the connection alone, and not in the file. */
static const sqlite3_module module = {.xConnect = run_connect,
                                      .xBestIndex = run_plan,
                                      .xDisconnect = run_disconnect,
                                      .xOpen = run_open,
                                      .xClose = run_close,
                                      .xFilter = run_first,
                                      .xNext = run_next,
                                      .xEof = run_eof,
                                      .xColumn = run_column,
                                      .xRowid = run_rowid};

enum catalogue_status put_run_init(struct tx *tx)
{
    return connection_status(sqlite3_create_module(tx->db, "put_run", &module, tx));
}

enum catalogue_status put_write_run(struct tx *tx, struct put *put, put_next *next, void *context,
                                    bool *more)
{
    *more = false;
    if (put->row.found) {
        enum catalogue_status status = put_write(tx, put);
        return status == CATALOGUE_OK ? next(context, more) : status;
    }
    struct put_run run = {.tx = tx, .put = put, .next = next, .context = context};
    sqlite3_stmt *statement = tx_bind(tx, ST_ENTRY_INSERT_RUN);
    if (statement == NULL)
        return tx_failure(tx);
    sqlite3_set_last_insert_rowid(tx->db, 0);
    tx->run = &run;
    enum catalogue_status status = statement_run(statement);
    tx->run = NULL;
    recorder_reported(tx->recorder);
    *more = run.more;
    return run.status != CATALOGUE_OK ? run.status : status;
}
