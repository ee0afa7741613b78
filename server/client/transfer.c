/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* libcurl decodes chunks and reports their faults; content codings stay as sent. It is lenient
 * about header lines (one without a colon, a transfer coding that it would undo, endless heads), so
 * these are checked here, line by line. It reports the TLS version only in its debug text (7.88 to
 * 8.14: "SSL connection using TLSv1.3 / …"); if that text changes, this file reports "TLS". */
#include "server/client/transfer.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define CONNECT_MS 10000L
#define TOO_LARGE  100 /* CURLE_TOO_LARGE (a head), which 7.88 does not define */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static bool library_good;

static void set_library_up(void)
{
    library_good = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

bool transfer_library(void)
{
    pthread_once(&library_once, set_library_up);
    return library_good;
}

void transfer_quiet_begin(struct transfer_quiet *quiet)
{
    sigset_t broken_pipe;

    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &quiet->before);
}

void transfer_quiet_end(const struct transfer_quiet *quiet)
{
    static const struct timespec now = {0};
    sigset_t broken_pipe, pending;

    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) == 1 && sigismember(&quiet->before, SIGPIPE) == 0) {
        sigemptyset(&broken_pipe);
        sigaddset(&broken_pipe, SIGPIPE);
        sigtimedwait(&broken_pipe, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

static enum fetch_status fail_fetch(struct fetch_reply *r, enum fetch_status status,
                                    const char *why)
{
    snprintf(r->why, sizeof r->why, "%s", why);
    return status;
}

/* For callbacks of libcurl: ends the transfer for this reason. Returns 0. */
static size_t stop_transfer(struct transfer *t, enum fetch_status status, const char *why)
{
    t->stopped = fail_fetch(t->reply, status, why);
    return 0;
}

/* ---- the head -------------------------------------------------------------------------- */

static const char not_chunked[] = "unsupported Transfer-Encoding: not chunked";

static bool read_field(struct transfer *t, char *line)
{
    struct fetch_reply *r = t->reply;
    char *colon = strchr(line, ':'), *value, *end;

    if (colon == NULL || colon == line || line[0] == ' ' || line[0] == '\t')
        return stop_transfer(t, FETCH_PROTOCOL,
                             "malformed response: a header line without a colon") > 0;
    if (r->header_count == FETCH_MAX_HEADERS)
        return stop_transfer(t, FETCH_PROTOCOL, "malformed response: too many headers") > 0;
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
        *--end = '\0';
    r->headers[r->header_count++] = (struct fetch_header){line, value};
    return true;
}

/* Joins a folded field to one line with spaces (RFC 9112 5.2). A line with leading space after the
 * status line continues no field (2.2). */
static void unfold(char *head)
{
    char *at = strchr(head, '\n');

    while (at != NULL && (at = strchr(at + 1, '\n')) != NULL)
        if (at[1] == ' ' || at[1] == '\t') {
            at[0] = ' ';
            if (at[-1] == '\r')
                at[-1] = ' ';
        }
}

/* Several values of Content-Length must be equal, or nobody knows where the body ends (RFC 9112
 * 6.3). */
static bool is_one_length(const struct fetch_reply *r)
{
    const char *first = NULL;
    size_t first_len = 0;

    for (size_t i = 0; i < r->header_count; i++) {
        const char *s = r->headers[i].value;

        while (strcasecmp(r->headers[i].name, "Content-Length") == 0 && *s != '\0') {
            s += strspn(s, " \t,");
            size_t len = strcspn(s, " \t,");
            if (first == NULL) {
                first = s;
                first_len = len;
            } else if (len > 0 && (len != first_len || memcmp(s, first, len) != 0)) {
                return false;
            }
            s += len;
        }
    }
    return true;
}

/* Parses the head, which is in `head` as it was sent, without its empty line. */
static bool read_head(struct transfer *t)
{
    struct fetch_reply *r = t->reply;
    char *rest, *line;
    unsigned status;

    unfold(r->head.data);
    line = strtok_r(r->head.data, "\r\n", &rest);

    if (line == NULL || sscanf(line, "HTTP/1.%*1[01] %3u", &status) != 1 || status < 100 ||
        status > 999) /* %u accepts a sign */
        return stop_transfer(t, FETCH_PROTOCOL, "malformed response: not HTTP/1.1") > 0;
    if (status / 100 == 1) { /* 100 and 103 precede the response */
        str_clear(&r->head);
        return true;
    }
    r->status = status;
    while ((line = strtok_r(NULL, "\r\n", &rest)) != NULL)
        if (!read_field(t, line))
            return false;
    t->headed = true;
    if (fetch_header(r, "Transfer-Encoding") != NULL &&
        !fetch_header_lists(r, "Transfer-Encoding", "chunked"))
        return stop_transfer(t, FETCH_PROTOCOL, not_chunked) > 0;
    if (fetch_header(r, "Transfer-Encoding") == NULL && !is_one_length(r))
        return stop_transfer(t, FETCH_PROTOCOL,
                             "malformed response: two different Content-Length headers") > 0;
    return true;
}

static size_t on_header(char *line, size_t one, size_t len, void *context)
{
    struct transfer *t = context;
    struct str *head = &t->reply->head;

    (void)one;
    if (t->headed) { /* libcurl keeps all trailers, however long */
        t->trailer_bytes += len;
        return t->trailer_bytes <= FETCH_MAX_HEAD
                   ? len
                   : stop_transfer(t, FETCH_PROTOCOL,
                                   "malformed response: the trailers are too large");
    }
    if (strspn(line, "\r\n") >= len && head->len > 0)
        return read_head(t) ? len : 0;
    if (head->len + len > FETCH_MAX_HEAD)
        return stop_transfer(t, FETCH_PROTOCOL,
                             "malformed response: the header is too large or is not HTTP");
    str_append(head, line, len);
    return head->failed ? stop_transfer(t, FETCH_NO_MEMORY, "out of memory") : len;
}

/* ---- bodies ---------------------------------------------------------------------------- */

static size_t parse_bytes(struct transfer *t, const char *bytes, size_t len)
{
    const struct fetch_request *q = t->request;

    t->paused =
        q->looped && (t->pieces++ == TRANSFER_PIECES || (q->waits != NULL && q->waits(q->context)));
    if (t->paused)
        return CURL_WRITEFUNC_PAUSE;
    t->taken += len;
    if (q->take_bytes > 0 && t->taken > q->take_bytes)
        return stop_transfer(t, FETCH_STOPPED, "the body is too large");
    return q->take(q->context, t->reply, bytes, len) ? len
                                                     : stop_transfer(t, FETCH_STOPPED, "cancelled");
}

static size_t on_body(char *bytes, size_t one, size_t len, void *context)
{
    struct transfer *t = context;
    struct fetch_reply *r = t->reply;
    uint64_t room = t->request->max_bytes - r->body.len;

    (void)one;
    if (t->request->take != NULL && r->status / 100 == 2)
        return parse_bytes(t, bytes, len);
    r->cut = len > room;
    str_append(&r->body, bytes, r->cut ? (size_t)room : len);
    if (r->body.failed)
        return stop_transfer(t, FETCH_NO_MEMORY, "out of memory");
    return r->cut ? 0 : len;
}

static size_t on_read(char *bytes, size_t one, size_t size, void *context)
{
    struct transfer *t = context;
    const struct fetch_request *q = t->request;
    ssize_t n = q->give(q->context, bytes, one * size);
    if (n >= 0)
        return (size_t)n;
    stop_transfer(t, FETCH_STOPPED, "cancelled");
    return CURL_READFUNC_ABORT;
}

/* ---- libcurl's debug text ------- ------------------------------------------------------ */

static int on_debug(CURL *easy, curl_infotype type, char *text, size_t len, void *context)
{
    static const char begins[] = "SSL connection using TLSv";
    struct transfer *t = context;
    const size_t skip = sizeof begins - 1;

    (void)easy;
    if (type == CURLINFO_HEADER_OUT)
        t->reply->sent = true;
    if (type == CURLINFO_TEXT && len > skip && memcmp(text, begins, skip) == 0)
        snprintf(t->reply->protocol, sizeof t->reply->protocol, "TLS%.*s",
                 (int)strspn(text + skip, "0123456789."), text + skip);
    return 0;
}

/* When the server's certificate expires; 0: not reported. */
static int64_t certificate_ends(CURL *easy)
{
    static const char field[] = "Expire date:";
    struct curl_certinfo *chain = NULL;

    if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain) != CURLE_OK || chain == NULL ||
        chain->num_of_certs < 1)
        return 0;
    for (struct curl_slist *line = chain->certinfo[0]; line != NULL; line = line->next) {
        struct tm tm = {0};

        if (strncmp(line->data, field, sizeof field - 1) == 0 &&
            strptime(line->data + sizeof field - 1, " %b %d %H:%M:%S %Y", &tm) != NULL)
            return (int64_t)timegm(&tm);
    }
    return 0;
}

