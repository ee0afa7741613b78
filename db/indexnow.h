/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How far IndexNow was notified of the page URLs of a site's urlsets, and the next change to send.
 * Part of db/catalogue.h, whose rules hold. The position makes no revision, and belongs to the
 * catalogue, not to a node: a node that takes over continues where another ended. */
#pragma once

#include <stdint.h>

#include "db/status.h"

struct catalogue_view;

/* All changes before `revision` were sent, and the first `parts` parts
 * (catalogue_view_history_rows) of the change `revision`. 0, 0: unknown. */
struct indexnow_position {
    uint64_t revision, parts;
};

/* OK with 0, 0 if the site has no position. */
enum catalogue_status catalogue_view_indexnow(struct catalogue_view *v, int64_t site_id,
                                              struct indexnow_position *out);

/* The first change at or after `revision` that touched rows of a urlset of the site: its revision
 * (0: none in the history) and its time. Expiries are passed over: they say nothing about the
 * pages. */
enum catalogue_status catalogue_view_indexnow_next(struct catalogue_view *v, int64_t site_id,
                                                   uint64_t revision, uint64_t *next, int64_t *at);
