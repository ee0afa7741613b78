#include "server/fetch/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/fetch/stream.h"

#define PIECE 65536u

/* An answer as it arrives: what was read and not used yet, and where it goes. */
struct answer {
    struct stream *stream;
    const struct fetch_request *request;
    struct fetch_reply *reply;
    struct str in;
    size_t at; /* the first byte of `in` that was not used */
    bool ended;
};

static enum fetch_status fail(struct fetch_reply *r, enum fetch_status status, const char *why)
{
    snprintf(r->why, sizeof r->why, "%s", why);
    return status;
}

static enum fetch_status no_memory(struct fetch_reply *r)
{
    return fail(r, FETCH_NO_MEMORY, "out of memory");
}

/* ---- reading --------------------------------------------------------------------------- */

/* Reads more into `in`; at the end `ended` is set. */
static enum fetch_status fill(struct answer *a)
{
    enum fetch_status status;
    size_t got = 0;

    if (a->at > 0) {
        memmove(a->in.data, a->in.data + a->at, a->in.len - a->at);
        a->in.len -= a->at;
        a->at = 0;
    }
    if (!str_reserve(&a->in, PIECE))
        return no_memory(a->reply);
    status = stream_read(a->stream, a->in.data + a->in.len, PIECE, &got, a->reply->why,
                         sizeof a->reply->why);
    if (status != FETCH_OK)
        return status;
    a->in.len += got;
    a->in.data[a->in.len] = '\0';
    a->ended = got == 0;
    return FETCH_OK;
}

/* Finds `mark` in what is not used yet and reads until it is there; its offset from `at`. */
static enum fetch_status find_mark(struct answer *a, const char *mark, size_t max, size_t *offset)
{
    for (;;) {
        const char *found = a->in.len > a->at
                                ? memmem(a->in.data + a->at, a->in.len - a->at, mark, strlen(mark))
                                : NULL;
        enum fetch_status status;

        if (found != NULL) {
            *offset = (size_t)(found - (a->in.data + a->at));
            return FETCH_OK;
        }
        if (a->ended)
            return fail(a->reply, FETCH_PROTOCOL, "the connection ends in mid-answer");
        if (a->in.len - a->at > max)
            return fail(a->reply, FETCH_PROTOCOL, "the header is too large, or no HTTP");
        status = fill(a);
        if (status != FETCH_OK)
            return status;
    }
}

/* ---- the head -------------------------------------------------------------------------- */

static enum fetch_status read_field(struct fetch_reply *r, char *line)
{
    char *colon = strchr(line, ':'), *value, *end;

    if (colon == NULL || colon == line || line[0] == ' ' || line[0] == '\t')
        return fail(r, FETCH_PROTOCOL, "a header line without a colon");
    if (r->header_count == FETCH_MAX_HEADERS)
        return fail(r, FETCH_PROTOCOL, "too many headers");
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    r->headers[r->header_count++] = (struct fetch_header){line, value};
    return FETCH_OK;
}

static enum fetch_status read_head(struct answer *a)
{
    struct fetch_reply *r = a->reply;
    enum fetch_status status;
    char *line, *rest;
    size_t len;

    status = find_mark(a, "\r\n\r\n", FETCH_MAX_HEAD, &len);
    if (status != FETCH_OK)
        return status;
    str_clear(&r->head);
    r->header_count = 0;
    str_append(&r->head, a->in.data + a->at, len);
    a->at += len + 4;
    if (r->head.failed || r->head.data == NULL)
        return no_memory(r);
    line = strtok_r(r->head.data, "\r\n", &rest);
    if (line == NULL || sscanf(line, "HTTP/1.%*1[01] %3u", &r->status) != 1 || r->status < 100 ||
        r->status > 999) /* a sign would be taken for a digit */
        return fail(r, FETCH_PROTOCOL, "it answers something other than HTTP/1.1");
    while (status == FETCH_OK && (line = strtok_r(NULL, "\r\n", &rest)) != NULL)
        status = read_field(r, line);
    return status;
}

const char *fetch_header(const struct fetch_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcasecmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return NULL;
}

bool fetch_header_lists(const struct fetch_reply *reply, const char *name, const char *word)
{
    for (size_t i = 0; i < reply->header_count; i++) {
        const char *s = reply->headers[i].value;

        while (strcasecmp(reply->headers[i].name, name) == 0 && *s != '\0') {
            size_t len;

            s += strspn(s, " \t,");
            len = strcspn(s, " \t,;");
            if (len == strlen(word) && strncasecmp(s, word, len) == 0)
                return true;
            s += len;
            s += strcspn(s, ",");
        }
    }
    return false;
}

/* ---- the body -------------------------------------------------------------------------- */

/* Takes up to `len` bytes into the body; `*left` is what is still to come. At the bound of the body
 * it stops, with `cut`. */
static enum fetch_status take(struct answer *a, uint64_t len, bool to_end)
{
    while (len > 0 && !a->reply->cut) {
        uint64_t have = a->in.len - a->at, room = a->request->max_bytes - a->reply->body.len;
        enum fetch_status status = FETCH_OK;

        if (have > len)
            have = len;
        a->reply->cut = have > room;
        if (a->reply->cut)
            have = room;
        str_append(&a->reply->body, a->in.data + a->at, (size_t)have);
        if (a->reply->body.failed)
            return no_memory(a->reply);
        a->at += (size_t)have;
        len -= have;
        if (len > 0 && !a->reply->cut && a->ended)
            return to_end ? FETCH_OK
                          : fail(a->reply, FETCH_PROTOCOL, "the body is shorter than announced");
        if (len > 0 && !a->reply->cut)
            status = fill(a);
        if (status != FETCH_OK)
            return status;
    }
    return FETCH_OK;
}

