/* GET of /v1/sites. */
#include <string.h>

#include "server/routes/call.h"
#include "server/routes/entry_json.h"
#include "server/routes/errors.h"
#include "server/routes/handlers.h"
#include "server/routes/site_json.h"

#define LIST_DEFAULT 100u
#define LIST_MAX     1000u

struct site_read {
    struct call call; /* first */
    uint64_t limit;
    int64_t site_id;
};

/* ---- the list ---------------------------------------------------------------------------- */

enum handled sites_list_begin(void *context, struct request *request)
{
    static const char *const known[] = {"after", "limit", NULL};
    struct site_read *site = call_new(context, request, sizeof *site, known);

    if (site == NULL || !call_number(&site->call, "limit", 1, LIST_MAX, LIST_DEFAULT, &site->limit))
        return HANDLED;
    return HANDLE_CONTINUE;
}

/* The cursor is the origin of the last site told: the list goes by origin. */
static void append_list(struct site_read *call, const struct registry *registry)
{
    struct str *out = &call->call.request->reply.body;
    const char *after = call_parameter(&call->call, "after"), *last = NULL;
    int64_t only = call->call.request->token_site_id;
    uint64_t count = 0;
    bool more = false;

    str_append_text(out, "{\"sites\":[");
    for (size_t i = 0; i < registry->site_count && !more; i++) {
        const struct registry_site *site = &registry->sites[i];

        if ((only != 0 && site->id != only) || (after != NULL && strcmp(site->origin, after) <= 0))
            continue;
        if (count == call->limit) {
            more = true;
            continue;
        }
        if (count++ > 0)
            str_append_char(out, ',');
        site_json_append(out, site);
        last = site->origin;
    }
    str_append_text(out, "],\"next\":");
    entry_json_append_text(out, more ? last : NULL);
    str_append_text(out, "}\n");
}

static void list_work(struct call *call, struct catalogue_view *view)
{
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    if (status != CATALOGUE_OK) {
        errors_reply_status(&call->request->reply, status);
        return;
    }
    append_list((struct site_read *)call, registry);
    registry_unref(registry);
    call_reply_tagged(call);
}

enum handled sites_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

/* ---- one -------------------------------------------------------------------------------- */

enum handled site_get_begin(void *context, struct request *request)
{
    struct site_read *site = call_new(context, request, sizeof *site, NULL);

    if (site == NULL)
        return HANDLED;
    site->site_id = call_id(request->path_tail);
    return HANDLE_CONTINUE;
}

static void get_work(struct call *call, struct catalogue_view *view)
{
    struct request *request = call->request;
    int64_t id = ((struct site_read *)call)->site_id;
    const struct registry_site *site;
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    if (status != CATALOGUE_OK) {
        errors_reply_status(&request->reply, status);
        return;
    }
    site = registry_site_by_id(registry, id);
    if (site == NULL || (request->token_site_id != 0 && request->token_site_id != id)) {
        errors_reply_not_found(&request->reply, "site");
    } else {
        site_json_append(&request->reply.body, site);
        str_append_char(&request->reply.body, '\n');
        call_reply_tagged(call);
    }
    registry_unref(registry);
}

enum handled site_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}
