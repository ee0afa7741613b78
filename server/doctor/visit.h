/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Shared by all checks: options, counts, and functions that send requests and report findings.
 * Internal to server/doctor/. */
#pragma once

#include "server/client/client.h"
#include "server/doctor/doctor.h"
#include "server/input/content_coding.h"
#include "server/input/sitemap_file.h"

#define VISIT_MAX_PAGE 52428800u /* of one index or sitemap, both as sent and decoded */
#define VISIT_MAX_HOPS 5u

struct visit_robots {
    char origin[LOC_MAX_CHARS + 1];
    unsigned status; /* 0: no response */
    struct str text; /* "" unless 200; the part that crawlers read */
    bool long_text;  /* there is more */
};

struct visit {
    const struct doctor_options *options;
    doctor_report *report;
    void *context;
    unsigned *counts;
    bool no_memory;
    struct url url;             /* of the index, after redirects */
    struct fetch_reply page;    /* the response to Accept-Encoding: gzip */
    struct str body;            /* decoded */
    struct visit_robots robots; /* of the index's host */
    uint64_t unindexed;         /* sitemaps with X-Robots-Tag: noindex, and the first of them */
    char first_unindexed[LOC_MAX_CHARS + 1];
};

/* Details of a finding besides its sentence; 0 or NULL: not applicable. */
struct visit_about {
    const char *code; /* NULL: the same as the check */
    const char *url;
    uint64_t line, column, count;
};

/* Reports a finding. `todo` NULL with DOCTOR_OK. */
void visit_report(struct visit *v, enum doctor_level level, const char *check,
                  const struct visit_about *about, const char *todo, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* The same without details. */
#define visit_report_plain(v, level, check, ...)                                                   \
    visit_report((v), (level), (check), &(struct visit_about){.code = NULL}, __VA_ARGS__)
/* GETs `*url` and follows at most VISIT_MAX_HOPS redirects. `*url` becomes the last URL, `*hops`
 * the number of redirects. A redirect that cannot be followed is the reply. */
enum fetch_status visit_follow(struct visit *v, struct url *url, const char *headers,
                               uint64_t max_bytes, struct fetch_reply *reply, unsigned *hops);
/* The remedy for a failed fetch; NULL: none is known. */
const char *visit_fetch_todo(enum fetch_status status);
/* With --connect to a server behind a proxy that ends TLS (the index is requested by http), changes
 * an https `url` of the index's host to http. Leaves any other as it is. */
void visit_own(const struct visit *v, struct url *url);
/* Parses the reply's Content-Encoding. */
void visit_coding(const struct fetch_reply *r, struct content_coding *out);
/* Decodes the response of the index into `out`; reports a failure. */
bool visit_decode(struct visit *v, const struct fetch_reply *reply, struct str *out);

/* The checks, in order. Each continues if it can; false: the next ones are useless. */
bool visit_page(struct visit *v);        /* reach, redirect, status, type, gzip */
void visit_headers(struct visit *v);     /* vary, etag, cache */
void visit_conditional(struct visit *v); /* not-modified, identity, head */
void visit_robots(struct visit *v);
void visit_index(struct visit *v); /* index, cross-host, child */

/* Fetches the robots.txt of an origin. */
void visit_fetch_robots(struct visit *v, const struct url *of, struct visit_robots *out);
/* The first crawler that robots.txt forbids the path of `url`; NULL: none. Static. */
const char *visit_forbidden(const struct visit_robots *robots, const struct url *url);
/* True if it has a Sitemap line with the index. */
bool visit_names_index(const struct visit *v, const struct visit_robots *robots);
/* Fetches a sitemap that an index lists and checks it. `lastmod`: its date in the index; "": none.
 * `robots` is that of its host. */
void visit_child(struct visit *v, const char *text, const char *lastmod,
                 const struct visit_robots *robots);
/* Other hosts whose sitemaps an index lists; further ones are not checked. */
#define VISIT_MAX_HOSTS 5u
struct visit_hosts {
    struct visit_robots robots[VISIT_MAX_HOSTS]; /* fetched by visit_hosts_check */
    struct url first[VISIT_MAX_HOSTS];           /* loc */
    uint64_t locs[VISIT_MAX_HOSTS];
    size_t count;
};
void visit_hosts_add(const struct visit *v, struct visit_hosts *hosts, const struct url *loc);
/* Fetches the robots.txt of each and reports whether crawlers will accept its sitemaps. */
void visit_hosts_check(struct visit *v, struct visit_hosts *hosts);
/* The robots.txt of a loc's host, which may be the index's own; NULL: the host was not checked. */
const struct visit_robots *
visit_hosts_robots(const struct visit *v, const struct visit_hosts *hosts, const struct url *loc);
void visit_hosts_done(struct visit_hosts *hosts);

/* Reports findings about all sitemaps together. */
void visit_children_end(struct visit *v);
/* The remedy for an unusable sitemap, by its code (docs/remote.md, "Codes"). Static. */
const char *child_todo(const char *code);
