#include "db/write/tx.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/file/connection.h"
#include "db/history/recorder.h"
#include "db/read/registry_store.h"
#include "db/shared/effects.h"
#include "db/write/occupancy.h"

bool tx_init(struct tx *tx, const struct catalogue_options *options, sqlite3 *db)
{
    memset(tx, 0, sizeof *tx);
    tx->options = options;
    tx->db = db;
    tx->registry_stale = true;
    statements_init(&tx->statements, db);
    tx->occupancy = occupancy_new();
    /* Prepared in time: a rollback must not need memory where memory has run out. */
    if (options->history_keep_ms > 0) {
        tx->recorder = recorder_new(db);
        if (!tx->recorder)
            return false;
    }
    return tx->occupancy != NULL && statements_get(&tx->statements, ST_ROLLBACK) != NULL;
}

void tx_done(struct tx *tx)
{
    statements_done(&tx->statements);
    recorder_free(tx->recorder);
    registry_unref(tx->registry);
    occupancy_free(tx->occupancy);
    memset(tx, 0, sizeof *tx);
}

/* Where a text cannot be read for lack of memory the engine ends the transaction, and says so to
 * nobody who does not ask: what came after it would stand by itself, one statement at a time. */
static bool was_ended(const struct tx *tx)
{
    return tx->open && sqlite3_get_autocommit(tx->db);
}

sqlite3_stmt *tx_statement(struct tx *tx, enum statement which)
{
    struct tx_shared *shared = tx->shared;
    if (shared) {
        if (atomic_load_explicit(&shared->abandoned, memory_order_relaxed) &&
            which != ST_ROLLBACK && which != ST_COMMIT)
            return NULL;
        atomic_fetch_add_explicit(&shared->statements, 1, memory_order_relaxed);
    }
    if (was_ended(tx) && which != ST_ROLLBACK)
        return NULL;
    if (tx->log && effects_status(tx->log->effects) != CATALOGUE_OK && which != ST_ROLLBACK)
        return NULL;
    if (recorder_is_full(tx->recorder) && which != ST_ROLLBACK &&
        recorder_relieve(tx->recorder, tx) != CATALOGUE_OK)
        return NULL;
    return statements_get(&tx->statements, which);
}

enum catalogue_status tx_failure(struct tx *tx)
{
    enum catalogue_status status = recorder_status(tx->recorder);
    if (status == CATALOGUE_OK && tx->log)
        status = effects_status(tx->log->effects);
    if (status == CATALOGUE_OK)
        status = connection_status(sqlite3_extended_errcode(tx->db));
    if (status == CATALOGUE_OK)
        status = was_ended(tx) ? CATALOGUE_NO_MEMORY : CATALOGUE_UNAVAILABLE;
    return status;
}

static sqlite3_stmt *bind_numbers(struct tx *tx, enum statement which, const int64_t numbers[],
                                  size_t count)
{
    sqlite3_stmt *statement = tx_statement(tx, which);
    assert(!statement || (size_t)sqlite3_bind_parameter_count(statement) == count);
    for (size_t i = 0; statement && i < count; i++)
        sqlite3_bind_int64(statement, (int)i + 1, numbers[i]);
    return statement;
}

enum catalogue_status tx_run_with(struct tx *tx, enum statement which, const int64_t numbers[],
                                  size_t count)
{
    sqlite3_stmt *statement = bind_numbers(tx, which, numbers, count);
    return statement ? statement_run(statement) : tx_failure(tx);
}

enum catalogue_status tx_number_with(struct tx *tx, enum statement which, int64_t missing,
                                     int64_t *out, const int64_t numbers[], size_t count)
{
    sqlite3_stmt *statement = bind_numbers(tx, which, numbers, count);
    return statement ? statement_number(statement, missing, out) : tx_failure(tx);
}

/* Keeps what the engine said, before the next call of it. */
static void record_why(struct tx *tx)
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
    if (status == CATALOGUE_OK && found && !epoch) /* it is never NULL; as the stamp below */
        status = CATALOGUE_NO_MEMORY;
    if (status == CATALOGUE_OK && (!epoch || strlen(epoch) >= sizeof tx->epoch))
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
        snprintf(tx->stamp, sizeof tx->stamp, "%s", newest ? newest : "");
        if (!newest) /* it is never NULL; and the engine has ended the transaction */
            status = CATALOGUE_NO_MEMORY;
        tx->history_from = (uint64_t)sqlite3_column_int64(row, 6);
        tx->history_bytes = sqlite3_column_int64(row, 7);
        if (!same_file || tx->registry_of != tx->registry_revision)
            tx->registry_stale = true;
    }
    sqlite3_reset(row);
    return status;
}

