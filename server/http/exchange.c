#include <stdlib.h>
#include <string.h>

#include "server/http/internal.h"
#include "server/http/status.h"

/* The life of a request: libmicrohttpd calls exchange_target with its first line, exchange_handle
 * with the headers, again for each piece of the body and once when it is whole, and
 * exchange_completed when the reply is sent or the connection lost. */

static void clear(struct exchange *e)
{
    size_t from = offsetof(struct exchange, headers);
    size_t to = offsetof(struct exchange, request.reply.headers);

    memset((char *)e + from, 0, to - from);
    atomic_init(&e->wait, WAIT_NONE);
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
    size_t len = strnlen(uri, TARGET_MAX + 1);
    if (len > TARGET_MAX)
        e->target_too_long = true;
    else
        e->target = len < TARGET_INLINE ? e->target_inline : malloc(len + 1);
    if (e->target != NULL)
        memcpy(e->target, uri, len + 1);
    return e;
}

/* A reply is filled before the request is whole. */
static enum MHD_Result refuse(struct exchange *e, bool fatal)
{
    e->replied = true;
    if (fatal)
        e->request.reply.close = true;
    /* Who waits for 100 sends nothing more: the reply comes instead, through the library, which
     * then closes. Without a body it waits for the call that keeps the connection. */
    if (e->expects_continue || (fatal && !e->has_body))
        return exchange_queue(e);
    return e->has_body ? exchange_send_early(e) : MHD_YES;
}

static enum MHD_Result refuse_with(struct exchange *e, unsigned status, const char *code,
                                   const char *detail)
{
    exchange_error(e, status, code, detail);
    return refuse(e, false);
}

/* All of the body that has come is taken: should nothing more come, is_left (deadline.c) looks. */
static void await_more(struct exchange *e)
{
    atomic_store_explicit(&e->connection->idle_since_ms, deadline_now_ms(), memory_order_relaxed);
}

static void await_nothing(struct exchange *e)
{
    atomic_store_explicit(&e->connection->idle_since_ms, 0, memory_order_relaxed);
}

static enum MHD_Result first_call(struct exchange *e, const char *method, const char *version)
{
    struct listener *l = e->connection->listener;
    bool fatal = false;

    e->begun = true;
    await_nothing(e);
    /* Also where no body is to come: should the library wait for one, it is not for ever. */
    e->body_start_ms = deadline_now_ms();
    deadline_set_body(e->connection, e->body_start_ms, l->body_timeout_ms, 0);
    if (!exchange_open(e, method, version, &fatal))
        return refuse(e, fatal);
    if (e->takes_body)
        atomic_store_explicit(&e->connection->header_since_ms, 0, memory_order_relaxed);
    const struct route *route = e->request.route;
    if (e->takes_body && !route->asks_to_wait && atomic_load(&l->quiescing))
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

/* Gives one piece to the hook. `*suspended`: it is not consumed yet. False: the reply is filled. */
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

static enum MHD_Result body_call(struct exchange *e, const char *bytes, size_t *size)
{
    struct listener *l = e->connection->listener;
    bool suspended = false;

    if (e->replied) { /* what comes behind an early reply */
        *size = 0;
        return MHD_YES;
    }
    await_nothing(e);
    if (e->later && !wait_ended(e))
        return MHD_YES; /* called again too early: the piece is still being read */
    /* A piece that was suspended comes again, with what has arrived since behind it. */
    if (e->piece_done > *size)
        return MHD_NO;
    size_t fresh = *size - e->piece_done;
    bool open = e->request.reply.status == 0;
    if (open && fresh > 0) {
        e->body_seen += fresh;
        open = give_piece(e, bytes + e->piece_done, fresh, &suspended);
    }
    if (suspended) {
        e->piece_done += fresh;
        return MHD_YES;
    }
    e->piece_done = 0;
    *size = 0;
    if (!open) {
        e->expects_continue = false; /* the 100 is sent: the body is coming in */
        return refuse(e, true);
    }
    deadline_set_body(e->connection, e->body_start_ms, l->body_timeout_ms, e->body_seen);
    await_more(e);
    return MHD_YES;
}

static enum MHD_Result finish_call(struct exchange *e)
{
    struct request *request = &e->request;

    await_nothing(e);
    if (e->lingering)
        return MHD_NO; /* the early reply is sent, and all that came behind it read */
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
        return MHD_NO; /* out of memory when it connected */
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
    return (reply->snapshot != NULL || reply->blob != NULL) && reply->represent == REPRESENT_GZIP
               ? COUNTS_GZIP
               : COUNTS_IDENTITY;
}

static void report(struct exchange *e)
{
    struct listener *l = e->connection->listener;

    struct counts_answer answer = {
        .row = e->row,
        .status = e->status_sent,
        .encoding = encoding_of(e),
        .bytes = e->bytes_sent,
        .received = e->body_seen,
        .took_ns = measure_now_ns() - e->started_ns,
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
    if (e->status_sent != 0)
        report(e);
    if (toe != MHD_REQUEST_TERMINATED_COMPLETED_OK && !e->lingering)
        atomic_fetch_add_explicit(&l->aborted, 1, memory_order_relaxed);
    if (e->hooks_ran && e->request.route->done != NULL)
        e->request.route->done(l->options.context, &e->request);
    wait_release(e);
    struct page_readers *readers = e->reader.of;
    uint64_t ended = page_readers_leave(&e->reader);
    reply_done(&e->request.reply);
    if (ended > 0)
        page_readers_freed(readers, ended);
    str_done(&e->request.body);
    free((void *)e->request.token_name);
    header_scan_done(&e->headers);
    str_done(&e->tail);
    if (e->target != e->target_inline)
        free(e->target);
    e->target = NULL;
    /* Idle until the next request, which nothing announces: one deadline for both. */
    int64_t now = deadline_now_ms();
    deadline_set_body(e->connection, now, l->idle_timeout_ms + l->header_timeout_ms, 0);
    atomic_store_explicit(&e->connection->idle_since_ms, now, memory_order_relaxed);
    atomic_store_explicit(&e->connection->header_since_ms, now, memory_order_relaxed);
    atomic_store_explicit(&e->connection->served, true, memory_order_relaxed);
    atomic_store_explicit(&e->connection->busy, false, memory_order_relaxed);
    /* Requests that have come behind this one are answered, and then the connection ends. */
    if (atomic_load(&l->quiescing))
        shutdown(e->connection->fd, SHUT_RD);
    counts_end(l->counts);
}
