/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Records the effect of each change on entries and writes it into the history, in the change's own
 * transaction; and drops history that is too old or too large (recorder_trim). Internal to db/; the
 * writer's thread.
 *
 * SQLite notifies the recorder of each row of `sitemap` that is inserted, updated or deleted on
 * the writer's connection, so that no write is missed. Code that has the row in memory may pass it
 * beforehand (recorder_report): reading it from SQLite costs more than all other work here. A
 * part keeps the first and the last state of each entry (site and loc). An entry that a change has
 * parked under another address (set.c) counts as unmoved.
 *
 * Memory is bounded: a full part is written between two statements of the change (tx.c), so
 * a part has HISTORY_PART_ROWS rows and those of one more statement. An entry that a change touches
 * again much later is in two parts, in order; an undo reads them from the last one on. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"

struct put_row;
struct tx;
struct recorder;

/* A row that is about to be written. Borrowed. */
struct recorder_row {
    int64_t site;
    const char *loc;
    size_t loc_len;
    const struct put_row *before; /* as stored; NULL: it is new */
    const struct put_row *after;
};

/* Whether this SQLite reports rows before they change. */
bool recorder_is_supported(void);

/* For the connection of the writer. NULL: out of memory. */
struct recorder *recorder_new(sqlite3 *db);
/* Sets the hook of the connection until recorder_free. A connection has only one: in a shared
 * catalogue it is that of db/shared/effects.h, which passes rows on. */
void recorder_listen(struct recorder *r);
/* Accepts NULL. */
void recorder_free(struct recorder *r);
/* The hook itself, with the recorder as `context`. */
void recorder_on_row(void *context, sqlite3 *db, int operation, char const *database,
                     char const *table, sqlite3_int64 from, sqlite3_int64 to);

/* A change begins: forgets the rows of the one before. For a dry run, keeps only the old states of
 * the first CHANGE_PREVIEW_ROWS entries that it touches. */
void recorder_begin(struct recorder *r, const struct change *change);
/* Announces that the next statement inserts `row->after`, or updates `before` to it, so that the
 * recorder need not read the row from SQLite. Call recorder_reported after that statement,
 * whatever its outcome. Any other row that is written meanwhile is read from SQLite. Both
 * accept NULL for `r`. */
void recorder_report(struct recorder *r, const struct recorder_row *row);
void recorder_reported(struct recorder *r);
/* True if recorder_relieve must write a part before the next statement, or if the change has failed
 * already (recorder_status). */
bool recorder_is_full(const struct recorder *r);
/* The recorder's error in the current change, which SQLite does not report. Accepts NULL. */
enum catalogue_status recorder_status(const struct recorder *r);
enum catalogue_status recorder_relieve(struct recorder *r, struct tx *tx);
/* Counts entries that returned to the index without being written. Accepts NULL. */
enum catalogue_status recorder_count(struct recorder *r, int64_t site, int64_t index,
                                     uint64_t created);
/* Record the state of a source's file before its row gets another hash (0, 0: none) or is deleted;
 * and of the file of an entry before an undo does so. Only files that have had an entry are
 * recorded. `r` may be NULL. */
enum catalogue_status recorder_keep_file(struct recorder *r, struct tx *tx, int64_t source,
                                         const char *path, const uint64_t hash[2]);
enum catalogue_status recorder_keep_file_of(struct recorder *r, struct tx *tx, int64_t source,
                                            int64_t site, const char *loc);
/* The change is complete: if it wrote something, writes its rows and its row of `history`, with the
 * revision that tx_end_change gives it next. */
enum catalogue_status recorder_end(struct recorder *r, struct tx *tx, const struct change *change,
                                   struct change_result *result);
/* The entry as the image of a row of the part; its extensions are borrowed from the part. */
struct history_part;
struct history_image;
struct put_row recorder_row_of(const struct history_part *part, const struct history_image *image);
/* The old states of the entries of a dry run; NULL: none, or no recorder. Borrowed until the next
 * change. */
enum catalogue_status recorder_first_rows(const struct recorder *r,
                                          const struct history_part **out);
/* Forgets the current change. */
void recorder_drop(struct recorder *r);

/* Drops a small batch of changes that the catalogue does not keep any longer, oldest first, in the
 * caller's transaction. `*more`: there is more to drop. */
enum catalogue_status recorder_trim(struct tx *tx, bool *more, uint64_t *dropped);
/* Whether recorder_trim would find something: reads only, outside of a transaction. */
bool recorder_trim_is_due(struct tx *tx);
