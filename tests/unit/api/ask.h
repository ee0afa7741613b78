/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A way to ask the admin table's handlers as the listener would, without sockets. */
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/api/auth.h"
#include "server/api/routes.h"
#include "server/crypto/token.h"
#include "server/http/headers.h"
#include "tests/unit/lib/scratch.h"

#define TOKEN   "a-token-of-the-environment"
#define ORIGIN  "https://www.example.com"
#define INDEX   ORIGIN "/sitemap_index.xml"
#define NDJSON  "application/x-ndjson"
#define JSON    "application/json"
#define NO_BODY NULL

struct world {
    char folder[64];
    uint8_t sha256[32];
    struct app_context app;
    struct cache *cache;
};

struct question {
    enum http_method method;
    const char *target; /* path?query */
    const char *token;  /* NULL: TOKEN; "": none */
    const char *type;   /* Content-Type; NULL: application/json */
    const char *encoding, *if_match, *if_none_match, *peer;
    const void *body;
    size_t body_len;    /* 0 with a body: its strlen */
    size_t piece;       /* bytes of a piece; 0: whole */
    void (*late)(void); /* called where there is no answer after 50 ms; may be NULL */
    bool may_fail;      /* memory may run out: then `failed` of the answer is set */
    bool leave;         /* the client goes away after the body */
};

struct answer {
    unsigned status;
    bool failed; /* the listener would send its own 500 */
    struct str body;
    char location[80], etag[80], retry_after[16], authenticate[64];
};

/* ---- the exchange ------------------------------------------------------------------------ */

struct exchange_of_test {
    struct request request; /* first */
    const struct question *question;
    struct header_scan header;
    char authorisation[128];
    pthread_mutex_t lock;
    pthread_cond_t resumed_cond;
    bool resumed;
};

/* As the listener's scan would have found them; NULL: the request has no such field. */
static inline void fill_header(struct exchange_of_test *x)
{
    const struct question *q = x->question;
    const char **value = x->header.value;

    value[HEADER_AUTHORIZATION] = x->authorisation[0] != '\0' ? x->authorisation : NULL;
    value[HEADER_CONTENT_TYPE] = q->body == NULL ? NULL : q->type != NULL ? q->type : JSON;
    value[HEADER_CONTENT_ENCODING] = q->encoding;
    value[HEADER_IF_MATCH] = q->if_match;
    value[HEADER_IF_NONE_MATCH] = q->if_none_match;
}

static inline void resumed(struct request *request)
{
    struct exchange_of_test *x = (struct exchange_of_test *)request;

    pthread_mutex_lock(&x->lock);
    assert_false(x->resumed);
    x->resumed = true;
    pthread_cond_signal(&x->resumed_cond);
    pthread_mutex_unlock(&x->lock);
}

static inline enum handled wait_if_later(struct exchange_of_test *x, enum handled handled)
{
    if (handled != HANDLE_LATER)
        return handled;
    pthread_mutex_lock(&x->lock);
    if (x->question != NULL && x->question->late != NULL && !x->resumed) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (until.tv_nsec + 50000000) / 1000000000;
        until.tv_nsec = (until.tv_nsec + 50000000) % 1000000000;
        while (!x->resumed)
            if (pthread_cond_clockwait(&x->resumed_cond, &x->lock, CLOCK_MONOTONIC, &until) != 0)
                break;
        if (!x->resumed)
            x->question->late();
    }
    while (!x->resumed)
        pthread_cond_wait(&x->resumed_cond, &x->lock);
    x->resumed = false;
    pthread_mutex_unlock(&x->lock);
    return HANDLE_CONTINUE;
}

static inline bool send_body(struct world *w, struct exchange_of_test *x)
{
    const struct question *q = x->question;
    const char *bytes = q->body;
    size_t len = q->body == NULL ? 0 : q->body_len != 0 ? q->body_len : strlen(bytes);
    size_t piece = q->piece != 0 ? q->piece : len;
    const struct route *route = x->request.route;

    if (route->body == NULL)
        str_append(&x->request.body, bytes, len);
    if (x->request.body.failed) { /* as the listener does */
        x->request.reply.body.failed = true;
        return false;
    }
    for (size_t at = 0; at < len && route->body != NULL; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        /* A copy of exactly that size: the sanitizer then sees a byte read too far or too late. */
        char *copy = malloc(n);
        enum handled handled;

        if (copy != NULL)
            memcpy(copy, bytes + at, n);
        handled = wait_if_later(
            x, route->body(&w->app, &x->request, copy != NULL ? copy : bytes + at, n));
        free(copy);
        if (handled == HANDLED)
            return false;
    }
    return true;
}

