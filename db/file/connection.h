/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One SQLite connection with the settings that every connection to a catalogue must have, and the
 * mapping of SQLite's results. Internal to db/, where alone sqlite3.h is included. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"

/* Page cache of a writing connection: for small changes, and for a bulk, after which it is freed.
 */
#define CONNECTION_CACHE_KIB      4096
#define CONNECTION_BULK_CACHE_KIB 65536

enum connection_mode { CONNECTION_READ, CONNECTION_WRITE, CONNECTION_CREATE };

/* Opens `path` with WAL, synchronous=FULL, foreign_keys, mmap_size=0, wal_autocheckpoint=0,
 * trusted_schema=0, no shared cache, one thread at a time. Rejects a network filesystem (WAL needs
 * shared memory) by its name. `why` gets a sentence. */
enum catalogue_status connection_open(const char *path, enum connection_mode mode, sqlite3 **out,
                                      char *why, size_t why_size);
/* Creates every missing folder above `path`, accessible to the owner alone: the file has token
 * hashes. */
bool connection_make_folders(const char *path);
/* If root creates a file in another user's folder, gives the file to that user, so that commands of
 * root do not keep the server's user out. `fd` is the new file at `path`. False: it failed. */
bool connection_hand_over(const char *path, int fd);
void connection_close(sqlite3 *db);

/* Maps a result code of SQLite to ours. */
enum catalogue_status connection_status(int sqlite_result);

/* Writes a sentence on the last failure of `db` (NULL: out of memory): the file as `path`, SQLite's
 * message, and advice. */
void connection_explain(const char *path, sqlite3 *db, char *why, size_t why_size);

/* Prepares with SQLITE_PREPARE_PERSISTENT. NULL on failure (see sqlite3_errcode). */
sqlite3_stmt *connection_prepare(sqlite3 *db, const char *sql);

/* The header of the index of the write-ahead log: memory that all processes share and that each
 * commit rewrites (https://www.sqlite.org/walformat.html#the_wal_index_header). While it is
 * unchanged, nothing was committed, and no query, which takes locks, is needed. For one thread,
 * like its connection. */
#define LOG_INDEX_WORDS 12 /* the first copy of the header */

struct log_index {
    const volatile uint32_t *head;  /* in the connection's mapping; NULL: none */
    uint32_t seen[LOG_INDEX_WORDS]; /* its content at the last look */
};

/* Finds the header of an open connection; it is valid until the connection is closed. It exists
 * once the connection has read a file in WAL mode. The next log_index_moved returns true. */
void log_index_find(struct log_index *index, sqlite3 *db);
/* Whether anything was, or may have been, committed since the last call. Call it before reading the
 * catalogue: a commit between the two then shows at the next call. */
bool log_index_moved(struct log_index *index);
/* Makes the next log_index_moved return true. */
void log_index_forget(struct log_index *index);
