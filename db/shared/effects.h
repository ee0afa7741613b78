/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Effects: the changes of a transaction to the tables that are the same on all nodes, as row
 * operations in the order of their execution. Internal to db/; the writer's thread.
 *
 * SQLite reports each row that is inserted, updated or deleted on the writer's connection. A
 * connection has one such hook, so this one passes each row on to the history's recorder. The hook
 * is set before any statement is prepared: a DELETE without WHERE that was prepared before would
 * delete its rows unseen.
 *
 * The schema has no trigger and no cascade: their changes would be recorded, and applied twice.
 *
 * A failed statement leaves rows here that are not in the file: whatever fails rolls the whole
 * transaction back.
 *
 * Memory is constant: recorded bytes go to a sink of the caller, about 64 KiB at a time. That may
 * happen within a statement, so the sink must not use the connection.
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
/* Receives recorded bytes. Anything but OK fails the transaction (effects_status). */
typedef enum catalogue_status effects_sink(void *context, const void *bytes, size_t len);
/* Sets the hook of the connection until effects_free, and passes each row on to `*recorder`, if
 * there is one then (borrowed; NULL: never). NULL: out of memory, or SQLite failed. */
struct effects *effects_new(sqlite3 *db, struct recorder *const *recorder, effects_sink *sink,
                            void *context);
/* Reads the tables again after the schema changed. After a failure the former ones stay. */
enum catalogue_status effects_reload(struct effects *e);
/* Removes the hook. Accepts NULL. */
void effects_free(struct effects *e);
/* The known tables. Borrowed until a statement is added. */
const struct tables *effects_tables(const struct effects *e);
/* A transaction begins: forgets earlier rows and records until effects_end or effects_stop.
 * effects_stop also clears a failure, which would fail the next transaction's BEGIN. */
void effects_begin(struct effects *e);
void effects_stop(struct effects *e);
/* Adds a statement that every node runs itself. It may change the tables. */
enum catalogue_status effects_add_sql(struct effects *e, const char *sql);
/* Whether anything was recorded. */
bool effects_are_any(const struct effects *e);
/* An error of recording, which SQLite does not report. Accepts NULL. */
enum catalogue_status effects_status(const struct effects *e);
/* Fails the transaction: its further statements fail. */
void effects_fail(struct effects *e, enum catalogue_status status);
/* Stops recording and passes the rest to the sink: the stream is complete. */
enum catalogue_status effects_end(struct effects *e);

/* The statements that migrate a file of this version to the next; tests replace the function. */
extern const char *(*migration_step)(int version);
/* Migrates the file from version `from` to this release's, statement by statement. Statements that
 * change the schema, or a node's own tables (local_), are recorded as statements that every node
 * runs; of all others the rows are recorded. In a transaction of the caller, between effects_begin
 * and effects_end. */
enum catalogue_status migration_run(sqlite3 *db, struct effects *effects, int from);

/* ---- applying */

struct effects_applier;
/* NULL: out of memory, or SQLite failed. */
struct effects_applier *effects_applier_new(sqlite3 *db);
/* Accepts NULL. */
void effects_applier_free(struct effects_applier *a);
/* Apply a stream, in pieces of any length, in a transaction of the caller, which rolls it back if a
 * call fails. CORRUPT: the file has diverged (an operation finds no row, or inserts an existing
 * one), or the stream is malformed. NEWER: a migration that this release does not know. Other
 * failures are temporary. */
void effects_apply_begin(struct effects_applier *a);
enum catalogue_status effects_apply(struct effects_applier *a, const void *bytes, size_t len);
enum catalogue_status effects_apply_end(struct effects_applier *a);
/* Whether the last stream was a migration. */
bool effects_apply_migrated(const struct effects_applier *a);
/* A sentence on the last failure, for people. */
const char *effects_apply_why(const struct effects_applier *a);