static enum fetch_status report_tls(struct transfer *t, CURLcode code)
{
    struct fetch_reply *r = t->reply;
    static const char problem[] = "SSL certificate problem: ";
    const char *why = strstr(t->error, problem);

    if (code == CURLE_SSL_CACERT_BADFILE)
        return fail_fetch(r, FETCH_TLS, "cannot read the file of trusted certificates (ca_file)");
    if (why != NULL) {
        r->untrusted = true;
        snprintf(r->why, sizeof r->why, "the certificate is not trusted: %.200s",
                 why + sizeof problem - 1);
        return FETCH_TLS;
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return fail_fetch(r, FETCH_TLS, "the certificate does not match the name of the host");
    if (strstr(t->error, "wrong version number") != NULL ||
        strstr(t->error, "packet length too long") != NULL ||
        strstr(t->error, "unknown protocol") != NULL)
        return fail_fetch(r, FETCH_TLS, "TLS handshake failed: the server does not speak TLS");
    snprintf(r->why, sizeof r->why, "TLS handshake failed: %.200s",
             t->error[0] != '\0' ? t->error : curl_easy_strerror(code));
    return FETCH_TLS;
}

/* ---- the result --------------------------------------------------------------------------- */

static enum fetch_status report_connect(struct transfer *t, CURLcode code)
{
    long error = 0;

    curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &error);
    if (error != 0)
        return fail_fetch(t->reply, FETCH_CONNECT, strerror((int)error));
    return fail_fetch(t->reply, FETCH_CONNECT,
                      t->error[0] != '\0' ? t->error : curl_easy_strerror(code));
}

static enum fetch_status report_refused(struct transfer *t)
{
    snprintf(t->reply->why, sizeof t->reply->why,
             "%s is not a public internet address; only [fetch] allow_address of the configuration "
             "can allow it",
             t->refused);
    return FETCH_ADDRESS;
}

static enum fetch_status report_protocol(struct transfer *t)
{
    struct fetch_reply *r = t->reply;

    if (strstr(t->error, "Content-Length") != NULL)
        return fail_fetch(r, FETCH_PROTOCOL, "malformed response: Content-Length is not a number");
    if (strstr(t->error, "without colon") != NULL)
        return fail_fetch(r, FETCH_PROTOCOL, "malformed response: a header line without a colon");
    /* 8.14 checks it before this file sees the line */
    if (strstr(t->error, "Transfer-Encoding") != NULL)
        return fail_fetch(r, FETCH_PROTOCOL, not_chunked);
    if (strstr(t->error, "eader") != NULL) /* larger than libcurl's limit, or with a NUL */
        return fail_fetch(r, FETCH_PROTOCOL,
                          "malformed response: the header is too large or is not HTTP");
    return fail_fetch(r, FETCH_PROTOCOL, "malformed response: not HTTP/1.1");
}

