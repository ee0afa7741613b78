#include <stdio.h>
#include <stdlib.h>

#include "db/guard.h"
#include "db/id.h"
#include "db/scan.h"

/* The tally of an index; NULL: no memory. Files of one index mostly stand together. */
static struct scan_index *tally_of(struct scan *s, const struct registry_index *index)
{
    for (size_t i = s->index_count; i-- > 0;)
        if (s->indexes[i].index == index)
            return &s->indexes[i];
    if (s->index_count == s->index_capacity) {
        size_t capacity = s->index_capacity ? s->index_capacity * 2 : 4;
        struct scan_index *indexes = realloc(s->indexes, capacity * sizeof *indexes);
        if (!indexes)
            return NULL;
        s->indexes = indexes;
        s->index_capacity = capacity;
    }
    s->indexes[s->index_count] = (struct scan_index){.index = index};
    return &s->indexes[s->index_count++];
}

static enum catalogue_status count_loss(struct scan *s)
{
    struct put_row row;
    enum catalogue_status status = scan_find_loss(s, &row);
    if (status != CATALOGUE_OK || !row.found)
        return status;
    struct scan_index *tally =
        tally_of(s, registry_index_by_id(s->registry, id_address_index(row.address)));
    if (!tally)
        return CATALOGUE_NO_MEMORY;
    tally->removed++;
    tally->change--;
    s->removals++;
    return CATALOGUE_OK;
}

/* Room is not looked for: what comes is counted as if the site had enough. Where it has not,
 * scan_guard_settle still sees what came of it. */
static enum catalogue_status count_gain(struct scan *s)
{
    bool foreign;
    if (s->file->state != SOURCE_FILE_LISTED)
        return CATALOGUE_OK;
    enum catalogue_status status = scan_place(s, &foreign);
    if (status != CATALOGUE_OK || s->put.code != RULE_OK || foreign || s->put.from == s->put.index)
        return status;
    struct scan_index *to = tally_of(s, s->put.index);
    if (!to)
        return CATALOGUE_NO_MEMORY;
    to->change++;
    if (s->put.from) {
        struct scan_index *from = tally_of(s, s->put.from);
        if (!from)
            return CATALOGUE_NO_MEMORY;
        from->change--;
    }
    return CATALOGUE_OK;
}

/* How much the index has now, before the first write. */
static enum catalogue_status measure(struct scan *s)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; status == CATALOGUE_OK && i < s->index_count; i++) {
        struct scan_index *tally = &s->indexes[i];
        struct fill_index *fill;
        status = fill_index(s->tx, tally->index->site_id, tally->index->id, &fill);
        if (status != CATALOGUE_OK)
            break;
        tally->before = fill->entries;
        status = guard_peak(s->tx, fill, &tally->peak);
    }
    return status;
}

/* The rule is held to each index, but what max_removed approves is the whole scan. */
static struct guard_case case_of(const struct scan *s, const struct scan_index *tally,
                                 uint64_t after)
{
    return (struct guard_case){.peak = tally->peak,
                               .before = tally->before,
                               .after = after,
                               .removed = s->removals,
                               .max_removed = s->change->max_removed};
}

static bool passes(struct scan *s, struct change_result *verdict)
{
    for (size_t i = 0; i < s->index_count; i++) {
        const struct scan_index *tally = &s->indexes[i];
        struct guard_case guard =
            case_of(s, tally, (uint64_t)((int64_t)tally->before + tally->change));
        if (tally->removed > 0 && !guard_judge(s->tx, &guard, verdict))
            return false;
    }
    return true;
}

enum catalogue_status scan_guard_ask(struct scan *s)
{
    struct change_result verdict = {.status = CATALOGUE_OK};
    enum catalogue_status status = scan_read(s, count_loss, false);
    if (status != CATALOGUE_OK || s->result->status != CATALOGUE_OK || s->removals == 0)
        return status;
    status = measure(s);
    if (status != CATALOGUE_OK || passes(s, &verdict))
        return status;
    /* Maybe as much comes as goes: files that were renamed. */
    status = scan_read(s, count_gain, false);
    if (status != CATALOGUE_OK || s->result->status != CATALOGUE_OK)
        return status;
    status = measure(s);
    if (status != CATALOGUE_OK || passes(s, &verdict))
        return status;
    s->hold = true;
    s->result->would_remove = s->removals;
    snprintf(s->result->detail, sizeof s->result->detail, "%s", verdict.detail);
    return CATALOGUE_OK;
}

enum catalogue_status scan_guard_settle(struct scan *s)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; !s->hold && status == CATALOGUE_OK && i < s->index_count; i++) {
        const struct scan_index *tally = &s->indexes[i];
        struct fill_index *fill;
        if (tally->removed == 0)
            continue;
        status = fill_index(s->tx, tally->index->site_id, tally->index->id, &fill);
        if (status != CATALOGUE_OK)
            break;
        struct guard_case guard = case_of(s, tally, fill->entries);
        /* What was to come found no room, so that the end is not the one that was judged. */
        if (!guard_judge(s->tx, &guard, s->result))
            break;
        if (guard_approved(s->tx, &guard)) {
            fill_index_dirty(s->tx, fill);
            fill->peak_reset = true;
        }
    }
    return status;
}
