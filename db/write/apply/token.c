/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Tokens: creating, revoking, authorising, noting use. The writer's thread.
 *
 * A token's row never changes, so that a grant that was read when a request began can be compared
 * with the row when its change is applied. A token of the configuration (`managed`) is created
 * again, with another id, if its declaration changes. */

#include <stdio.h>
#include <string.h>

#include "db/write/apply/apply.h"

/* NULL if none exists of this name. */
static const struct registry_token *token_find(const struct registry *r, const char *name)
{
    for (size_t i = 0; name != NULL && i < r->token_count; i++)
        if (strcmp(r->tokens[i].grant.name, name) == 0)
            return &r->tokens[i];
    return NULL;
}

static enum catalogue_status insert_token(struct tx *tx, const struct change_token_add *add,
                                          bool managed, struct change_result *result)
{
    const struct grant *grant = &add->grant;
    enum catalogue_status status =
        tx_run(tx, ST_TOKEN_ADD, grant->name, sql_bytes(add->sha256, 32), sql_not_0(grant->site_id),
               tx->now, grant->role, grant->own, grant->prefix, grant->expires_at, managed);
    return admin_inserted(tx, status, result);
}

/* Whether a loc that begins so can ever be the site's: of its own origin, or of a cross host. */
static bool is_of_site(const struct registry_site *site, const char *prefix)
{
    struct url url;
    if (url_parse(prefix, strlen(prefix), &url, NULL) != RULE_OK)
        return false;
    if (url_same_origin(&url, &site->origin_url))
        return true;
    for (size_t i = 0; i < site->cross_host_count; i++)
        if (url.origin_len > url.host_at &&
            strlen(site->cross_hosts[i]) == (size_t)(url.origin_len - url.host_at) &&
            memcmp(url.text + url.host_at, site->cross_hosts[i],
                   (size_t)(url.origin_len - url.host_at)) == 0)
            return true;
    return false;
}

/* Rejects an invalid grant. */
static void check_grant(const struct registry *r, const struct grant *grant,
                        struct change_result *result)
{
    const struct registry_site *site = registry_site_by_id(r, grant->site_id);
    const char *fault = grant_fault(grant);
    if (grant->site_id != 0 && site == NULL) {
        result_decline(result, CATALOGUE_NOT_FOUND, "site not found");
    } else if (grant->role == GRANT_ALL || grant->role > GRANT_ADMIN || fault != NULL) {
        result_refuse(result, RULE_OUTSIDE_TOKEN, "role");
        snprintf(result->detail, sizeof result->detail, "%s",
                 fault != NULL ? fault : "must be read, write or admin");
    } else if (grant->prefix != NULL && !is_of_site(site, grant->prefix)) {
        result_refuse(result, RULE_OUTSIDE_SITE, "prefix");
    }
}

enum catalogue_status apply_token_add(struct tx *tx, const struct change *change,
                                      const struct change_token_add *add,
                                      struct change_result *result)
{
    const struct grant *grant = &add->grant;
    const char *name = grant->name ? grant->name : "";
    if (change->grant.role != GRANT_ALL) { /* a token cannot create tokens */
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (entry_check_name(name, strlen(name)) != RULE_OK) {
        result_refuse(result, RULE_NAME, "name");
        return CATALOGUE_OK;
    }
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    check_grant(r, grant, result);
    if (result->status != CATALOGUE_OK)
        return CATALOGUE_OK;
    const struct registry_token *existing = token_find(r, name);
    if (existing) {
        result_decline(result, CATALOGUE_CONFLICT,
                       existing->managed ? "the configuration file has a token of this name"
                                         : "conflict: a token with this name already exists");
        result->id = existing->id;
        return CATALOGUE_OK;
    }
    return insert_token(tx, add, change->override_managed, result);
}

enum catalogue_status token_forget_uses(struct tx *tx)
{
    return tx_run(tx, ST_TOKEN_USES_FORGET);
}

static enum catalogue_status drop(struct tx *tx, int64_t id)
{
    enum catalogue_status status = tx_run(tx, ST_TOKEN_DROP, id);
    tx_registry_touch(tx);
    return status == CATALOGUE_OK ? token_forget_uses(tx) : status;
}

/* Answers "not found" for a token that the caller may not see. */
enum catalogue_status apply_token_revoke(struct tx *tx, const struct change *change,
                                         const struct change_token_revoke *revocation,
                                         struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_token *token = token_find(r, revocation->name);
    if (!token || !grant_has_site(&change->grant, token->grant.site_id)) {
        result_decline(result, CATALOGUE_NOT_FOUND, "token not found");
        return CATALOGUE_OK;
    }
    if (token->managed && !change->override_managed) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "the configuration file manages this token; remove it there");
        result->managed = true;
        return CATALOGUE_OK;
    }
    result->id = token->id;
    result->removed = 1;
    result->changed = true;
    return drop(tx, token->id);
}

