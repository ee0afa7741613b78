/* One SQLite connection with the settings that every connection to a catalogue must have, and the
 * mapping of SQLite's results. Internal to db/, where alone sqlite3.h is included. */
#ifndef SITEMAPD_DB_FILE_CONNECTION_H
#define SITEMAPD_DB_FILE_CONNECTION_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"

enum connection_mode { CONNECTION_READ, CONNECTION_WRITE, CONNECTION_CREATE };

/* Opens `path` with WAL, synchronous=FULL, foreign_keys, mmap_size=0, wal_autocheckpoint=0,
 * trusted_schema=0, no shared cache, one thread at a time. Refuses a network filesystem (WAL needs
 * shared memory) by name. `why` gets a sentence. */
enum catalogue_status connection_open(const char *path, enum connection_mode mode, sqlite3 **out,
                                      char *why, size_t why_size);
/* Makes every missing folder above `path`, for the owner alone: the file holds token hashes. */
bool connection_make_folders(const char *path);
/* What root makes in a folder of somebody else is that one's: commands of root must not keep the
 * server's user out. `fd` is of the new file at `path`. False where it could not be given. */
bool connection_give_away(const char *path, int fd);
void connection_close(sqlite3 *db);

/* Maps a result code of SQLite to ours. */
enum catalogue_status connection_status(int sqlite_result);

/* The sentence of the last failure of `db` (NULL: out of memory): the file as `path`, what SQLite
 * says, and what can be done. */
void connection_explain(const char *path, sqlite3 *db, char *why, size_t why_size);

/* Prepares with SQLITE_PREPARE_PERSISTENT. NULL on failure (sqlite3_errcode tells). */
sqlite3_stmt *connection_prepare(sqlite3 *db, const char *sql);

#endif
