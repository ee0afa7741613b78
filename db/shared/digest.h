/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Whether nodes at the same record hold the same rows. Each DIGEST_EACH records every node takes a
 * digest of some rows of each table; which ones the record's number says, so that all take the same
 * and come round to all rows in time. Its cost has a bound, however large the catalogue. Internal
 * to db/shared. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

/* The tables that all nodes of a shared catalogue hold alike, as effects name them: all but
 * SQLite's own and those named local_. Internal to db/shared. */

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
/* By any `len` bytes, as a stream has them. NULL: no table has that name. */
const struct table *tables_find(const struct tables *t, const char *name, size_t len);

#define DIGEST_EACH  1024
#define DIGEST_BYTES 32
/* Of one table: some milliseconds of a large one. Each KiB of a row counts as one more. */
#define DIGEST_ROWS 2000

/* In the transaction of record `seq`. */
enum catalogue_status digest_take(sqlite3 *db, const struct tables *tables, uint64_t seq,
                                  uint8_t out[DIGEST_BYTES]);

/* Those of the last records that had one, for others to be compared with; zeroed: none. */
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
/* What another node reported of a record. -1: it differs from what was here then, and is counted
 * once; 0: nothing is known of it any more, or yet; 1: it is the same. */
int digests_compare(struct digests *d, uint64_t seq, const uint8_t digest[DIGEST_BYTES],
                    uint64_t *mismatches);
