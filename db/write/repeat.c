/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Stores and finds the results of requests with an Idempotency-Key. */
#include "db/write/repeat.h"

#include <string.h>

#include "db/write/apply/apply.h"
#include "db/write/commit.h"

#define PURGE_BATCH 500 /* in one transaction */
#define HASH_BYTES  32

static bool has_key(const struct change *change)
{
    return change->key != NULL && !change->dry_run;
}

/* Loads the stored outcome from the current row. */
static enum catalogue_status load_stored(sqlite3_stmt *row, const struct change *change,
                                         struct change_result *result)
{
    const void *hash = sqlite3_column_blob(row, 0);
    if (hash == NULL || sqlite3_column_bytes(row, 0) != HASH_BYTES)
        return hash != NULL ? CATALOGUE_CORRUPT : CATALOGUE_NO_MEMORY;
    if (memcmp(hash, change->key_sha256, HASH_BYTES) != 0) {
        result_decline(result, CATALOGUE_REFUSED,
                       "this Idempotency-Key was already used for a different request: the method, "
                       "target or body differs");
        result->key_reused = true;
        return CATALOGUE_OK;
    }
    const char *outcome = sqlite3_column_blob(row, 1);
    if (outcome != NULL)
        str_append(&result->outcome, outcome, (size_t)sqlite3_column_bytes(row, 1));
    result->repeated = true;
    return outcome != NULL && !result->outcome.failed ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

enum catalogue_status repeat_find(struct tx *tx, const struct change *change,
                                  struct change_result *result)
{
    if (!has_key(change))
        return CATALOGUE_OK;
    if (change->key_sha256 == NULL) {
        result_decline(result, CATALOGUE_NO_MEMORY, "the request's hash is missing");
        return CATALOGUE_OK;
    }
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, ST_REPEAT_FIND, &row, change->bearer_id,
                                            change->key, tx->now - REPEAT_SECONDS);
    if (status == CATALOGUE_OK && row != NULL)
        status = load_stored(row, change, result);
    sqlite3_reset(row);
    return status;
}

static enum catalogue_status add(struct tx *tx, const struct change *change,
                                 const struct str *outcome)
{
    /* an expired one */
    enum catalogue_status status = tx_run(tx, ST_REPEAT_DROP, change->bearer_id, change->key);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_REPEAT_ADD, change->bearer_id, change->key,
                        sql_bytes(change->key_sha256, HASH_BYTES), tx->now,
                        sql_bytes(outcome->data, outcome->len));
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_REPEAT_BOUND, change->bearer_id, REPEAT_ROWS);
    return status == CATALOGUE_OK ? tx_run(tx, ST_REPEAT_SHARE, change->bearer_id, REPEAT_BYTES)
                                  : status;
}

enum catalogue_status repeat_keep(struct tx *tx, const struct change *change,
                                  struct change_result *result)
{
    if (!has_key(change) || change->outcome == NULL || result->status != CATALOGUE_OK ||
        result->repeated)
        return CATALOGUE_OK;
    const struct registry *registry;
    enum catalogue_status status = tx_registry(tx, &registry);
    if (status != CATALOGUE_OK)
        return status;
    struct str outcome = STR_INIT;
    result->revision = tx->revision + (tx->changed ? 1 : 0); /* as tx_end_change will return */
    bool made = change->outcome(change->context, result, registry, &outcome);
    if (!made || outcome.failed)
        status = CATALOGUE_NO_MEMORY;
    else if (outcome.len > 0 && outcome.len <= OUTCOME_MAX_BYTES)
        status = add(tx, change, &outcome);
    str_done(&outcome);
    return status;
}

/* When the oldest outcome was stored; 0: none, or a failure. */
static int64_t oldest(struct tx *tx)
{
    int64_t at = 0;
    return tx_number(tx, ST_REPEAT_OLDEST, 0, &at) == CATALOGUE_OK ? at : 0;
}

bool repeat_purge_is_due(struct tx *tx)
{
    int64_t at = oldest(tx);
    return at != 0 && at <= tx_clock(tx) - REPEAT_SECONDS;
}

enum catalogue_status repeat_purge(struct tx *tx)
{
    return tx_run(tx, ST_REPEAT_PURGE, tx->now - REPEAT_SECONDS, PURGE_BATCH);
}
