/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Shared by bulk, replace and scan: counts, rejections, and yielding to other writes. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"

static void reject(const struct change *change, struct change_result *result,
                   const struct entry *entry, enum rule_code code, const char *field,
                   const char *why)
{
    struct rejection rejection = {
        .line = entry->line, .loc = entry->loc, .code = code, .field = field};
    result->rejected++;
    if (!change->skip && result->status == CATALOGUE_OK)
        result_refuse(result, code, field);
    if (change->max_findings == 0)
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
    if (change->max_findings > 0)
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

/* Whether the change must continue in the rehearsal, or must return from there to the writer. */
static bool is_handed_over(const struct tx *tx, const struct change *change)
{
    switch (tx->rehearsal) {
    case TX_FIRST_TRY:
        return (change->dry_run || !tx->changed) && tx_should_yield(tx);
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
    if (is_handed_over(tx, change)) {
        result_refuse(result, RULE_LIST_TOO_LONG, NULL);
        result->undecided = true;
        return true;
    }
    if (apply_lacks_room(tx, change, result))
        return true;
    if (change->grant.site_id == 0 || !tx->is_pressed ||
        !tx->is_pressed(tx->pressed_context, change->grant.site_id))
        return false;
    result_refuse(result, RULE_LIST_TOO_LONG, NULL);
    return true;
}

/* Lists get the remark on a nearly full site, too. */
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
