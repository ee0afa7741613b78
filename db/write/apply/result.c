/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The results of changes: how each kind of refusal is worded. */
#include <stdio.h>

#include "db/write/apply/apply.h"

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
