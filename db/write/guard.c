#include "db/write/guard.h"

#include <inttypes.h>
#include <stdio.h>

#include "db/write/tx.h"
#include "server/base/text.h"

#define SECONDS_PER_DAY 86400

static int64_t day_of(int64_t now)
{
    return now / SECONDS_PER_DAY;
}

/* The last day that no longer counts. */
static int64_t day_past(int64_t now)
{
    return day_of(now) - GUARD_DAYS - 1;
}

enum catalogue_status guard_peak(struct tx *tx, const struct occupancy_index *index, uint64_t *peak)
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

static bool too_much(const struct tx *tx, const struct guard_case *c)
{
    uint32_t percent = tx->options->shrink_percent;
    if (c->after >= c->before)
        return false;
    if (percent == 0 || c->after == 0)
        return c->after == 0 && (percent != 0 || c->of_share);
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

static const char *nouns(const struct guard_case *c)
{
    return c->of_urlset ? plural(c->removed, "page URL", "page URLs")
                        : plural(c->removed, "entry", "entries");
}

bool guard_check(const struct tx *tx, const struct guard_case *c, struct change_result *result)
{
    if (!too_much(tx, c) || within_approval(c))
        return true;
    result->status = CATALOGUE_REFUSED;
    result->code = RULE_SHRINK_GUARD;
    result->would_remove = c->removed;
    if (c->of_share) {
        snprintf(result->detail, sizeof result->detail,
                 "would remove %" PRIu64 " %s and leave %" PRIu64 " of the %" PRIu64
                 " that the list replaces; max_removed=%" PRIu64 " allows it",
                 c->removed, nouns(c), c->after, c->before, c->removed);
        return false;
    }
    snprintf(result->detail, sizeof result->detail,
             "would remove %" PRIu64 " %s and leave %" PRIu64 ", where there were up to %" PRIu64
             " in the last %d days; max_removed=%" PRIu64 " allows it",
             c->removed, nouns(c), c->after, c->peak, GUARD_DAYS, c->removed);
    return false;
}

/* Nothing else has touched the index: a list is alone in its transaction, and does not take what it
 * has brought away again unless it names it twice. */
static enum catalogue_status check_moves(struct tx *tx, const struct change *change,
                                         struct occupancy_index *index,
                                         struct change_result *result)
{
    struct guard_case c = {.before = index->high,
                           .after = index->entries,
                           .removed = result->removed + result->moved,
                           .max_removed = change->max_removed};
    const struct registry *r;
    enum catalogue_status status = guard_peak(tx, index, &c.peak);
    if (status == CATALOGUE_OK)
        status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    if (guard_check(tx, &c, result)) {
        index->peak_reset = index->peak_reset || guard_approved(tx, &c);
        return CATALOGUE_OK;
    }
    const struct registry_index *named = registry_index_by_id(r, index->id);
    snprintf(result->detail, sizeof result->detail,
             "would move %" PRIu64 " %s out of %.100s and leave %" PRIu64
             " there; max_removed=%" PRIu64 " allows it",
             index->moved, plural(index->moved, "entry", "entries"), named ? named->path : "",
             c.after, c.removed);
    return CATALOGUE_OK;
}

bool guard_moves(struct tx *tx, const struct change *change, struct change_result *result,
                 enum catalogue_status *status)
{
    bool single = result->moved == 1;
    *status = CATALOGUE_OK;
    for (struct occupancy_index *i = tx->occupancy->dirty; i; i = i->next_dirty) {
        if (i->moved > 0 && single)
            guard_single_removal(i);
        else if (i->moved > 0 && *status == CATALOGUE_OK && result->status == CATALOGUE_OK)
            *status = check_moves(tx, change, i, result);
    }
    return *status == CATALOGUE_OK && result->status == CATALOGUE_OK;
}

void guard_single_removal(struct occupancy_index *index)
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

enum catalogue_status guard_write_peak(struct tx *tx, const struct occupancy_index *index,
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
