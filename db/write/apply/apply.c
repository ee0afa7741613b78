#include "db/write/apply/apply.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/history/recorder.h"
#include "db/read/row.h"
#include "db/write/apply/urlset.h"
#include "db/write/preview.h"
#include "db/write/repeat.h"
#include "server/base/clock.h"

static void reject(const struct change *change, struct change_result *result,
                   const struct entry *entry, enum rule_code code, const char *field,
                   const char *why)
{
    struct rejection rejection = {
        .line = entry->line, .loc = entry->loc, .code = code, .field = field};
    result->rejected++;
    if (!change->skip && result->status == CATALOGUE_OK)
        result_refuse(result, code, field);
    if (change->max_told == 0)
        return;
    snprintf(rejection.detail, sizeof rejection.detail, "%s", why);
    findings_refuse(&result->findings, &rejection);
}

void count_put(const struct change *change, struct change_result *result, const struct put *put)
{
    if (put->outcome == PUT_CREATED)
        result->created++;
    else if (put->outcome == PUT_UNCHANGED)
        result->unchanged++;
    else
        result->updated++;
    if (put->outcome == PUT_MOVED)
        result->moved++;
    if (change->max_told > 0)
        findings_remark(&result->findings, put->entry->line, put->entry->loc, put->remarks);
}

void reject_entry(const struct change *change, struct change_result *result,
                  const struct entry *entry, enum rule_code code, const char *field)
{
    reject(change, result, entry, code, field, rule_code_sentence(code));
}

enum catalogue_status reject_put(struct tx *tx, const struct change *change,
                                 struct change_result *result, const struct put *put)
{
    char why[256];
    enum catalogue_status status = put_explain(tx, put, why, sizeof why);
    if (status == CATALOGUE_OK)
        reject(change, result, put->entry, put->code, put->field, why);
    return status;
}

void reject_stream(struct change_result *result)
{
    result->status = errno == ENOMEM ? CATALOGUE_NO_MEMORY : CATALOGUE_UNAVAILABLE;
    snprintf(result->detail, sizeof result->detail, "the list cannot be read: %s", strerror(errno));
}

void report_progress(const struct change *change, uint64_t done)
{
    if (done % APPLY_PROGRESS == 0 && change->rows_done)
        atomic_store(change->rows_done, done);
}

/* Whether the change is to go on in the rehearsal, or from there in the writer. */
static bool goes_elsewhere(const struct tx *tx, const struct change *change)
{
    switch (tx->rehearsal) {
    case TX_FIRST_TRY:
        return (change->dry_run || !tx->changed) && tx_gives_way(tx);
    case TX_REHEARSAL:
        return !change->dry_run && tx->changed;
    case TX_DECIDED:
    case TX_FINAL:
        break;
    }
    return false;
}

bool list_ends(struct tx *tx, const struct change *change, struct change_result *result)
{
    if (goes_elsewhere(tx, change)) {
        result_refuse(result, RULE_LIST_TOO_LONG, NULL);
        result->undecided = true;
        return true;
    }
    if (change->grant.site_id == 0 || !tx->is_pressed ||
        !tx->is_pressed(tx->pressed_context, change->grant.site_id))
        return false;
    result_refuse(result, RULE_LIST_TOO_LONG, NULL);
    return true;
}

/* Who registers in lists must hear of it, too: theirs are the sites with many pages. */
static void remark_fullness(struct tx *tx, struct change_result *result)
{
    const struct registry *r;
    if (tx_registry(tx, &r) != CATALOGUE_OK)
        return;
    for (const struct occupancy_index *i = tx->occupancy->dirty; i; i = i->next_dirty) {
        const struct registry_index *index = registry_index_by_id(r, i->id);
        const struct registry_site *site = index ? registry_site_by_id(r, index->site_id) : NULL;
        if (site && occupancy_nearly_full(i->site, site->max_pages))
            result->remarks |= RULE_BIT(RULE_SITE_NEARLY_FULL);
    }
}

void finish_set(struct tx *tx, const struct change *change, struct change_result *result,
                bool *keep)
{
    result->changed = tx->changed;
    *keep = result->status == CATALOGUE_OK && !change->dry_run;
    if (result->status == CATALOGUE_OK) {
        remark_fullness(tx, result);
        return;
    }
    result->created = result->updated = result->unchanged = result->removed = result->moved = 0;
    result->changed = false;
}

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

