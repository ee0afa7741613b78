/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Effects: what a transaction did to the rows of the tables that all nodes hold alike, as row
 * operations in the order of their execution. Internal to db/; the writer's thread.
 *
 * No writer reports them: the engine does, of each row that is made, changed or dropped on
 * the writer's connection. A connection has one such hook: who records effects passes each row on
 * to the history's recorder. The hook is set before any statement is prepared: a DELETE without
 * WHERE that was prepared without it would drop its rows unseen.
 *
 * The schema has no trigger and no cascade: what they do would be recorded, and done again.
 *
 * A failed statement leaves rows here that are not in the file: whatever fails rolls the whole
 * transaction back.
 *
 * Memory is constant: what was recorded goes to a sink of the caller's, some 64 KiB at a time and
 * also within a statement, so that the sink must not touch the connection.
 *
 * The stream: operations, each a byte and what it needs. Numbers are LEB128, signed ones zigzag; a
 * value is its type's byte (0 NULL, 1 integer, 2 real, 3 text, 4 blob) and itself.
 *   TABLE   name, columns: the next operations may name it by its place among those named so far
 *   INSERT  table [rowid] values
 *   UPDATE  table key columns values: columns is a bit for each that differs
 *   DELETE  table key
 *   SQL     text: a statement that each node runs itself, of a migration
 *   SCHEMA  version: what follows is the migration to it
 * The key is the rowid, or without one the values of the primary key. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

struct recorder;
struct tables;

/* ---- recording */

struct effects;
/* Takes what was recorded. Anything but OK fails the transaction (effects_status). */
typedef enum catalogue_status effects_sink(void *context, const void *bytes, size_t len);
/* Listens on the connection and passes rows on to `recorder` (borrowed; NULL: none keeps a
 * history), for which alone it listened so far. NULL: out of memory, or the engine failed. */
struct effects *effects_new(sqlite3 *db, struct recorder *recorder, effects_sink *sink,
                            void *context);
/* Listens no more. Takes NULL. */
void effects_free(struct effects *e);
/* The tables that it knows. Borrowed until a statement was added. */
const struct tables *effects_tables(const struct effects *e);
/* A transaction begins: what was recorded is forgotten, rows are recorded until effects_end or
 * effects_stop, which also forgets what failed: the next transaction's BEGIN is a statement, too.
 */
void effects_begin(struct effects *e);
void effects_stop(struct effects *e);
/* A statement that every node runs itself, behind what was recorded so far. The tables may be other
 * ones then. */
enum catalogue_status effects_add_sql(struct effects *e, const char *sql);
/* What follows brings the file to this version. */
enum catalogue_status effects_add_schema(struct effects *e, int version);
/* Whether anything was recorded. */
bool effects_are_any(const struct effects *e);
/* What went wrong with recording; the engine knows nothing of it. Takes NULL. */
enum catalogue_status effects_status(const struct effects *e);
/* The transaction is not to be: no statement of it runs any more. */
void effects_fail(struct effects *e, enum catalogue_status status);
/* Records no more, and hands the rest to the sink: the stream is whole. */
enum catalogue_status effects_end(struct effects *e);

/* What brings a file of this version to the next; tests put theirs here. */
extern const char *(*migration_step)(int version);
/* Brings the file from version `from` to this release's, statement by statement, each recorded as
 * what it is: what makes tables is run by every node, what fills them is recorded by its rows, and
 * of a table that is a node's own (local_) each does all. In a transaction of the caller's, between
 * effects_begin and effects_end. */
enum catalogue_status migration_run(sqlite3 *db, struct effects *effects, int from);

/* ---- applying */

struct effects_applier;
/* NULL: out of memory, or the engine failed. */
struct effects_applier *effects_applier_new(sqlite3 *db);
/* Takes NULL. */
void effects_applier_free(struct effects_applier *a);
/* In a transaction of the caller's, which is to be rolled back where one of these fails. A stream
 * comes in pieces, of any length. CORRUPT: the file is not what the stream was recorded on (an
 * operation touches no row, or one that is there), or the stream is malformed: divergence. NEWER:
 * it is a migration to what this release does not know. All else says that it could not be done
 * now. */
void effects_apply_begin(struct effects_applier *a);
enum catalogue_status effects_apply(struct effects_applier *a, const void *bytes, size_t len);
enum catalogue_status effects_apply_end(struct effects_applier *a);
/* Whether the last stream was a migration. */
bool effects_apply_migrated(const struct effects_applier *a);
/* What the last failure was about, for people. */
const char *effects_apply_why(const struct effects_applier *a);
