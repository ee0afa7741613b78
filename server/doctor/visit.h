/* What the checks share: the options, the counts, how to ask and how to tell. Internal to
 * server/doctor/. */
#ifndef SITEMAPD_DOCTOR_VISIT_H
#define SITEMAPD_DOCTOR_VISIT_H

#include "server/doctor/doctor.h"
#include "server/fetch/fetch.h"

#define VISIT_MAX_PAGE   52428800u /* of one index or sitemap, as sent and decoded */
#define VISIT_MAX_ROBOTS 524288u   /* what Google reads of a robots.txt */
#define VISIT_MAX_HOPS   5u

struct visit_robots {
    char origin[LOC_MAX_CHARS + 1];
    unsigned status; /* 0: no answer */
    struct str text; /* "" unless 200 */
};

struct visit {
    const struct doctor_options *options;
    doctor_report *report;
    void *context;
    unsigned *counts;
    bool no_memory;
    struct url url;             /* of the index, redirects followed */
    struct fetch_reply page;    /* its gzip answer */
    struct str body;            /* decoded */
    struct visit_robots robots; /* of the index's own host */
};

/* Reports a finding. `todo` NULL with DOCTOR_OK. */
void visit_say(struct visit *v, enum doctor_level level, const char *check, const char *todo,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* One request. `headers` as in struct fetch_request. */
enum fetch_status visit_ask(struct visit *v, const char *method, const struct url *url,
                            const char *headers, uint64_t max_bytes, struct fetch_reply *reply);
/* The same, redirects followed, at most VISIT_MAX_HOPS; `*url` becomes the last one, `*hops` how
 * many there were. A redirect that cannot be followed is the reply. */
enum fetch_status visit_follow(struct visit *v, struct url *url, const char *headers,
                               uint64_t max_bytes, struct fetch_reply *reply, unsigned *hops);
/* Past a proxy that ends TLS (--connect, and an index asked for by http), what the index's own host
 * has by https is asked for as the index was: `url` becomes that. Any other stays. */
void visit_own(const struct visit *v, struct url *url);
/* Decodes the reply's Content-Encoding into `out`; told where that fails, as `check`. `what` names
 * the reply in sentences. */
bool visit_decode(struct visit *v, const char *check, const char *what,
                  const struct fetch_reply *reply, struct str *out);

/* The checks, in their order. Each goes on where it can; false: there is no use in the next. */
bool visit_page(struct visit *v);        /* reach, redirect, status, type, gzip */
void visit_headers(struct visit *v);     /* vary, etag, cache */
void visit_conditional(struct visit *v); /* not-modified, identity, head */
void visit_robots(struct visit *v);
void visit_index(struct visit *v); /* index, cross-host, child */

/* Fetches the robots.txt of an origin. */
void visit_fetch_robots(struct visit *v, const struct url *of, struct visit_robots *out);
/* The crawler that it forbids the path of `url`; NULL where none is. Static. */
const char *visit_forbidden(const struct visit_robots *robots, const struct url *url);
/* Fetches a sitemap that an index lists and judges it. `robots` is its host's. */
void visit_child(struct visit *v, const char *loc, const struct visit_robots *robots);

#endif
