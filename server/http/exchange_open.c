#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server/http/forwarded.h"
#include "server/http/header_read.h"
#include "server/http/internal.h"
#include "server/http/route_match.h"
#include "server/http/status.h"

/* The first call of a request: its headers are known, nothing of its body is read. Here it is
 * refused, or gets its route. */

static bool refuse(struct exchange *e, unsigned status, const char *code, const char *detail)
{
    exchange_error(e, status, code, detail);
    return false;
}

/* Says what is taken: a client that sets no type of its own often sends a form's. */
static bool refuse_type(struct exchange *e, const char *const *types)
{
    char detail[128] = "Content-Type must be ";

    for (size_t i = 0; types[i] != NULL; i++) {
        size_t len = strlen(detail);

        snprintf(detail + len, sizeof detail - len, "%s%s", i > 0 ? " or " : "", types[i]);
    }
    return refuse(e, 415, "content-type-not-supported", detail);
}

/* The host that the client asked for: a listed proxy tells it in X-Forwarded-Host, the last of the
 * list being what it put there itself. Cut out of the header in place. */
static const char *effective_host(struct exchange *e)
{
    const char *forwarded = e->headers.value[HEADER_X_FORWARDED_HOST];

    if (forwarded == NULL || !e->connection->trusted_proxy)
        return e->headers.value[HEADER_HOST];
    const char *comma = strrchr(forwarded, ',');
    const char *last = comma == NULL ? forwarded : comma + 1;
    return last + strspn(last, " \t");
}

/* Who asks: the connection's peer, or the client that a listed proxy speaks for. */
static const char *effective_peer(struct exchange *e)
{
    const struct connection *c = e->connection;
    const char *list = header_scan_value(&e->headers, HEADER_X_FORWARDED_FOR);

    if (list != NULL && c->trusted_proxy &&
        forwarded_client(list, c->listener->trusted, c->listener->options.trusted_proxy_count,
                         e->client))
        return e->client;
    return c->peer;
}

static void fill(struct exchange *e, const char *method, const char *version)
{
    struct request *request = &e->request;
    const struct listener *l = e->connection->listener;

    header_read(e->mhd, method, version, &e->headers);
    e->method = method;
    e->version = version;
    e->row = l->options.route_count + 1; /* until it has a route */
    request->method = method_parse(method);
    request->path = "";
    request->peer = effective_peer(e);
    request->id = e->headers.value[HEADER_X_REQUEST_ID];
    if (request->id != NULL && !request_id_check(request->id))
        request->id = NULL;
    if (request->id == NULL && l->options.request_ids)
        request->id = request_id_make(e->own_id);
    request->header = &e->headers;
    request->exchange = e;
    request->now = (int64_t)time(NULL);
    e->has_body = e->headers.lines[HEADER_TRANSFER_ENCODING] > 0;
    uint64_t length;
    if (check_content_length(&e->headers, &length) && length > 0)
        e->has_body = true;
    e->expects_continue = e->has_body && check_expects_continue(&e->headers, version);
    e->started_ns = measure_now_ns();
}

