/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of a write transaction: revision, clock, registry, and when it should yield to others.
 */
#include "db/tx/tx.h"

#include <string.h>
#include <time.h>

#include "db/file/connection.h"
#include "db/read/registry_store.h"

/* If SQLite lacks memory for a text, it ends the transaction silently: each later statement
 * would then commit on its own. */
static bool was_ended(const struct tx *tx)
{
    return tx->open && sqlite3_get_autocommit(tx->db);
}

static sqlite3_stmt *get_statement(struct tx *tx, enum statement which)
{
    struct tx_shared *shared = tx->shared;
    if (shared != NULL) {
        if (atomic_load_explicit(&shared->abandoned, memory_order_relaxed) &&
            which != ST_ROLLBACK && which != ST_COMMIT)
            return NULL;
        atomic_fetch_add_explicit(&shared->statements, 1, memory_order_relaxed);
    }
    if (which != ST_ROLLBACK && (was_ended(tx) || tx->listeners->relieve(tx) != CATALOGUE_OK))
        return NULL;
    return statements_get(&tx->statements, which);
}

enum catalogue_status tx_failure(struct tx *tx)
{
    enum catalogue_status status = tx->listeners->status(tx);
    if (status == CATALOGUE_OK)
        status = connection_status(sqlite3_extended_errcode(tx->db));
    if (status == CATALOGUE_OK)
        status = was_ended(tx) ? CATALOGUE_NO_MEMORY : CATALOGUE_UNAVAILABLE;
    return status;
}

sqlite3_stmt *tx_bind_values(struct tx *tx, enum statement which, const struct sql_value *values)
{
    sqlite3_stmt *row = get_statement(tx, which);
    return sql_bind_values(row, values) == SQLITE_OK ? row : NULL;
}

enum catalogue_status tx_run_values(struct tx *tx, enum statement which,
                                    const struct sql_value *values)
{
    sqlite3_stmt *row = tx_bind_values(tx, which, values);
    return row != NULL ? statement_run(row) : tx_failure(tx);
}

enum catalogue_status tx_first_values(struct tx *tx, enum statement which, sqlite3_stmt **row,
                                      const struct sql_value *values)
{
    bool found;
    *row = tx_bind_values(tx, which, values);
    if (*row == NULL)
        return tx_failure(tx);
    enum catalogue_status status = statement_first(*row, &found);
    if (!found) {
        sqlite3_reset(*row);
        *row = NULL;
    }
    return status;
}

enum catalogue_status tx_number_values(struct tx *tx, enum statement which, int64_t missing,
                                       int64_t *out, const struct sql_value *values)
{
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first_values(tx, which, &row, values);
    if (status == CATALOGUE_OK) {
        bool has = row != NULL && sqlite3_column_type(row, 0) != SQLITE_NULL;
        *out = has ? sqlite3_column_int64(row, 0) : missing;
    }
    sqlite3_reset(row);
    return status;
}

/* Synchronised clocks may differ by this much. */
#define CLOCK_SLACK_S 5

static int64_t own_clock(const struct tx *tx)
{
    return tx->options->clock != NULL ? tx->options->clock() : (int64_t)time(NULL);
}

int64_t tx_clock(const struct tx *tx)
{
    return own_clock(tx) + tx->clock_offset;
}

void tx_check_clock(struct tx *tx)
{
    int64_t there = tx->log != NULL ? tx->log->clock(tx->log->context) : 0;
    int64_t offset = there - own_clock(tx);
    if (there != 0)
        tx->clock_offset = offset > CLOCK_SLACK_S || offset < -CLOCK_SLACK_S ? offset : 0;
}

int64_t tx_date(struct tx *tx)
{
    if (tx->stamped_at == 0) {
        int64_t now = tx_clock(tx);
        tx->stamped_at = now > tx->now ? now : tx->now;
    }
    return tx->stamped_at;
}

bool tx_should_yield(const struct tx *tx)
{
    return tx->gives_way != NULL && tx->gives_way(tx->pressed_context);
}

enum catalogue_status tx_record_step(struct tx *tx, uint64_t *group)
{
    int64_t revision = (int64_t)tx->revision + 1;
    enum catalogue_status status = CATALOGUE_OK;
    if (*group == 0) {
        *group = (uint64_t)revision;
        status = tx_run(tx, ST_HISTORY_STEPS_TIDY, (int64_t)tx->history_from);
    }
    return status == CATALOGUE_OK ? tx_run(tx, ST_HISTORY_STEP_ADD, (int64_t)*group, revision)
                                  : status;
}

enum catalogue_status tx_registry(struct tx *tx, const struct registry **out)
{
    if (tx->registry_stale) {
        struct registry *fresh;
        enum catalogue_status status = registry_load(tx->db, tx->registry, &fresh);
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
    enum catalogue_status status = tx_number(tx, ST_SOURCE_FIND, 0, id, name);
    if (status == CATALOGUE_OK && *id == 0 && make) {
        status = tx_run(tx, ST_SOURCE_ADD, name);
        *id = sqlite3_last_insert_rowid(tx->db);
    }
    if (status == CATALOGUE_OK && *id != 0 && strlen(name) < sizeof tx->source_name) {
        memcpy(tx->source_name, name, strlen(name) + 1);
        tx->source_id = *id;
    }
    return status;
}
