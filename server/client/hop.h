/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Redirects, followed by hand: each hop is a new request, and none leads where the first could not
 * have gone. What an answer asks for is a pure function, thread safe; a caller with one request at
 * a time has it done by fetch_follow. */
#pragma once

#include <stdbool.h>

#include "server/client/client.h"

#define HOP_MAX 3u

enum hop_verdict {
    HOP_END,      /* no redirect: the answer is final */
    HOP_FOLLOW,   /* `*to` is to be asked */
    HOP_TOO_MANY, /* the fourth */
    HOP_NOWHERE,  /* a redirect without a Location, or to something that is not an http URL */
    HOP_PLAIN,    /* from https to http */
    HOP_FOREIGN,  /* to an origin that is not allowed */
};

/* Whether requests may go to the URL's origin. */
typedef bool hop_allowed(void *context, const struct url *to);

/* What an answer of `status` to a request for `from` asks for. `location` is absolute
 * (reply->redirect), its fragment is dropped (RFC 9110 10.2.2); NULL or "": none. `hops`: how many
 * were followed before. 300 and 304 are no redirects. `*to` is untouched unless HOP_FOLLOW.
 * What belongs to one origin alone (credentials, `connect`) goes along only where url_same_origin
 * holds between the first URL and `*to`. */
enum hop_verdict hop_next(unsigned status, const char *location, const struct url *from,
                          unsigned hops, hop_allowed *allowed, void *context, struct url *to);
/* Why the redirect is not followed, a sentence without its end; "" for HOP_END and HOP_FOLLOW.
 * Static. */
const char *hop_sentence(enum hop_verdict verdict);

/* One request and the redirects behind it, on the thread that asks: for commands. */
struct follow {
    /* Of the first request; each hop is made as it, but that `credentials`, `connect` and `ca_more`
     * stay with its URL's origin. */
    const struct fetch_request *request;
    hop_allowed *allowed;
    /* Called with each answer, the last one included, with its result; NULL: nobody. */
    void (*each)(void *context, const struct url *url, enum fetch_status status,
                 const struct fetch_reply *reply, enum hop_verdict verdict);
    void *context; /* of both */
    /* The result. */
    struct url last; /* that was asked */
    unsigned hops;
    enum hop_verdict verdict; /* HOP_END, or why the redirect in the reply is not followed */
};

/* As fetch. The reply is the last one's; fetch_reply_done is due. */
enum fetch_status fetch_follow(struct follow *f, struct fetch_reply *reply);
