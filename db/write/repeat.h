/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Idempotency-Keys (struct change, .key): the transaction of a change also stores its outcome, so
 * that the outcome is known exactly if the change was applied. Outcomes are kept for a day; beyond
 * REPEAT_ROWS or REPEAT_BYTES a token loses its oldest ones. Internal to db/; the writer's thread.
 */
#pragma once

#include "db/tx/tx.h"

#define REPEAT_SECONDS 86400
#define REPEAT_ROWS    10000
#define REPEAT_BYTES   (4 << 20)

/* Before a change is applied: if its key is known, fills the result, with `repeated` or
 * `key_reused`. Does nothing for dry runs and changes without a key. */
enum catalogue_status repeat_find(struct tx *tx, const struct change *change,
                                  struct change_result *result);
/* After it was applied: stores its outcome. Does nothing for rejected or repeated changes. */
enum catalogue_status repeat_keep(struct tx *tx, const struct change *change,
                                  struct change_result *result);
/* Whether an outcome is older than a day. Between two transactions. */
bool repeat_purge_is_due(struct tx *tx);
/* Drops a small batch of expired outcomes. */
enum catalogue_status repeat_purge(struct tx *tx);