enum catalogue_status token_check(struct tx *tx, const struct change *change,
                                  struct change_result *result, bool *holds)
{
    const struct grant *grant = &change->grant;
    *holds = true;
    if (change->bearer_id == 0)
        return CATALOGUE_OK;
    int64_t found = 0;
    enum catalogue_status status =
        tx_number(tx, ST_TOKEN_HOLDS, 0, &found, change->bearer_id,
                  sql_bytes(change->bearer_sha256, 32), grant->site_id, grant->role, grant->own,
                  grant->prefix ? grant->prefix : "", grant->expires_at);
    bool expired = grant_is_expired(grant, tx->now);
    *holds = found != 0 && !expired;
    if (status != CATALOGUE_OK || *holds)
        return status;
    result_decline(result, CATALOGUE_CONFLICT,
                   found != 0 ? "the token has expired" : "the token was revoked");
    result->revoked = true;
    return CATALOGUE_OK;
}

enum catalogue_status apply_token_used(struct tx *tx, const struct change_token_used *used)
{
    return tx_run(tx, ST_TOKEN_USED, used->token_id, tx->now - tx->now % 3600);
}

/* ---- the configuration's */

bool token_is_declared(const struct registry *r, const struct token_declaration *d)
{
    const struct registry_token *token = token_find(r, d->grant.name);
    if (d->released)
        return token == NULL || !token->managed;
    const struct registry_site *site = d->site != NULL ? registry_site_by_origin(r, d->site) : NULL;
    struct grant grant = d->grant;
    if (token == NULL || !token->managed || (d->site != NULL && site == NULL))
        return false;
    grant.site_id = site != NULL ? site->id : 0;
    return grant_equal(&token->grant, &grant) && memcmp(token->sha256, d->sha256, 32) == 0;
}

enum catalogue_status token_declare(struct tx *tx, const struct token_declaration *d,
                                    struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK || token_is_declared(r, d))
        return status;
    if (d->released)
        return drop(tx, token_find(r, d->grant.name)->id);
    const struct registry_site *site = d->site != NULL ? registry_site_by_origin(r, d->site) : NULL;
    const struct change change = {.override_managed = true};
    struct change_token_add add = {.grant = d->grant, .sha256 = d->sha256};
    if (d->site != NULL && site == NULL) {
        result_refuse(result, RULE_SITE_UNKNOWN, "site");
        return CATALOGUE_OK;
    }
    add.grant.site_id = site != NULL ? site->id : 0;
    const struct registry_token *old = token_find(r, d->grant.name);
    if (old != NULL && !old->managed) {
        result_decline(
            result, CATALOGUE_CONFLICT,
            "conflict: the catalogue has a token of this name that was not created by the "
            "configuration; revoke it (`sitemapd token revoke`), or choose another name");
        return CATALOGUE_OK;
    }
    if (old != NULL)
        status = drop(tx, old->id);
    return status == CATALOGUE_OK ? apply_token_add(tx, &change, &add, result) : status;
}
