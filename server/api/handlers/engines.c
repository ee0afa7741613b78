/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/engines: the reports of search engines about sitemaps, as stored in the catalogue. */
#include <string.h>

#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/engines/report/engine_report.h"
#include "server/rules/url.h"

/* A site has up to ENGINE_SITEMAPS_MAX sitemaps: about 300 KB. */
#define SITES_MOST 20u

bool engine_is_shown(const struct call *call, size_t place)
{
    return atomic_load(&call->app->engines[place].configured) &&
           grant_has_whole(&call->request->grant);
}

/* ---- GET /v1/engines ----------------------------------------------------------------------- */

static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct str *out = &call->request->reply.body;
    const struct registry_site *only;
    enum catalogue_status status = CATALOGUE_OK;
    bool some = false;

    if (!call_site(call, registry, &only))
        return CATALOGUE_OK;
    str_append_text(out, "{\"engines\":[");
    for (size_t i = 0; i < ENGINE_COUNT && status == CATALOGUE_OK; i++) {
        if (!engine_is_shown(call, i))
            continue;
        str_append_text(out, some ? "," : "");
        some = true;
        status = engine_report_append(out, view, engine_names[i], only);
    }
    str_append_text(out, "]}\n");
    if (status == CATALOGUE_OK)
        reply_json(&call->request->reply, 200);
    return status;
}

enum handled engines_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

/* ---- GET /v1/engines/{name}/sitemaps ------------------------------------------------------- */

static enum catalogue_status sitemaps_work(struct call *call, struct catalogue_view *view,
                                           const struct registry *registry)
{
    struct str *out = &call->request->reply.body;
    const struct registry_site *only;
    const char *name = call->request->path_tail;
    size_t place = engine_place(name);
    uint64_t limit = call_number(call, "limit");

    if (place == ENGINE_COUNT || !atomic_load(&call->app->engines[place].configured)) {
        errors_reply_not_found(&call->request->reply, "engine");
        return CATALOGUE_OK;
    }
    if (!call_site(call, registry, &only))
        return CATALOGUE_OK;
    if (limit > SITES_MOST)
        limit = SITES_MOST;
    if (!grant_has_whole(&call->request->grant)) {
        str_append_text(out, "{\"sites\":[],\"next\":null}\n");
        reply_json(&call->request->reply, 200);
        return CATALOGUE_OK;
    }
    str_append_text(out, "{");
    enum catalogue_status status = engine_report_sites(out, view, registry, engine_names[place],
                                                       only, call_parameter(call, "after"), limit);
    str_append_text(out, "}\n");
    if (status == CATALOGUE_OK)
        reply_json(&call->request->reply, 200);
    return status;
}

enum handled engine_sitemaps(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, sitemaps_work);
}
