/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The peaks of an index, a row for each of the last days: what the shrink guard (guard.h) compares
 * with. A day's peak is the most entries that the index had at a transaction's end; a single
 * removal lowers all of them, an approved set starts them again. */
#include "db/tx/tx.h"
#include "db/write/occupancy.h"

#define SECONDS_PER_DAY 86400

static int64_t day_of(int64_t now)
{
    return now / SECONDS_PER_DAY;
}

/* The last day that no longer counts. */
static int64_t day_past(int64_t now)
{
    return day_of(now) - PEAK_DAYS - 1;
}

enum catalogue_status occupancy_peak(struct tx *tx, const struct occupancy_index *index,
                                     uint64_t *peak)
{
    int64_t highest;
    enum catalogue_status status =
        tx_number(tx, ST_PEAK_READ, 0, &highest, index->id, day_past(tx->now));
    if (status != CATALOGUE_OK)
        return status;
    *peak = highest > 0 ? (uint64_t)highest : 0;
    if (index->dirty) {
        /* Single removals of this very transaction are not yet in the file. */
        *peak -= index->singles < *peak ? index->singles : *peak;
        if (index->high > *peak)
            *peak = index->high;
    }
    if (index->entries > *peak)
        *peak = index->entries;
    return CATALOGUE_OK;
}

void occupancy_single_removal(struct occupancy_index *index)
{
    index->singles++;
    if (index->high > 0)
        index->high--;
    if (index->high < index->entries)
        index->high = index->entries;
}

static enum catalogue_status lower(struct tx *tx, const struct occupancy_index *index, int64_t by)
{
    return tx_run(tx, ST_PEAK_LOWER, index->id, by, (sqlite3_int64)index->entries);
}

/* Peaks of days to come, noted while the clock was ahead, count as today's: they would hold for as
 * long as it takes until then. */
static enum catalogue_status settle_future(struct tx *tx, const struct occupancy_index *index,
                                           int64_t today, uint64_t *high)
{
    int64_t highest;
    enum catalogue_status status = tx_number(tx, ST_PEAK_READ, -1, &highest, index->id, today);
    if (status != CATALOGUE_OK || highest < 0)
        return status;
    if ((uint64_t)highest > *high)
        *high = (uint64_t)highest;
    return tx_run(tx, ST_PEAK_FUTURE_DROP, index->id, today);
}

enum catalogue_status occupancy_write_peak(struct tx *tx, const struct occupancy_index *index,
                                           int64_t changed_at)
{
    enum catalogue_status status = CATALOGUE_OK;
    if (index->peak_reset)
        status = lower(tx, index, INT32_MAX); /* more than an index can hold */
    else if (index->singles > 0)
        status = lower(tx, index, (int64_t)index->singles);
    if (status != CATALOGUE_OK)
        return status;

    uint64_t high = index->entries;
    if (!index->peak_reset && index->high > high)
        high = index->high;
    status = settle_future(tx, index, day_of(changed_at), &high);
    if (status != CATALOGUE_OK)
        return status;
    status = tx_run(tx, ST_PEAK_RAISE, index->id, day_of(changed_at), (sqlite3_int64)high);
    if (status != CATALOGUE_OK)
        return status;

    return tx_run(tx, ST_PEAK_FORGET, index->id, day_past(changed_at));
}
