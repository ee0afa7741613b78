#include "server/client/client.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/base/clock.h"

#define PIECE 65536u

/* ---- a connection, plain or TLS, with one deadline for all that is done on it ---- */

struct stream_target {
    const char *host; /* for TLS: whose certificate it must be */
    const char *connect_host, *connect_port;
    bool https;
    const char *ca_file; /* NULL: the system's trust */
    int64_t deadline_ms; /* as clock_now_ms counts */
};

struct stream {
    int fd;
    int64_t deadline_ms;
    bool https;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

static void stream_close(struct stream *s)
{
    if (s == NULL)
        return;
    if (s->session != NULL)
        gnutls_deinit(s->session);
    if (s->credentials != NULL)
        gnutls_certificate_free_credentials(s->credentials);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static enum fetch_status stream_fail(enum fetch_status status, char *why, size_t size,
                                     const char *text)
{
    snprintf(why, size, "%s", text);
    return status;
}

static enum fetch_status fail_errno(int error, char *why, size_t size)
{
    if (error == ETIMEDOUT)
        return stream_fail(FETCH_TIMEOUT, why, size, "no answer in time");
    return stream_fail(FETCH_CONNECT, why, size, strerror(error));
}

/* Waits until `fd` is ready: 0, or an errno. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = deadline_ms - clock_now_ms();
        int n = left > 0 ? poll(&p, 1, (int)left) : 0;

        if (n > 0)
            return 0;
        if (n == 0)
            return ETIMEDOUT;
        if (errno != EINTR)
            return errno;
    }
}

/* ---- connecting ------------------------------------------------------------------------ */

static int connect_one(const struct addrinfo *address, int64_t deadline_ms, int *out)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;
    socklen_t len = sizeof error;

    if (fd < 0)
        return errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS) {
            error = wait_for(fd, POLLOUT, deadline_ms);
            if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
                error = errno;
        }
    }
    if (error != 0) {
        close(fd);
        return error;
    }
    *out = fd;
    return 0;
}

static enum fetch_status connect_any(const struct stream_target *t, int *out, char *why,
                                     size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    int error = getaddrinfo(t->connect_host, t->connect_port, &hints, &found);

    if (error != 0)
        return stream_fail(FETCH_RESOLVE, why, size, gai_strerror(error));
    for (struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        error = connect_one(a, t->deadline_ms, out);
        if (error == 0)
            break;
    }
    freeaddrinfo(found);
    return error == 0 ? FETCH_OK : fail_errno(error, why, size);
}

/* ---- TLS ------------------------------------------------------------------------------- */

/* What a call of GnuTLS that would block waits for: 0 to try again, or an errno. */
static int wait_for_tls(struct stream *s)
{
    return wait_for(s->fd, gnutls_record_get_direction(s->session) == 1 ? POLLOUT : POLLIN,
                    s->deadline_ms);
}

static enum fetch_status fail_handshake(struct stream *s, int error, char *why, size_t size)
{
    gnutls_datum_t text = {0};

    if (error == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(
            gnutls_session_get_verify_cert_status(s->session), GNUTLS_CRT_X509, &text, 0) == 0) {
        snprintf(why, size, "%s", (const char *)text.data);
        gnutls_free(text.data);
        for (char *end = why + strlen(why); end > why && strchr(" .", end[-1]) != NULL; end--)
            end[-1] = '\0';
        return FETCH_TLS;
    }
    if (error == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        snprintf(why, size, "the server refuses the TLS handshake: %s",
                 gnutls_alert_get_name(gnutls_alert_get(s->session)));
        return FETCH_TLS;
    }
    if (error == GNUTLS_E_UNEXPECTED_PACKET || error == GNUTLS_E_UNEXPECTED_PACKET_LENGTH ||
        error == GNUTLS_E_UNSUPPORTED_VERSION_PACKET)
        return stream_fail(FETCH_TLS, why, size, "what answers there speaks no TLS");
    return stream_fail(FETCH_TLS, why, size, gnutls_strerror(error));
}

static int set_up_tls(struct stream *s, const struct stream_target *t)
{
    bool is_address = strspn(t->host, "0123456789.") == strlen(t->host) || t->host[0] == '[';
    int error = gnutls_certificate_allocate_credentials(&s->credentials);

    if (error < 0)
        return error;
    error = t->ca_file != NULL ? gnutls_certificate_set_x509_trust_file(s->credentials, t->ca_file,
                                                                        GNUTLS_X509_FMT_PEM)
                               : gnutls_certificate_set_x509_system_trust(s->credentials);
    if (error >= 0)
        error = gnutls_init(&s->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (error >= 0)
        error = gnutls_set_default_priority(s->session);
    if (error >= 0)
        error = gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, s->credentials);
    if (error >= 0 && !is_address)
        error = gnutls_server_name_set(s->session, GNUTLS_NAME_DNS, t->host, strlen(t->host));
    if (error < 0)
        return error;
    gnutls_session_set_verify_cert(s->session, t->host, 0);
    gnutls_transport_set_int(s->session, s->fd);
    return 0;
}