/* So far apart clocks that are kept right may seem to be. */
#define CLOCK_SLACK_S 5

static int64_t own_clock(const struct tx *tx)
{
    return tx->options->clock ? tx->options->clock() : (int64_t)time(NULL);
}

int64_t tx_clock(const struct tx *tx)
{
    return own_clock(tx) + tx->clock_offset;
}

static void look_at_clock(struct tx *tx)
{
    int64_t there = tx->log ? tx->log->clock(tx->log->context) : 0;
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

enum catalogue_status tx_look(struct tx *tx)
{
    return sqlite3_get_autocommit(tx->db) ? read_catalogue(tx) : CATALOGUE_OK;
}

enum catalogue_status tx_begin(struct tx *tx)
{
    if (!sqlite3_get_autocommit(tx->db))
        tx_rollback(tx); /* the last one could not be, for lack of memory */
    enum catalogue_status status = run_plain(tx, ST_BEGIN);
    if (status != CATALOGUE_OK) {
        record_why(tx);
        return status;
    }
    tx->open = true;
    if (tx->log)
        effects_begin(tx->log->effects);
    status = read_catalogue(tx);
    if (status != CATALOGUE_OK) {
        tx_rollback(tx);
        return status;
    }
    look_at_clock(tx);
    tx->now = tx_clock(tx); /* whatever the last transaction's clock said */
    tx->stamped_at = 0;
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
    registry_unref(tx->registry); /* it may hold what was never committed */
    tx->registry = NULL;
    tx->source_id = 0;
    tx->epoch[0] = '\0';
}

void tx_rollback(struct tx *tx)
{
    record_why(tx);
    tx->open = false;
    if (tx->log)
        effects_stop(tx->log->effects);
    /* Some engine errors have rolled back already. */
    if (!sqlite3_get_autocommit(tx->db))
        run_plain(tx, ST_ROLLBACK);
    recorder_drop(tx->recorder);
    tx_forget(tx);
    tx->revision = tx->found_revision;
    if (tx->log)
        tx->log->drop(tx->log->context);
}

bool tx_gives_way(const struct tx *tx)
{
    return tx->gives_way && tx->gives_way(tx->pressed_context);
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

    int64_t lineage;
    sqlite3_randomness(sizeof lineage, &lineage);
    if (!tx->recorder)
        tx->history_from = tx->revision + 1;
    /* Who shares the catalogue is known by the log: the newest stamp is enough. */
    status = tx_run(tx, ST_CATALOGUE_WRITE, (sqlite3_int64)tx->revision,
                    (sqlite3_int64)registry_revision, tx->serial, now, lineage,
                    (sqlite3_int64)tx->history_from, tx->history_bytes,
                    16 * (sqlite3_int64)(tx->log ? 1 : TX_LINEAGE));
    if (status != CATALOGUE_OK)
        return status;
    snprintf(tx->stamp, sizeof tx->stamp, "%016" PRIx64, (uint64_t)lineage);
    tx->registry_revision = registry_revision;
    tx->changed_at = now;
    /* The writer reads sites, hosts and indexes of it, never its list of pages. */
    tx->registry_of = registry_revision;
    return CATALOGUE_OK;
}

enum catalogue_status tx_commit(struct tx *tx)
{
    bool changed = tx_end_change(tx) != tx->found_revision;
    enum catalogue_status status = changed ? stamp(tx) : CATALOGUE_OK;
    if (status == CATALOGUE_OK && tx->log)
        status = tx->log->append(tx->log->context, tx);
    bool is_everybodys = status == CATALOGUE_OK && tx->log && effects_are_any(tx->log->effects);
    if (status == CATALOGUE_OK)
        status = run_plain(tx, ST_COMMIT);
    if (status == CATALOGUE_OK && !sqlite3_get_autocommit(tx->db))
        status = CATALOGUE_UNAVAILABLE;
    if (status != CATALOGUE_OK && is_everybodys) /* whatever is missing here, it was applied */
        status = CATALOGUE_OUTCOME_UNKNOWN;
    if (status != CATALOGUE_OK) {
        tx_rollback(tx);
        return status;
    }
    tx->open = false;
    occupancy_settle(tx->occupancy);
    return CATALOGUE_OK;
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
