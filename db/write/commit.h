/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Begins, commits and rolls back a write transaction (db/tx/tx.h) and ends each of its changes,
 * together with the occupancy, the history's recorder and the effects of a shared catalogue.
 * Internal to db/; one thread, the writer's.
 *
 * Invariant: between tx_begin and tx_commit every change of an entry goes through the occupancy, so
 * that pages, segments and peaks are written once, last before COMMIT. They get the revision of the
 * transaction's last change: no reader sees the file at an earlier one of its revisions. */
#pragma once

#include "db/tx/tx.h"

/* Takes the connection (not its ownership). False when out of memory. */
bool tx_init(struct tx *tx, const struct catalogue_options *options, sqlite3 *db);
void tx_done(struct tx *tx);

/* Between two transactions: reads what another process may have written since. */
enum catalogue_status tx_refresh(struct tx *tx);
/* BEGIN IMMEDIATE; drops cached state that another process has made stale. */
enum catalogue_status tx_begin(struct tx *tx);
/* Ends the current change. If it wrote something it gets the next revision, one for each change of
 * the transaction. Returns the catalogue's revision after it. */
uint64_t tx_end_change(struct tx *tx);
/* Ends the last change, stamps changed rows with its revision and commits. There is no new revision
 * if nothing changed, or only the node's own tables (local_) and files of sources. After a failure
 * the transaction was rolled back. */
enum catalogue_status tx_commit(struct tx *tx);
/* Between two transactions: drops all cached state of the file. */
void tx_forget(struct tx *tx);
/* Rolls back all changes of the transaction. */
void tx_rollback(struct tx *tx);
