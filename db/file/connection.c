#include "db/file/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/file/filesystem.h"
#include "db/file/schema.h"

/* How long an opening or reading connection waits for a foreign lock (recovery, the switch to
 * WAL). The writer puts its own handler in this one's place. */
#define CONNECTION_BUSY_MS  5000
#define CONNECTION_RETRY_MS 10

static void explain(char *why, size_t why_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void explain(char *why, size_t why_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, why_size, format, arguments);
    va_end(arguments);
}

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
    case SQLITE_CONSTRAINT: /* what the file holds contradicts its own counts */
        return CATALOGUE_CORRUPT;
    case SQLITE_NOMEM:
        return CATALOGUE_NO_MEMORY;
    default: /* IOERR, READONLY, CANTOPEN, PERM, INTERRUPT, … */
        return CATALOGUE_UNAVAILABLE;
    }
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
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return true;
}

bool connection_give_away(const char *path, int fd)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    struct stat st;
    bool given = geteuid() != 0 || (folder != NULL && stat(folder, &st) == 0 &&
                                    fchown(fd, st.st_uid, st.st_gid) == 0);

    free(folder);
    return given;
}

/* Looks at the path before the engine touches it. */
static enum catalogue_status inspect_path(const char *path, enum connection_mode mode, char *why,
                                          size_t why_size)
{
    if (mode == CONNECTION_CREATE && !connection_make_folders(path)) {
        explain(why, why_size,
                "%s: cannot make its folder: %s; make it, and let this user write to it", path,
                strerror(errno));
        return errno == ENOSPC ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
    }
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (!exists && (mode != CONNECTION_CREATE || errno != ENOENT)) {
        explain(why, why_size, "%s: %s", path, strerror(errno));
        return CATALOGUE_UNAVAILABLE;
    }
    if (exists && !S_ISREG(st.st_mode)) {
        explain(why, why_size, "%s: is not a regular file; name another path", path);
        return CATALOGUE_UNAVAILABLE;
    }
    char folder[4096];
    const char *place = path;
    if (!exists) {
        const char *slash = strrchr(path, '/');
        size_t len = slash ? (size_t)(slash - path) + 1 : 0;
        snprintf(folder, sizeof folder, "%.*s.", (int)len, path);
        place = folder;
    }
    const char *network = network_filesystem(place);
    if (network) {
        explain(why, why_size,
                "%s: lies on a network filesystem (%s), where SQLite's WAL is not safe; "
                "use a local disk",
                path, network);
        return CATALOGUE_UNAVAILABLE;
    }
    return CATALOGUE_OK;
}

/* Runs `sql`, again and again while BUSY: the switch to WAL does not ask the busy handler. */
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

/* What the user can do about it; NULL: nothing that is known. */
static const char *advice_for(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        return "this user needs write permission for it, the files beside it (-wal, -shm) and its "
               "folder";
    case SQLITE_NOTADB:
        return "name another path, or move this file away";
    case SQLITE_CORRUPT:
        return "keep a copy of it, and restore a backup";
    case SQLITE_FULL:
        return "make room on its disk";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another process holds it: try again when that is done";
    case SQLITE_IOERR:
        return "look at its disk and at the kernel's log";
    default:
        return NULL;
    }
}

/* The command that unpacks a file that is not a database; NULL where it is not known as packed. */
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
    int error = db ? sqlite3_system_errno(db) : 0;
    int rc = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    const char *advice = advice_for(rc);
    bool cannot_open = (rc & 0xff) == SQLITE_CANTOPEN && error != 0;
    const char *unpacker = (rc & 0xff) == SQLITE_NOTADB ? unpacker_of(path) : NULL;

    if (unpacker) {
        explain(why, why_size, "%s: is compressed; unpack it first, with `%s`", path, unpacker);
        return;
    }

    /* The engine's own error is of the file that it then looked for beside it. */
    if (((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) &&
        filesystem_is_read_only(path)) {
        explain(
            why, why_size,
            "%s: its file system is mounted read-only, and every command needs to write beside "
            "it (-wal, -shm): mount it for writing, or copy the file elsewhere and name the copy",
            path);
        return;
    }
    explain(why, why_size, "%s: %s%s%s%s%s", path, db ? sqlite3_errmsg(db) : "out of memory",
            cannot_open ? ": " : "", cannot_open ? strerror(error) : "", advice ? "; " : "",
            advice ? advice : "");
}

enum catalogue_status connection_open(const char *path, enum connection_mode mode, sqlite3 **out,
                                      char *why, size_t why_size)
{
    *out = NULL;
    enum catalogue_status status = inspect_path(path, mode, why, why_size);
    if (status != CATALOGUE_OK)
        return status;

    /* A reader opens for writing too: the last connection to leave may checkpoint, and recovery
     * after a crash needs it. query_only keeps it from writing anything else. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                SQLITE_OPEN_EXRESCODE;
    if (mode == CONNECTION_CREATE) {
        /* The token hashes are nobody else's business: SQLite gives its side files the mode that
         * this file has. Only a new file is touched: to close a descriptor of one that is open
         * elsewhere in this process would drop its POSIX locks. */
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            connection_give_away(path, fd);
            close(fd);
        } else if (errno != EEXIST) {
            status = errno == ENOSPC ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
            explain(why, why_size,
                    "%s: cannot be made: %s; this user must be able to make files in "
                    "its folder",
                    path, strerror(errno));
            return status;
        }
        flags |= SQLITE_OPEN_CREATE;
    }
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc != SQLITE_OK) {
        status = db ? connection_status(rc) : CATALOGUE_NO_MEMORY;
        goto fail;
    }
    sqlite3_busy_timeout(db, CONNECTION_BUSY_MS);
    /* Before the journal mode is set, which would rewrite the header of a foreign file. */
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

void connection_close(sqlite3 *db)
{
    /* close_v2: a statement forgotten somewhere must not keep the file open for ever. */
    sqlite3_close_v2(db);
}

sqlite3_stmt *connection_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    return rc == SQLITE_OK ? statement : NULL;
}

/* ---- the index of the log */

#define BLOCK_BYTES 32768 /* what the engine maps of it at once */

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