static inline void run_route(struct world *w, struct exchange_of_test *x)
{
    struct request *request = &x->request;
    const struct route *route = request->route;
    bool go_on = true;

    if (route->role != GRANT_ALL && !routes_authorise(&w->app, request))
        return;
    if (route->begin != NULL)
        go_on = route->begin(&w->app, request) == HANDLE_CONTINUE;
    if (go_on && send_body(w, x) && !x->question->leave)
        wait_if_later(x, route->finish(&w->app, request));
    if (route->done != NULL)
        route->done(&w->app, request);
    assert_null(request->state);
}

static inline void copy_header(const struct reply *reply, const char *name, char *out, size_t size)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcasecmp(reply->headers[i].name, name) == 0)
            snprintf(out, size, "%s", reply->headers[i].value);
}

/* Asks, and returns what was answered; the caller frees it with answer_done. */
static inline struct answer ask_whole(struct world *w, const struct question *question)
{
    struct exchange_of_test x = {.question = question, .lock = PTHREAD_MUTEX_INITIALIZER};
    const char *token = question->token != NULL ? question->token : TOKEN;
    struct answer answer = {.status = 0};
    struct route_match match;
    char path[512], *query, tail[256] = "";

    pthread_cond_init(&x.resumed_cond, NULL);
    snprintf(path, sizeof path, "%s", question->target);
    query = strchr(path, '?');
    if (query != NULL)
        *query++ = '\0';
    if (*token != '\0')
        snprintf(x.authorisation, sizeof x.authorisation, "Bearer %s", token);
    fill_header(&x);
    route_match(routes_admin, routes_admin_count, NULL, path, question->method, &match);
    assert_non_null(match.route);
    if (match.tail != NULL)
        snprintf(tail, sizeof tail, "%.*s", (int)match.tail_len, match.tail);
    x.request = (struct request){
        .method = question->method,
        .path = path,
        .query = query,
        .peer = question->peer != NULL ? question->peer : "192.0.2.1",
        .header = &x.header,
        .now = time(NULL),
        .route = match.route,
        .path_tail = match.tail != NULL ? tail : NULL,
        .resume = resumed,
    };
    reply_init(&x.request.reply);
    run_route(w, &x);

    answer.failed = x.request.reply.body.failed;
    assert_true(question->may_fail || !answer.failed);
    answer.status = x.request.reply.status;
    copy_header(&x.request.reply, "Location", answer.location, sizeof answer.location);
    copy_header(&x.request.reply, "ETag", answer.etag, sizeof answer.etag);
    copy_header(&x.request.reply, "Retry-After", answer.retry_after, sizeof answer.retry_after);
    copy_header(&x.request.reply, "WWW-Authenticate", answer.authenticate,
                sizeof answer.authenticate);
    answer.body = x.request.reply.body;
    x.request.reply.body = (struct str)STR_INIT;
    reply_done(&x.request.reply);
    str_done(&x.request.body);
    pthread_cond_destroy(&x.resumed_cond);
    return answer;
}

static inline void answer_done(struct answer *answer)
{
    str_done(&answer->body);
}

static inline struct answer ask(struct world *w, enum http_method method, const char *target,
                                const char *body)
{
    const struct question question = {.method = method, .target = target, .body = body};

    return ask_whole(w, &question);
}

/* ---- what is expected -------------------------------------------------------------------- */

/* Checks status and that the body holds `text` (NULL: anything); frees the answer. */
#define expect(answer, wanted, text) expect_at(answer, wanted, text, __FILE__, __LINE__)
static inline void expect_at(struct answer answer, unsigned wanted, const char *text,
                             const char *file, int line)
{
    if (answer.status != wanted || (text != NULL && strstr(str_text(&answer.body), text) == NULL)) {
        print_error("wanted %u with %s, got %u: %.2000s\n", wanted, text != NULL ? text : "any",
                    answer.status, str_text(&answer.body));
        _fail(file, line);
    }
    answer_done(&answer);
}

/* Copies the JSON string of the first member `name`. */
static inline void member(const struct answer *answer, const char *name, char *out, size_t size)
{
    char key[64];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":\"", name);
    at = strstr(str_text(&answer->body), key);
    assert_non_null(at);
    at += strlen(key);
    snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

static inline size_t occurrences(const struct answer *answer, const char *text)
{
    size_t count = 0;

    for (const char *at = str_text(&answer->body); (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}
