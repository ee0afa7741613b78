/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* An exchange: one request and its reply, on its connection's thread. libmicrohttpd calls
 *
 * - exchange_target with the request line: the target is copied before the library cuts it up;
 * - exchange_handle with the header (first_call): the request is filled in, and its message
 *   (check_message), route (find_route), token (authorise) and announced body (check_body) are
 *   checked; with each piece of the body (body_call), which is counted and passed to the route's
 *   hook; and when the body is complete (finish_call), for `finish`, `answer` and the reply;
 * - exchange_completed when the reply is out or the connection lost: counted, logged, freed;
 * - exchange_read_log when the library is about to refuse the request itself.
 *
 * How the reply is sent: send.c. How a request is refused: `refuse`. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/http/headers.h"
#include "server/http/internal.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define TARGET_MAX   8192u   /* bytes of a request target; longer: 414 */
#define FIELDS_MAX   100u    /* of a request's header; more: 431. POOL_BESIDE_HEADER has them */
#define STREAM_KEEPS 393216u /* of a body that is parsed as it arrives: its longest item */
#define IGNORED_BODY_MAX                                                                           \
    8192u /* a body where none is expected: up to this size it is read and dropped */
/* Memory of the library that a request line must leave free, so that a header fits. */
#define LEAST_BEHIND_LINE 1024u

/* ---- How a request waits -------------------------------------------------------------------
 *
 * The hook hands its work over and only then answers HANDLE_LATER, so the
 * resume may come before, while or after the connection is suspended:
 *
 *   connection's thread             resuming thread
 *   hook answers HANDLE_LATER
 *   (wait is RESUMED? go on)        wait := RESUMED; was it SUSPENDED?
 *   MHD_suspend_connection            yes: MHD_resume_connection
 *   NONE -> SUSPENDED                 no: nothing, the connection's thread will see it
 *     failed: MHD_resume_connection
 *
 * libmicrohttpd thus sees a suspend, then one resume, always in this order. */

/* Reserves one of the places for waiting requests, unless the request has one. False if none is
 * free, or the server is stopping. */
static bool wait_reserve(struct exchange *e)
{
    struct listener *l = e->connection->listener;

    if (e->reserved)
        return true;
    /* The exchange counts as active already; so either this sees the stop, or the stop sees it. */
    if (listener_refuses(l))
        return false;
    e->reserved_of = e->request.grant.site_id;
    e->reserved = site_uses_take(&l->waiting, e->reserved_of, 1, l->options.max_suspended);
    return e->reserved;
}

/* Releases the place of the request, if it has one. */
static void wait_release(struct exchange *e)
{
    if (!e->reserved)
        return;
    e->reserved = false;
    site_uses_give(&e->connection->listener->waiting, e->reserved_of, 1);
}

bool request_may_wait(struct request *request)
{
    return request->exchange == NULL || wait_reserve(request->exchange);
}

/* The library reads from a resumed connection before it goes on with the request. If the client has
 * closed its side, it drops the request, although all of it has come. It does not do so if the
 * connection has a timeout: it handles those connections first. */
#define WAITING_S 86400u /* the library's timeout; the server's own are all shorter */

