/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Dropping what a removed index left, a bounded batch at a time. */
#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "server/base/clock.h"

/* Nothing of it is left but its row and those of its pages, which /v1/changes goes on telling. */
static enum catalogue_status finish(struct tx *tx, int64_t index_id)
{
    enum catalogue_status status = tx_run(tx, ST_PURGE_SEGMENTS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_PEAKS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_ROBOTS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_DONE, index_id);
    return status;
}

/* A removal can be undone for so long, or as long as the history is kept where that is less. */
#define PURGE_AFTER_SECONDS (24 * 60 * 60)

static int64_t purge_wait(const struct tx *tx)
{
    uint64_t keep = tx->options->history_keep_ms / 1000;
    return keep < PURGE_AFTER_SECONDS ? (int64_t)keep : PURGE_AFTER_SECONDS;
}

int64_t apply_purge_date(const struct tx *tx, int64_t seconds)
{
    return tx_clock(tx) + seconds - purge_wait(tx);
}

enum catalogue_status apply_purge_find(struct tx *tx, int64_t *index_id)
{
    return tx_number(tx, ST_PURGE_FIND, 0, index_id, tx_clock(tx) - purge_wait(tx));
}

/* Page URLs with many images take much longer than others, so that PURGE_MS bounds a step as well.
 */
#define PURGE_MS        50
#define PURGE_TURN_ROWS 100

static enum catalogue_status purge_rows(struct tx *tx, int64_t first, int64_t end,
                                        uint64_t *removed)
{
    int64_t last, until_ms = clock_now_ms() + PURGE_MS;
    enum catalogue_status status;
    do {
        status = tx_number(tx, ST_PURGE_LAST, -1, &last, first, end, PURGE_TURN_ROWS);
        if (status == CATALOGUE_OK && last >= 0)
            status = tx_run(tx, ST_PURGE_ENTRIES, first, last);
        if (status == CATALOGUE_OK && last >= 0)
            *removed += (uint64_t)sqlite3_changes64(tx->db);
    } while (status == CATALOGUE_OK && last >= 0 && *removed < PURGE_ROWS &&
             clock_now_ms() < until_ms);
    return status;
}

enum catalogue_status apply_purge(struct tx *tx, struct change_result *result, bool *more)
{
    *more = false;
    int64_t index_id;
    enum catalogue_status status = apply_purge_find(tx, &index_id);
    if (status != CATALOGUE_OK || index_id == 0)
        return status;
    *more = true;
    int64_t first = id_address(index_id, 0), end = id_address(index_id, UINT32_MAX);
    /* From its first row on the removal cannot be undone, whatever the clock says. */
    status = tx_run(tx, ST_PURGE_BEGIN, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_LOCS, first, end, PURGE_ROWS);
    if (status == CATALOGUE_OK && sqlite3_changes64(tx->db) == 0)
        status = tx_run(tx, ST_PURGE_AGES, first, end, PURGE_ROWS);
    if (status != CATALOGUE_OK || sqlite3_changes64(tx->db) > 0)
        return status;
    status = purge_rows(tx, first, end, &result->removed);
    return status == CATALOGUE_OK && result->removed == 0 ? finish(tx, index_id) : status;
}
