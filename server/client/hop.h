/* Redirects, followed by hand: each hop is a new request, and none leads where the first could not
 * have gone. Pure functions, thread safe. */
#ifndef SITEMAPD_CLIENT_HOP_H
#define SITEMAPD_CLIENT_HOP_H

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/url.h"

#define HOP_MAX 3u

enum hop_verdict {
    HOP_END,      /* no redirect: the answer stands for itself */
    HOP_FOLLOW,   /* `*to` is to be asked */
    HOP_TOO_MANY, /* the fourth */
    HOP_NOWHERE,  /* a redirect without a Location, or to something that is no URL of http */
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

#endif