/* What is wrong with the message itself. */
static bool check_message(struct exchange *e, bool *fatal)
{
    const struct listener *l = e->connection->listener;
    struct request *request = &e->request;
    const char *host = e->headers.value[HEADER_HOST];
    const char *authority = NULL;

    *fatal = true;
    const char *why = check_framing(&e->headers, e->version);
    if (why != NULL)
        return refuse(e, 400, "malformed-request", why);
    if (host == NULL && strcmp(e->version, "HTTP/1.0") != 0) /* RFC 9112 3.2 */
        return refuse(e, 400, "host-missing", "the Host header is missing");
    if (host != NULL && !check_host(host)) /* likewise */
        return refuse(e, 400, "malformed-request", "the Host header is malformed");
    if (request->method == HTTP_OTHER) {
        *fatal = false;
        return refuse(e, 501, "method-unknown", "the method is not known");
    }
    if (e->headers.failed)
        return refuse(e, 503, "no-memory", "out of memory");
    if (e->target_too_long)
        return refuse(e, 414, "uri-too-long", "the request target is too long");
    if (e->target == NULL)
        return refuse(e, 503, "no-memory", "out of memory");
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(e->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (size != NULL && size->header_size > l->options.max_header_bytes)
        return refuse(e, 431, "header-too-large", "the request's header is too large");
    switch (check_target(e->target, host, &request->path, &request->query, &authority)) {
    case TARGET_MALFORMED:
        return refuse(e, 400, "malformed-request", "the request target is malformed");
    case TARGET_OTHER_HOST:
        return refuse(e, 400, "malformed-request", "the request target and Host differ");
    case TARGET_ASTERISK:
        if (request->method != HTTP_OPTIONS)
            return refuse(e, 400, "malformed-request", "the request target is malformed");
        break;
    case TARGET_OK:
        break;
    }
    *fatal = false;
    request->host = authority != NULL ? authority : effective_host(e);
    /* A browser always sends Host; without it this is HTTP/1.0, a simple probe. */
    if (host == NULL)
        host = authority;
    if (l->options.check_host && host != NULL && !check_host_is_local(host) &&
        !check_host_is_listed(host, l->options.allowed_hosts, l->options.allowed_host_count))
        return refuse(e, 421, "host-not-allowed",
                      "this listener answers for IP addresses, localhost and the configured "
                      "allowed_hosts only");
    return true;
}

static bool answer_options(struct exchange *e, unsigned methods)
{
    struct reply *reply = &e->request.reply;
    char allow[METHOD_ALLOW_SIZE];

    method_allow(methods, allow);
    reply->status = 204;
    reply_header(reply, "Allow", allow);
    reply_header(reply, "Cache-Control", "no-store");
    return false;
}

static bool find_route(struct exchange *e)
{
    const struct listener_options *options = &e->connection->listener->options;
    struct request *request = &e->request;
    struct route_match match;

    if (strcmp(request->path, "*") == 0) /* the whole server: what any resource may take */
        return answer_options(
            e, HTTP_GET |
                   (options->problem_json ? HTTP_POST | HTTP_PUT | HTTP_PATCH | HTTP_DELETE : 0));
    route_match(options->routes, options->route_count, options->fallback, request->path,
                request->method, &match);
    if (match.allowed == 0)
        return refuse(e, 404, "not-found", "there is nothing at this path");
    e->row = e->connection->listener->rows[match.index];
    if (request->method == HTTP_OPTIONS && match.route == NULL)
        return answer_options(e, match.allowed);
    if (match.route == NULL) {
        char allow[METHOD_ALLOW_SIZE];
        method_allow(match.allowed, allow);
        exchange_error(e, 405, "method-not-allowed", "the method is not allowed here");
        reply_header(&request->reply, "Allow", allow);
        return false;
    }
    request->route = match.route;
    if (match.tail != NULL) {
        if (!check_decode_segment(match.tail, match.tail_len, &e->tail))
            return refuse(e, 400, "malformed-request", "the path is malformed");
        request->path_tail = e->tail.data;
    }
    return true;
}

/* What is wrong with the body, before any of it is read. */
static bool check_body(struct exchange *e)
{
    const struct request *request = &e->request;
    const struct route *route = request->route;
    uint64_t length = 0;
    bool known = check_content_length(&e->headers, &length);
    uint64_t most = IGNORED_BODY_MAX;

    e->takes_body =
        route->max_body_bytes > 0 && (request->method & (HTTP_POST | HTTP_PUT | HTTP_PATCH)) != 0;
    if (e->takes_body) {
        most = route->max_body_bytes;
        if (!known && !e->has_body)
            return refuse(e, 411, "length-required", "the body's length is missing");
    }
    if (length > most)
        return refuse(e, 413, "body-too-large",
                      e->takes_body ? "the body is too large" : "this request takes no body");
    if (e->takes_body && route->content_types != NULL &&
        !check_content_type(e->headers.value[HEADER_CONTENT_TYPE], route->content_types))
        return refuse_type(e, route->content_types);
    return true;
}

bool exchange_open(struct exchange *e, const char *method, const char *version, bool *fatal)
{
    const struct listener_options *options = &e->connection->listener->options;

    fill(e, method, version);
    if (!check_message(e, fatal) || !find_route(e))
        return false;
    if (e->request.route->authorised &&
        (options->authorise == NULL || !options->authorise(options->context, &e->request))) {
        if (e->request.reply.status == 0)
            exchange_error(e, 401, "unauthorised", "a token is needed");
        return false;
    }
    return check_body(e);
}
