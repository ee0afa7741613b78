/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The public listener: pages, robots.txt, aliases, files, and the text of the root without a site.
 */
#include <stdlib.h>
#include <string.h>

#include "db/shared.h"
#include "server/api/handlers/handlers.h"
#include "server/api/routes.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/pages/publisher.h"
#include "server/pages/served_file.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/url.h"
#include "server/sources/sources.h"

/* A file of a folder is served whether its source considers it a valid sitemap or not: crawlers get
 * what the operator put there. Pages, robots.txt and aliases come first, so a file can never
 * replace an index. Another server, a removed page or another folder may have been at a file's
 * address with any date: publisher_moved_at is the time from which a file's date can be compared.
 */

#define RETRY_AFTER_SECONDS "5"

/* Answers with the resource, whose reference it takes over, and clears request->state. A page
 * without entries gets 404: the schema requires at least one. */
static void answer(struct request *request, enum await_result result, struct resource *r,
                   bool as_file)
{
    const struct app_context *app = request->state;
    struct reply *reply = &request->reply;

    request->state = NULL;
    if (r != NULL && r->held.kind == HELD_PAGE && r->entries == 0) {
        resource_unref(r);
        r = NULL;
        result = AWAIT_NONE;
    }
    if (r != NULL && r->held.kind == HELD_FILE)
        request->undated |= r->changed_at <= publisher_moved_at(app->publisher);
    if (r != NULL) {
        resource_reply(request, r, as_file, &app->cache_fields);
    } else if (result == AWAIT_NONE) {
        reply_text(reply, 404, "Not Found");
    } else {
        reply_text(reply, 503, "Service Unavailable");
        reply_header(reply, "Retry-After", RETRY_AFTER_SECONDS);
    }
}

static void arrived(void *context, enum await_result result, struct resource *r)
{
    answer(context, result, r, false);
    request_resume(context);
}

static void arrived_as_file(void *context, enum await_result result, struct resource *r)
{
    answer(context, result, r, true);
    request_resume(context);
}

/* Whether the path is a file of a folder. Not with a query: sitemaps such as /sitemap.xml?page=1
 * are made by a program. Nor is robots.txt, which could get 503 here: crawlers read that as
 * "disallow everything". */
static bool is_file(const struct app_context *app, const struct request *request,
                    const char *origin, size_t *source, char *path)
{
    return app->files != NULL && origin != NULL && request->query == NULL &&
           strcmp(request->path, "/robots.txt") != 0 &&
           app->files_match(app->sources, origin, request->path, source, path);
}

/* Sitemaps of remote sources with `serve` are served from copies, by their locs. For served_file.h,
 * those of a site are the files of a source with this number, which no other source has. */
#define CHILDREN_OF(site_id) ((size_t)(-(site_id)))

static bool is_child(const struct app_context *app, const struct request *request,
                     const char *origin, char loc[LOC_MAX_CHARS + 1])
{
    struct str text = STR_INIT;
    struct url url;

    if (app->files == NULL || origin == NULL || app->serves_children == NULL ||
        !app->serves_children(app->source_set) || strcmp(request->path, "/robots.txt") == 0)
        return false;
    str_append_text(&text, origin);
    str_append_text(&text, request->path);
    if (request->query != NULL) {
        str_append_char(&text, '?');
        str_append_text(&text, request->query);
    }
    bool is = !text.failed && url_parse(str_text(&text), text.len, &url, NULL) == RULE_OK;
    if (is)
        memcpy(loc, url.text, (size_t)url.len + 1);
    str_done(&text);
    return is;
}

/* A request that waits for a copy. */
struct child_wait {
    struct request *request;
    bool was_fetched; /* the missing copy was fetched; this is done once */
    char loc[LOC_MAX_CHARS + 1];
};

static void child_arrived(void *context, enum await_result result, struct resource *r);

static void child_fetched(void *context)
{
    struct child_wait *w = context;
    struct app_context *app = w->request->state;

    served_files_await(app->files, CHILDREN_OF(w->request->site_id), w->loc, w->request->site_id,
                       child_arrived, w);
}

static void child_arrived(void *context, enum await_result result, struct resource *r)
{
    struct child_wait *w = context;
    struct app_context *app = w->request->state;

    if (result == AWAIT_UNAVAILABLE && r == NULL && !w->was_fetched) {
        w->was_fetched = true;
        app->fetch_child(app->source_set, w->request->site_id, w->loc, child_fetched, w);
        return;
    }
    arrived(w->request, result, r);
    free(w);
}

static enum handled child_get(struct app_context *app, struct request *request, const char *loc)
{
    request->state = app;
    struct resource *r = served_files_get(app->files, CHILDREN_OF(request->site_id), loc);
    struct child_wait *w = r == NULL && request_may_wait(request) ? malloc(sizeof *w) : NULL;
    if (w == NULL) {
        answer(request, AWAIT_UNAVAILABLE, r, false);
        return HANDLED;
    }
    w->request = request;
    w->was_fetched = false;
    memcpy(w->loc, loc, strlen(loc) + 1);
    served_files_await(app->files, CHILDREN_OF(request->site_id), w->loc, request->site_id,
                       child_arrived, w);
    return HANDLE_LATER;
}

/* Answers a path that nothing else of the site has: with a file of a source, a child, or 404.
 * `origin` is the site's, borrowed for the call. */
