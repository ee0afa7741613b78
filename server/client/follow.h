/* One request and the redirects behind it, on the thread that asks: for commands. */
#ifndef SITEMAPD_CLIENT_FOLLOW_H
#define SITEMAPD_CLIENT_FOLLOW_H

#include "server/client/client.h"
#include "server/client/hop.h"

struct follow {
    /* Of the first request; each hop is made as it, but that `credentials`, `connect` and `ca_more`
     * stay with its URL's origin. */
    const struct fetch_request *request;
    hop_allowed *allowed;
    /* Told each answer, the last one included, with what comes of it; NULL: nobody. */
    void (*each)(void *context, const struct url *url, enum fetch_status status,
                 const struct fetch_reply *reply, enum hop_verdict verdict);
    void *context; /* of both */
    /* What came of it. */
    struct url last; /* that was asked */
    unsigned hops;
    enum hop_verdict verdict; /* HOP_END, or why the redirect in the reply is not followed */
};

/* As fetch. The reply is the last one's; fetch_reply_done is due. */
enum fetch_status fetch_follow(struct follow *f, struct fetch_reply *reply);

#endif
