#include "db/apply.h"

#include <stdio.h>

bool apply_alone(enum change_kind kind)
{
    return kind == CHANGE_BULK || kind == CHANGE_REPLACE || kind == CHANGE_SCAN ||
           kind == CHANGE_PURGE;
}

enum catalogue_status apply_change(struct tx *tx, const struct change *change,
                                   struct change_result *result, bool *keep)
{
    *keep = true;
    switch (change->kind) {
    case CHANGE_ENTRY_PUT:
        return apply_entry_put(tx, change, result);
    case CHANGE_ENTRY_REMOVE:
        return apply_entry_remove(tx, change, result);
    case CHANGE_BULK:
        return apply_bulk(tx, change, result, keep);
    case CHANGE_REPLACE:
        return apply_replace(tx, change, result, keep);
    case CHANGE_SITE_ADD:
        return apply_site_add(tx, change, result);
    case CHANGE_SITE_UPDATE:
        return apply_site_update(tx, change, result);
    case CHANGE_SITE_REMOVE:
        return apply_site_remove(tx, change, result);
    case CHANGE_INDEX_ADD:
        return apply_index_add(tx, change, result);
    case CHANGE_INDEX_REMOVE:
        return apply_index_remove(tx, change, result);
    case CHANGE_TOKEN_ADD:
        return apply_token_add(tx, change, result);
    case CHANGE_TOKEN_REVOKE:
        return apply_token_revoke(tx, change, result);
    case CHANGE_SCAN:
        return apply_scan(tx, change, result, keep);
    case CHANGE_PURGE: {
        bool more;
        return apply_purge(tx, result, &more);
    }
    }
    result_decline(result, CATALOGUE_NOT_FOUND, "there is no such kind of change");
    return CATALOGUE_OK;
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
    snprintf(result->detail, sizeof result->detail, "the token is for another site");
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
