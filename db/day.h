/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The size of each site on each day; the node's own, without a revision. Part of db/catalogue.h,
 * whose rules hold. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

#define DAY_SECONDS         86400
#define DAYS_KEPT           90   /* of every sum of a day: sizes, crawlers, engines */
#define SITE_DAYS_WRITE_MAX 500u /* rows of one change */

/* The last size that was seen on a day. site_id 0: all sites together. */
struct site_day {
    int64_t site_id;
    int32_t day;      /* since 1970-01-01, UTC */
    uint64_t entries; /* of its indexes */
    uint64_t urls;    /* rows of its urlsets */
};

struct catalogue_view;

typedef void site_day_each(void *context, const struct site_day *row);
/* Calls `each` for the rows of this day that are to be written: for sites after *after, by id,
 * whose sums differ from the stored row and, if *after is 0, for the sum of all sites and for
 * removed sites. Looks at SITE_DAYS_WRITE_MAX / 2 sites; *after becomes the last of them, 0 at the
 * end. */
enum catalogue_status catalogue_view_site_days_due(struct catalogue_view *v, int32_t day,
                                                   int64_t *after, site_day_each *each,
                                                   void *context);
/* The rows of a site, or (0) of all sites together, from one day to another, oldest first. */
enum catalogue_status catalogue_view_site_days(struct catalogue_view *v, int64_t site_id,
                                               int32_t from, int32_t to, site_day_each *each,
                                               void *context);
