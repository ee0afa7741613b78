/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The tables that all nodes of a shared catalogue hold alike, as effects name them: all but
 * SQLite's own and those named local_. Internal to db/shared. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

/* A bit for each column. */
#define TABLE_COLUMNS_MAX 63
#define TABLES_MAX        128

struct table {
    char *name;     /* owned */
    char **columns; /* owned */
    int count;
    bool has_rowid;
    int alias;    /* the column that is the rowid; -1: none is */
    uint64_t key; /* without rowid: the columns of its key */
};

struct tables {
    struct table *list; /* owned */
    size_t count;
};

/* Whether rows of the table are every node's. */
bool table_is_common(const char *name);
/* Reads them from the file's schema, in the place of those that were there. */
enum catalogue_status tables_load(struct tables *t, sqlite3 *db);
void tables_done(struct tables *t);
/* By any `len` bytes, as a stream has them. NULL: there is none. */
const struct table *tables_find(const struct tables *t, const char *name, size_t len);
