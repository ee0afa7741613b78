/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What search engines say of a site's sitemaps, as this node asked them last (server/engines); in
 * no revision, and not sent to other nodes. Part of db/catalogue.h, whose rules hold. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/day.h"
#include "db/status.h"

#define ENGINE_SITEMAPS_MAX 1000u /* that are kept of a site and engine */

/* How the last request for a site went (append only: stored). */
enum engine_state {
    ENGINE_WAITING, /* not asked yet */
    ENGINE_OK,
    ENGINE_REFUSED,   /* the credentials are not accepted */
    ENGINE_FORBIDDEN, /* they are, and may not see this site */
    ENGINE_BUSY,      /* it asks to wait */
    ENGINE_FAILED,    /* no answer, or one that nobody understands */
};
#define ENGINE_STATES 6

struct engine_site {
    int64_t site_id;
    enum engine_state state;
    const char *why;           /* a sentence; "": nothing is wrong */
    int64_t asked_at, next_at; /* Unix seconds */
    int64_t good_at;           /* when it last was OK; 0: never */
    uint32_t failures;         /* since then */
};

/* Times are Unix seconds, 0: never, or the engine does not say. */
struct engine_sitemap {
    const char *loc;
    const char *parent; /* the index that lists it; "": it was submitted itself */
    bool listed;        /* the engine lists it; false: this server submitted it, no more is known */
    bool pending;       /* it is not processed yet */
    int64_t sent_at;    /* when this server submitted it */
    int64_t submitted_at, read_at; /* as the engine says */
    uint64_t errors, warnings, urls;
};

/* The sum of what an engine lists: of a day as of its last answer. */
struct engine_day {
    int32_t day; /* since 1970-01-01, UTC */
    uint64_t sitemaps, errors, warnings, urls;
    int64_t read_at; /* of the sitemap that was read longest ago */
};

struct catalogue_view;

/* Calls `each` with what is kept of the engine; texts are valid within the call. Of sites that are
 * there. */
typedef void engine_site_each(void *context, const struct engine_site *site);
enum catalogue_status catalogue_view_engine_sites(struct catalogue_view *v, const char *engine,
                                                  engine_site_each *each, void *context);
/* The sum of all sitemaps that the engine lists now, of a site or (0) of all; its `day` is 0. */
enum catalogue_status catalogue_view_engine_sum(struct catalogue_view *v, const char *engine,
                                                int64_t site_id, struct engine_day *out);
/* Finds a removed site of which rows are still kept; 0: not found. */
enum catalogue_status catalogue_view_engine_removed(struct catalogue_view *v, const char *engine,
                                                    int64_t *out);
/* Of a site: its sitemaps by loc, those of an index behind it; and its days, or (0) those of
 * all sites together, oldest first. */
typedef void engine_sitemap_each(void *context, const struct engine_sitemap *sitemap);
enum catalogue_status catalogue_view_engine_sitemaps(struct catalogue_view *v, const char *engine,
                                                     int64_t site_id, engine_sitemap_each *each,
                                                     void *context);
typedef void engine_day_each(void *context, const struct engine_day *day);
enum catalogue_status catalogue_view_engine_days(struct catalogue_view *v, const char *engine,
                                                 int64_t site_id, engine_day_each *each,
                                                 void *context);