static enum fetch_status take_chunks(struct answer *a)
{
    for (;;) {
        enum fetch_status status;
        uint64_t len;
        char *end;
        size_t line;

        status = find_mark(a, "\r\n", 4096, &line);
        if (status != FETCH_OK)
            return status;
        len = strtoull(a->in.data + a->at, &end, 16);
        if (end == a->in.data + a->at || len > INT64_MAX || strchr("\r; \t", *end) == NULL)
            return fail(a->reply, FETCH_PROTOCOL, "a chunk without a length");
        a->at += line + 2;
        if (len == 0) /* trailers do not matter: the connection ends */
            return FETCH_OK;
        status = take(a, len, false);
        if (status != FETCH_OK || a->reply->cut)
            return status;
        status = find_mark(a, "\r\n", 16, &line);
        if (status == FETCH_OK && line != 0)
            status = fail(a->reply, FETCH_PROTOCOL, "a chunk longer than its length");
        if (status != FETCH_OK)
            return status;
        a->at += 2;
    }
}

static enum fetch_status read_body(struct answer *a)
{
    const char *length = fetch_header(a->reply, "Content-Length");
    unsigned code = a->reply->status;
    char *end;
    uint64_t len;

    if (strcmp(a->request->method, "HEAD") == 0 || code == 204 || code == 304)
        return FETCH_OK;
    if (fetch_header(a->reply, "Transfer-Encoding") != NULL) {
        if (!fetch_header_lists(a->reply, "Transfer-Encoding", "chunked"))
            return fail(a->reply, FETCH_PROTOCOL, "a transfer encoding that is not chunked");
        return take_chunks(a);
    }
    if (length == NULL)
        return take(a, UINT64_MAX, true);
    len = strtoull(length, &end, 10);
    if (end == length || *end != '\0')
        return fail(a->reply, FETCH_PROTOCOL, "a Content-Length that is no number");
    return take(a, len, false);
}

/* ---- the request ----------------------------------------------------------------------- */

static enum fetch_status send_request(struct stream *stream, const struct fetch_request *q,
                                      struct fetch_reply *reply)
{
    const struct url *url = q->url;
    const char *host = strstr(url->text, "://") + 3;
    struct str out = STR_INIT;
    enum fetch_status status;

    str_append_format(&out, "%s %s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: %s\r\n", q->method,
                      url->text + url->origin_len, (int)(url->text + url->origin_len - host), host,
                      q->agent);
    str_append_text(&out, q->headers != NULL ? q->headers : "");
    str_append_text(&out, "Connection: close\r\n\r\n");
    status = out.failed ? no_memory(reply)
                        : stream_write(stream, out.data, out.len, reply->why, sizeof reply->why);
    str_done(&out);
    return status;
}

static enum fetch_status read_answer(struct answer *a)
{
    enum fetch_status status = FETCH_OK;

    do
        status = read_head(a);
    while (status == FETCH_OK && a->reply->status / 100 == 1); /* 100, 103 come before the answer */
    return status == FETCH_OK ? read_body(a) : status;
}

/* Host and port to connect to, of "host:port" or of the URL. Brackets go. */
static void split_target(const struct fetch_request *q, char host[300], char port[8])
{
    const struct url *url = q->url;
    const char *colon = q->connect != NULL ? strrchr(q->connect, ':') : NULL;
    const char *text = colon != NULL ? q->connect : url->text + url->host_at;
    int len = colon != NULL ? (int)(colon - q->connect) : url->host_len;

    if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    snprintf(host, 300, "%.*s", len, text);
    if (colon != NULL)
        snprintf(port, 8, "%.6s", colon + 1);
    else
        snprintf(port, 8, "%u", url->port);
}

enum fetch_status fetch(const struct fetch_request *request, struct fetch_reply *reply)
{
    char name[300], host[300], port[8];
    struct answer a = {.request = request, .reply = reply, .in = STR_INIT};
    struct stream_target target = {
        .host = name,
        .connect_host = host,
        .connect_port = port,
        .https = request->url->https,
        .ca_file = request->ca_file,
        .deadline_ms = stream_now_ms() + request->timeout_ms,
    };
    enum fetch_status status;

    memset(reply, 0, sizeof *reply);
    snprintf(name, sizeof name, "%.*s", request->url->host_len,
             request->url->text + request->url->host_at);
    split_target(request, host, port);
    status = stream_open(&target, &a.stream, reply->why, sizeof reply->why);
    if (status != FETCH_OK)
        return status;
    snprintf(reply->protocol, sizeof reply->protocol, "%s", stream_protocol(a.stream));
    reply->certificate_ends = stream_certificate_ends(a.stream);
    status = send_request(a.stream, request, reply);
    if (status == FETCH_OK)
        status = read_answer(&a);
    if (status != FETCH_OK)
        reply->status = 0;
    stream_close(a.stream);
    str_done(&a.in);
    return status;
}

void fetch_reply_done(struct fetch_reply *reply)
{
    str_done(&reply->head);
    str_done(&reply->body);
}
