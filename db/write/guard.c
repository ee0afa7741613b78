/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Compares the number of entries after a change with the peak of the last days, or with the part
 * that the change replaces. */
#include "db/write/guard.h"

#include <inttypes.h>
#include <stdio.h>

#include "db/tx/tx.h"
#include "server/base/text.h"

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
             c->removed, nouns(c), c->after, c->peak, PEAK_DAYS, c->removed);
    return false;
}

/* Checks one index that lost entries. The list is alone in its transaction, so that nothing else
 * has touched the index. */
static enum catalogue_status check_moves(struct tx *tx, const struct change *change,
                                         struct occupancy_index *index,
                                         struct change_result *result)
{
    struct guard_case c = {.before = index->high,
                           .after = index->entries,
                           .removed = result->removed + result->moved,
                           .max_removed = change->max_removed};
    const struct registry *r;
    enum catalogue_status status = occupancy_peak(tx, index, &c.peak);
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
             index->moved, plural(index->moved, "entry", "entries"),
             named != NULL ? named->path : "", c.after, c.removed);
    return CATALOGUE_OK;
}

bool guard_moves(struct tx *tx, const struct change *change, struct change_result *result,
                 enum catalogue_status *status)
{
    bool single = result->moved == 1;
    *status = CATALOGUE_OK;
    for (struct occupancy_index *i = tx->occupancy->dirty; i != NULL; i = i->next_dirty) {
        if (i->moved > 0 && single)
            occupancy_single_removal(i);
        else if (i->moved > 0 && *status == CATALOGUE_OK && result->status == CATALOGUE_OK)
            *status = check_moves(tx, change, i, result);
    }
    return *status == CATALOGUE_OK && result->status == CATALOGUE_OK;
}
