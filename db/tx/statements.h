/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The statements that the writer runs per change (statements.def), each prepared once and kept for
 * as long as the connection. Internal to db/. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/file/bind.h"

/* Of `sitemap`, in the order in which put_row_read expects them; and as parameters of a statement,
 * whose values are those of a `struct put_row` (without address: not listed anywhere). */
#define ENTRY_COLUMNS                                                                              \
    "address, site, loc, lastmod, digest, source, serial, registered_at, changed_at, extensions"
#define ENTRY_PARAMETERS "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10"
#define ENTRY_VALUES(site, loc, row)                                                               \
    sql_not_0((row)->address), (site), (loc), (row)->has_lastmod ? (row)->lastmod : NULL,          \
        (row)->has_digest ? (row)->digest : NULL, (row)->source, (row)->serial,                    \
        (row)->registered_at, (row)->changed_at, (row)->extensions
#define ENTRY_COLUMN_COUNT 10

enum statement {
#define X(name, sql) ST_##name,
#include "db/tx/statements.def"
#undef X
    ST_COUNT
};

/* The state of a replace or an undo, made once on the writer's connection. Temporary tables, not
 * memory: a list may be as long as the largest bulk. */
#define STATEMENTS_TEMP_TABLES                                                                     \
    "CREATE TEMP TABLE keep(address INTEGER PRIMARY KEY, ordinal INTEGER NOT NULL,"                \
    " wanted INTEGER NOT NULL);"                                                                   \
    "CREATE INDEX temp.keep_wanted ON keep(address) WHERE wanted = 1;"                             \
    "CREATE TEMP TABLE fresh(loc TEXT PRIMARY KEY) WITHOUT ROWID;"                                 \
    "CREATE TEMP TABLE undone(address INTEGER, site INTEGER, loc TEXT, lastmod TEXT, digest TEXT," \
    " source INTEGER, serial INTEGER, registered_at INTEGER, changed_at INTEGER,"                  \
    " extensions TEXT, since INTEGER NOT NULL, sourced INTEGER NOT NULL,"                          \
    " PRIMARY KEY (site, loc)) WITHOUT ROWID;"

struct statements {
    sqlite3 *db;
    sqlite3_stmt *prepared[ST_COUNT];
};

void statements_init(struct statements *s, sqlite3 *db);
void statements_done(struct statements *s);
/* The statement, reset, all parameters NULL. NULL on failure: see sqlite3_errcode. */
sqlite3_stmt *statements_get(struct statements *s, enum statement which);

/* Steps once to the end and resets. */
enum catalogue_status statement_run(sqlite3_stmt *statement);
/* Steps to the first row; `*found`: whether there is one. The caller resets. */
enum catalogue_status statement_first(sqlite3_stmt *statement, bool *found);
