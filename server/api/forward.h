/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes of the API that another node applies for this one. The node says to which node they go and
 * why (forward_aim), whatever that is decided by; this part takes a request over once its token was
 * checked, receives its body as a local write would, hands it to the sender (server/forwarder.h),
 * and answers when this node serves the revision that the other one answered.
 *
 *     the outcome                       the client gets
 *     an answer                         the same, word for word
 *     nothing was sent, or an answer    FORWARD_FAR: the write, applied here as if nothing had
 *     which means that nothing was      been forwarded. FORWARD_FOLLOWS: 503, or the answer
 *     applied, for a reason that is
 *     the other node's alone
 *     it was sent, and not answered     504 outcome-unknown; FORWARD_FAR with an Idempotency-Key:
 *                                       the write, applied here, which finds what the first one did
 *
 * Who may: the token of the client is checked here, and by the other node again, in the transaction
 * that writes. So a forwarded request has no rights of its own: peer_token_file is not needed, and
 * a client that sends Sitemapd-Forwarded-By itself gains nothing by it. A node that is far applies
 * the write itself, or rejects it (508) for a name that is its own; and the answer has the revision
 * of what is published, which every answer to a write has.
 *
 * Loops: the header names the nodes that have forwarded a request. One that has been forwarded is
 * not forwarded again because this node is far; where it names this node it is rejected (508).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/shared.h"
#include "server/http/request.h"
#include "server/trace/trace.h"

struct app_context;
struct forward;

enum forward_why {
    FORWARD_NOT,     /* this node applies its writes */
    FORWARD_FAR,     /* it could: PostgreSQL is far from it */
    FORWARD_FOLLOWS, /* it cannot: it follows a node */
};

#define FORWARD_ORIGIN_SIZE 300
#define FORWARD_REVISION    "Sitemapd-Revision" /* of the answer to a forwarded write */

struct forward_target {
    enum forward_why why;
    char origin[FORWARD_ORIGIN_SIZE]; /* "https://web1.internal:8081" */
    char node[SHARED_NODE_NAME_SIZE]; /* its name; "": not known */
};

/* Counters since the start, and what is under way. */
struct forward_counts {
    _Atomic uint64_t answered; /* forwarded, and answered there */
    _Atomic uint64_t direct;   /* could not be forwarded, and were applied here */
    _Atomic uint64_t failed;   /* answered 503: could neither be forwarded nor applied here */
    _Atomic uint64_t unknown;  /* answered 504 */
    _Atomic uint64_t unseen;   /* answered, though this node did not have the revision in time */
    _Atomic uint64_t loops;    /* answered 508 */
    atomic_uint under_way;
};

/* A write that is forwarded, for the sender. */
struct forwarded {
    struct forwarded *next; /* the sender's */
    void *sending;          /* likewise */
    struct forward *forward;
    struct request *request;   /* the sender fills its reply before forward_answered */
    const struct route *route; /* the request's own */
    struct forward_target to;
    const char *method;
    struct str target, headers; /* path and query; lines that end in CRLF */
    struct str held;            /* the body where it is small, else the piece under way */
    int fd;                     /* else the body's file; -1: none */
    uint64_t bytes;             /* of the body */
    /* Internal. */
    uint64_t taken; /* of the spools' room */
    uint64_t revision;
    unsigned waits; /* for it */
    bool over;      /* the reply is filled */
    struct trace_span span;
    struct request direct; /* the same request, applied here */
    atomic_int direct_wait, direct_stage;
    uint64_t direct_at;
};

/* Hands it to the sender's thread. Never waits. */
typedef void forward_send(void *sender, struct forwarded *w);

/* `app` is borrowed; `node`: this node's name, copied. NULL: no memory. */
struct forward *forward_new(struct app_context *app, const char *node);
/* After the listeners have ended. Takes NULL. */
void forward_free(struct forward *f);
/* Before the first forward_aim. */
void forward_use(struct forward *f, forward_send *send, void *sender);

/* Where writes go from now on; those under way go where they went. Any thread, never waits. */
void forward_aim(struct forward *f, const struct forward_target *to);
/* Any thread, never waits. Takes NULL: FORWARD_NOT. */
void forward_target_get(struct forward *f, struct forward_target *out);
/* Any thread. */
const struct forward_counts *forward_counts_get(const struct forward *f);

/* The listener's authorise hook (context: struct app_context): routes_authorise; then a write that
 * goes to another node gets the route that forwards it. */
bool forward_authorise(void *context, struct request *request);

/* The answer to a write is made: where another node has forwarded it, that one waits until it has
 * as much as this one. */
void forward_tell_revision(const struct app_context *app, struct request *request);

/* ---- the sender's thread; `w` is not touched afterwards */

/* The other node answered: the request's reply is filled, and this node is to have `revision` (0:
 * the answer has none) before the client gets it. */
void forward_answered(struct forwarded *w, uint64_t revision);
/* It did not. `sent`: some of the request was, so that it may have been applied. */
void forward_failed(struct forwarded *w, bool sent);
