/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Tables of requests and of what a listener with a few routes answers. */
#pragma once

#include <microhttpd.h>

#include "tests/unit/http/live.h"

static inline enum handled hello(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 200;
    request->reply.content_type = "text/plain";
    str_append_format(&request->reply.body, "path=%s query=%s tail=%s host=%s peer=%s body=%s",
                      request->path, request->query == NULL ? "-" : request->query,
                      request->path_tail == NULL ? "-" : request->path_tail,
                      request->host == NULL ? "-" : request->host, request->peer,
                      str_text(&request->body));
    return HANDLED;
}

static const char *const json_only[] = {"application/json", NULL};
static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/hello", .label = "hello", .finish = hello},
    {.methods = HTTP_POST,
     .path = "/take",
     .label = "take",
     .max_body_bytes = 1000,
     .content_types = json_only,
     .finish = hello},
    {.methods = HTTP_GET | HTTP_DELETE, .path = "/v1/x/{id}", .label = "x", .finish = hello},
    {.methods = HTTP_GET, .path = "/secret", .label = "x", .role = GRANT_READ, .finish = hello},
};
#define ROUTE_COUNT (sizeof routes / sizeof routes[0])

static inline bool refuse_all(void *context, struct request *request)
{
    (void)context;
    reply_problem(&request->reply, 401, "unauthorised", NULL, "no");
    reply_header(&request->reply, "WWW-Authenticate", "Bearer");
    return false;
}

static inline struct listener *admin(void)
{
    struct listener_options options = live_options(routes, ROUTE_COUNT);
    options.check_host = true;
    options.authorise = refuse_all;
    return live_start(&options);
}

#define HOST "Host: 127.0.0.1:1\r\n"

/* From 1.0 on libmicrohttpd refuses some things itself, with a page of its own. */
#define PAGE_1_0 "<html>"
#if MHD_VERSION >= 0x01000000
#define OURS_OR_1_0(text) PAGE_1_0
#else
#define OURS_OR_1_0(text) text
#endif

struct expectation {
    const char *request;
    unsigned status;
    bool ends;
    const char *contains; /* in head or body; NULL: anything */
};

static inline void check(const struct listener *l, const struct expectation *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct answer a;
        bool ended = all[i].ends;
        live_ask(l, all[i].request, &a, &ended);
        if (a.status != all[i].status || ended != all[i].ends ||
            (all[i].contains != NULL && strstr(a.head, all[i].contains) == NULL &&
             strstr(a.body == NULL ? "" : a.body, all[i].contains) == NULL))
            fail_msg("%s\nanswered (ended %d)\n%s%s", all[i].request, ended, a.head,
                     a.body == NULL ? "" : a.body);
        char cache[512];
        if (a.status >= 400 && (all[i].contains == NULL || strcmp(all[i].contains, PAGE_1_0) != 0))
            assert_string_equal(answer_header(&a, "Cache-Control", cache), "no-store");
        answer_done(&a);
    }
}
#define CHECK(l, all) check(l, all, sizeof(all) / sizeof(all)[0])
