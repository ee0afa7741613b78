/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A request and its reply, as handlers see them: no socket, no library. A test fills a request by
 * hand and calls any handler; the listener fills it from libmicrohttpd. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/pages/resource.h"
#include "server/rules/grant.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/http/traceparent.h"
#include "server/rules/limits.h"

enum http_method {
    HTTP_GET = 1 << 0,
    HTTP_HEAD = 1 << 1,
    HTTP_POST = 1 << 2,
    HTTP_PUT = 1 << 3,
    HTTP_PATCH = 1 << 4,
    HTTP_DELETE = 1 << 5,
    HTTP_OPTIONS = 1 << 6,
    HTTP_OTHER = 1 << 7, /* 501 */
};

/* ---- its header (RFC 9110 5.1, 5.5). One thread at a time for each scan. */

/* The header fields that the listener, a handler or a log needs; found in one pass. */
enum known_header {
    /* Lists: several lines are one list (RFC 9110 5.3). */
    HEADER_ACCEPT_ENCODING,
    HEADER_ACCEPT,
    HEADER_IF_NONE_MATCH,
    HEADER_IF_MATCH,
    HEADER_CONTENT_ENCODING,
    HEADER_X_FORWARDED_FOR,
    HEADER_CDN_LOOP,              /* the servers that the request has passed (RFC 8586) */
    HEADER_SITEMAPD_FORWARDED_BY, /* the nodes that have forwarded it (server/api/forward.h) */
    HEADER_LISTS,                 /* their number */
    HEADER_HOST = HEADER_LISTS,
    HEADER_CONTENT_LENGTH,
    HEADER_TRANSFER_ENCODING,
    HEADER_IF_MODIFIED_SINCE,
    HEADER_IF_UNMODIFIED_SINCE,
    HEADER_RANGE,
    HEADER_IF_RANGE,
    HEADER_CONTENT_TYPE,
    HEADER_AUTHORIZATION,
    HEADER_EXPECT,
    HEADER_X_FORWARDED_HOST,
    HEADER_X_REQUEST_ID,
    HEADER_SITEMAPD_VIA, /* interface and user, as the client states them: "cli; user=NAME" */
    HEADER_REFERER,
    HEADER_USER_AGENT,
    HEADER_IDEMPOTENCY_KEY,
    HEADER_TRACEPARENT,
    HEADER_COUNT, /* number of lists; as a field: unknown */
};

/* All zero at first; small, since it is cleared for each request. */
struct header_scan {
    const char *value[HEADER_COUNT]; /* of the first line; borrowed; NULL: absent */
    uint8_t lines[HEADER_COUNT];     /* 255 means 255 or more */
    uint32_t fields;                 /* lines of any name */
    bool malformed;                  /* a name is not a token, or a value holds a NUL */
    bool failed;        /* out of memory while a list was joined: its value is unknown */
    struct str *joined; /* [HEADER_LISTS], lists of several lines; owned; NULL: none */
};

/* Adds one header line; lengths are the parser's, and both texts end with a NUL. `value` may be
 * NULL: empty. Texts are borrowed until header_scan_done. */
void header_scan_add(struct header_scan *scan, const char *name, size_t name_len, const char *value,
                     size_t value_len);
/* Frees the lists; the scan is to be cleared before it is used again. */
void header_scan_done(struct header_scan *scan);
/* The value of a known field: a whole list, else the first line. Borrowed. NULL: it is absent (or
 * the scan failed). */
static inline const char *header_scan_value(const struct header_scan *scan, enum known_header which)
{
    if (which >= HEADER_LISTS || scan->lines[which] < 2)
        return scan->value[which];
    return scan->failed ? NULL : scan->joined[which].data;
}

/* ---- the reply */

#define REPLY_MAX_HEADERS 12
#define REPLY_TEXT_BYTES  256u /* total size of header values that need no allocation */

struct reply_header {
    const char *name; /* static */
    char *value;      /* in reply.text, or owned */
};

/* The header fields for caches in every reply with a resource. */
struct cache_fields {
    const char *cache_control;
    const char *cdn_cache_control; /* RFC 9213; NULL: none */
    /* Name of the header with the tags of site and index, for purges by tag; the name decides
     * whether spaces (Surrogate-Key) or commas separate them. NULL: none. */
    const char *tag;
};

