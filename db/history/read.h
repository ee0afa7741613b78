/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parts of the history as a view has them, for code that shows it. Internal to db/history/. */
#pragma once

#include "db/history.h"
#include "db/history/rows.h"
#include "server/rules/entry.h"
#include "server/rules/limits.h"

/* Reads a part, or, where there are none, the few rows in the change's own line (`number` 0), into
 * `part`, which is empty. `*found` is false where there is no such part. */
enum catalogue_status history_read_part(struct catalogue_view *v, uint64_t revision,
                                        uint64_t number, struct history_part *part, bool *found);

/* Names of owners and sites of urlsets, which rows have by number: mostly one after the other the
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
