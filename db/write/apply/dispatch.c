/* From a change to what carries it out: the table of kinds, and what each of them has around it,
 * the check of its token, what is known of its key, its preview and its history. */
#include "db/history/recorder.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/preview.h"
#include "db/write/repeat.h"

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
    [CHANGE_SITE_DAYS] = {GRANT_ADMIN, .apply = apply_site_days, .own = true},
    [CHANGE_ENGINE] = {GRANT_ADMIN, .apply = apply_engine, .own = true},
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
        result_outside(result, NULL, "permission denied: the token's role does not allow it");
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
