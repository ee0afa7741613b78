/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the checks share: the options, the counts, and functions that send requests and report
 * results. Internal to server/doctor/. */
#pragma once

#include "server/client/client.h"
#include "server/doctor/doctor.h"
#include "server/input/content_coding.h"
#include "server/input/sitemap_file.h"

#define VISIT_MAX_PAGE 52428800u /* of one index or sitemap, as sent and decoded */
#define VISIT_MAX_HOPS 5u

struct visit_robots {
    char origin[LOC_MAX_CHARS + 1];
    unsigned status; /* 0: no answer */
    struct str text; /* "" unless 200; as much of it as crawlers read */
    bool long_text;  /* there is more */
};

struct visit {
    const struct doctor_options *options;
    doctor_report *report;
    void *context;
    unsigned *counts;
    bool no_memory;
    struct url url;             /* of the index, redirects followed */
    struct fetch_reply page;    /* the answer to Accept-Encoding: gzip */
    struct str body;            /* decoded */
    struct visit_robots robots; /* of the index's own host */
    uint64_t unindexed;         /* children with X-Robots-Tag: noindex, and the first of them */
    char first_unindexed[LOC_MAX_CHARS + 1];
};

/* What a finding is about, beside its sentence; what is 0 or NULL does not apply. */
struct visit_about {
    const char *code; /* NULL: the check's own word */
    const char *url;
    uint64_t line, column, count;
};

/* Reports a finding. `todo` NULL with DOCTOR_OK. */
void visit_report(struct visit *v, enum doctor_level level, const char *check,
                  const struct visit_about *about, const char *todo, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* The same about nothing in particular. `todo` NULL with DOCTOR_OK. */
void visit_report_plain(struct visit *v, enum doctor_level level, const char *check,
                        const char *todo, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* GETs `*url`, redirects followed, at most VISIT_MAX_HOPS; it becomes the last one, `*hops` how
 * many there were. A redirect that cannot be followed is the reply. */
enum fetch_status visit_follow(struct visit *v, struct url *url, const char *headers,
                               uint64_t max_bytes, struct fetch_reply *reply, unsigned *hops);
/* What to do about a fetch that failed; NULL: nothing helps. */
const char *visit_fetch_todo(enum fetch_status status);
/* With --connect to a server behind a proxy that ends TLS (the index is requested by http), changes
 * an https `url` of the index's host to http. Leaves any other as it is. */
void visit_own(const struct visit *v, struct url *url);
/* What the reply's Content-Encoding says. */
void visit_coding(const struct fetch_reply *r, struct content_coding *out);
/* Decodes the answer of the index into `out`; reports where that fails. */
bool visit_decode(struct visit *v, const struct fetch_reply *reply, struct str *out);

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
/* True where it has a Sitemap line with the index. */
bool visit_names_index(const struct visit *v, const struct visit_robots *robots);
/* Fetches a sitemap that an index lists and checks it. `lastmod`: what the index dates it with; "":
 * nothing. `robots` is its host's. */
void visit_child(struct visit *v, const char *text, const char *lastmod,
                 const struct visit_robots *robots);
/* The other hosts that an index lists sitemaps of: those past the bound are not looked at. */
#define VISIT_MAX_HOSTS 5u
struct visit_hosts {
    struct visit_robots robots[VISIT_MAX_HOSTS]; /* fetched by visit_hosts_check */
    struct url first[VISIT_MAX_HOSTS];           /* loc */
    uint64_t locs[VISIT_MAX_HOSTS];
    size_t count;
};
void visit_hosts_add(const struct visit *v, struct visit_hosts *hosts, const struct url *loc);
/* Fetches the robots.txt of each and reports whether crawlers will take its sitemaps. */
void visit_hosts_check(struct visit *v, struct visit_hosts *hosts);
/* The robots.txt of a loc's host, the index's own included; NULL past the bound. */
const struct visit_robots *
visit_hosts_robots(const struct visit *v, const struct visit_hosts *hosts, const struct url *loc);
void visit_hosts_done(struct visit_hosts *hosts);

/* Reports what is to be said once of all children. */
void visit_children_end(struct visit *v);
/* What to do about an answer that is not a usable sitemap, by its code (docs/remote.md, "Codes").
 * Static. */
const char *child_todo(const char *code);
