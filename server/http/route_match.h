/* Which route a path and a method lead to. Pure, thread safe. */
#ifndef SITEMAPD_HTTP_ROUTE_MATCH_H
#define SITEMAPD_HTTP_ROUTE_MATCH_H

#include "server/http/request.h"

struct route_match {
    const struct route *route; /* NULL: `allowed` 0: no such path; else: not with this method */
    size_t index;              /* of the route, or of one with that path; `count`: the fallback */
    unsigned allowed;          /* methods of all routes with that path */
    const char *tail;          /* what {…} matched, in `path`; NULL: the route has none */
    size_t tail_len;
};

/* A route without {…} goes before one with it. `fallback` (may be NULL) takes the rest. */
void route_match(const struct route *routes, size_t count, const struct route *fallback,
                 const char *path, enum http_method method, struct route_match *out);

#endif
