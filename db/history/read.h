/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads parts of the history from a view. Internal to db/history/. */
#pragma once

#include "db/history.h"
#include "db/history/rows.h"
#include "server/rules/entry.h"
#include "server/rules/limits.h"

/* Reads a part, or (`number` 0) the few rows that are stored with the change itself, into an empty
 * `part`. `*found` is false if there is no such part. */
enum catalogue_status history_read_part(struct catalogue_view *v, uint64_t revision,
                                        uint64_t number, struct history_part *part, bool *found);

/* A cache for names of owners and sites of urlsets, whose ids rows have: neighbours mostly have the
 * same. All zero but the view. */
#define HISTORY_OWNER_SIZE (sizeof URLSET_OWNER + INDEX_PATH_MAX_CHARS)
struct history_namer {
    struct catalogue_view *v;
    int64_t id, urlset, site;
    bool known;
    char name[HISTORY_OWNER_SIZE];
};

/* Reports one row of the part. */
enum catalogue_status history_report_row(struct history_namer *n, const struct history_part *part,
                                         const struct history_row *row, history_each_row *each,
                                         void *context);
