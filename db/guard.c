#include "db/guard.h"

#include <inttypes.h>
#include <stdio.h>

#include "db/tx.h"
#include "server/rules/plural.h"

#define SECONDS_PER_DAY 86400

/* The last day that no longer counts. */
static int64_t day_past(int64_t now)
{
    return now / SECONDS_PER_DAY - GUARD_DAYS - 1;
}

enum catalogue_status guard_peak(struct tx *tx, const struct fill_index *index, uint64_t *peak)
{
    sqlite3_stmt *read = tx_statement(tx, ST_PEAK_READ);
    if (!read)
        return tx_failure(tx);
    sqlite3_bind_int64(read, 1, index->id);
    sqlite3_bind_int64(read, 2, day_past(tx->now));
    int64_t highest;
    enum catalogue_status status = statement_number(read, 0, &highest);
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

static bool too_much(const struct tx *tx, const struct guard_case *c)
{
    uint32_t percent = tx->options->shrink_percent;
    if (percent == 0 || c->after >= c->before)
        return false;
    if (c->after == 0)
        return true;
    return c->peak > c->after && (c->peak - c->after) * 100 > (uint64_t)percent * c->peak;
}

static bool within_approval(const struct guard_case *c)
{
    return c->max_removed >= 0 && (uint64_t)c->max_removed >= c->removed;
}

bool guard_approved(const struct tx *tx, const struct guard_case *c)
{
    return too_much(tx, c) && within_approval(c);
}

bool guard_judge(const struct tx *tx, const struct guard_case *c, struct change_result *result)
{
    if (!too_much(tx, c) || within_approval(c))
        return true;
    result->status = CATALOGUE_REFUSED;
    result->code = RULE_SHRINK_GUARD;
    result->would_remove = c->removed;
    snprintf(result->detail, sizeof result->detail,
             "would remove %" PRIu64 " %s and leave %" PRIu64 ", where there were up to %" PRIu64
             " in the last %d days; max_removed=%" PRIu64 " allows it",
             c->removed, plural(c->removed, "entry", "entries"), c->after, c->peak, GUARD_DAYS,
             c->removed);
    return false;
}

void guard_single_removal(struct fill_index *index)
{
    index->singles++;
    if (index->high > 0)
        index->high--;
    if (index->high < index->entries)
        index->high = index->entries;
}

static enum catalogue_status lower(struct tx *tx, const struct fill_index *index, int64_t by)
{
    sqlite3_stmt *row = tx_statement(tx, ST_PEAK_LOWER);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, index->id);
    sqlite3_bind_int64(row, 2, by);
    sqlite3_bind_int64(row, 3, (sqlite3_int64)index->entries);
    return statement_run(row);
}

enum catalogue_status guard_write_peak(struct tx *tx, const struct fill_index *index,
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
    sqlite3_stmt *raise = tx_statement(tx, ST_PEAK_RAISE);
    if (!raise)
        return tx_failure(tx);
    sqlite3_bind_int64(raise, 1, index->id);
    sqlite3_bind_int64(raise, 2, changed_at / SECONDS_PER_DAY);
    sqlite3_bind_int64(raise, 3, (sqlite3_int64)high);
    status = statement_run(raise);
    if (status != CATALOGUE_OK)
        return status;

    sqlite3_stmt *forget = tx_statement(tx, ST_PEAK_FORGET);
    if (!forget)
        return tx_failure(tx);
    sqlite3_bind_int64(forget, 1, index->id);
    sqlite3_bind_int64(forget, 2, day_past(changed_at));
    return statement_run(forget);
}