static enum handled files_get(struct app_context *app, struct request *request, const char *origin)
{
    char path[SOURCE_MAX_PATH_BYTES + 1], loc[LOC_MAX_CHARS + 1];
    size_t source;

    if (!is_file(app, request, origin, &source, path)) {
        if (is_child(app, request, origin, loc))
            return child_get(app, request, loc);
        reply_text(&request->reply, 404, "Not Found");
        return HANDLED;
    }
    request->state = app;
    struct resource *r = served_files_get(app->files, source, path);
    if (r != NULL || !request_may_wait(request)) {
        answer(request, AWAIT_UNAVAILABLE, r, false);
        return HANDLED;
    }
    served_files_await(app->files, source, path, request->site_id, arrived, request);
    return HANDLE_LATER;
}

static enum handled get_page(struct app_context *app, struct request *request,
                             const struct site_target *found)
{
    struct resource *s = place_resource(found->page);

    /* The clock was set back since the replies of the page were made: their Last-Modified would be
     * later than their Date. */
    if (s != NULL && s->dated_at > request->now && publisher_forget(app->publisher, found->page)) {
        resource_unref(s);
        s = NULL;
    }
    bool as_file = found->kind == ROUTE_PAGE_GZ;
    request->state = app;
    if (s != NULL || !request_may_wait(request)) {
        answer(request, AWAIT_UNAVAILABLE, s, as_file);
        return HANDLED;
    }
    cache_await(found->page, found->site_id, as_file ? arrived_as_file : arrived, request);
    return HANDLE_LATER;
}

/* The robots.txt of a site is in memory, so it is never answered with 5xx, which crawlers read as
 * "disallow everything". It has one representation, hence no Vary; and no Last-Modified, since
 * neither the pages nor the configuration of which it is made have a date for it. */
static void get_robots(const struct app_context *app, struct request *request,
                       const struct site_target *found)
{
    resource_ref(found->robots);
    resource_reply(request, found->robots, false, &app->cache_fields);
}

static void get_alias(const struct app_context *app, struct request *request,
                      const struct site_target *found)
{
    struct reply *reply = &request->reply;

    reply->status = 301;
    reply_header(reply, "Location", found->text);
    reply_header(reply, "Cache-Control", app->cache_fields.cache_control);
}

static bool has_date(const struct request *request)
{
    return request_header(request, HEADER_IF_MODIFIED_SINCE) != NULL ||
           request_header(request, HEADER_IF_UNMODIFIED_SINCE) != NULL ||
           request_header(request, HEADER_IF_RANGE) != NULL;
}

/* Whether the host is that of an origin. Any other name may lead to different sites over time: a
 * removed alias leaves no trace, and an unknown name leads to the only site there is. */
static bool is_origin_host(const struct page_map *routing, const char *host)
{
    return host != NULL && registry_is_origin_host(page_map_registry(routing), host);
}

/* Whether the request is from a remote source of this same catalogue, whose upstream's name leads
 * here (RFC 8586). It would mirror what this server serves, and never change again. */
static bool is_loop(const struct request *request, const struct registry *registry)
{
    const char *loop = request_header(request, HEADER_CDN_LOOP), *own;
    return loop != NULL && (own = strstr(loop, "sitemapd-")) != NULL &&
           strncmp(own + strlen("sitemapd-"), registry->epoch, strlen(registry->epoch)) == 0;
}

static bool accepts_query(const struct site_target *found)
{
    return (found->kind == ROUTE_PAGE || found->kind == ROUTE_PAGE_GZ) &&
           publisher_accepts_query(found->page);
}

static enum handled get_public(void *context, struct request *request)
{
    struct app_context *app = context;
    const struct page_map *routing = publisher_page_map(app->publisher);
    enum handled handled = HANDLED;
    struct site_target found;
    struct shared_state shared;

    page_map_find(routing, request->host, request->path, &found);
    /* With a query it may be another file: children such as /sitemap.xml?page=1 exist. */
    if (request->query != NULL && found.kind != ROUTE_ROBOTS && !accepts_query(&found))
        found.kind = ROUTE_NONE;
    request->site_id = found.site_id;
    if (is_loop(request, page_map_registry(routing))) {
        reply_text(&request->reply, 508, "Loop Detected");
    } else if (page_map_registry(routing)->site_count == 0 &&
               catalogue_shared_state(app->catalogue, &shared)) { /* the node has not joined yet */
        reply_text(&request->reply, 503, "This node has no site yet");
        reply_header(&request->reply, "Retry-After", "5");
    } else if (!found.host_known) {
        reply_text(&request->reply, 421,
                   page_map_registry(routing)->site_count > 0
                       ? "Misdirected Request"
                       : "There is no site here yet; `sitemapd site add ORIGIN` creates one");
    } else {
        request->undated = has_date(request) && !is_origin_host(routing, request->host);
        switch (found.kind) {
        case ROUTE_PAGE:
        case ROUTE_PAGE_GZ:
            handled = get_page(app, request, &found);
            break;
        case ROUTE_ROBOTS:
        case ROUTE_KEY:
            get_robots(app, request, &found);
            break;
        case ROUTE_ALIAS:
            get_alias(app, request, &found);
            break;
        case ROUTE_NONE:
            handled = files_get(app, request, found.origin);
            break;
        }
    }
    publisher_page_map_done(routing);
    return handled;
}

const struct route routes_public = {
    .methods = HTTP_GET,
    .label = "public",
    .asks_to_wait = true,
    .finish = get_public,
};
