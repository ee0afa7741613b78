/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes of the API that another node applies for this one. The caller of forward_aim chooses the
 * node and the reason. This part takes a request over once its token was checked, receives its body
 * as for a local write, hands it to the sender (server/forwarder.h), and answers when this node
 * serves the revision in the other node's answer.
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
 * Permission: the client's token is checked here, and again by the other node, in the transaction
 * that writes. So a forwarded request has no rights of its own: peer_token_file is not needed, and
 * a client that sends Sitemapd-Forwarded-By itself gains nothing. A FORWARD_FAR node then applies
 * the write itself, or rejects it (508) if the header has its own name; the answer has the
 * published revision, as every answer to a write.
 *
 * Loops: the header names the nodes that have forwarded a request. A FORWARD_FAR node does not
 * forward such a request again; if the header names this node, the request is rejected (508). A
 * node adds a mark that only nodes know to its name, so that a client's header does not count as a
 * loop. */
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
    FORWARD_FAR,     /* this node could apply its writes itself, but is far from PostgreSQL */
    FORWARD_FOLLOWS, /* this node cannot apply writes: it follows a node */
};

#define FORWARD_ORIGIN_SIZE 300
#define FORWARD_REVISION    "Sitemapd-Revision" /* of the answer to a forwarded write */

struct forward_target {
    enum forward_why why;
    char origin[FORWARD_ORIGIN_SIZE]; /* "https://web1.internal:8081" */
    char node[SHARED_NODE_NAME_SIZE]; /* its name; "": unknown */
};

/* Counters since the start, and the requests in progress. */
struct forward_counts {
    _Atomic uint64_t answered; /* forwarded, and answered there */
    _Atomic uint64_t direct;   /* applied here, since they could not be forwarded */
    _Atomic uint64_t failed;   /* answered 503: could neither be forwarded nor applied here */
    _Atomic uint64_t unknown;  /* answered 504 */
    _Atomic uint64_t unseen;   /* answered, although this node did not get the revision in time */
    _Atomic uint64_t loops;    /* answered 508: this node had forwarded them */
    atomic_uint under_way;
};

/* A write that is forwarded, for the sender. */
struct forwarded {
    struct forwarded *next; /* the sender's */
    void *sending;          /* of the sender, too */
    struct forward *forward;
    struct request *request;   /* the sender fills its reply before forward_answered */
    const struct route *route; /* the request's own */
    struct forward_target to;
    const char *method;
    struct str target, headers; /* path and query; lines that end in CRLF */
    struct str held;            /* a small body, or else the current piece */
    int fd;                     /* file of a larger body; -1: none */
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

/* `app` is borrowed; `node`: this node's name, copied. NULL: no memory, or no
 * randomness. */
struct forward *forward_new(struct app_context *app, const char *node);
/* After the listeners have ended. Accepts NULL. */
void forward_free(struct forward *f);
/* Before the first forward_aim. */
void forward_use(struct forward *f, forward_send *send, void *sender);

/* Sets the node that writes are forwarded to from now on; writes in progress are not redirected.
 * Any thread, never waits. */
void forward_aim(struct forward *f, const struct forward_target *to);
/* Any thread, never waits. Accepts NULL: FORWARD_NOT. */
void forward_target_get(struct forward *f, struct forward_target *out);
/* Any thread. */
const struct forward_counts *forward_counts_get(const struct forward *f);

/* The listener's authorise hook (context: struct app_context): routes_authorise; then a write that
 * goes to another node gets the route that forwards it. */
bool forward_authorise(void *context, struct request *request);

/* Adds the revision to the answer of a write that another node forwarded: that node waits until it
 * has this revision, too. */
void forward_add_revision(const struct app_context *app, struct request *request);

/* ---- the sender's thread; `w` is not touched afterwards */

/* The other node answered and the request's reply is filled. The client gets it once this node has
 * `revision` (0: the answer has none). */
void forward_answered(struct forwarded *w, uint64_t revision);
/* The other node did not answer. `sent`: part of the request was sent, so it may have been applied.
 */
void forward_failed(struct forwarded *w, bool sent);
