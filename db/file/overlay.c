/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* An SQLite VFS whose main file is read-only: pages that are written go to a temporary file
 * (overlay.h). */
#include "db/file/overlay.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"

#define VFS_NAME "sitemapd-overlay"
/* The log's header, which each restart of the log changes. */
#define LOG_HEADER_BYTES 32
#define COPY_BYTES       65536
#define COPY_TRIES       10

struct overlay_file {
    sqlite3_file base;
    sqlite3_file *real; /* follows this struct in memory */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct overlay_file *)file)->real;
}

/* ---- the methods of a file */

static int overlay_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int overlay_read(sqlite3_file *file, void *out, int bytes, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), out, bytes, at);
}

static int log_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xWrite(real_of(file), from, bytes, at);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int main_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    (void)file, (void)from, (void)bytes, (void)at;
    return SQLITE_READONLY;
}

static int main_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    (void)file, (void)size;
    return SQLITE_READONLY;
}

static int overlay_sync(sqlite3_file *file, int flags)
{
    (void)file, (void)flags;
    return SQLITE_OK;
}

static int overlay_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int overlay_lock(sqlite3_file *file, int level)
{
    (void)file, (void)level;
    return SQLITE_OK;
}

static int overlay_is_reserved(sqlite3_file *file, int *reserved)
{
    (void)file;
    *reserved = 0;
    return SQLITE_OK;
}

static int overlay_control(sqlite3_file *file, int what, void *argument)
{
    (void)file, (void)what, (void)argument;
    return SQLITE_NOTFOUND;
}

static int overlay_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int overlay_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* Version 1: without shared memory. */
#define METHODS(write, truncate)                                                                   \
    {                                                                                              \
        .iVersion = 1, .xClose = overlay_close, .xRead = overlay_read, .xWrite = (write),          \
        .xTruncate = (truncate), .xSync = overlay_sync, .xFileSize = overlay_size,                 \
        .xLock = overlay_lock, .xUnlock = overlay_lock, .xCheckReservedLock = overlay_is_reserved, \
        .xFileControl = overlay_control, .xSectorSize = overlay_sector,                            \
        .xDeviceCharacteristics = overlay_device                                                   \
    }
static const sqlite3_io_methods main_methods = METHODS(main_write, main_truncate);
static const sqlite3_io_methods log_methods = METHODS(log_write, log_truncate);

/* ---- the log's copy */

static int read_header(sqlite3_file *log, unsigned char out[LOG_HEADER_BYTES])
{
    int rc = log->pMethods->xRead(log, out, LOG_HEADER_BYTES, 0);
    return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc; /* SQLite has zeroed the rest */
}

static int copy_bytes(sqlite3_file *from, sqlite3_file *to, void *buffer)
{
    sqlite3_int64 size;
    int rc = from->pMethods->xFileSize(from, &size);
    if (rc == SQLITE_OK && size > OVERLAY_LOG_MAX_BYTES)
        rc = SQLITE_FULL;
    for (sqlite3_int64 at = 0; rc == SQLITE_OK && at < size; at += COPY_BYTES) {
        int bytes = size - at < COPY_BYTES ? (int)(size - at) : COPY_BYTES;
        rc = from->pMethods->xRead(from, buffer, bytes, at);
        if (rc == SQLITE_IOERR_SHORT_READ) /* truncated: a restart */
            rc = SQLITE_OK;
        if (rc == SQLITE_OK)
            rc = to->pMethods->xWrite(to, buffer, bytes, at);
    }
    return rc;
}

