/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Fetches a public address as crawlers do, through whatever proxies stand before it, and checks
 * what it gets: the page, its compression, caching and conditional answers, robots.txt, the index
 * and a sample of the sitemaps that it lists. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/url.h"

/* A note is worth knowing, and may be meant so. */
enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARNING, DOCTOR_WRONG };
#define DOCTOR_LEVELS 4

struct doctor_finding {
    enum doctor_level level;
    const char *check; /* stable word: "reach", "redirect", "status", "type", "gzip", "identity",
                          "vary", "etag", "not-modified", "head", "cache", "index", "robots",
                          "cross-host", "child" */
    const char
        *code; /* stable word: what of it; the same as `check` where there is one thing only */
    const char *what; /* a sentence for people */
    const char *todo; /* what to do about it; NULL with DOCTOR_OK */
    const char
        *url; /* the sitemap, index or robots.txt that it is about; NULL: the index asked for */
    uint64_t line, column; /* there, of the first place; 0: none */
    uint64_t count;        /* places; 0: it is about the whole */
};

/* Strings are borrowed for the call. */
typedef void doctor_report(void *context, const struct doctor_finding *finding);

struct doctor_options {
    const struct url *url; /* of an index; or of a site's root: then robots.txt names the index */
    const char *connect;   /* "host:port" to ask for the URL's host in place of DNS; or NULL */
    const char *ca_file;   /* PEM of the certificates to trust; NULL: the system's */
    uint32_t timeout_ms;   /* of each request */
    unsigned sample;       /* children to fetch; 0: none */
    int64_t now;           /* Unix seconds */
};

/* Reports each finding as it is made; blocks until all are. False when out of memory. `counts` is
 * indexed by level. One thread. */
bool doctor_run(const struct doctor_options *options, doctor_report *report, void *context,
                unsigned counts[DOCTOR_LEVELS]);
