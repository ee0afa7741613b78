/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How far the page URLs of a site's urlsets were sent to search engines (IndexNow), and what comes
 * next. Part of db/catalogue.h, whose rules hold. It makes no revision, and belongs to the
 * catalogue, not to a node: a node that takes over continues where another ended. */
#pragma once

#include <stdint.h>

#include "db/status.h"

struct catalogue_view;

/* All changes before `revision` were sent, and of that one this many of the first parts (of
 * catalogue_view_history_rows). 0, 0: nothing is known of the site. */
struct indexnow_position {
    uint64_t revision, parts;
};

/* OK with 0, 0 where the site has none. */
enum catalogue_status catalogue_view_indexnow(struct catalogue_view *v, int64_t site_id,
                                              struct indexnow_position *out);

/* The first change at or after `revision` that touched rows of a urlset of the site: its revision,
 * or 0 where the history has none, and when it was. That rows left a urlset because they expired is
 * no news of their pages. */
enum catalogue_status catalogue_view_indexnow_next(struct catalogue_view *v, int64_t site_id,
                                                   uint64_t revision, uint64_t *next, int64_t *at);