/* The connection broke while the response arrived. */
static enum fetch_status report_broken(struct transfer *t, CURLcode code)
{
    struct fetch_reply *r = t->reply;

    if (strstr(t->error, "response headers") != NULL) /* endless 1xx heads before the response */
        return fail_fetch(r, FETCH_PROTOCOL,
                          "malformed response: the header is too large or is not HTTP");
    if (strstr(t->error, "hex") != NULL || strstr(t->error, "chunk size") != NULL)
        return fail_fetch(r, FETCH_PROTOCOL, "malformed response: a chunk without a length");
    if (strstr(t->error, "chunk") != NULL)
        return fail_fetch(r, FETCH_PROTOCOL, "malformed response: a chunk longer than its length");
    if (code == CURLE_PARTIAL_FILE && fetch_header(r, "Transfer-Encoding") == NULL)
        return fail_fetch(r, FETCH_PROTOCOL,
                          "truncated response: the body is shorter than Content-Length");
    if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING)
        return fail_fetch(r, FETCH_PROTOCOL, "truncated response: the connection was closed early");
    return report_connect(t, code);
}

/* 7.88 returns the same for a header line that is too long. */
static enum fetch_status report_no_memory(struct transfer *t)
{
    long sent = 0;

    curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent);
    return sent > 0 && !t->headed
               ? fail_fetch(t->reply, FETCH_PROTOCOL, "malformed response: the header is too large")
               : fail_fetch(t->reply, FETCH_NO_MEMORY, "out of memory");
}

static enum fetch_status outcome(struct transfer *t, CURLcode code)
{
    struct fetch_reply *r = t->reply;

    if (t->stopped != FETCH_OK)
        return t->stopped;
    if (r->cut || (code == CURLE_OK && t->headed))
        return FETCH_OK;
    if ((int)code == TOO_LARGE)
        return fail_fetch(r, FETCH_PROTOCOL,
                          "malformed response: the header is too large or is not HTTP");
    if (t->refused[0] != '\0' && code == CURLE_COULDNT_CONNECT)
        return report_refused(t);
    switch (code) {
    case CURLE_OK:
        return fail_fetch(r, FETCH_PROTOCOL, "truncated response: the connection was closed early");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return fail_fetch(r, FETCH_RESOLVE,
                          t->error[0] != '\0' ? t->error : curl_easy_strerror(code));
    case CURLE_OPERATION_TIMEDOUT:
        return fail_fetch(r, FETCH_TIMEOUT, "no response before the timeout");
    case CURLE_OUT_OF_MEMORY:
        return report_no_memory(t);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CIPHER:
        return report_tls(t, code);
    case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9, or not HTTP at all */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return report_protocol(t);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
        return report_broken(t, code);
    default:
        return report_connect(t, code);
    }
}

static void report_way(struct transfer *t)
{
    struct fetch_reply *r = t->reply;
    char *address = NULL, *redirect = NULL;
    curl_off_t took_us = 0, got = 0;

    curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &address);
    curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &redirect);
    curl_easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &took_us);
    curl_easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &got);
    snprintf(r->address, sizeof r->address, "%s", address != NULL ? address : "");
    if (redirect != NULL)
        str_append(&r->redirect, redirect, strlen(redirect));
    r->took_ms = (uint32_t)(took_us / 1000);
    r->got_bytes = (uint64_t)got;
}

enum fetch_status transfer_end(struct transfer *t, CURLcode code)
{
    struct fetch_reply *r = t->reply;
    enum fetch_status status = outcome(t, code);

    if (r->protocol[0] == '\0' && t->request->url->https && status == FETCH_OK)
        strcpy(r->protocol, "TLS");
    report_way(t);
    if (status == FETCH_OK)
        r->certificate_ends = certificate_ends(t->easy);
    else
        r->status = 0;
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect);
    curl_easy_reset(t->easy);
    return status;
}

/* ---- the request ----------------------------------------------------------------------- */

static bool add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