/* `seconds` 0: none, as for every connection that does not wait. */
static void set_timeout(struct exchange *e, unsigned seconds)
{
    MHD_set_connection_option(e->mhd, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

/* Any thread: the library wakes only threads of its own. */
static void resume(struct worker *worker, struct MHD_Connection *mhd)
{
    MHD_resume_connection(mhd);
    worker_wake(worker);
}

/* After HANDLE_LATER: true if the connection is suspended or will be called again; false if
 * request_resume was already called, so that the caller continues at once. */
static bool wait_begin(struct exchange *e)
{
    e->later = true;
    if (!e->reserved) { /* the hook did not reserve a place: count the request nevertheless */
        e->reserved_of = 0;
        e->reserved = site_uses_take(&e->connection->listener->waiting, 0, 1, UINT64_MAX);
    }
    if (atomic_load(&e->wait) == WAIT_RESUMED)
        return false;
    deadline_clear(e->connection);
    e->wait_start_ms = clock_coarse_ms();
    set_timeout(e, WAITING_S);
    MHD_suspend_connection(e->mhd);
    int expected = WAIT_NONE;
    if (!atomic_compare_exchange_strong(&e->wait, &expected, WAIT_SUSPENDED))
        resume(e->connection->worker, e->mhd);
    return true;
}

/* True if a wait was resumed; acquires what the other thread wrote, and ends the wait. */
static bool wait_ended(struct exchange *e)
{
    if (!e->later || atomic_load(&e->wait) != WAIT_RESUMED)
        return false;
    atomic_store(&e->wait, WAIT_NONE);
    e->later = false;
    if (e->wait_start_ms != 0) {
        e->body_start_ms += clock_coarse_ms() - e->wait_start_ms;
        set_timeout(e, 0);
    }
    e->wait_start_ms = 0;
    wait_release(e);
    return true;
}

bool request_is_gone(const struct request *request)
{
    if (request->exchange == NULL)
        return false;
    /* The descriptor stays open while the request waits. */
    struct pollfd fd = {.fd = request->exchange->connection->fd, .events = POLLRDHUP};
    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void request_resume(struct request *request)
{
    struct exchange *e = request->exchange;

    if (e == NULL) {
        if (request->answer != NULL)
            request->answer(request);
        if (request->resume != NULL)
            request->resume(request);
        return;
    }
    struct listener *l = e->connection->listener;
    struct worker *worker = e->connection->worker;
    struct MHD_Connection *mhd = e->mhd;
    /* After the exchange of `wait`, the connection's thread may complete the request. A stop does
     * not end the daemon until this thread has left libmicrohttpd. */
    atomic_fetch_add(&l->resuming, 1);
    if (atomic_exchange(&e->wait, WAIT_RESUMED) == WAIT_SUSPENDED)
        resume(worker, mhd);
    atomic_fetch_sub(&l->resuming, 1);
}

/* ---- the first call: the header is known, nothing of the body is read */

static bool decline(struct exchange *e, unsigned status, const char *code, const char *detail)
{
    exchange_error(e, status, code, detail);
    return false;
}

/* The answer names the accepted types: clients without a configured type often send that of a
 * form. */
static bool refuse_type(struct exchange *e, const char *const *types)
{
    char detail[256] = "Content-Type must be ";

    for (size_t i = 0; types[i] != NULL; i++) {
        size_t len = strlen(detail);

        snprintf(detail + len, sizeof detail - len, "%s%s", i > 0 ? " or " : "", types[i]);
    }
    size_t len = strlen(detail);
    snprintf(detail + len, sizeof detail - len,
             " (with curl: -H 'Content-Type: %s' --data-binary @FILE)", types[0]);
    return decline(e, 415, "content-type-not-supported", detail);
}

/* The host that the client requested: a trusted proxy sends it in X-Forwarded-Host, whose last
 * element the proxy itself added. Extracted from the header in place. */
static const char *effective_host(struct exchange *e)
{
    const char *forwarded = e->headers.value[HEADER_X_FORWARDED_HOST];

    if (forwarded == NULL || !e->connection->trusted_proxy)
        return e->headers.value[HEADER_HOST];
    const char *comma = strrchr(forwarded, ',');
    const char *last = comma == NULL ? forwarded : comma + 1;
    return last + strspn(last, " \t");
}

/* The client: the connection's peer, or the client that a trusted proxy names. */
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

/* Fills in what does not depend on the header. */
static void initialise(struct exchange *e)
{
    struct request *request = &e->request;

    e->row = e->connection->listener->options.route_count + 1; /* used until it has a route */
    e->started_ns = clock_now_ns();
    request->path = "";
    request->peer = e->connection->peer;
    request->header = &e->headers;
    request->exchange = e;
    request->now = (int64_t)time(NULL);
}

static void identify(struct exchange *e)
{
    struct request *request = &e->request;

    request->id = e->headers.value[HEADER_X_REQUEST_ID];
    if (request->id != NULL && !request_id_check(request->id))
        request->id = NULL;
    if (request->id == NULL && e->connection->listener->options.request_ids)
        request->id = request_id_make(e->own_id);
}

/* `method`: NULL if it is not known. */
static void fill(struct exchange *e, const char *method, const char *version)
{
    struct request *request = &e->request;

    header_read(e->mhd, method, version, &e->headers);
    e->method = method;
    e->version = version;
    initialise(e);
    request->method = method != NULL ? method_parse(method) : HTTP_OTHER;
    request->peer = effective_peer(e);
    identify(e);
    e->has_body = e->headers.lines[HEADER_TRANSFER_ENCODING] > 0;
    uint64_t length;
    if (check_content_length(&e->headers, &length) && length > 0)
        e->has_body = true;
    e->expects_continue = e->has_body && check_expects_continue(&e->headers, version);
}

static bool decline_target(struct exchange *e)
{
    return decline(e, 414, "uri-too-long", "the request target is too long");
}

/* Checks the message itself. False: the reply is filled; `*fatal` as in exchange_open. Checks the
 * size of the header early, since a large one leaves the library no room for a reply. */
static bool check_message(struct exchange *e, bool *fatal)
{
    const struct listener *l = e->connection->listener;
    struct request *request = &e->request;
    const char *host = e->headers.value[HEADER_HOST];
    const char *authority = NULL;

    *fatal = true;
    const char *why = check_framing(&e->headers, e->version);
    if (why != NULL)
        return decline(e, 400, "malformed-request", why);
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(e->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (size != NULL && size->header_size > l->options.max_header_bytes) {
        if (e->target_too_long)
            return decline_target(e);
        return decline(e, 431, "header-too-large",
                       "the request header is too large (max_header_bytes)");
    }
    if (e->headers.fields > FIELDS_MAX)
        return decline(e, 431, "header-too-large", "the request header has too many fields");
    if (host == NULL && strcmp(e->version, "HTTP/1.0") != 0) /* RFC 9112 3.2 */
        return decline(e, 400, "host-missing", "the Host header is missing");
    if (host != NULL && !check_host(host)) /* likewise */
        return decline(e, 400, "malformed-request", "the Host header is malformed");
    if (request->method == HTTP_OTHER) {
        *fatal = false;
        return decline(e, 501, "method-unknown", "unknown method");
    }
    if (e->headers.failed)
        return decline(e, 503, "no-memory", "out of memory");
    if (e->target_too_long)
        return decline_target(e);
    if (e->target == NULL)
        return decline(e, 503, "no-memory", "out of memory");
    switch (check_target(e->target, host, &request->path, &request->query, &authority)) {
    case TARGET_MALFORMED:
        return decline(e, 400, "malformed-request", "the request target is malformed");
    case TARGET_OTHER_HOST:
        return decline(e, 400, "malformed-request", "the request target and Host differ");
    case TARGET_ASTERISK:
        if (request->method != HTTP_OPTIONS)
            return decline(e, 400, "malformed-request", "the request target is malformed");
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
        !check_host_is_listed(host, l->options.allowed_hosts, l->options.allowed_host_count) &&
        !check_host_is_listed(host, &l->options.own_host, l->options.own_host != NULL))
        return decline(
            e, 421, "host-not-allowed",
            "this listener only answers requests for IP addresses, localhost and allowed_hosts");
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

    if (strcmp(request->path, "*") == 0) /* the server: all methods of its resources */
        return answer_options(
            e, HTTP_GET |
                   (options->problem_json ? HTTP_POST | HTTP_PUT | HTTP_PATCH | HTTP_DELETE : 0));
    route_match(options->routes, options->route_count, options->fallback, request->path,
                request->method, &match);
    if (match.allowed == 0)
        return decline(e, 404, "not-found", "not found: there is nothing at this path");
    e->row = e->connection->listener->rows[match.index];
    if (request->method == HTTP_OPTIONS && match.route == NULL)
        return answer_options(e, match.allowed);
    if (match.route == NULL) {
        char allow[METHOD_ALLOW_SIZE];
        method_allow(match.allowed, allow);
        exchange_error(e, 405, "method-not-allowed",
                       "method not allowed; the Allow header lists the methods of this path");
        reply_header(&request->reply, "Allow", allow);
        return false;
    }
    request->route = match.route;
    if (match.tail != NULL) {
        if (!check_decode_segment(match.tail, match.tail_len, &e->tail))
            return decline(e, 400, "malformed-request", "the path is malformed");
        request->path_tail = e->tail.data;
    }
    return true;
}

/* Checks the announced body, before any of it is read. False: the reply is filled. */
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
            return decline(e, 411, "length-required",
                           "the length of the body is missing (Content-Length or chunked)");
    }
    if (length > most)
        return decline(e, 413, "body-too-large",
                       e->takes_body ? "the body is too large" : "this request takes no body");
    if (e->takes_body && route->content_types != NULL &&
        !check_content_type(e->headers.value[HEADER_CONTENT_TYPE], route->content_types))
        return refuse_type(e, route->content_types);
    return true;
}

/* The first call: the header is complete, nothing of the body was read. True: continue with the
 * request; false: the reply is filled. `*fatal`: send it now and close the connection. */
static bool exchange_open(struct exchange *e, bool *fatal)
{
    const struct listener_options *options = &e->connection->listener->options;

    if (!check_message(e, fatal) || !find_route(e))
        return false;
    if (e->request.route->role != GRANT_ALL &&
        (options->authorise == NULL || !options->authorise(options->context, &e->request))) {
        if (e->request.reply.status == 0)
            exchange_error(e, 401, "unauthorised", "the token is missing");
        return false;
    }
    return check_body(e);
}

/* ---- the callbacks of libmicrohttpd */

static void clear(struct exchange *e)
{
    size_t from = offsetof(struct exchange, headers);
    size_t to = offsetof(struct exchange, request.reply.headers);

    memset((char *)e + from, 0, to - from);
    atomic_init(&e->wait, WAIT_NONE);
}

/* Sends a reply that was filled before the request was complete. */
static enum MHD_Result refuse(struct exchange *e, bool fatal)
{
    e->replied = true;
    if (fatal)
        e->request.reply.close = true;
    /* A client that waits for 100 sends nothing more: it gets the reply instead, through the
     * library, which then closes the connection. Without a body the reply waits for the next call,
     * so that the connection can be kept. After a fatal mistake the library's memory may be full,
     * and has no room for a reply. */
    if (e->expects_continue && !fatal)
        return exchange_queue(e);
    return e->has_body || fatal ? exchange_send_early(e) : MHD_YES;
}

/* Requests that libmicrohttpd refuses itself, before the first call. Its replies have no
 * Content-Type, and 0.9.75 replies twice to two errors: an invalid Content-Length, and a header
 * that leaves less than 80 bytes of its memory, which it wants for cookies even if none exist.
 * But it logs a line before it replies. The line does not name the request: that is the one of this
 * thread whose header is whole and that had no first call, since the library does nothing else on
 * the thread between the two. So exchange_read_log sends the refusal and shuts our side of the
 * socket, and what the library then sends is lost. Requests that it refuses before the header is
 * whole (its memory is used up, a line has no colon) get its own reply. */
static _Thread_local struct exchange *heads;

static void heads_enter(struct exchange *e)
{
    if (parser_is_strict())
        return;
    e->next_head = heads;
    if (heads != NULL)
        heads->at_head = &e->next_head;
    e->at_head = &heads;
    heads = e;
}

static void heads_leave(struct exchange *e)
{
    if (e->at_head == NULL)
        return;
    *e->at_head = e->next_head;
    if (e->next_head != NULL)
        e->next_head->at_head = e->at_head;
    e->at_head = NULL;
}

static void refuse_unasked(struct exchange *e)
{
    heads_leave(e);
    e->begun = true;
    fill(e, NULL, e->version);
    const char *why = check_framing(&e->headers, e->version);
    if (e->target_too_long)
        decline_target(e);
    else if (why != NULL)
        decline(e, 400, "malformed-request", why);
    else
        decline(e, 431, "header-too-large", "the request header is too large (max_header_bytes)");
    if (refuse(e, true) != MHD_YES)
        shutdown(e->connection->fd, SHUT_WR); /* a client that reads nothing */
}

void exchange_read_log(void *cls, const char *format, va_list arguments)
{
    (void)cls;
    (void)format;
    (void)arguments;
    for (struct exchange *e = heads; e != NULL; e = e->next_head) {
        const union MHD_ConnectionInfo *size =
            MHD_get_connection_info(e->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        if (size != NULL && size->header_size > 0) {
            refuse_unasked(e);
            return;
        }
    }
}

/* Refuses a target that leaves hardly any room for the rest of the header: there may be no first
 * call. */
static void refuse_target(struct exchange *e)
{
    initialise(e);
    identify(e);
    decline_target(e);
    refuse(e, true);
}

void *exchange_target(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct listener *l = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info->socket_context;

    if (c == NULL)
        return NULL;
    struct exchange *e = &c->exchange;
    clear(e);
    atomic_store_explicit(&c->busy, true, memory_order_relaxed);
    counts_begin(l->counts);
    /* The library splits the target in place: path and query as they came are in this copy. */
    size_t len = strlen(uri);
    e->version = uri + len + 1; /* its address in libmicrohttpd 0.9.75: for refuse_unasked */
    if (len > TARGET_MAX)
        e->target_too_long = true;
    else
        e->target = len < TARGET_INLINE ? e->target_inline : malloc(len + 1);
    if (e->target != NULL)
        memcpy(e->target, uri, len + 1);
    header_read_prepare(mhd, uri);
    if (len > (size_t)l->options.max_header_bytes + POOL_BESIDE_HEADER - LEAST_BEHIND_LINE)
        refuse_target(e);
    else
        heads_enter(e);
    return e;
}

static enum MHD_Result refuse_with(struct exchange *e, unsigned status, const char *code,
                                   const char *detail)
{
    exchange_error(e, status, code, detail);
    return refuse(e, false);
}

/* The received part of the body is consumed. If no more arrives, is_left checks whether the client
 * has left. */
static void await_more(struct exchange *e)
{
    atomic_store_explicit(&e->connection->idle_since_ms, clock_coarse_ms(), memory_order_relaxed);
}

static void await_nothing(struct exchange *e)
{
    atomic_store_explicit(&e->connection->idle_since_ms, 0, memory_order_relaxed);
}

static enum MHD_Result first_call(struct exchange *e, const char *method, const char *version)
{
    struct listener *l = e->connection->listener;
    bool fatal = false;

    heads_leave(e);
    e->begun = true;
    await_nothing(e);
    fill(e, method, version);
    if (e->lingering) /* refuse_target has replied */
        return MHD_YES;
    /* Also without a body: if the library waits for one, it must not wait forever. */
    e->body_start_ms = clock_coarse_ms();
    deadline_set_body(e->connection, e->body_start_ms, l->body_timeout_ms, 0);
    if (!exchange_open(e, &fatal))
        return refuse(e, fatal);
    if (e->takes_body)
        atomic_store_explicit(&e->connection->header_since_ms, 0, memory_order_relaxed);
    const struct route *route = e->request.route;
    if (e->takes_body && !route->asks_to_wait && listener_refuses(l))
        return refuse_with(e, 503, "stopping", "the server is stopping");
    e->hooks_ran = true;
    if (route->begin != NULL && route->begin(l->options.context, &e->request) == HANDLED)
        return refuse(e, false);
    if (e->has_body)
        await_more(e);
    return MHD_YES;
}

static bool reserve(struct exchange *e)
{
    return e->request.route->asks_to_wait || wait_reserve(e);
}

static enum MHD_Result refuse_waiting(struct exchange *e)
{
    bool stopping = atomic_load(&e->connection->listener->quiescing);

    exchange_error(e, 503, stopping ? "stopping" : "too-many-waiting",
                   stopping ? "the server is stopping" : "too many requests are waiting");
    return MHD_YES;
}

/* Passes one piece to the hook. `*suspended`: it is not consumed yet. False: the reply is
 * filled. */
static bool give_piece(struct exchange *e, const char *bytes, size_t len, bool *suspended)
{
    struct request *request = &e->request;
    const struct route *route = request->route;

    if (!e->takes_body) {
        if (e->body_seen <= IGNORED_BODY_MAX)
            return true;
        exchange_error(e, 413, "body-too-large", "this request takes no body");
        return false;
    }
    if (e->body_seen > route->max_body_bytes) {
        exchange_error(e, 413, "body-too-large", "the body is too large");
        return false;
    }
    if (route->body == NULL) {
        str_append(&request->body, bytes, len);
        if (request->body.failed)
            exchange_error(e, 503, "no-memory", "out of memory");
        return !request->body.failed;
    }
    if (!reserve(e)) {
        refuse_waiting(e);
        return false;
    }
    enum handled handled =
        route->body(e->connection->listener->options.context, request, bytes, len);
    if (handled == HANDLE_LATER) {
        *suspended = wait_begin(e);
        if (*suspended)
            return true;
        wait_ended(e);
    }
    wait_release(e);
    return handled != HANDLED && request->reply.status == 0;
}

/* Accounts for the part of the body that is in memory. */
static void keep_body(struct exchange *e, uint64_t seen_before)
{
    uint64_t most = e->request.route->body == NULL ? UINT64_MAX : STREAM_KEEPS;

    if (e->takes_body && seen_before < most)
        exchange_keep(e, e->body_seen < most ? e->body_seen : most);
}

static enum MHD_Result body_call(struct exchange *e, const char *bytes, size_t *size)
{
    struct listener *l = e->connection->listener;
    bool suspended = false;

    if (e->replied) { /* the rest of a body after an early reply */
        *size = 0;
        return MHD_YES;
    }
    await_nothing(e);
    if (e->later && !wait_ended(e))
        return MHD_YES; /* called again too early: the piece is still being read */
    /* After a suspension the same piece is passed again, followed by what has arrived since. */
    if (e->piece_done > *size)
        return MHD_NO;
    size_t fresh = *size - e->piece_done;
    bool open = e->request.reply.status == 0;
    if (open && fresh > 0) {
        e->body_seen += fresh;
        keep_body(e, e->body_seen - fresh);
        open = give_piece(e, bytes + e->piece_done, fresh, &suspended);
    }
    if (suspended) {
        e->piece_done += fresh;
        return MHD_YES;
    }
    e->piece_done = 0;
    *size = 0;
    if (!open)
        return refuse(e, true);
    deadline_set_body(e->connection, e->body_start_ms, l->body_timeout_ms, e->body_seen);
    await_more(e);
    return MHD_YES;
}

static enum MHD_Result finish_call(struct exchange *e)
{
    struct request *request = &e->request;

    await_nothing(e);
    if (e->lingering)
        return MHD_NO; /* the early reply is sent, and the rest of the body read */
    atomic_store_explicit(&e->connection->header_since_ms, 0, memory_order_relaxed);
    if (e->replied)
        return exchange_queue(e);
    if (e->later && !wait_ended(e))
        return MHD_YES;
    if (!e->finish_ran) {
        e->finish_ran = true;
        deadline_clear(e->connection);
        if (!reserve(e)) {
            refuse_waiting(e);
        } else {
            enum handled handled =
                request->route->finish(e->connection->listener->options.context, request);
            if (handled == HANDLE_LATER) {
                if (wait_begin(e))
                    return MHD_YES;
                wait_ended(e);
            }
            wait_release(e);
        }
    }
    if (request->answer != NULL)
        request->answer(request);
    e->replied = true;
    return exchange_queue(e);
}

enum MHD_Result exchange_handle(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **req_cls)
{
    struct exchange *e = *req_cls;

    (void)cls;
    (void)mhd;
    (void)url;
    if (e == NULL)
        return MHD_NO; /* out of memory when the connection was made */
    if (!e->begun)
        return first_call(e, method, version);
    if (*upload_size > 0)
        return body_call(e, upload, upload_size);
    return finish_call(e);
}

static enum counts_encoding encoding_of(const struct exchange *e)
{
    const struct reply *reply = &e->request.reply;

    if (e->bytes_sent == 0)
        return COUNTS_NONE;
    return reply->resource != NULL && reply->represent == REPRESENT_GZIP ? COUNTS_GZIP
                                                                         : COUNTS_IDENTITY;
}

/* `whole`: all of the reply was sent. */
static void report(struct exchange *e, bool whole)
{
    struct listener *l = e->connection->listener;

    struct counts_answer answer = {
        .row = e->row,
        .status = e->status_sent,
        .encoding = encoding_of(e),
        .offered = e->request.reply.offered,
        .bytes = e->bytes_sent,
        .received = e->body_seen,
        .took_ns = clock_now_ns() - e->started_ns,
    };

    counts_add(l->counts, &answer);
    if (l->options.completed == NULL)
        return;
    const struct request *request = &e->request;
    bool split = request->path != NULL && *request->path != '\0'; /* else it was refused before */
    struct completion completion = {
        .request = request,
        .listener = l->name,
        .route = listener_row_label(l, e->row),
        .method = e->method,
        .version = e->version,
        .path = split ? request->path : e->target,
        .query = request->query,
        .referer = e->headers.value[HEADER_REFERER],
        .user_agent = e->headers.value[HEADER_USER_AGENT],
        .status = e->status_sent,
        .whole = whole,
        .body_bytes = e->bytes_sent,
        .micros = answer.took_ns / 1000,
    };
    l->options.completed(l->options.context, &completion);
}

void exchange_completed(void *cls, struct MHD_Connection *mhd, void **req_cls,
                        enum MHD_RequestTerminationCode toe)
{
    struct listener *l = cls;
    struct exchange *e = *req_cls;

    (void)mhd;
    if (e == NULL)
        return;
    *req_cls = NULL;
    heads_leave(e);
    if (e->status_sent != 0)
        report(e, toe == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    if (toe != MHD_REQUEST_TERMINATED_COMPLETED_OK && !e->lingering)
        atomic_fetch_add_explicit(&l->aborted, 1, memory_order_relaxed);
    if (e->hooks_ran && e->request.route->done != NULL)
        e->request.route->done(l->options.context, &e->request);
    wait_release(e);
    struct readers *readers = e->reader.of;
    enum held_kind kind = e->reader.held == NULL ? HELD_PAGE : e->reader.held->kind;
    uint64_t ended = readers_leave(&e->reader);
    reply_done(&e->request.reply);
    if (ended > 0)
        readers_freed(readers, kind, ended);
    str_done(&e->request.body);
    header_scan_done(&e->headers);
    str_done(&e->tail);
    if (e->target != e->target_inline)
        free(e->target);
    e->target = NULL;
    /* The start of the next request is not reported: one deadline covers the idle time and its
     * header. */
    int64_t now = clock_coarse_ms();
    deadline_set_body(e->connection, now, l->idle_timeout_ms + l->header_timeout_ms, 0);
    atomic_store_explicit(&e->connection->idle_since_ms, now, memory_order_relaxed);
    atomic_store_explicit(&e->connection->header_since_ms, now, memory_order_relaxed);
    atomic_store_explicit(&e->connection->served, true, memory_order_relaxed);
    atomic_store_explicit(&e->connection->busy, false, memory_order_relaxed);
    /* Pipelined requests are still answered, and then the connection ends. */
    if (atomic_load(&l->quiescing))
        shutdown(e->connection->fd, SHUT_RD);
    counts_end(l->counts);
}
