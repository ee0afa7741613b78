/* Whether nodes at the same record hold the same rows. Each DIGEST_EACH records every node takes a
 * digest of some rows of each table; which ones the record's number says, so that all take the same
 * and come round to all rows in time. Its cost has a bound, however large the catalogue. Internal
 * to db/shared. */
#ifndef SITEMAPD_DB_SHARED_DIGEST_H
#define SITEMAPD_DB_SHARED_DIGEST_H

#include <sqlite3.h>
#include <stdint.h>

#include "db/shared/tables.h"

#define DIGEST_EACH  1024
#define DIGEST_BYTES 32
/* Of one table: some milliseconds of a large one. Each KiB of a row counts as one more. */
#define DIGEST_ROWS 2000

/* In the transaction of record `seq`. */
enum catalogue_status digest_take(sqlite3 *db, const struct tables *tables, uint64_t seq,
                                  uint8_t out[DIGEST_BYTES]);

#endif
