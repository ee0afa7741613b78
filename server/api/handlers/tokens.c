/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/token: the token of the request; /v1/tokens: tokens within its scope, and the removal of one.
 * No call makes a token: with one, the holder of a stolen token would keep access after its
 * removal. */
#include <string.h>

#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"

static struct json_token shown_grant(const struct registry *registry, const struct grant *grant)
{
    const struct registry_site *site = registry_site_by_id(registry, grant->site_id);

    return (struct json_token){.name = grant->name,
                               .site = site != NULL ? site->origin : NULL,
                               .prefix = grant->prefix,
                               .role = grant_role_word(grant->role),
                               .own = grant->own,
                               .expires_at = grant->expires_at};
}

static enum catalogue_status get_work(struct call *call, struct catalogue_view *view,
                                      const struct registry *registry)
{
    struct json_token shown = shown_grant(registry, &call->request->grant);

    (void)view;
    json_append_object(&call->request->reply.body, &json_token, &shown);
    str_append_char(&call->request->reply.body, '\n');
    call_reply_tagged(call, NULL);
    return CATALOGUE_OK;
}

enum handled token_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}

/* The cursor is the name of the last token listed: the list is in the order of names. */
static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct str *out = &call->request->reply.body;
    const char *after = call_parameter(call, "after"), *last = NULL;
    enum catalogue_status status = CATALOGUE_OK;
    uint64_t count = 0, limit = call_number(call, "limit");
    bool more = false;

    str_append_text(out, "{\"tokens\":[");
    for (size_t i = 0; i < registry->token_count && status == CATALOGUE_OK && !more; i++) {
        const struct registry_token *token = &registry->tokens[i];
        int64_t used_at = 0;

        if (!grant_has_site(&call->request->grant, token->grant.site_id) ||
            (after != NULL && strcmp(token->grant.name, after) <= 0))
            continue;
        more = count == limit;
        if (more)
            break;
        status = catalogue_view_token_used(view, token->id, &used_at);
        if (count++ > 0)
            str_append_char(out, ',');
        struct json_listed_token shown = {.token = shown_grant(registry, &token->grant),
                                          .created_at = token->created_at,
                                          .last_used_at = used_at,
                                          .managed = token->managed};

        json_append_object(out, &json_listed_token, &shown);
        last = token->grant.name;
    }
    str_append_text(out, "],\"next\":");
    str_append_json_text(out, more ? last : NULL);
    str_append_text(out, "}\n");
    if (status == CATALOGUE_OK)
        call_reply_tagged(call, NULL);
    return status;
}

enum handled tokens_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

static void answer_revoked(struct call *call)
{
    call->request->reply.status = 204;
    reply_header(&call->request->reply, "Cache-Control", "no-store");
    call_audit(call, "token-revoke", call->request->path_tail);
}

enum handled token_delete(void *context, struct request *request)
{
    struct call *call = request->state;

    (void)context;
    call->change.kind = CHANGE_TOKEN_REVOKE;
    call->change.token_revoke.name = request->path_tail;
    return call_write(call, answer_revoked);
}
