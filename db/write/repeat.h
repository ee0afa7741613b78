/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Changes that may be sent twice (struct change, .key): the result of the first is kept in its own
 * transaction, so that it is known exactly where the change is. A day of them, REPEAT_ROWS and
 * REPEAT_BYTES of a token, the oldest of which make room. Internal to db/; the writer's thread. */
#pragma once

#include "db/tx/tx.h"

#define REPEAT_SECONDS 86400
#define REPEAT_ROWS    10000
#define REPEAT_BYTES   (4 << 20)

/* Before a change is applied: fills the result where its key is known, `repeated` or `key_reused`.
 * A change without a key, and a dry one, has none. */
enum catalogue_status repeat_find(struct tx *tx, const struct change *change,
                                  struct change_result *result);
/* After it was applied: keeps its outcome. Does nothing for what was refused or repeated. */
enum catalogue_status repeat_keep(struct tx *tx, const struct change *change,
                                  struct change_result *result);
/* Whether something is older than that, at the cost of one look. Between two transactions. */
bool repeat_purge_is_due(struct tx *tx);
/* Drops a small batch of it. */
enum catalogue_status repeat_purge(struct tx *tx);
