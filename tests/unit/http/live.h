/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A listener on loopback, and a client that sends raw bytes. For the tests of server/http/ that
 * need a socket. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/http/internal.h"
#include "server/http/listener.h"

#define LIVE_PATIENCE_MS 60000

static inline struct listener_options live_options(const struct route *routes, size_t count)
{
    return (struct listener_options){.name = "admin",
                                     .address = "127.0.0.1:0",
                                     .threads = 2,
                                     .max_connections = 200,
                                     .header_timeout_ms = LIVE_PATIENCE_MS,
                                     .body_timeout_ms = LIVE_PATIENCE_MS,
                                     .reply_timeout_ms = LIVE_PATIENCE_MS,
                                     .idle_timeout_ms = LIVE_PATIENCE_MS,
                                     .max_header_bytes = 16384,
                                     .max_suspended = 16,
                                     .problem_json = true,
                                     .route_count = count,
                                     .routes = routes};
}

static inline struct listener *live_start(const struct listener_options *options)
{
    struct listener *l = NULL;
    char why[200] = "";

    if (!listener_start(options, &l, why, sizeof why))
        fail_msg("%s", why);
    return l;
}

static inline struct sockaddr_in live_address(const struct listener *l)
{
    const char *colon = strrchr(listener_address(l), ':');
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(colon + 1)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* From 127.0.0.`last`; 0: from wherever. */
static inline int live_connect_from(const struct listener *l, unsigned last)
{
    struct sockaddr_in to = live_address(l);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 | last)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (last != 0)
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline int live_connect(const struct listener *l)
{
    return live_connect_from(l, 0);
}

/* Until the listener has so many connections, and so many requests that wait; -1: however many. */
static inline void live_await_load(const struct listener *l, int64_t connections, int64_t suspended)
{
    int64_t end = clock_now_ms() + LIVE_PATIENCE_MS;
    uint32_t open, waiting;

    do {
        listener_load(l, &open, &waiting);
        if ((connections < 0 || open == connections) && (suspended < 0 || waiting == suspended))
            return;
        usleep(1000);
    } while (clock_now_ms() < end);
    fail_msg("%u connections, %u wait", open, waiting);
}

/* Until no request is active: a client may have its reply before its request is over. */
static inline void live_await_quiet(const struct listener *l)
{
    int64_t end = clock_now_ms() + LIVE_PATIENCE_MS;

    while (counts_active(l->counts) > 0 && clock_now_ms() < end)
        usleep(1000);
    assert_int_equal(counts_active(l->counts), 0);
}

static inline void live_send(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

static inline void live_text(int fd, const char *text)
{
    live_send(fd, text, strlen(text));
}

struct answer {
    unsigned status; /* 0: the connection ended before a reply */
    char head[8192];
    char *body; /* owned; NUL behind it */
    size_t len;
};

static inline void answer_done(struct answer *a)
{
    free(a->body);
    a->body = NULL;
}

/* One byte at a time, so that a pipelined reply is left in the socket. False: end or time-out. */
static inline bool live_byte(int fd, char *out)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, LIVE_PATIENCE_MS) == 1 && recv(fd, out, 1, 0) == 1;
}

/* The value of a header of the reply, or NULL. */
static inline const char *answer_header(const struct answer *a, const char *name, char out[512])
{
    size_t len = strlen(name);
    for (const char *line = strchr(a->head, '\n'); line != NULL; line = strchr(line, '\n')) {
        line++;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            const char *value = line + len + 1 + strspn(line + len + 1, " ");
            snprintf(out, 512, "%.*s", (int)strcspn(value, "\r\n"), value);
            return out;
        }
    }
    return NULL;
}

/* Reads one reply. `without_body`: the request was HEAD. */
static inline void live_read(int fd, bool without_body, struct answer *a)
{
    size_t n = 0;
    char text[512];

    memset(a, 0, sizeof *a);
    while (n + 1 < sizeof a->head && live_byte(fd, a->head + n)) {
        a->head[++n] = '\0';
        if (n >= 4 && memcmp(a->head + n - 4, "\r\n\r\n", 4) == 0)
            break;
    }
    if (sscanf(a->head, "HTTP/1.1 %u", &a->status) != 1)
        return;
    const char *length = answer_header(a, "Content-Length", text);
    size_t want =
        length == NULL || without_body || a->status == 304 ? 0 : strtoul(length, NULL, 10);
    a->body = calloc(1, want + 1);
    assert_non_null(a->body);
    while (a->len < want) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got =
            poll(&p, 1, LIVE_PATIENCE_MS) == 1 ? recv(fd, a->body + a->len, want - a->len, 0) : -1;
        if (got <= 0)
            break;
        a->len += (size_t)got;
    }
}

/* True where the server ends the connection within `timeout_ms`, without another byte. */
static inline bool live_ends(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&p, 1, timeout_ms) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

/* Sends `request` on a new connection and reads one reply. `*ended` (may be NULL): whether the
 * server is expected to end the connection then; becomes whether it did. */
static inline void live_ask(const struct listener *l, const char *request, struct answer *a,
                            bool *ended)
{
    int fd = live_connect(l);

    live_text(fd, request);
    live_read(fd, strncmp(request, "HEAD", 4) == 0, a);
    if (ended != NULL)
        *ended = live_ends(fd, *ended ? LIVE_PATIENCE_MS : 150);
    close(fd);
}

/* ---- handlers ---- */

static inline enum handled live_small(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 200;
    str_append_text(&request->reply.body, "ok");
    return HANDLED;
}

/* More than sockets hold. */
static inline enum handled live_large(struct request *request, size_t size)
{
    request->reply.status = 200;
    if (str_reserve(&request->reply.body, size)) {
        memset(request->reply.body.data, 'x', size);
        request->reply.body.len = size;
    }
    return HANDLED;
}

/* Hands the request to a thread of its own, which resumes it. */
static inline enum handled live_later(struct request *request, void *(*run)(void *request))
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, request), 0);
    pthread_detach(thread);
    return HANDLE_LATER;
}
