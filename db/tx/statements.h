/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The statements that the writer runs per change (statements.def), each prepared once and kept for
 * as long as the connection. Internal to db/. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"

/* Of `sitemap`, in the order in which put_row_read expects them. */
#define ENTRY_COLUMNS                                                                              \
    "address, site, loc, lastmod, digest, source, serial, registered_at, changed_at, extensions"

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

/* Binds a text, or NULL. Borrowed until the statement is reset. */
int statement_bind_text(sqlite3_stmt *statement, int parameter, const char *text);
/* Binds a copy of the hash, or NULL if it is 0, 0. False: out of memory, and NULL is bound. */
bool statement_bind_hash(sqlite3_stmt *statement, int parameter, const uint64_t hash[2]);
/* Steps once to the end and resets. */
enum catalogue_status statement_run(sqlite3_stmt *statement);
/* Steps to the first row; `*found`: whether there is one. The caller resets. */
enum catalogue_status statement_first(sqlite3_stmt *statement, bool *found);
/* The first column of the only row, or `missing`. Resets. */
enum catalogue_status statement_number(sqlite3_stmt *statement, int64_t missing, int64_t *out);
