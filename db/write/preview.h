/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a dry run would do, row by row: the first CHANGE_PREVIEW_ROWS entries that would differ,
 * gathered before the change is rolled back. Internal to db/; the writer's thread.
 *
 * The recorder of the history (db/history/recorder.h) hears of each row here too, but keeps only
 * what the first ones were: what they are at the end is read at the end, so that memory has a bound
 * however often the change touches them. A removal of an index or a site touches no rows, its purge
 * does; its first rows are read. */
#pragma once

#include "db/write/apply/apply.h"

struct preview {
    struct recorder *own;      /* where no history is kept */
    struct registry *registry; /* a reference: as it was before */
};

/* Of a change that is not a dry run, or whose rows are not wanted, nothing is done. */
enum catalogue_status preview_begin(struct preview *p, struct tx *tx, const struct change *change);
/* The change is carried out, and neither committed nor rolled back: fills result->preview. What the
 * token does not see is not reported. */
enum catalogue_status preview_report(struct preview *p, struct tx *tx, const struct change *change,
                                     struct change_result *result);
void preview_done(struct preview *p, struct tx *tx);
