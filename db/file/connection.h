/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One SQLite connection with the settings that every connection to a catalogue must have, and the
 * mapping of SQLite's results. Internal to db/, where alone sqlite3.h is included. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"

/* The engine's page cache of a connection that writes: for small changes, and for a bulk, after
 * which it is given back. */
#define CONNECTION_CACHE_KIB      4096
#define CONNECTION_BULK_CACHE_KIB 65536

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
bool connection_hand_over(const char *path, int fd);
void connection_close(sqlite3 *db);

/* Maps a result code of SQLite to ours. */
enum catalogue_status connection_status(int sqlite_result);

/* The sentence of the last failure of `db` (NULL: out of memory): the file as `path`, what SQLite
 * says, and what can be done. */
void connection_explain(const char *path, sqlite3 *db, char *why, size_t why_size);

/* Prepares with SQLITE_PREPARE_PERSISTENT. NULL on failure (see sqlite3_errcode). */
sqlite3_stmt *connection_prepare(sqlite3 *db, const char *sql);

/* The head of the index of the write-ahead log: memory that all processes share, which each commit
 * of anybody's writes again (https://www.sqlite.org/walformat.html#the_wal_index_header). Where it
 * is as it was, nobody committed anything, and the engine, which takes locks, need not be asked.
 * One thread's, as its connection. */
#define LOG_INDEX_WORDS 12 /* the first copy of the header */

struct log_index {
    const volatile uint32_t *head;  /* the connection's; NULL: there is none to be seen */
    uint32_t seen[LOG_INDEX_WORDS]; /* as it was at the last look */
};

/* Finds it for an open connection, as long as which it stands. There is one once the connection has
 * read a file in WAL mode. The next look says that it moved. */
void log_index_find(struct log_index *index, sqlite3 *db);
/* Whether anything was committed since the last call, or may have been. Called before the catalogue
 * is read: what comes between the two shows at the next call. */
bool log_index_moved(struct log_index *index);
/* The next look says that it moved. */
void log_index_forget(struct log_index *index);
