/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How a reply is sent. Usually it is queued in the library once the request is complete: a page's
 * reply was made with its snapshot, any other is made from request.reply. If the request is
 * incomplete, or the library is out of memory, the reply is written to the socket directly. The
 * headers of every reply are added here. */
#include <strings.h>
#include <sys/socket.h>

#include "server/base/clock.h"
#include "server/crypto/tls.h"
#include "server/http/headers.h"
#include "server/http/internal.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/rules/http/negotiate.h"

#define RETRY_AFTER "5"
#define LINGER_MS   5000u /* how long to read the rest of a refused body */

void exchange_error(struct exchange *e, unsigned status, const char *code, const char *detail)
{
    struct reply *reply = &e->request.reply;

    if (e->connection->listener->options.problem_json)
        reply_problem(reply, status, code, NULL, detail);
    else
        reply_text(reply, status, status_reason(status));
    if (status == 503)
        reply_header(reply, "Retry-After", RETRY_AFTER);
}

void listener_send_error(const struct listener *l, int fd, unsigned status, const char *code,
                         const char *detail)
{
    struct reply reply;
    struct str text = STR_INIT;
    char date[30];

    reply_init(&reply);
    if (l->options.problem_json)
        reply_problem(&reply, status, code, NULL, detail);
    else
        reply_text(&reply, status, detail);
    http_date_format(clock_unix_ms() / 1000, date);
    str_append_format(&text,
                      "HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                      "Connection: close\r\n\r\n",
                      status, status_reason(status), date, reply.content_type, reply.body.len);
    str_append(&text, reply.body.data, reply.body.len);
    if (!text.failed && !reply.body.failed)
        send(fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    str_done(&text);
    reply_done(&reply);
}

static bool has_header(const struct reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcasecmp(reply->headers[i].name, name) == 0)
            return true;
    return false;
}

/* Adds the headers that every reply has. */
static void complete_headers(struct exchange *e)
{
    struct reply *reply = &e->request.reply;

    if (reply->status >= 400 && !has_header(reply, "Cache-Control"))
        reply_header(reply, "Cache-Control", "no-store");
    if (reply->content_type != NULL && !has_header(reply, "X-Content-Type-Options"))
        reply_header(reply, "X-Content-Type-Options", "nosniff");
    if (reply->body.failed || reply->status == 0)
        exchange_error(e, 500, "no-memory", "out of memory: the response could not be created");
}

static bool add_headers(struct MHD_Response *response, const struct exchange *e)
{
    const struct reply *reply = &e->request.reply;
    bool ok = true;

    if (reply->content_type != NULL)
        ok = MHD_add_response_header(response, "Content-Type", reply->content_type) == MHD_YES;
    for (size_t i = 0; ok && i < reply->header_count; i++)
        ok = MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value) ==
             MHD_YES;
    if (ok && e->connection->listener->options.request_ids)
        ok = MHD_add_response_header(response, "X-Request-Id", e->request.id) == MHD_YES;
    if (ok && (reply->close || atomic_load(&e->connection->listener->quiescing)))
        ok = MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    return ok;
}

static enum MHD_Result queue_own(struct exchange *e)
{
    struct reply *reply = &e->request.reply;

    complete_headers(e);
    uint64_t len = reply->from_file ? reply->file_bytes : reply->body.len;
    if (!reply->from_file)
        exchange_keep(e, e->request.body.len + len);
    bool whole = reply->status != 304;
    struct MHD_Response *response =
        !whole ? not_modified_new(len)
        : reply->from_file
            ? MHD_create_response_from_fd_at_offset64(len, reply->file, reply->file_first)
            : MHD_create_response_from_buffer(
                  len, reply->body.data, len == 0 ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        return MHD_NO;
    if (whole && reply->from_file) /* from here on the library closes the file */
        reply->from_file = false;
    else if (whole && len > 0) /* … or frees the text */
        reply->body = (struct str)STR_INIT;
    enum MHD_Result result = MHD_NO;
    if (add_headers(response, e)) {
        e->bytes_sent = e->request.method == HTTP_HEAD || reply->status == 304 ? 0 : (uint64_t)len;
        deadline_set(e->connection, e->connection->listener->reply_timeout_ms, e->bytes_sent);
        result = MHD_queue_response(e->mhd, reply->status, response);
    }
    MHD_destroy_response(response);
    if (result == MHD_YES)
        e->status_sent = reply->status;
    return result;
}

void exchange_keep(struct exchange *e, uint64_t bytes)
{
    const struct request *request = &e->request;
    struct readers *readers = e->connection->listener->options.readers;

    if (readers != NULL && bytes > READERS_MIN_BYTES)
        readers_keep(readers, &e->reader, e->connection->fd,
                     request->token_name == NULL ? READERS_NO_TOKEN : request->grant.site_id,
                     bytes);
}

/* The address to which the reader is counted; NULL for a trusted proxy, which forwards many
 * clients. */
static const char *reader_address(const struct exchange *e)
{
    return connection_is_trusted(e->connection->listener, e->request.peer) ? NULL : e->request.peer;
}

enum MHD_Result exchange_queue(struct exchange *e)
{
    struct listener *l = e->connection->listener;
    struct reply *reply = &e->request.reply;

