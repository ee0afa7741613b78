#include <string.h>

#include "server/http/request.h"
#include "server/publish/publisher.h"
#include "server/routes/files.h"
#include "server/routes/routes.h"
#include "server/rules/negotiate.h"

/* The public listener: index pages, their .gz twins, robots.txt and aliases, then the files of
 * sources. A page in memory is answered at once; a cold one waits for its build, on no thread. */

#define RETRY_AFTER_SECONDS "5"

static void reply_unavailable(struct reply *reply)
{
    reply_text(reply, 503, "Service Unavailable");
    reply_header(reply, "Retry-After", RETRY_AFTER_SECONDS);
}

static enum representation choose(const struct request *request, enum route_kind kind)
{
    if (kind == ROUTE_PAGE_GZ)
        return REPRESENT_FILE;
    return negotiate_gzip(request_header(request, HEADER_ACCEPT_ENCODING)) ? REPRESENT_GZIP
                                                                           : REPRESENT_IDENTITY;
}

static const char *etag_of(const struct snapshot *s, enum representation represent)
{
    switch (represent) {
    case REPRESENT_GZIP:
        return s->etag_gzip;
    case REPRESENT_FILE:
        return s->etag_file;
    case REPRESENT_IDENTITY:
    case REPRESENTATIONS:
        break;
    }
    return s->etag_identity;
}

static bool is_not_modified(const struct request *request, const char *etag, int64_t changed_at,
                            bool same_second)
{
    return negotiate_not_modified(request_header(request, HEADER_IF_NONE_MATCH),
                                  request_header(request, HEADER_IF_MODIFIED_SINCE), etag,
                                  changed_at, same_second, request->now);
}

/* Takes the reference. A page without entries has no valid form: the schema wants one at least. */
static void reply_page(struct request *request, struct snapshot *s, enum route_kind kind)
{
    struct reply *reply = &request->reply;

    if (s->entries == 0) {
        snapshot_unref(s);
        reply_text(reply, 404, "Not Found");
        return;
    }
    reply->represent = choose(request, kind);
    reply->status =
        is_not_modified(request, etag_of(s, reply->represent), s->changed_at, s->same_second) ? 304
                                                                                              : 200;
    reply->snapshot = s;
}

/* What a waiting request is: its kind, without an allocation. */
static const enum route_kind kind_page = ROUTE_PAGE, kind_gz = ROUTE_PAGE_GZ;

static void page_arrived(void *context, enum await_result result, struct snapshot *snapshot)
{
    struct request *request = context;
    enum route_kind kind = *(const enum route_kind *)request->state;

    if (snapshot != NULL)
        reply_page(request, snapshot, kind);
    else if (result == AWAIT_DONE)
        reply_text(&request->reply, 404, "Not Found");
    else
        reply_unavailable(&request->reply);
    request_resume(request);
}

static enum handled get_page(struct app_context *app, struct request *request,
                             const struct route_found *found)
{
    struct snapshot *s = slot_snapshot(found->slot);

    if (s != NULL) {
        reply_page(request, s, found->kind);
        return HANDLED;
    }
    if (!request_may_wait(request)) {
        reply_unavailable(&request->reply);
        return HANDLED;
    }
    request->state = (void *)(found->kind == ROUTE_PAGE_GZ ? &kind_gz : &kind_page);
    publisher_await_page(app->publisher, found->slot, page_arrived, request);
    return HANDLE_LATER;
}

/* robots.txt never answers 5xx, which crawlers take for "disallow everything". It has one
 * representation, hence no Vary. */
static void get_robots(const struct app_context *app, struct request *request,
                       const struct route_found *found)
{
    struct reply *reply = &request->reply;
    int64_t changed_at = found->robots_changed_at;
    char date[30];

    reply->status = 200;
    reply->content_type = "text/plain; charset=utf-8";
    str_append(&reply->body, found->text, found->text_len);
    reply_header(reply, "ETag", found->robots_etag);
    if (changed_at > 0) {
        http_date_format(changed_at < request->now ? changed_at : request->now, date);
        reply_header(reply, "Last-Modified", date);
    }
    reply_header(reply, "Cache-Control", app->cache_control);
    /* An unknown time is later than any date, so that only the tag counts. */
    if (is_not_modified(request, found->robots_etag, changed_at > 0 ? changed_at : INT64_MAX,
                        false)) {
        reply->status = 304;        /* with the body's length, which the listener does not send */
        reply->content_type = NULL; /* RFC 9110 15.4.5 */
    }
}

static void get_alias(const struct app_context *app, struct request *request,
                      const struct route_found *found)
{
    struct reply *reply = &request->reply;

    reply->status = 301;
    reply_header(reply, "Location", found->text);
    reply_header(reply, "Cache-Control", app->cache_control);
}

static enum handled get_public(void *context, struct request *request)
{
    struct app_context *app = context;
    const struct routing *routing = publisher_routing(app->publisher);
    enum handled handled = HANDLED;
    struct route_found found;

    routing_find(routing, request->host, request->path, &found);
    /* With a query it is another file: children such as /sitemap.xml?page=1 exist. */
    if (request->query != NULL && found.kind != ROUTE_ROBOTS)
        found.kind = ROUTE_NONE;
    if (!found.host_known) {
        reply_text(&request->reply, 421, "Misdirected Request");
    } else {
        switch (found.kind) {
        case ROUTE_PAGE:
        case ROUTE_PAGE_GZ:
            handled = get_page(app, request, &found);
            break;
        case ROUTE_ROBOTS:
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
    publisher_routing_done(routing);
    return handled;
}

const struct route routes_public = {
    .methods = HTTP_GET,
    .label = "public",
    .asks_to_wait = true,
    .finish = get_public,
};