static enum fetch_status shake_hands(struct stream *s, const struct stream_target *t, char *why,
                                     size_t size)
{
    int error = set_up_tls(s, t);

    if (error < 0)
        return stream_fail(FETCH_TLS, why, size,
                           t->ca_file != NULL ? "the file of trusted certificates cannot be read"
                                              : gnutls_strerror(error));
    do {
        error = gnutls_handshake(s->session);
        if (error == GNUTLS_E_AGAIN || error == GNUTLS_E_INTERRUPTED) {
            int waited = wait_for_tls(s);

            if (waited != 0)
                return fail_errno(waited, why, size);
        }
    } while (error < 0 && gnutls_error_is_fatal(error) == 0);
    return error == 0 ? FETCH_OK : fail_handshake(s, error, why, size);
}

/* Connects to the first address that answers, and shakes hands. FETCH_OK and `*out`; otherwise a
 * sentence is in `why`, of `size` bytes. */
static enum fetch_status stream_open(const struct stream_target *target, struct stream **out,
                                     char *why, size_t size)
{
    struct stream *s = calloc(1, sizeof *s);
    enum fetch_status status;

    if (s == NULL)
        return stream_fail(FETCH_NO_MEMORY, why, size, "out of memory");
    s->fd = -1;
    s->deadline_ms = target->deadline_ms;
    s->https = target->https;
    status = connect_any(target, &s->fd, why, size);
    if (status == FETCH_OK && s->https)
        status = shake_hands(s, target, why, size);
    if (status != FETCH_OK) {
        stream_close(s);
        return status;
    }
    *out = s;
    return FETCH_OK;
}

/* ---- reading and writing --------------------------------------------------------------- */

/* One call that does not block: bytes, or -1 with errno (EAGAIN: wait), for both kinds. */
static ssize_t write_some(struct stream *s, const void *bytes, size_t len)
{
    ssize_t n;

    if (!s->https)
        return send(s->fd, bytes, len, MSG_NOSIGNAL);
    n = gnutls_record_send(s->session, bytes, len);
    if (n < 0)
        errno = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? EAGAIN : EPIPE;
    return n < 0 ? -1 : n;
}

static ssize_t read_some(struct stream *s, void *bytes, size_t len)
{
    ssize_t n;

    if (!s->https)
        return recv(s->fd, bytes, len, 0);
    n = gnutls_record_recv(s->session, bytes, len);
    if (n == GNUTLS_E_PREMATURE_TERMINATION) /* many servers end so; lengths tell what is missing */
        return 0;
    if (n < 0)
        errno =
            n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED || gnutls_error_is_fatal((int)n) == 0
                ? EAGAIN
                : EIO;
    return n < 0 ? -1 : n;
}

static enum fetch_status stream_write(struct stream *s, const void *bytes, size_t len, char *why,
                                      size_t size)
{
    size_t sent = 0;

    while (sent < len) {
        ssize_t n = write_some(s, (const char *)bytes + sent, len - sent);
        int error = n < 0 ? errno : 0;

        if (n > 0)
            sent += (size_t)n;
        else if (error == EAGAIN)
            error = s->https ? wait_for_tls(s) : wait_for(s->fd, POLLOUT, s->deadline_ms);
        if (error != 0 && error != EINTR)
            return fail_errno(error, why, size);
    }
    return FETCH_OK;
}

/* Reads what there is into `bytes`; `*got` is 0 at the end. */
static enum fetch_status stream_read(struct stream *s, void *bytes, size_t len, size_t *got,
                                     char *why, size_t size)
{
    for (;;) {
        ssize_t n = read_some(s, bytes, len);
        int error = n < 0 ? errno : 0;

        if (n >= 0) {
            *got = (size_t)n;
            return clock_now_ms() < s->deadline_ms ? FETCH_OK : fail_errno(ETIMEDOUT, why, size);
        }
        if (error == EAGAIN)
            error = s->https ? wait_for_tls(s) : wait_for(s->fd, POLLIN, s->deadline_ms);
        if (error != 0 && error != EINTR)
            return fail_errno(error, why, size);
    }
}

/* "TLSv1.3", "" where it is plain. Borrowed. */
static const char *stream_protocol(const struct stream *s)
{
    const char *name;

    if (!s->https)
        return "";
    name = gnutls_protocol_get_name(gnutls_protocol_get_version(s->session));
    return name != NULL ? name : "TLS";
}

/* When the server's certificate ends, Unix seconds; 0 where it is plain. */
static int64_t stream_certificate_ends(const struct stream *s)
{
    unsigned count = 0;
    const gnutls_datum_t *chain =
        s->https ? gnutls_certificate_get_peers(s->session, &count) : NULL;
    gnutls_x509_crt_t certificate;
    int64_t ends = 0;

    if (chain == NULL || count == 0 || gnutls_x509_crt_init(&certificate) < 0)
        return 0;
    if (gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) == 0)
        ends = (int64_t)gnutls_x509_crt_get_expiration_time(certificate);
    gnutls_x509_crt_deinit(certificate);
    return ends;
}

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
        .deadline_ms = clock_now_ms() + request->timeout_ms,
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