    if (reply->resource == NULL)
        return queue_own(e);
    const struct recipient to = {
        .readers = l->options.readers,
        .reader = &e->reader,
        .address = reader_address(e),
        .fd = e->connection->fd,
        .close = reply->close || atomic_load(&l->quiescing),
    };
    switch (resource_send_queue(e->mhd, &e->request, &to, &e->bytes_sent)) {
    case RESOURCE_SENT:
        e->status_sent = reply->status;
        deadline_set(e->connection, l->reply_timeout_ms, e->bytes_sent);
        return MHD_YES;
    case RESOURCE_BUSY:
        exchange_error(e, 503, "busy", "too many uncompressed replies are being sent");
        return queue_own(e);
    case RESOURCE_FAILED:
        break;
    }
    return MHD_NO;
}

/* Serialises the reply. */
static void render(struct exchange *e, struct str *out)
{
    struct reply *reply = &e->request.reply;
    char date[30];

    http_date_format(e->request.now, date);
    str_append_format(out, "HTTP/1.1 %u %s\r\nDate: %s\r\nConnection: close\r\n", reply->status,
                      status_reason(reply->status), date);
    if (reply->content_type != NULL)
        str_append_format(out, "Content-Type: %s\r\n", reply->content_type);
    for (size_t i = 0; i < reply->header_count; i++)
        str_append_format(out, "%s: %s\r\n", reply->headers[i].name, reply->headers[i].value);
    if (e->connection->listener->options.request_ids)
        str_append_format(out, "X-Request-Id: %s\r\n", e->request.id);
    if (reply->status != 204)
        str_append_format(out, "Content-Length: %zu\r\n", reply->body.len);
    str_append_text(out, "\r\n");
    if (e->request.method != HTTP_HEAD)
        str_append(out, reply->body.data, reply->body.len);
}

/* Sends as much as the socket accepts now; false if that is nothing. */
static bool send_now(struct exchange *e, const struct str *bytes)
{
    struct connection *c = e->connection;

    if (c->listener->options.tls) { /* bytes outside of TLS would break the session */
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(e->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        return info != NULL && tls_send_last(info->tls_session, bytes->data, bytes->len);
    }
    return send(c->fd, bytes->data, bytes->len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* The library accepts no reply while a body arrives, and closing a socket with unread bytes resets
 * the connection, which may destroy the reply before the client reads it (RFC 9112 9.6). So this
 * writes the reply to the socket, shuts our side down, and reads and drops the rest for a while.
 * All earlier replies were sent before, since their requests are completed. */
enum MHD_Result exchange_send_early(struct exchange *e)
{
    struct connection *c = e->connection;
    struct str bytes = STR_INIT;

    complete_headers(e);
    render(e, &bytes);
    if (bytes.failed) {
        str_done(&bytes);
        return MHD_NO;
    }
    /* A refusal fits into an empty send buffer; a longer reply is cut. */
    bool sent = send_now(e, &bytes);
    str_done(&bytes);
    if (!sent)
        return MHD_NO;
    shutdown(c->fd, SHUT_WR);
    e->lingering = true;
    e->status_sent = e->request.reply.status;
    e->bytes_sent = e->request.method == HTTP_HEAD ? 0 : e->request.reply.body.len;
    deadline_set(c, LINGER_MS, 0);
    return MHD_YES;
}
