/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies a split step by step: the difference between a urlset and the file that is split into it.
 * The writer's thread.
 *
 * The caller has validated the file as a whole and found what is removed and what is added
 * (server/sources/split); the rows of both are in one spool, removals first, so that additions
 * reuse their positions. The first step checks the whole split with the shrink guard; each step
 * then applies a bounded number of rows for a bounded time. Until the last step the table split has
 * the urlset, so that the next split continues an interrupted one, as the same group of the
 * history. */
#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/guard.h"
#include "server/base/clock.h"

/* Fraction of the time that other writes may wait. */
#define STEP_SHARE 4

uint64_t apply_split_rows = SPLIT_STEP_ROWS;

struct split {
    struct tx *tx;
    const struct change *change;
    const struct change_split *split;
    struct change_result *result;
    const struct registry_index *urlset;
    int64_t owner; /* 0: it owns nothing yet */
    int64_t until_ms;
    struct put put;
    bool was_new; /* the row before */
};

static enum catalogue_status remove_url(struct split *s, const struct entry *entry)
{
    struct put_row row;
    enum catalogue_status status = put_find(s->tx, list_scope(s->urlset), entry->loc, &row);
    if (status != CATALOGUE_OK || !row.found || row.source != s->owner || s->owner == 0)
        return status;
    s->tx->changed = true;
    s->result->removed++;
    return put_release(s->tx, s->urlset, &row, entry->loc);
}

/* Registers the row after a lookup; or, with `expect_new`, without one: PUT_KNOWN if it exists. */
static enum catalogue_status try_in(struct split *s, bool expect_new)
{
    struct put *put = &s->put;
    put->expect_new = expect_new;
    put->outcome = PUT_UNCHANGED;
    enum catalogue_status status = entry_locate(s->tx, put);
    if (status != CATALOGUE_OK || put->code != RULE_OK ||
        (put->from && put->row.source != s->owner)) /* another source's row stays */
        return status;
    status = put_room(s->tx, put);
    return status == CATALOGUE_OK && put->code == RULE_OK ? put_write(s->tx, put) : status;
}

/* After a new row the next one is mostly new, too: trying to insert it costs less than a lookup. */
static enum catalogue_status put_in(struct split *s, const struct entry *entry)
{
    struct put *put = &s->put;
    put->entry = entry;
    enum catalogue_status status = try_in(s, s->was_new);
    if (status == CATALOGUE_OK && put->expect_new &&
        (put->code != RULE_OK || put->outcome == PUT_KNOWN))
        status = try_in(s, false);
    s->was_new = put->outcome == PUT_CREATED;
    if (status == CATALOGUE_OK && put->code != RULE_OK)
        status = reject_put(s->tx, s->change, s->result, put);
    else if (status == CATALOGUE_OK)
        count_put(s->change, s->result, put);
    return status;
}

/* The first step: checks the whole split. */
static enum catalogue_status check_guard(struct split *s)
{
    const struct change *change = s->change;
    struct occupancy_index *occupancy;
    enum catalogue_status status =
        occupancy_index(s->tx, s->urlset->site_id, s->urlset->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    struct guard_case guard = {.before = occupancy->entries,
                               .removed = s->split->goes,
                               .max_removed = change->max_removed,
                               .of_urlset = true};
    guard.after = guard.before + s->split->comes - s->split->goes;
    status = occupancy_peak(s->tx, occupancy, &guard.peak);
    if (status == CATALOGUE_OK && s->split->goes > 0 && guard_check(s->tx, &guard, s->result) &&
        guard_approved(s->tx, &guard)) {
        occupancy_index_dirty(s->tx, occupancy);
        occupancy->peak_reset = true;
    }
    return status;
}

static enum catalogue_status prepare(struct split *s)
{
    const struct registry *registry;
    const struct change *change = s->change;
    enum catalogue_status status = tx_registry(s->tx, &registry);
    if (status != CATALOGUE_OK)
        return status;
    s->urlset = registry_list_by_name(registry, change->index_name, LIST_URLSET, NULL);
    if (!s->urlset || !grant_has_site(&change->grant, s->urlset->site_id)) {
        result_refuse(s->result, RULE_URLSET_UNKNOWN, "urlset");
        return CATALOGUE_OK;
    }
    if (result_frozen(s->result, change, registry_freeze(registry, s->urlset)))
        return CATALOGUE_OK;
    return tx_source(s->tx, change->source, true, &s->owner);
}

/* Applies the rows of one step. */
static enum catalogue_status apply_rows(struct split *s)
{
    struct entry entry;
    uint64_t done = 0;
    int more = 1;
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK && done < apply_split_rows &&
           (more = spool_next(s->change->rows, &entry)) == 1) {
        status = entry.gone ? remove_url(s, &entry) : put_in(s, &entry);
        if (++done % APPLY_LOOK == 0 && (clock_now_ms() > s->until_ms || tx_should_yield(s->tx)))
            break;
    }
    if (more < 0)
        reject_stream(s->result);
    s->result->more = status == CATALOGUE_OK && more == 1 && s->result->status == CATALOGUE_OK;
    return status;
}

/* Records the group of the step. */
static enum catalogue_status record_step(struct split *s)
{
    struct tx *tx = s->tx;
    struct change_result *result = s->result;
    int64_t open = 0, revision = (int64_t)tx->revision + 1;
    enum catalogue_status status = tx_number(tx, ST_SPLIT_OPEN, 0, &open, s->urlset->id);
    if (status != CATALOGUE_OK || (!result->more && open == 0))
        return status;
    if (!tx->changed)
        return result->more ? status : tx_run(tx, ST_SPLIT_END, s->urlset->id);
    if (open == 0) {
        open = revision;
        status = tx_run(tx, ST_SPLIT_BEGIN, s->urlset->id, open);
        if (status == CATALOGUE_OK)
            status = tx_run(tx, ST_HISTORY_STEPS_TIDY, (int64_t)tx->history_from);
    }
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_HISTORY_STEP_ADD, open, revision);
    if (status == CATALOGUE_OK && !result->more)
        status = tx_run(tx, ST_SPLIT_END, s->urlset->id);
    result->group = (uint64_t)open;
    return status;
}

enum catalogue_status apply_split(struct tx *tx, const struct change *change,
                                  const struct change_split *split, struct change_result *result,
                                  bool *keep)
{
    struct split s = {.tx = tx,
                      .change = change,
                      .split = split,
                      .result = result,
                      .until_ms = clock_now_ms() + tx->options->write_timeout_ms / STEP_SHARE,
                      .put = {.list = LIST_URLSET,
                              .index_name = change->index_name,
                              .source = change->source,
                              .grant = change->grant,
                              .normalised = true,
                              .of_set = true}};
    bool first = !result->more;
    result->more = false;
    enum catalogue_status status = prepare(&s);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK && first) {
        spool_rewind(change->rows);
        status = check_guard(&s);
    }
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = apply_rows(&s);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = record_step(&s);
    if (status != CATALOGUE_OK)
        return status;
    finish_set(tx, change, result, keep);
    return CATALOGUE_OK;
}
