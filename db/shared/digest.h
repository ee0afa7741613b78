/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Detects nodes that have different rows at the same record. Every DIGEST_EACH records each node
 * computes a digest of some rows of each table. The record's number selects the rows, so that all
 * nodes use the same ones, and all rows are covered in time. The cost is bounded, however large the
 * catalogue. Internal to db/shared. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

/* The tables that are the same on all nodes of a shared catalogue: all but SQLite's own and those
 * named local_. Internal to db/shared. */

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

/* Whether the table is the same on all nodes. */
bool table_is_common(const char *name);
/* Reads the tables from the file's schema and replaces the old ones. */
enum catalogue_status tables_load(struct tables *t, sqlite3 *db);
void tables_done(struct tables *t);
/* `name` is not NUL-terminated. NULL: unknown table. */
const struct table *tables_find(const struct tables *t, const char *name, size_t len);

#define DIGEST_EACH  1024
#define DIGEST_BYTES 32
/* Most rows of a table: a few milliseconds. Each KiB of a row counts as one more row. */
#define DIGEST_ROWS 2000

/* In the transaction of record `seq`. */
enum catalogue_status digest_take(sqlite3 *db, const struct tables *tables, uint64_t seq,
                                  uint8_t out[DIGEST_BYTES]);

/* The last digests, to compare others with; zeroed: none. */
#define DIGESTS_KEPT 64
struct digest_of {
    uint64_t seq; /* 0: none */
    uint8_t bytes[DIGEST_BYTES];
};
struct digests {
    struct digest_of kept[DIGESTS_KEPT], last;
    uint64_t mismatch_seq;
};
void digests_keep(struct digests *d, const struct digest_of *taken);
/* Compares the digest that another node reported for a record. -1: it differs (returned once); 0:
 * the digest of that record is not known here; 1: it is the same. */
int digests_compare(struct digests *d, uint64_t seq, const uint8_t digest[DIGEST_BYTES],
                    uint64_t *mismatches);
