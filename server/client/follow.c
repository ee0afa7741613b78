#include "server/client/follow.h"

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
