#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "db/apply.h"

void reject_entry(const struct change *change, struct change_result *result,
                  const struct entry *entry, enum rule_code code, const char *field)
{
    struct rejection rejection = {
        .line = entry->line, .loc = entry->loc, .code = code, .field = field};
    snprintf(rejection.detail, sizeof rejection.detail, "%s", rule_code_sentence(code));
    result->rejected++;
    if (!change->skip && result->status == CATALOGUE_OK)
        result_refuse(result, code, field);
    if (change->on_reject)
        change->on_reject(change->context, &rejection);
}

void reject_stream(struct change_result *result)
{
    result->status = errno == ENOMEM ? CATALOGUE_NO_MEMORY : CATALOGUE_UNAVAILABLE;
    snprintf(result->detail, sizeof result->detail, "the list cannot be read: %s", strerror(errno));
}

void breathe(struct tx *tx, const struct change *change, uint64_t done)
{
    if (done % APPLY_BREATH != 0)
        return;
    if (change->on_progress)
        change->on_progress(change->context, done);
    if (tx->breathe)
        tx->breathe(tx->breathe_context);
}

/* Who registers in lists must hear of it, too: theirs are the sites with many pages. */
static void remark_fullness(struct tx *tx, struct change_result *result)
{
    const struct registry *r;
    if (tx_registry(tx, &r) != CATALOGUE_OK)
        return;
    for (const struct fill_index *i = tx->fill->dirty; i; i = i->next_dirty) {
        const struct registry_index *index = registry_index_by_id(r, i->id);
        const struct registry_site *site = index ? registry_site_by_id(r, index->site_id) : NULL;
        if (site && fill_nearly_full(i->site, site->max_pages))
            result->remarks |= RULE_BIT(RULE_SITE_NEARLY_FULL);
    }
}

void finish_set(struct tx *tx, const struct change *change, struct change_result *result,
                bool *keep)
{
    *keep = result->status == CATALOGUE_OK && !change->dry_run;
    if (result->status == CATALOGUE_OK) {
        remark_fullness(tx, result);
        return;
    }
    result->created = result->updated = result->unchanged = result->removed = 0;
    result->changed = false;
}
