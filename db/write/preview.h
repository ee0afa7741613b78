/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The effect of a dry run, row by row: the first CHANGE_PREVIEW_ROWS entries that would differ,
 * collected before the change is rolled back. Internal to db/; the writer's thread.
 *
 * The recorder of the history (db/history/recorder.h) records rows here too, but only the old
 * values of the first ones; their new values are read at the end. So memory is bounded however
 * often the change writes a row. Removing an index or site deletes no rows (a later purge does), so
 * its first rows are read from the list. */
#pragma once

#include "db/write/apply/apply.h"

struct preview {
    struct recorder *own;      /* if no history is kept */
    struct registry *registry; /* a reference: before the change */
};

/* Does nothing unless the change is a dry run with wants_preview. */
enum catalogue_status preview_begin(struct preview *p, struct tx *tx, const struct change *change);
/* Fills result->preview, after the change was applied and before it is rolled back. Leaves out rows
 * that the token may not see. */
enum catalogue_status preview_report(struct preview *p, struct tx *tx, const struct change *change,
                                     struct change_result *result);
void preview_done(struct preview *p, struct tx *tx);
