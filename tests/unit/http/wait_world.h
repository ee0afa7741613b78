/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A listener whose handlers suspend and resume in every way, for the tests of waiting. */
#pragma once

#include "server/base/clock.h"
#include "tests/unit/http/live.h"

static atomic_uint resumers, done_count;
static atomic_bool released;

/* After as many milliseconds as the query says; "held": when it is released. */
static inline void *resume_soon(void *context)
{
    struct request *request = context;
    const char *query = request->query;

    while (query != NULL && strcmp(query, "held") == 0 && !atomic_load(&released))
        usleep(1000);
    usleep(query == NULL ? 0 : (useconds_t)atoi(query) * 1000);
    if (request->reply.status == 0 && request->route->body == NULL) {
        request->reply.status = 200;
        str_append_text(&request->reply.body, "late");
    }
    request_resume(request);
    atomic_fetch_sub(&resumers, 1);
    return NULL;
}

static inline enum handled hand_over(struct request *request)
{
    atomic_fetch_add(&resumers, 1);
    return live_later(request, resume_soon);
}

static inline enum handled later(void *context, struct request *request)
{
    (void)context;
    return hand_over(request);
}

/* Gives the other thread time to resume before the hook returns. */
static inline enum handled slowly(void *context, struct request *request)
{
    (void)context;
    hand_over(request);
    usleep(30000);
    return HANDLE_LATER;
}

static inline enum handled at_once(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 200;
    str_append_text(&request->reply.body, "now");
    request_resume(request);
    return HANDLE_LATER;
}

static inline enum handled ask(void *context, struct request *request)
{
    if (request_header(request, HEADER_REFERER) == NULL) {
        request->reply.status = 200;
        return HANDLED;
    }
    if (!request_may_wait(request)) {
        reply_text(&request->reply, 503, "no");
        return HANDLED;
    }
    return later(context, request);
}

/* What an upload has sent. Two hooks of one request never run at the same time. */
struct uploaded {
    struct str all;
    atomic_uint in_hook;
};

static inline enum handled begin(void *context, struct request *request)
{
    (void)context;
    request->state = calloc(1, sizeof(struct uploaded));
    return HANDLE_CONTINUE;
}

static inline enum handled piece(void *context, struct request *request, const void *bytes,
                                 size_t len)
{
    struct uploaded *u = request->state;

    assert_int_equal(atomic_exchange(&u->in_hook, 1), 0);
    str_append(&u->all, bytes, len);
    atomic_store(&u->in_hook, 0);
    if (memchr(bytes, '!', len) != NULL) {
        reply_problem(&request->reply, 422, "bad", NULL, "no exclamation marks");
        return HANDLED;
    }
    return request->query == NULL ? HANDLE_CONTINUE : later(context, request);
}

static inline enum handled whole(void *context, struct request *request)
{
    struct str *all = &((struct uploaded *)request->state)->all;
    uint32_t sum = 0;

    (void)context;
    for (size_t i = 0; i < all->len; i++)
        sum = sum * 31 + (unsigned char)all->data[i];
    request->reply.status = 200;
    str_append_format(&request->reply.body, "%zu %u", all->len, sum);
    return HANDLED;
}

static inline void done(void *context, struct request *request)
{
    (void)context;
    if (request->state != NULL)
        str_done(&((struct uploaded *)request->state)->all);
    free(request->state);
    atomic_fetch_add(&done_count, 1);
}

static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/later", .label = "later", .finish = later, .done = done},
    {.methods = HTTP_GET, .path = "/slowly", .label = "later", .finish = slowly},
    {.methods = HTTP_GET, .path = "/at-once", .label = "later", .finish = at_once},
    {.methods = HTTP_GET, .path = "/ask", .label = "ask", .asks_to_wait = true, .finish = ask},
    {.methods = HTTP_GET, .path = "/own", .label = "own", .role = GRANT_READ, .finish = later},
    {.methods = HTTP_POST,
     .path = "/upload",
     .label = "upload",
     .max_body_bytes = 10000000,
     .begin = begin,
     .body = piece,
     .finish = whole,
     .done = done},
};

/* The token is the number of its site. */
static inline bool authorise(void *context, struct request *request)
{
    const char *token = request_header(request, HEADER_AUTHORIZATION);
    (void)context;
    request->grant.site_id = token != NULL ? atoi(token) : 0;
    return true;
}

static inline struct listener *start(uint32_t max_suspended)
{
    struct listener_options options = live_options(routes, sizeof routes / sizeof routes[0]);
    options.max_suspended = max_suspended;
    options.authorise = authorise;
    atomic_store(&done_count, 0);
    atomic_store(&released, false);
    return live_start(&options);
}

static inline void settle(void)
{
    int64_t end = clock_now_ms() + LIVE_PATIENCE_MS;
    while (atomic_load(&resumers) > 0 && clock_now_ms() < end)
        usleep(1000);
    assert_int_equal(atomic_load(&resumers), 0);
}

#define HEAD " HTTP/1.1\r\nHost: a\r\n\r\n"
