/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The life of a write transaction (db/tx/tx.h): it begins, each change of it ends, and it is
 * committed or rolled back, with the occupancy, the history's recorder and the effects of a shared
 * catalogue. Internal to db/; one thread, the writer's.
 *
 * Invariant: between tx_begin and tx_commit every change of an entry goes through the occupancy,
 * so that pages, segments and peaks are written once, last before COMMIT. They bear the revision of
 * the transaction's last change: nobody ever sees the file at one of those before it. */
#pragma once

#include "db/tx/tx.h"

/* Takes the connection (not its ownership). False when out of memory. */
bool tx_init(struct tx *tx, const struct catalogue_options *options, sqlite3 *db);
void tx_done(struct tx *tx);

/* Between two transactions: reads what another process may have written since. */
enum catalogue_status tx_refresh(struct tx *tx);
/* BEGIN IMMEDIATE, and forgets what another process's revision has made untrue. */
enum catalogue_status tx_begin(struct tx *tx);
/* The change under way is over. Where it wrote something it gets the next revision, which is its
 * own though the transaction may be shared; returns the catalogue's revision after it. */
uint64_t tx_end_change(struct tx *tx);
/* Ends the last change, stamps what changed with its revision and commits. Where nothing changed,
 * or only what is the node's own (the tables local_, what is kept of a source's files), there is no
 * revision. On failure the transaction is gone. */
enum catalogue_status tx_commit(struct tx *tx);
/* Between two transactions: nothing that is remembered of the file is true any more. */
void tx_forget(struct tx *tx);
/* Undoes everything. */
void tx_rollback(struct tx *tx);
