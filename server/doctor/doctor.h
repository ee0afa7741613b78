/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Fetches a public address as crawlers do, through any proxies, and checks the responses: the page,
 * compression, caching and conditional requests, robots.txt, the index, and a sample of its
 * sitemaps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/url.h"

/* A note may be intended. */
enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARNING, DOCTOR_WRONG };
#define DOCTOR_LEVELS 4

struct doctor_finding {
    enum doctor_level level;
    const char *check; /* stable word: "reach", "redirect", "status", "type", "gzip", "identity",
                          "vary", "etag", "not-modified", "head", "cache", "index", "robots",
                          "cross-host", "child" */
    const char *code; /* stable word for the finding; the same as `check` if a check has only one */
    const char *what; /* a sentence for people */
    const char *todo; /* the remedy; NULL with DOCTOR_OK */
    const char
        *url; /* the sitemap, index or robots.txt that it is about; NULL: the requested index */
    uint64_t line, column; /* of the first place; 0: none */
    uint64_t count;        /* number of places; 0: it is about the whole */
};

/* Strings are borrowed for the call. */
typedef void doctor_report(void *context, const struct doctor_finding *finding);

struct doctor_options {
    /* of an index, or the root of a site, whose robots.txt then names the index */
    const struct url *url;
    const char *connect; /* "host:port" to connect to instead of the URL's host; or NULL */
    const char *ca_file; /* PEM of the certificates to trust; NULL: the system's */
    uint32_t timeout_ms; /* of each request */
    unsigned sample;     /* sitemaps to fetch; 0: none */
    int64_t now;         /* Unix seconds */
};

/* Runs all checks and reports each finding at once; blocks until all are done. False when out of
 * memory. `counts` is indexed by level. One thread. */
bool doctor_run(const struct doctor_options *options, doctor_report *report, void *context,
                unsigned counts[DOCTOR_LEVELS]);
