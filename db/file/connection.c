/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Opens SQLite connections with the pragmas that every connection needs, and maps result codes to
 * statuses and sentences. */
#include "db/file/connection.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db/file/filesystem.h"

enum catalogue_status connection_status(int sqlite_result)
{
    if (sqlite_result == SQLITE_IOERR_NOMEM)
        return CATALOGUE_NO_MEMORY;
    switch (sqlite_result & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return CATALOGUE_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return CATALOGUE_BUSY;
    case SQLITE_FULL:
        return CATALOGUE_NO_SPACE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT: /* the file contradicts its own counts */
        return CATALOGUE_CORRUPT;
    case SQLITE_NOMEM:
        return CATALOGUE_NO_MEMORY;
    default: /* IOERR, READONLY, CANTOPEN, PERM, INTERRUPT, … */
        return CATALOGUE_UNAVAILABLE;
    }
}

/* Advice for the user; NULL: none. */
static const char *advice_for(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        return "this user needs write permission for it, the files beside it (-wal, -shm) and its "
               "folder";
    case SQLITE_NOTADB:
        return "if it was the catalogue, keep a copy and restore a backup; else name another path";
    case SQLITE_CORRUPT:
        return "keep a copy of it, and restore a backup";
    case SQLITE_FULL:
        return "free space on its disk";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another process has locked it: retry later";
    case SQLITE_IOERR:
        return "check its disk and the kernel's log";
    default:
        return NULL;
    }
}

/* The command that unpacks a compressed file; NULL for other files. */
static const char *unpacker_of(const char *path)
{
    static const struct {
        const char *magic, *command;
    } kinds[] = {{"\x1f\x8b", "gunzip"},
                 {"\xfd"
                  "7zXZ",
                  "unxz"},
                 {"\x28\xb5\x2f\xfd", "unzstd"},
                 {"BZh", "bunzip2"}};
    char begin[8] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, begin, sizeof begin - 1) : -1;
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; got > 0 && i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(begin, kinds[i].magic, strlen(kinds[i].magic)) == 0)
            return kinds[i].command;
    return NULL;
}

void connection_explain(const char *path, sqlite3 *db, char *why, size_t why_size)
{
    int error = db != NULL ? sqlite3_system_errno(db) : 0;
    int rc = db != NULL ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    const char *advice = advice_for(rc);
    bool cannot_open = (rc & 0xff) == SQLITE_CANTOPEN && error != 0;
    const char *unpacker = (rc & 0xff) == SQLITE_NOTADB ? unpacker_of(path) : NULL;

    if (unpacker != NULL) {
        snprintf(why, why_size, "%s: is compressed; unpack it first, with `%s`", path, unpacker);
        return;
    }

    /* SQLite reports the error of a file beside it that it looked for afterwards. */
    if (((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) &&
        filesystem_is_read_only(path)) {
        snprintf(
            why, why_size,
            "%s: its file system is mounted read-only, and every command needs to write beside "
            "it (-wal, -shm): mount it for writing, or copy the file elsewhere and name the copy",
            path);
        return;
    }
    snprintf(why, why_size, "%s: %s%s%s%s%s", path,
             db != NULL ? sqlite3_errmsg(db) : "out of memory", cannot_open ? ": " : "",
             cannot_open ? strerror(error) : "", advice != NULL ? "; " : "",
             advice != NULL ? advice : "");
}

void connection_close(sqlite3 *db)
{
    /* close_v2: a statement forgotten somewhere must not keep the file open forever. */
    sqlite3_close_v2(db);
}

sqlite3_stmt *connection_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    return rc == SQLITE_OK ? statement : NULL;
}

/* ---- the index of the log */

#define BLOCK_BYTES 32768 /* SQLite maps the index in blocks of this size */

void log_index_find(struct log_index *index, sqlite3 *db)
{
    sqlite3_file *file = NULL;
    volatile void *first = NULL;

    *index = (struct log_index){.head = NULL};
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
        file != NULL && file->pMethods != NULL && file->pMethods->iVersion >= 2 &&
        file->pMethods->xShmMap(file, 0, BLOCK_BYTES, 0, &first) == SQLITE_OK)
        index->head = first;
}

bool log_index_moved(struct log_index *index)
{
    bool moved = index->head == NULL;

    for (size_t i = 0; index->head != NULL && i < LOG_INDEX_WORDS; i++) {
        uint32_t word = index->head[i];
        moved = moved || word != index->seen[i];
        index->seen[i] = word;
    }
    return moved;
}

void log_index_forget(struct log_index *index)
{
    memset(index->seen, 0, sizeof index->seen);
}