/* What a handler answers: a body of its own or a resource. */
struct reply {
    unsigned status;
    const char *content_type; /* static; NULL: none */
    const char *problem;      /* the code of reply_problem; NULL: not a problem */
    struct str body;          /* owned */
    /* Owned reference; NULL: `body` is the reply. resource_reply fills this and the members
     * below. */
    struct resource *resource;
    enum representation represent;
    enum coding offered;              /* accepted by the client, if Accept-Encoding was read */
    size_t first, len;                /* the representation that is sent, or that a 304 refers to */
    const struct cache_fields *cache; /* borrowed for the process's life */
    int64_t site_id;                  /* whose it is; 0: not known */
    bool from_file;                   /* the body is of `file`; see reply_file */
    int file;                         /* owned */
    uint64_t file_first, file_bytes;
    bool close; /* close the connection after the reply */
    size_t header_count, text_len;
    /* Not cleared between requests: only the first header_count headers are set. */
    struct reply_header headers[REPLY_MAX_HEADERS];
    char text[REPLY_TEXT_BYTES];
};

void reply_init(struct reply *reply);
/* Adds a header; `name` is static, `value` is copied. Out of memory sets body.failed (the listener
 * then answers 500). CR, LF or another control character in the value does the same. */
void reply_header(struct reply *reply, const char *name, const char *value);
/* An RFC 9457 problem: sets status, type, Cache-Control: no-store and the body, and replaces
 * everything filled before. `code` is a stable word, static; `field` may be NULL. */
void reply_problem(struct reply *reply, unsigned status, const char *code, const char *field,
                   const char *detail);
/* A short text/plain error for crawlers; replaces all that was filled before. */
void reply_text(struct reply *reply, unsigned status, const char *text);
/* A JSON body that `reply->body` already holds: status, type, no-store. */
void reply_json(struct reply *reply, unsigned status);
/* The body is `bytes` bytes of `fd`, from reply->file_first on; the reply takes `fd` over. For
 * bodies that are too long for memory. The caller sets status and type. */
void reply_file(struct reply *reply, int fd, uint64_t bytes);
void reply_done(struct reply *reply);
/* Moves `from` to `to`, which must own nothing; `from` is then as after reply_init. */
void reply_move(struct reply *to, struct reply *from);

/* ---- the request */

struct request {
    enum http_method method;
    const char *path;  /* raw, begins with '/', without query */
    const char *query; /* raw text behind '?', NULL: there is no '?' */
    const char *host;  /* Host, or X-Forwarded-Host of a trusted proxy; NULL: none */
    const char *peer;  /* client's address, also through a trusted proxy; may be NULL */
    const char *id;    /* sent as X-Request-Id and in the logs; NULL: none */
    const struct header_scan *header; /* borrowed; NULL: none (tests) */
    int64_t now;                      /* Unix seconds */
    const struct route *route;        /* that matched */
    int64_t site_id;       /* of the site of the host; 0: none, or not the public listener */
    const char *path_tail; /* what the route's {…} matched, percent-decoded, or NULL */
    bool undated; /* this address may have had other content with any date: do not compare dates */
    void *state;  /* the handler's, between begin, body and finish */
    /* Fills the reply on the listener's thread; set before request_resume, called once. NULL: the
     * reply is already filled. */
    void (*answer)(struct request *request);
    struct str body; /* collected body of routes without a `body` hook */
    /* The token's name, if the route needs a token; set by the authorise hook. */
    const char *token_name;    /* in token_text, or static */
    struct grant grant;        /* what the token may do; its texts are in the request or static */
    int64_t token_id;          /* of the catalogue's token; 0: it is the environment's */
    uint8_t token_sha256[32];  /* of the catalogue's token */
    struct exchange *exchange; /* the listener's; NULL in tests */
    /* Tests: request_resume calls this if there is no exchange; NULL: nothing. */
    void (*resume)(struct request *request);
    struct reply reply; /* its headers and the members below are not cleared */
    char token_text[NAME_MAX_BYTES + 1];
    char prefix_text[GRANT_PREFIX_MAX_CHARS + 1];
};

/* The value of a field of the request's header; NULL if it is absent. Borrowed. */
static inline const char *request_header(const struct request *request, enum known_header which)
{
    return request->header == NULL ? NULL : header_scan_value(request->header, which);
}