/* libcurl drops a header without a value unless it ends with a semicolon. */
static void mark_empty(char *line)
{
    char *colon = strchr(line, ':');

    if (colon != NULL && colon[1 + strspn(colon + 1, " \t")] == '\0')
        memcpy(colon, ";", 2);
}

/* The request has exactly the headers that the caller set. */
static bool set_headers(struct transfer *t)
{
    const struct fetch_request *q = t->request;
    const char *line = q->headers != NULL ? q->headers : "";
    bool good = add_line(&t->headers, "Accept:") && add_line(&t->headers, "Expect:") &&
                add_line(&t->headers, "Content-Type:") &&
                (q->session != NULL || q->looped || add_line(&t->headers, "Connection: close"));

    for (size_t len; good && *line != '\0'; line += len + strspn(line + len, "\r\n")) {
        char *copy;

        len = strcspn(line, "\r\n");
        copy = strndup(line, len);
        if (copy != NULL)
            mark_empty(copy);
        good = copy != NULL && add_line(&t->headers, copy);
        free(copy);
    }
    return good && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK;
}

/* Adds the brackets around an IPv6 address if the caller left them out. */
static bool set_target(struct transfer *t)
{
    const char *to = t->request->connect, *colon = to != NULL ? strrchr(to, ':') : NULL;
    int len = colon != NULL ? (int)(colon - to) : 0;
    char line[512];

    if (colon == NULL)
        return true;
    snprintf(line, sizeof line,
             memchr(to, ':', (size_t)len) != NULL && to[0] != '[' ? "::[%.*s]%s" : "::%.*s%s", len,
             to, colon);
    return add_line(&t->connect, line) &&
           curl_easy_setopt(t->easy, CURLOPT_CONNECT_TO, t->connect) == CURLE_OK;
}

/* Only for this request: libcurl follows no redirect. */
static bool set_credentials(struct transfer *t)
{
    const char *secret = t->request->credentials;
    char *line;
    bool good;

    if (secret == NULL)
        return true;
    if (!t->request->url->https)
        return stop_transfer(t, FETCH_TLS, "credentials are only sent over https") > 0;
    if (strncasecmp(secret, "basic ", 6) == 0)
        return curl_easy_setopt(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC) == CURLE_OK &&
               curl_easy_setopt(t->easy, CURLOPT_USERPWD, secret + 6) == CURLE_OK;
    if (strncasecmp(secret, "bearer ", 7) != 0 ||
        asprintf(&line, "Authorization: Bearer %s", secret + 7) < 0)
        return stop_transfer(t, FETCH_NO_MEMORY, "out of memory") > 0;
    good = add_line(&t->headers, line);
    free(line);
    return good;
}

static void set_bounds(CURL *easy, const struct fetch_request *q)
{
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     q->timeout_ms != 0 && q->timeout_ms < CONNECT_MS ? (long)q->timeout_ms
                                                                      : CONNECT_MS);
    if (q->stall_s > 0) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT,
                         q->stall_bytes > 0 ? (long)q->stall_bytes : 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)q->stall_s);
    }
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* do not wait for a resolver that does not answer */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
}

/* Turns off what libcurl does by default. */
static void set_plain(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
}

/* The host of `connect`; NULL and 0: none exists. */
static const char *connect_host(const struct fetch_request *q, size_t *len)
{
    const char *colon = q->connect != NULL ? strrchr(q->connect, ':') : NULL;

    *len = colon != NULL ? (size_t)(colon - q->connect) : 0;
    return colon != NULL ? q->connect : NULL;
}

/* libcurl gets the socket for every connection here, so the check applies to the address itself,
 * whatever the name or the resolver said before. A refused address is skipped: the host may have
 * others. */
static curl_socket_t on_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct transfer *t = context;
    size_t len;
    const char *literal = connect_host(t->request, &len);

    (void)purpose;
    if (address_allowed(t->request->guard, literal, len, &to->addr))
        return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (getnameinfo(&to->addr, to->addrlen, t->refused, sizeof t->refused, NULL, 0,
                    NI_NUMERICHOST) != 0)
        strcpy(t->refused, "what it resolves to");
    return CURL_SOCKET_BAD;
}

