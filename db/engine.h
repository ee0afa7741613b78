/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The last reports of search engines on a site's sitemaps (server/engines). The node's own, without
 * a revision. Part of db/catalogue.h, whose rules hold. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/day.h"
#include "db/status.h"

#define ENGINE_SITEMAPS_MAX 1000u /* stored for a site and engine */

/* The outcome of the last request about a site (append only: stored). */
enum engine_state {
    ENGINE_WAITING, /* not asked yet */
    ENGINE_OK,
    ENGINE_REFUSED,   /* the credentials are invalid */
    ENGINE_FORBIDDEN, /* the credentials do not cover this site */
    ENGINE_BUSY,      /* the engine asks to wait */
    ENGINE_FAILED,    /* no answer, or a malformed one */
};
#define ENGINE_STATES 6

struct engine_site {
    int64_t site_id;
    enum engine_state state;
    const char *why;           /* a sentence; "": nothing is wrong */
    int64_t asked_at, next_at; /* Unix seconds */
    int64_t good_at;           /* when the state last was OK; 0: never */
    uint32_t failures;         /* since good_at */
};

/* Times are Unix seconds; 0: never or unknown. */
struct engine_sitemap {
    const char *loc;
    const char *parent; /* the index that lists it; "": it was submitted directly */
    bool listed;     /* the engine lists it; false: this server submitted it, the rest is unknown */
    bool pending;    /* it is not processed yet */
    int64_t sent_at; /* when this server submitted it */
    int64_t submitted_at, read_at; /* by the engine's report */
    uint64_t errors, warnings, urls;
};

/* The sum of all sitemaps that an engine lists, at its last answer of a day. */
struct engine_day {
    int32_t day; /* since 1970-01-01, UTC */
    uint64_t sitemaps, errors, warnings, urls;
    int64_t read_at; /* the oldest read_at of the sitemaps */
};

struct catalogue_view;

/* Calls `each` for every existing site that has a row for the engine; strings are valid within the
 * call. */
typedef void engine_site_each(void *context, const struct engine_site *site);
enum catalogue_status catalogue_view_engine_sites(struct catalogue_view *v, const char *engine,
                                                  engine_site_each *each, void *context);
/* The sum of all sitemaps that the engine lists now, for a site or (0) for all sites; `day` is 0.
 */
enum catalogue_status catalogue_view_engine_sum(struct catalogue_view *v, const char *engine,
                                                int64_t site_id, struct engine_day *out);
/* Finds a removed site that still has rows; 0: none. */
enum catalogue_status catalogue_view_engine_removed(struct catalogue_view *v, const char *engine,
                                                    int64_t *out);
/* The sitemaps of a site by loc, each index followed by its sitemaps; and the days of a site, or
 * (0) of all sites together, oldest first. */
typedef void engine_sitemap_each(void *context, const struct engine_sitemap *sitemap);
enum catalogue_status catalogue_view_engine_sitemaps(struct catalogue_view *v, const char *engine,
                                                     int64_t site_id, engine_sitemap_each *each,
                                                     void *context);
typedef void engine_day_each(void *context, const struct engine_day *day);
enum catalogue_status catalogue_view_engine_days(struct catalogue_view *v, const char *engine,
                                                 int64_t site_id, engine_day_each *each,
                                                 void *context);