/* The trace in the client's traceparent; "" if none exists, or a malformed one. */
static inline void request_traceparent(const struct request *request, struct traceparent *out)
{
    bool once = request->header != NULL && request->header->lines[HEADER_TRACEPARENT] == 1;
    traceparent_parse(once ? request->header->value[HEADER_TRACEPARENT] : NULL, out);
}

/* All conditions of the request except Range and If-Range. */
static inline struct conditions request_conditions(const struct request *request)
{
    bool dates = !request->undated;

    return (struct conditions){
        .if_match = request_header(request, HEADER_IF_MATCH),
        .if_unmodified_since = dates ? request_header(request, HEADER_IF_UNMODIFIED_SINCE) : NULL,
        .if_none_match = request_header(request, HEADER_IF_NONE_MATCH),
        .if_modified_since = dates ? request_header(request, HEADER_IF_MODIFIED_SINCE) : NULL,
    };
}

enum handled {
    HANDLED,         /* request->reply is filled */
    HANDLE_LATER,    /* request_resume will be called, exactly once, from any thread */
    HANDLE_CONTINUE, /* begin, body: go on reading */
};

/* For hooks of routes with `asks_to_wait`: call it before the work is passed to another thread.
 * True: a place for a waiting request is reserved, and the hook may answer HANDLE_LATER. False:
 * none is free, or the listener is stopping; answer 503. Always true in tests. */
bool request_may_wait(struct request *request);

/* True if the client of a waiting request has closed its connection, even only its sending side.
 * Any thread, until request_resume. */
bool request_is_gone(const struct request *request);

/* Resumes a request after HANDLE_LATER, once its reply is filled or, during the body, it is ready
 * for more. The caller must not touch the request afterwards. May be called before the handler has
 * returned HANDLE_LATER. */
void request_resume(struct request *request);

struct operation;
struct route {
    unsigned methods;                 /* HTTP_… or'ed; HEAD is implied by GET */
    const char *path;                 /* "/v1/sitemaps" or, with a last segment of any text,
                                         "/v1/sitemaps/{id}", or "/v1/sources/{name}/scan" */
    const char *label;                /* for metrics: "sitemaps" */
    bool pages;                       /* API calls for urlsets and page URLs */
    enum grant_role role;             /* role that the token needs; 0: no token is needed */
    uint64_t max_body_bytes;          /* 0: no body is taken */
    const char *const *content_types; /* NULL-terminated; NULL: any */
    /* True: the hooks call request_may_wait themselves, only if they must wait; for routes that
     * mostly need not (a cached page, health). False: the listener reserves a place before it calls
     * `body` or `finish`, and answers 503 if none is free. */
    bool asks_to_wait;
    /* If `begin` is that of the API (server/api/call.h): the size of the call that it makes, and
     * its parameters (server/api/description.h). */
    const size_t *call_size;
    const struct operation *operation;
    /* Before the body: HANDLE_CONTINUE, or HANDLED with an early reply. May be NULL. */
    enum handled (*begin)(void *context, struct request *request);
    /* A piece of the body, as it arrives; NULL: it is collected in request->body. The bytes are
     * valid until the hook returns. May answer HANDLE_LATER, HANDLE_CONTINUE or HANDLED (early
     * reply; the connection is closed after it). */
    enum handled (*body)(void *context, struct request *request, const void *bytes, size_t len);
    /* The request is whole: HANDLED or HANDLE_LATER. */
    enum handled (*finish)(void *context, struct request *request);
    /* Frees request->state, always called once if begin ran; also when the client is gone. Not
     * called while HANDLE_LATER is pending. May be NULL. */
    void (*done)(void *context, struct request *request);
};

/* Names of statuses and methods (RFC 9110 15 and 9). Pure, thread safe. */

/* "Not Found"; "Unknown" for statuses that this program does not use. Static. */
const char *status_reason(unsigned status);
/* Reads a method, case-sensitive (RFC 9110 9.1); HTTP_OTHER for any other. */
enum http_method method_parse(const char *text);
/* "GET"; "-" for HTTP_OTHER. Static. */
const char *method_name(enum http_method method);
/* The value of Allow for a set of methods: HEAD is listed with GET, OPTIONS always. */
#define METHOD_ALLOW_SIZE 64
void method_allow(unsigned set, char out[METHOD_ALLOW_SIZE]);
