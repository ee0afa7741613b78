/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Follows redirects, each checked like the first request. */
#include "server/client/hop.h"

#include <string.h>

static bool redirects(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum hop_verdict hop_next(unsigned status, const char *location, const struct url *from,
                          unsigned hops, hop_allowed *allowed, void *context, struct url *to)
{
    struct url next;

    if (!redirects(status))
        return HOP_END;
    if (hops >= HOP_MAX)
        return HOP_TOO_MANY;
    if (location == NULL || url_parse(location, strcspn(location, "#"), &next, NULL) != RULE_OK)
        return HOP_NOWHERE;
    if (from->https && !next.https)
        return HOP_PLAIN;
    if (!allowed(context, &next))
        return HOP_FOREIGN;
    *to = next;
    return HOP_FOLLOW;
}

const char *hop_sentence(enum hop_verdict verdict)
{
    switch (verdict) {
    case HOP_TOO_MANY:
        return "it redirects more than three times";
    case HOP_NOWHERE:
        return "it redirects, but not to a URL of http or https";
    case HOP_PLAIN:
        return "it redirects from https to http";
    case HOP_FOREIGN:
        return "it redirects to a host that is not the site's";
    case HOP_END:
    case HOP_FOLLOW:
        break;
    }
    return "";
}

enum fetch_status fetch_follow(struct follow *f, struct fetch_reply *reply)
{
    struct fetch_request request = *f->request;

    f->last = *f->request->url;
    request.url = &f->last;
    for (f->hops = 0;; f->hops++) {
        enum fetch_status status = fetch(&request, reply);
        struct url next = f->last;

        f->verdict = status != FETCH_OK
                         ? HOP_END
                         : hop_next(reply->status, str_text(&reply->redirect), &f->last, f->hops,
                                    f->allowed, f->context, &next);
        if (f->each != NULL)
            f->each(f->context, &f->last, status, reply, f->verdict);
        if (f->verdict != HOP_FOLLOW)
            return status;
        fetch_reply_done(reply);
        f->last = next;
        if (!url_same_origin(&f->last, f->request->url))
            request.credentials = request.connect = request.ca_more = NULL;
    }
}