static int copy_log(sqlite3_file *from, sqlite3_file *to)
{
    unsigned char before[LOG_HEADER_BYTES], after[LOG_HEADER_BYTES];
    void *buffer = malloc(COPY_BYTES);
    int rc = buffer != NULL ? SQLITE_OK : SQLITE_NOMEM, tries = 0;
    do {
        if (rc == SQLITE_OK)
            rc = to->pMethods->xTruncate(to, 0);
        if (rc == SQLITE_OK)
            rc = read_header(from, before);
        if (rc == SQLITE_OK)
            rc = copy_bytes(from, to, buffer);
        if (rc == SQLITE_OK)
            rc = read_header(from, after);
    } while (rc == SQLITE_OK && memcmp(before, after, sizeof before) != 0 && ++tries < COPY_TRIES);
    free(buffer);
    return rc == SQLITE_OK && tries == COPY_TRIES ? SQLITE_BUSY : rc;
}

static int open_log(sqlite3_vfs *real, const char *name, sqlite3_file *copy)
{
    int scratch = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE |
                  SQLITE_OPEN_DELETEONCLOSE | SQLITE_OPEN_TEMP_DB;
    sqlite3_file *log = calloc(1, (size_t)real->szOsFile);
    if (log == NULL)
        return SQLITE_NOMEM;
    int rc = real->xOpen(real, NULL, copy, scratch, NULL);
    if (rc == SQLITE_OK &&
        real->xOpen(real, name, log, SQLITE_OPEN_READONLY | SQLITE_OPEN_WAL, NULL) == SQLITE_OK) {
        rc = copy_log(log, copy);
        log->pMethods->xClose(log);
        if (rc != SQLITE_OK)
            copy->pMethods->xClose(copy);
    }
    free(log);
    return rc;
}

/* ---- the VFS */

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *out_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    struct overlay_file *own = (struct overlay_file *)file;
    bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
    if (!is_log && !(flags & SQLITE_OPEN_MAIN_DB)) /* temporary */
        return real->xOpen(real, name, file, flags, out_flags);

    own->base.pMethods = NULL;
    own->real = (sqlite3_file *)(own + 1);
    int read_only = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    int rc = is_log ? open_log(real, name, own->real)
                    : real->xOpen(real, name, own->real, read_only, NULL);
    if (rc == SQLITE_OK)
        own->base.pMethods = is_log ? &log_methods : &main_methods;
    if (out_flags != NULL)
        *out_flags = flags;
    return rc;
}

/* Deletes nothing: no named file belongs to the connection. */
static int delete_file(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs, (void)name, (void)sync_folder;
    return SQLITE_OK;
}

static sqlite3_vfs overlay_vfs;

static void make_vfs(void)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    if (real == NULL)
        return;
    overlay_vfs = *real;
    overlay_vfs.pNext = NULL;
    overlay_vfs.zName = VFS_NAME;
    overlay_vfs.pAppData = real;
    overlay_vfs.szOsFile = real->szOsFile + (int)sizeof(struct overlay_file);
    overlay_vfs.xOpen = open_file;
    overlay_vfs.xDelete = delete_file;
    sqlite3_vfs_register(&overlay_vfs, 0);
}

enum catalogue_status overlay_open(const char *path, sqlite3 **out, char *why, size_t why_size)
{
    static const char settings[] =
        "PRAGMA locking_mode=EXCLUSIVE;" /* first, so that SQLite uses no shared memory */
        "PRAGMA synchronous=OFF;"
        "PRAGMA foreign_keys=ON;"
        "PRAGMA trusted_schema=OFF;"
        "PRAGMA temp_store=FILE;";
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                SQLITE_OPEN_EXRESCODE;
    sqlite3 *db = NULL;
    char cache[64];

    *out = NULL;
    pthread_once(&once, make_vfs);
    sqlite3_snprintf(sizeof cache, cache, "PRAGMA cache_size=-%d", OVERLAY_CACHE_KIB);
    int rc = sqlite3_open_v2(path, &db, flags, VFS_NAME);
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_autocheckpoint(db, 0);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, cache, NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        *out = db;
        return CATALOGUE_OK;
    }
    connection_explain(path, db, why, why_size);
    connection_close(db);
    return connection_status(rc);
}