enum catalogue_status apply_purge_find(struct tx *tx, int64_t *index_id)
{
    uint64_t keep = tx->options->history_keep_ms / 1000;
    int64_t wait = keep < PURGE_AFTER_SECONDS ? (int64_t)keep : PURGE_AFTER_SECONDS;
    bool at_once = tx->options->history_keep_ms == 0;
    return tx_number(tx, ST_PURGE_FIND, 0, index_id, at_once ? INT64_MAX : tx_clock(tx) - wait);
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

static enum catalogue_status purge_some(struct tx *tx, const struct change *change,
                                        struct change_result *result)
{
    bool more;
    (void)change;
    return apply_purge(tx, result, &more);
}

/* What each kind of change is: who may ask for it (the API's table of calls says the same; it is
 * judged again here), what carries it out, whether it shares a transaction with others, and whether
 * it writes the node's own tables alone. */
static const struct kind {
    enum grant_role role;
    apply_kind *apply;
    apply_whole *whole; /* in place of `apply` */
    bool together, own;
} kinds[] = {
    [CHANGE_ENTRY_PUT] = {GRANT_WRITE, .apply = apply_entry_put, .together = true},
    [CHANGE_ENTRY_REMOVE] = {GRANT_WRITE, .apply = apply_entry_remove, .together = true},
    [CHANGE_BULK] = {GRANT_WRITE, .whole = apply_bulk},
    [CHANGE_REPLACE] = {GRANT_WRITE, .whole = apply_replace},
    [CHANGE_SITE_ADD] = {GRANT_ADMIN, .apply = apply_site_add},
    [CHANGE_SITE_UPDATE] = {GRANT_ADMIN, .apply = apply_site_update},
    [CHANGE_SITE_REMOVE] = {GRANT_ADMIN, .apply = apply_site_remove},
    [CHANGE_INDEX_ADD] = {GRANT_ADMIN, .apply = apply_index_add},
    [CHANGE_INDEX_REMOVE] = {GRANT_ADMIN, .whole = apply_index_remove},
    [CHANGE_INDEX_FREEZE] = {GRANT_ADMIN, .apply = apply_index_freeze, .together = true},
    [CHANGE_URLSET_ADD] = {GRANT_ADMIN, .apply = apply_urlset_add},
    [CHANGE_URLSET_UPDATE] = {GRANT_ADMIN, .whole = apply_urlset_update},
    [CHANGE_TOKEN_ADD] = {GRANT_ADMIN, .apply = apply_token_add, .together = true},
    [CHANGE_TOKEN_REVOKE] = {GRANT_ADMIN, .apply = apply_token_revoke, .together = true},
    [CHANGE_TOKEN_USED] = {GRANT_READ, .apply = apply_token_used, .together = true},
    [CHANGE_SOURCE_ADD] = {GRANT_ADMIN, .apply = apply_source_put},
    [CHANGE_SOURCE_UPDATE] = {GRANT_ADMIN, .apply = apply_source_put},
    [CHANGE_SOURCE_REMOVE] = {GRANT_ADMIN, .apply = apply_source_remove},
    [CHANGE_CRAWLERS] = {GRANT_ADMIN, .apply = apply_crawlers, .own = true},
    [CHANGE_CRAWLERS_TELL] = {GRANT_ADMIN, .apply = apply_crawlers_report},
    [CHANGE_INDEXNOW] = {GRANT_ADMIN, .apply = apply_indexnow, .together = true},
    [CHANGE_CONFIGURE] = {GRANT_ADMIN, .whole = apply_configure},
    [CHANGE_CHECK] = {GRANT_ADMIN, .apply = apply_check, .together = true},
    [CHANGE_SCAN] = {GRANT_ADMIN, .whole = apply_scan},
    [CHANGE_SPLIT] = {GRANT_ADMIN, .whole = apply_split},
    [CHANGE_UNDO] = {GRANT_WRITE, .whole = apply_undo},
    [CHANGE_RESTORE] = {GRANT_WRITE, .whole = apply_undo},
    [CHANGE_EXPIRE] = {GRANT_ADMIN, .apply = apply_expire, .together = true},
    [CHANGE_PURGE] = {GRANT_ADMIN, .apply = purge_some},
};

bool apply_alone(enum change_kind kind)
{
    return !kinds[kind].together;
}

bool apply_is_own(enum change_kind kind)
{
    return kinds[kind].own;
}

static enum catalogue_status dispatch(struct tx *tx, const struct change *change,
                                      struct change_result *result, bool *keep)
{
    const struct kind *kind = &kinds[change->kind];
    bool holds;
    result->findings.max = change->max_told;
    result->findings.examples = FINDINGS_EXAMPLES;
    enum catalogue_status status = token_check(tx, change, result, &holds);
    if (status != CATALOGUE_OK || !holds)
        return status;
    if (!grant_may(&change->grant, kind->role)) {
        result_outside(result, NULL, "the token's role does not allow it");
        return CATALOGUE_OK;
    }
    if (result->group == 0) /* the first step, or the only one */
        status = repeat_find(tx, change, result);
    if (status != CATALOGUE_OK || result->repeated || result->status != CATALOGUE_OK)
        return status;
    if (tx->rehearsal == TX_DECIDED)
        return CATALOGUE_OK;
    return kind->whole != NULL ? kind->whole(tx, change, result, keep)
                               : kind->apply(tx, change, result);
}

void change_row_done(struct change_row *row)
{
    entry_record_done(&row->before);
    entry_record_done(&row->after);
    memset(row, 0, sizeof *row);
}

void change_result_done(struct change_result *result)
{
    for (size_t i = 0; i < result->told_count; i++)
        change_row_done(&result->told[i]);
    free(result->told);
    result->told = NULL;
    result->told_count = 0;
    entry_record_done(&result->entry);
    memset(&result->entry, 0, sizeof result->entry);
    findings_done(&result->findings);
    str_done(&result->outcome);
    spool_free(result->rows);
    result->rows = NULL;
    if (result->steps_free)
        result->steps_free(result->steps);
    result->steps = NULL;
    result->steps_free = NULL;
}

static enum catalogue_status apply_step(struct tx *tx, const struct change *change,
                                        struct change_result *result, bool *keep)
{
    struct preview preview;
    bool dry = change->dry_run && apply_alone(change->kind);
    *keep = !dry;
    enum catalogue_status status = preview_begin(&preview, tx, change);
    recorder_begin(tx->recorder, change);
    if (status == CATALOGUE_OK)
        status = dispatch(tx, change, result, keep);
    *keep = *keep && !dry; /* of a shared catalogue nobody was told of it */
    if (status == CATALOGUE_OK && *keep)
        status = urlset_settle(tx);
    if (status == CATALOGUE_OK && *keep) {
        status = recorder_end(tx->recorder, tx, change, result);
    } else {
        if (status == CATALOGUE_OK)
            status = preview_report(&preview, tx, change, result);
        recorder_drop(tx->recorder);
    }
    if (status == CATALOGUE_OK && *keep && !result->more)
        status = repeat_keep(tx, change, result);
    preview_done(&preview, tx);
    return status;
}

/* The history has what one step did, the caller hears of all. */
static void count_apart(struct change_result *result, struct change_result *before)
{
    *before = *result;
    result->created = result->updated = result->unchanged = result->removed = 0;
    result->rejected = 0;
}

static void count_together(struct change_result *result, const struct change_result *before)
{
    result->created += before->created;
    result->updated += before->updated;
    result->unchanged += before->unchanged;
    result->removed += before->removed;
    result->rejected += before->rejected;
    result->changed |= before->changed;
}

enum catalogue_status apply_change(struct tx *tx, const struct change *change,
                                   struct change_result *result, bool *keep)
{
    struct change_result before;
    if (tx->rehearsal == TX_DECIDED) /* counted already */
        return apply_step(tx, change, result, keep);
    count_apart(result, &before);
    enum catalogue_status status = apply_step(tx, change, result, keep);
    count_together(result, &before);
    return status;
}

void result_refuse(struct change_result *result, enum rule_code code, const char *field)
{
    result->status = CATALOGUE_REFUSED;
    result->code = code;
    result->field = field;
    snprintf(result->detail, sizeof result->detail, "%s", rule_code_sentence(code));
}

void result_forbid(struct change_result *result)
{
    result_refuse(result, RULE_SITE_UNKNOWN, NULL);
    result->forbidden = true;
    snprintf(result->detail, sizeof result->detail,
             "permission denied: it is not part of the token's site");
}

void result_missing(struct change_result *result, const struct grant *grant, const char *sentence)
{
    if (grant->site_id != 0)
        result_forbid(result);
    else
        result_decline(result, CATALOGUE_NOT_FOUND, sentence);
}

void result_outside(struct change_result *result, const char *field, const char *sentence)
{
    result_refuse(result, RULE_OUTSIDE_TOKEN, field);
    result->forbidden = true;
    if (sentence != NULL)
        snprintf(result->detail, sizeof result->detail, "%s", sentence);
}

bool result_frozen(struct change_result *result, const struct change *change, enum freeze frozen)
{
    if (frozen == FREEZE_NONE || (change->pass_frozen && freeze_yields(frozen, &change->grant)))
        return false;
    result_refuse(result, RULE_FROZEN, NULL);
    return true;
}

bool result_freeze_holds(struct change_result *result, const struct change *change,
                         enum freeze frozen)
{
    if (freeze_yields(frozen, &change->grant))
        return false;
    result_refuse(result, RULE_ALL_SITES, "frozen");
    snprintf(result->detail, sizeof result->detail,
             "permission denied: it was frozen with a token for all sites, so only such a token "
             "can thaw it");
    return true;
}

void result_decline(struct change_result *result, enum catalogue_status status,
                    const char *sentence)
{
    result->status = status;
    snprintf(result->detail, sizeof result->detail, "%s", sentence);
}

bool result_managed(struct change_result *result, const struct change *change,
                    const struct registry_site *site)
{
    if (!site->managed || change->override_managed)
        return false;
    result_decline(result, CATALOGUE_CONFLICT, "the configuration file manages this site");
    result->managed = true;
    return true;
}

bool result_list_managed(struct change_result *result, const struct change *change,
                         const struct registry_site *site, enum list_kind kind)
{
    return kind != LIST_URLSET && result_managed(result, change, site);
}
