/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Collects what each change does to entries and writes it into the history, in the change's own
 * transaction; and drops history that is too old or too much (recorder_trim). Internal to db/; the
 * writer's thread.
 *
 * Writers of entries do not notify the recorder: the engine does, of each row of `sitemap` that is
 * made, changed or dropped on the writer's connection, so that no writer can be missed. Who has the
 * row at hand may hand it over beforehand (recorder_report): reading it out of the engine costs
 * more than all else that is done with it here. Of one entry (site and loc) a part keeps the first
 * state and the last. What a change parks under an address of its own (set.c) is still where it
 * was.
 *
 * Memory is bounded: a full part is written between two statements of the change (tx_statement), so
 * a part has HISTORY_PART_ROWS and what one statement adds. An entry that a change touches again
 * much later is in two parts, in order; who puts rows back goes through them from the last one
 * on. */
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
    const struct put_row *before; /* as it stands; NULL: it is new */
    const struct put_row *after;
};

/* Whether this engine reports rows before they change. */
bool recorder_is_supported(void);

/* Listens on the connection of the writer. NULL: out of memory. */
struct recorder *recorder_new(sqlite3 *db);
/* Takes NULL. */
void recorder_free(struct recorder *r);
/* What listens: a connection has one hook, so that who takes it (db/shared/effects.h) passes on
 * what the engine reports, with the recorder as `context`. */
void recorder_on_row(void *context, sqlite3 *db, int operation, char const *database,
                     char const *table, sqlite3_int64 from, sqlite3_int64 to);

/* A change begins: what is left of another one is forgotten. A dry run is not recorded, but of the
 * first CHANGE_PREVIEW_ROWS entries that it touches it is kept what they were. */
void recorder_begin(struct recorder *r, const struct change *change);
/* The next statement makes `row->after` at its address, or changes `before` to that where it is,
 * and the recorder takes it from here; recorder_reported behind that statement, whatever the
 * outcome of it. Any other row that is written meanwhile is read from the engine. Both take NULL
 * for `r`. */
void recorder_report(struct recorder *r, const struct recorder_row *row);
void recorder_reported(struct recorder *r);
/* True where a part is to be written by recorder_relieve before the next statement, or where the
 * change has failed already (recorder_status). */
bool recorder_is_full(const struct recorder *r);
/* What went wrong with the change under way; the engine knows nothing of it. Takes NULL. */
enum catalogue_status recorder_status(const struct recorder *r);
enum catalogue_status recorder_relieve(struct recorder *r, struct tx *tx);
/* So many entries came to the index without being written. Takes NULL. */
enum catalogue_status recorder_count(struct recorder *r, int64_t site, int64_t index,
                                     uint64_t created);
/* What is known of a source's file, before its row is written with another hash (NULL: none) or
 * goes; and of the file of an entry, before an undo does so. Kept where its entry was somewhere.
 * NULL: no recorder. */
enum catalogue_status recorder_keep_file(struct recorder *r, struct tx *tx, int64_t source,
                                         const char *path, const void *hash, size_t hash_len);
enum catalogue_status recorder_keep_file_of(struct recorder *r, struct tx *tx, int64_t source,
                                            int64_t site, const char *loc);
/* The change is whole: where it wrote something, its rows and the line on itself are written, for
 * the revision that tx_end_change gives it next. */
enum catalogue_status recorder_end(struct recorder *r, struct tx *tx, const struct change *change,
                                   struct change_result *result);
/* Of a dry run those entries, without what they are after it; NULL: none, or no recorder. Borrowed
 * until the next change. */
struct history_part;
enum catalogue_status recorder_first_rows(const struct recorder *r,
                                          const struct history_part **out);
/* Nothing of the change is to be kept. */
void recorder_drop(struct recorder *r);

/* Retention. Drops what is older than the catalogue keeps, oldest first and no more than a small
 * batch; the caller's transaction. `*more` where there is more to drop. */
enum catalogue_status recorder_trim(struct tx *tx, bool *more, uint64_t *dropped);
/* Whether recorder_trim would find something: reads only, outside of a transaction. */
bool recorder_trim_is_due(struct tx *tx);
