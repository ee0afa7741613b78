/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies a change by its kind: the table of kinds, and the steps around each: the check of its
 * token, its Idempotency-Key, its preview and its history. */
#include <stdio.h>

#include "db/history/recorder.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/preview.h"
#include "db/write/repeat.h"

/* The results of changes: how each kind of refusal is worded. */

void result_refuse(struct change_result *result, enum rule_code code, const char *field)
{
    result->status = CATALOGUE_REFUSED;
    result->code = code;
    result->field = field;
    snprintf(result->detail, sizeof result->detail, "%s", rule_code_sentence(code));
}

void result_conflict(struct change_result *result, uint64_t line, const char *loc,
                     enum rule_code code)
{
    struct rejection rejection = {.line = line, .loc = loc, .code = code, .field = "loc"};
    snprintf(rejection.detail, sizeof rejection.detail, "%s", rule_code_sentence(code));
    result->rejected++;
    findings_refuse(&result->findings, &rejection);
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

/* For each kind: the required role (as in the API's table of calls; checked again here), whether it
 * shares a transaction with others (TOGETHER), is alone in one, or writes only the node's own
 * tables (OWN), and its function. */
#define KINDS(K)                                                                                   \
    K(ENTRY_PUT, WRITE, TOGETHER, apply_entry_put(tx, c, &c->entry, result))                       \
    K(ENTRY_REMOVE, WRITE, TOGETHER, apply_entry_remove(tx, c, &c->entry_remove, result))          \
    K(BULK, WRITE, ALONE, apply_bulk(tx, c, result, keep))                                         \
    K(REPLACE, WRITE, ALONE, apply_replace(tx, c, &c->replace, result, keep))                      \
    K(SITE_ADD, ADMIN, ALONE, apply_site_add(tx, c, &c->site_add, result))                         \
    K(SITE_UPDATE, ADMIN, ALONE, apply_site_update(tx, c, &c->site_update, result))                \
    K(SITE_REMOVE, ADMIN, ALONE, apply_site_remove(tx, c, &c->site_remove, result))                \
    K(SITE_IMPORT, ADMIN, ALONE, apply_site_import(tx, c, &c->site_import, result, keep))          \
    K(INDEX_ADD, ADMIN, ALONE, apply_index_add(tx, c, &c->index_add, result))                      \
    K(INDEX_REMOVE, ADMIN, ALONE, apply_index_remove(tx, c, &c->index_remove, result, keep))       \
    K(INDEX_FREEZE, ADMIN, TOGETHER, apply_index_freeze(tx, c, &c->index_freeze, result))          \
    K(URLSET_ADD, ADMIN, ALONE, apply_urlset_add(tx, c, &c->urlset_add, result))                   \
    K(URLSET_UPDATE, ADMIN, ALONE, apply_urlset_update(tx, c, &c->urlset_update, result, keep))    \
    K(TOKEN_ADD, ADMIN, TOGETHER, apply_token_add(tx, c, &c->token_add, result))                   \
    K(TOKEN_REVOKE, ADMIN, TOGETHER, apply_token_revoke(tx, c, &c->token_revoke, result))          \
    K(TOKEN_USED, READ, TOGETHER, apply_token_used(tx, &c->token_used))                            \
    K(SOURCE_ADD, ADMIN, ALONE, apply_source_put(tx, c, &c->source_put, result))                   \
    K(SOURCE_UPDATE, ADMIN, ALONE, apply_source_put(tx, c, &c->source_put, result))                \
    K(SOURCE_REMOVE, ADMIN, ALONE, apply_source_remove(tx, c, &c->source_remove, result))          \
    K(CRAWLERS, ADMIN, OWN, apply_crawlers(tx, &c->crawlers))                                      \
    K(CRAWLERS_REPORT, ADMIN, ALONE, apply_crawlers_report(tx, &c->crawlers))                      \
    K(INDEXNOW, ADMIN, TOGETHER, apply_indexnow(tx, &c->indexnow, result))                         \
    K(SITE_DAYS, ADMIN, OWN, apply_site_days(tx, &c->site_days))                                   \
    K(ENGINE, ADMIN, OWN, apply_engine(tx, &c->engine))                                            \
    K(CONFIGURE, ADMIN, ALONE, apply_configure(tx, &c->configure, result, keep))                   \
    K(CHECK, ADMIN, TOGETHER, apply_check(tx, c, &c->check, result))                               \
    K(SCAN, ADMIN, ALONE, apply_scan(tx, c, &c->scan, result, keep))                               \
    K(SPLIT, ADMIN, ALONE, apply_split(tx, c, &c->split, result, keep))                            \
    K(UNDO, WRITE, ALONE, apply_undo(tx, c, &c->undo, result, keep))                               \
    K(RESTORE, WRITE, ALONE, apply_undo(tx, c, &c->undo, result, keep))                            \
    K(EXPIRE, ADMIN, TOGETHER, apply_expire(tx, result))                                           \
    K(PURGE, ADMIN, ALONE, apply_purge(tx, result, &(bool){false}))

#define KIND_ROW(kind, role, how, call) [CHANGE_##kind] = {GRANT_##role, how},
#define KIND_CASE(kind, role, how, call)                                                           \
    case CHANGE_##kind:                                                                            \
        return call;

static const struct kind {
    enum grant_role role;
    enum { ALONE, TOGETHER, OWN } how;
} kinds[] = {KINDS(KIND_ROW)};

static enum catalogue_status carry_out(struct tx *tx, const struct change *c,
                                       struct change_result *result, bool *keep)
{
    switch (c->kind) {
        KINDS(KIND_CASE)
    }
    return CATALOGUE_UNAVAILABLE; /* no such kind */
}

bool apply_alone(enum change_kind kind)
{
    return kinds[kind].how != TOGETHER;
}

bool apply_is_own(enum change_kind kind)
{
    return kinds[kind].how == OWN;
}

/* False for kinds that remove something, or that prevent others from adding. */
static bool adds_rows(enum change_kind kind)
{
    switch (kind) {
    case CHANGE_ENTRY_REMOVE:
    case CHANGE_SITE_REMOVE:
    case CHANGE_INDEX_REMOVE:
    case CHANGE_INDEX_FREEZE:
    case CHANGE_TOKEN_REVOKE:
    case CHANGE_SOURCE_REMOVE:
        return false;
    default:
        return true;
    }
}

bool apply_lacks_room(const struct tx *tx, const struct change *change,
                      struct change_result *result)
{
    if (change->grant.site_id == 0 || change->dry_run || tx->is_short == NULL ||
        !adds_rows(change->kind) || !tx->is_short(tx->pressed_context))
        return false;
    result_decline(result, CATALOGUE_NO_SPACE, "");
    return true;
}

static enum catalogue_status dispatch(struct tx *tx, const struct change *change,
                                      struct change_result *result, bool *keep)
{
    const struct kind *kind = &kinds[change->kind];
    bool holds;
    result->findings.max = change->max_findings;
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
    if (tx->rehearsal == TX_DECIDED || apply_lacks_room(tx, change, result))
        return CATALOGUE_OK;
    return carry_out(tx, change, result, keep);
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
    *keep = *keep && !dry; /* a dry run is never published */
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

/* The history gets the counts of this step, the caller those of all steps. */
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