/* A connection that is used again may have been opened for a request with another guard, or under
 * older settings. */
static int on_connected(void *context, char *to, char *from, int to_port, int from_port)
{
    struct transfer *t = context;
    size_t len;
    const char *literal = connect_host(t->request, &len);
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.any.sa_family = AF_UNSPEC};

    (void)from;
    (void)to_port;
    (void)from_port;
    if (t->request->once && t->reply->sent) {
        stop_transfer(t, FETCH_CONNECT, "the connection was closed before a response arrived");
        return CURL_PREREQFUNC_ABORT;
    }
    if (t->request->guard == NULL)
        return CURL_PREREQFUNC_OK;
    if (inet_pton(AF_INET, to, &address.v4.sin_addr) == 1)
        address.any.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, to, &address.v6.sin6_addr) == 1)
        address.any.sa_family = AF_INET6;
    if (address_allowed(t->request->guard, literal, len, &address.any))
        return CURL_PREREQFUNC_OK;
    snprintf(t->refused, sizeof t->refused, "%s", to);
    t->stopped = report_refused(t);
    return CURL_PREREQFUNC_ABORT;
}

static void set_guard(struct transfer *t)
{
    if (t->request->guard != NULL || t->request->once) {
        curl_easy_setopt(t->easy, CURLOPT_PREREQFUNCTION, on_connected);
        curl_easy_setopt(t->easy, CURLOPT_PREREQDATA, t);
    }
    if (t->request->guard == NULL)
        return;
    curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t);
}

static void set_method(struct transfer *t)
{
    const struct fetch_request *q = t->request;

    if (strcmp(q->method, "HEAD") == 0) {
        curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
    } else if (q->give != NULL) {
        curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(t->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->give_bytes);
        curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
    } else if (q->body != NULL) { /* libcurl sends a small body in one packet with the head */
        curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->give_bytes);
        curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, q->body);
    }
    if (strcmp(q->method, "HEAD") != 0)
        curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, q->method);
}

static void set_answer(struct transfer *t)
{
    if (t->request->once || t->request->url->https) {
        curl_easy_setopt(t->easy, CURLOPT_VERBOSE, 1L);
        curl_easy_setopt(t->easy, CURLOPT_DEBUGFUNCTION, on_debug);
        curl_easy_setopt(t->easy, CURLOPT_DEBUGDATA, t);
    }
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
}

static bool set_tls(struct transfer *t)
{
    const struct fetch_request *q = t->request;

    if (!q->url->https)
        return true;
    curl_easy_setopt(t->easy, CURLOPT_CERTINFO, 1L);
    if (q->any_certificate) {
        curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    /* replaces the system's file; the system's folder has the same authorities */
    if (q->ca_more != NULL)
        return curl_easy_setopt(t->easy, CURLOPT_CAINFO, q->ca_more) == CURLE_OK;
    if (q->ca_file == NULL)
        return true;
    return curl_easy_setopt(t->easy, CURLOPT_CAINFO, q->ca_file) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
}

bool transfer_begin(struct transfer *t, CURL *easy, const struct fetch_request *request,
                    struct fetch_reply *reply)
{
    *t = (struct transfer){.request = request, .reply = reply, .easy = easy};
    set_plain(easy);
    set_bounds(easy, request);
    set_guard(t);
    set_method(t);
    set_answer(t);
    if (curl_easy_setopt(easy, CURLOPT_URL, request->url->text) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_USERAGENT, request->agent) == CURLE_OK &&
        set_credentials(t) && set_headers(t) &&
        (request->target == NULL ||
         curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, request->target) == CURLE_OK) &&
        set_target(t) && set_tls(t))
        return true;
    if (t->stopped == FETCH_OK)
        stop_transfer(t, FETCH_NO_MEMORY, "out of memory");
    return false;
}
