/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Opens a catalogue's file: checks the path, creates the file, and applies the settings of every
 * connection. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/file/connection.h"
#include "db/file/filesystem.h"
#include "db/file/schema.h"

/* How long an opening or reading connection waits for the lock of another process (recovery, the
 * switch to WAL). The writer sets a busy handler of its own. */
#define CONNECTION_BUSY_MS  5000
#define CONNECTION_RETRY_MS 10

static void explain_open(char *why, size_t why_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void explain_open(char *why, size_t why_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, why_size, format, arguments);
    va_end(arguments);
}

bool connection_make_folders(const char *path)
{
    char folder[4096];
    size_t len = strlen(path);
    if (len >= sizeof folder) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(folder, path, len + 1);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return true;
}

bool connection_hand_over(const char *path, int fd)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    struct stat st;
    bool given = geteuid() != 0 || (folder != NULL && stat(folder, &st) == 0 &&
                                    fchown(fd, st.st_uid, st.st_gid) == 0);

    free(folder);
    return given;
}

/* Checks the path before SQLite opens it. */
static enum catalogue_status inspect_path(const char *path, enum connection_mode mode, char *why,
                                          size_t why_size)
{
    if (mode == CONNECTION_CREATE && !connection_make_folders(path)) {
        explain_open(
            why, why_size,
            "%s: cannot create its folder: %s; create it, and make it writable for this user", path,
            strerror(errno));
        return errno == ENOSPC ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
    }
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (!exists && (mode != CONNECTION_CREATE || errno != ENOENT)) {
        explain_open(why, why_size, "%s: %s", path, strerror(errno));
        return CATALOGUE_UNAVAILABLE;
    }
    if (exists && !S_ISREG(st.st_mode)) {
        explain_open(why, why_size, "%s: is not a regular file; name another path", path);
        return CATALOGUE_UNAVAILABLE;
    }
    char folder[4096];
    const char *place = path;
    if (!exists) {
        const char *slash = strrchr(path, '/');
        size_t len = slash != NULL ? (size_t)(slash - path) + 1 : 0;
        snprintf(folder, sizeof folder, "%.*s.", (int)len, path);
        place = folder;
    }
    const char *network = network_filesystem(place);
    if (network != NULL) {
        explain_open(
            why, why_size,
            "%s: is on a network file system (%s), where SQLite's WAL is not safe; use a local "
            "disk",
            path, network);
        return CATALOGUE_UNAVAILABLE;
    }
    return CATALOGUE_OK;
}

/* Runs `sql` and retries while BUSY: the switch to WAL does not call the busy handler. */
static int exec_patiently(sqlite3 *db, const char *sql)
{
    int waited_ms = 0;
    for (;;) {
        int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
        if ((rc & 0xff) != SQLITE_BUSY || waited_ms >= CONNECTION_BUSY_MS)
            return rc;
        struct timespec pause = {0, CONNECTION_RETRY_MS * 1000000L};
        nanosleep(&pause, NULL);
        waited_ms += CONNECTION_RETRY_MS;
    }
}

static enum catalogue_status configure(sqlite3 *db, enum connection_mode mode)
{
    static const char common[] = "PRAGMA synchronous=FULL;"
                                 "PRAGMA foreign_keys=ON;"
                                 "PRAGMA mmap_size=0;"
                                 "PRAGMA trusted_schema=OFF;"
                                 "PRAGMA temp_store=FILE;";
    int rc = sqlite3_wal_autocheckpoint(db, 0);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = exec_patiently(db, common);
    if (rc == SQLITE_OK && mode == CONNECTION_READ)
        rc = exec_patiently(db, "PRAGMA query_only=ON;");
    else if (rc == SQLITE_OK)
        rc = exec_patiently(db, "PRAGMA journal_mode=WAL;");
    return connection_status(rc);
}

enum catalogue_status connection_open(const char *path, enum connection_mode mode, sqlite3 **out,
                                      char *why, size_t why_size)
{
    *out = NULL;
    enum catalogue_status status = inspect_path(path, mode, why, why_size);
    if (status != CATALOGUE_OK)
        return status;

    /* Readers open for writing, too: the last connection to close may checkpoint, and the first one
     * may recover after a crash. query_only prevents all other writes. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                SQLITE_OPEN_EXRESCODE;
    if (mode == CONNECTION_CREATE) {
        /* Only the owner may read the token hashes; SQLite gives its side files the same mode. Only
         * a new file is opened here: closing a descriptor of a file that this process has open
         * would drop its POSIX locks. */
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            connection_hand_over(path, fd);
            close(fd);
        } else if (errno != EEXIST) {
            status = errno == ENOSPC ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
            explain_open(
                why, why_size,
                "%s: cannot be created: %s; this user must be able to create files in its folder",
                path, strerror(errno));
            return status;
        }
        flags |= SQLITE_OPEN_CREATE;
    }
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc != SQLITE_OK) {
        status = db != NULL ? connection_status(rc) : CATALOGUE_NO_MEMORY;
        goto fail;
    }
    sqlite3_busy_timeout(db, CONNECTION_BUSY_MS);
    /* Before setting the journal mode, which would rewrite the header of a foreign file. */
    status = schema_identify(db, path, why, why_size);
    if (status != CATALOGUE_OK)
        goto fail_explained;
    status = configure(db, mode);
    if (status != CATALOGUE_OK)
        goto fail;
    *out = db;
    return CATALOGUE_OK;

fail:
    connection_explain(path, db, why, why_size);
fail_explained:
    sqlite3_close(db);
    return status;
}
