/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Replaces a catalogue by a backup. The copy is checked before the old file is touched, and differs
 * from the backup:
 *
 * - another epoch, so that cursors of changes that the backup does not have are rejected (410);
 * - serials and ids above those of the file that it replaces, so that no id is ever used again;
 * - revisions above the old ones, and every page dated now: a client with a later page than the
 *   backup's must not get 304 by its date (ETags, hashes of content, stay valid). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/file/connection.h"
#include "db/file/schema.h"
#include "db/shared/join.h"
#include "server/base/file.h"

struct restore {
    const char *backup, *path;
    char *temporary; /* owned: beside `path` */
    sqlite3 *old;    /* locked exclusively while it is replaced; NULL: none, or not a catalogue */
    int64_t serial, revision, site, index, token; /* of the old file */
    bool old_known;
    const struct catalogue_restore_options *options;
    uint64_t problems;
    char *why;
    size_t why_size;
};

#define LOCKS_BEGIN  0x40000000 /* SQLite's lock bytes; every reading connection locks one */
#define LOCKS_LEN    512
#define COPY_STEP    1048576u
#define UNKNOWN_LEAP 1000000000 /* of serials, if the old file does not name its last */

/* Write the sentence `path: why` and return a status, for errno or for a sentence. */
static enum catalogue_status restore_fail_errno(struct restore *r, const char *path)
{
    int error = errno;

    snprintf(r->why, r->why_size, "%s: %s", path, strerror(error));
    return error == ENOSPC || error == EDQUOT ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
}

static enum catalogue_status restore_fail(struct restore *r, enum catalogue_status status,
                                          const char *path, const char *sentence)
{
    snprintf(r->why, r->why_size, "%s: %s", path, sentence);
    return status;
}

/* ---- the copy -------------------------------------------------------------------------- */

/* Rejects a file that has a log beside it: a process uses it, and a copy of the file alone may be
 * torn. */
static enum catalogue_status restore_check_backup(struct restore *r)
{
    char log[4096];
    struct stat st;

    if (stat(r->backup, &st) != 0)
        return restore_fail_errno(r, r->backup);
    if (!S_ISREG(st.st_mode))
        return restore_fail(r, CATALOGUE_REFUSED, r->backup, "is not a regular file");
    if (st.st_size == 0)
        return restore_fail(r, CATALOGUE_CORRUPT, r->backup, "is empty");
    snprintf(log, sizeof log, "%s-wal", r->backup);
    if (stat(log, &st) == 0 && st.st_size > 0)
        return restore_fail(
            r, CATALOGUE_REFUSED, r->backup,
            "is a catalogue in use, not a backup; create one with `sitemapd backup`");
    return CATALOGUE_OK;
}

static bool copy_bytes(int from, int to)
{
    char *bytes = malloc(COPY_STEP);
    ssize_t n = bytes != NULL ? 1 : -1;

    while (n > 0) {
        ssize_t done = 0;

        n = read(from, bytes, COPY_STEP);
        while (n > 0 && done < n) {
            ssize_t written = write(to, bytes + done, (size_t)(n - done));

            if (written < 0)
                n = -1;
            else
                done += written;
        }
    }
    free(bytes);
    return n == 0;
}

/* Copies the backup beside the catalogue, for its owner alone. */
static enum catalogue_status restore_copy(struct restore *r)
{
    enum catalogue_status status = CATALOGUE_OK;
    int from = open(r->backup, O_RDONLY | O_CLOEXEC), to;

    if (from < 0)
        return restore_fail_errno(r, r->backup);
    if (!connection_make_folders(r->path)) {
        status = restore_fail_errno(r, r->path);
        close(from);
        return status;
    }
    if (asprintf(&r->temporary, "%s.restore.XXXXXX", r->path) < 0) {
        r->temporary = NULL;
        close(from);
        return CATALOGUE_NO_MEMORY;
    }
    to = mkostemp(r->temporary, O_CLOEXEC);
    if (to < 0) {
        status = restore_fail_errno(r, r->path);
        free(r->temporary);
        r->temporary = NULL;
    } else {
        if (!copy_bytes(from, to) || !connection_hand_over(r->path, to))
            status = restore_fail_errno(r, r->path);
        close(to);
    }
    close(from);
    return status;
}

static void count_problem(void *context, const char *sentence)
{
    struct restore *r = context;

    r->problems++;
    r->options->problem(r->options->context, sentence);
}

static void report_foreign(void *context, const char *type, const char *name, const char *how,
                           bool foreign)
{
    char sentence[256];

    snprintf(sentence, sizeof sentence, "the schema: %.10s \"%.120s\" is %s", type, name, how);
    if (foreign) /* restore_prove reports missing or altered objects */
        count_problem(context, sentence);
}

/* Checks, before the first query or write, that the copy has no foreign objects. If the copy cannot
 * be opened, restore_prove reports why. */
static enum catalogue_status restore_compare(struct restore *r)
{
    sqlite3 *db;
    int rc;

    if (connection_open(r->temporary, CONNECTION_READ, &db, r->why, r->why_size) != CATALOGUE_OK) {
        r->why[0] = '\0';
        return CATALOGUE_OK;
    }
    rc = schema_compare(db, report_foreign, r);
    connection_close(db);
    if (rc != SQLITE_OK)
        return restore_fail(r, connection_status(rc), r->backup, sqlite3_errstr(rc));
    return r->problems == 0 ? CATALOGUE_OK
                            : restore_fail(r, CATALOGUE_CORRUPT, r->backup,
                                           "has tables, triggers or views that sitemapd did not "
                                           "create; nothing was restored");
}

/* Makes the copy of a shared catalogue's file a catalogue of its own. */
static enum catalogue_status restore_leave(struct restore *r)
{
    sqlite3 *db;
    int version;
    bool shared = false;
    enum catalogue_status status =
        connection_open(r->temporary, CONNECTION_WRITE, &db, r->why, r->why_size);

    if (status != CATALOGUE_OK) { /* restore_prove says why */
        r->why[0] = '\0';
        return CATALOGUE_OK;
    }
    if (schema_version(db, &version, &shared) && shared)
        status = join_leave(db);
    if (status != CATALOGUE_OK)
        status = restore_fail(r, status, r->backup, sqlite3_errmsg(db));
    connection_close(db);
    return status;
}

/* Brings the copy to this version's schema and checks all of it. */
static enum catalogue_status restore_prove(struct restore *r)
{
    const struct catalogue_options options = {.path = r->temporary,
                                              .must_exist = true,
                                              .write_timeout_ms = 10000,
                                              .max_queued = 1,
                                              .default_max_pages = LIMIT_SITE_PAGES};
    struct catalogue *c;
    char why[256];
    const char *behind;
    uint64_t count;
    enum catalogue_status status = catalogue_open(&options, &c, why, sizeof why);

    if (status == CATALOGUE_OK) {
        status = catalogue_check(c, count_problem, r, &count);
        catalogue_close(c);
        if (status != CATALOGUE_OK)
            return restore_fail(r, status, r->backup, "cannot be read as a catalogue");
    } else { /* the sentence names the copy, which the user does not know */
        behind = strncmp(why, r->temporary, strlen(r->temporary)) == 0
                     ? why + strlen(r->temporary) + strspn(why + strlen(r->temporary), ": ")
                     : why;
        return restore_fail(r, status, r->backup, behind);
    }
    return r->problems == 0
               ? CATALOGUE_OK
               : restore_fail(r, CATALOGUE_CORRUPT, r->backup, "is corrupt; nothing was restored");
}

/* ---- new epoch and ids ----------------------------------------------------------------- */

/* Gives the copy another epoch, and serials, ids and revisions above the old file's. */
static enum catalogue_status restore_renew(struct restore *r)
{
    sqlite3 *db;
    enum catalogue_status status =
        connection_open(r->temporary, CONNECTION_WRITE, &db, r->why, r->why_size);
    char *sql;

    if (status != CATALOGUE_OK)
        return status;
    sql = sqlite3_mprintf(
        "BEGIN IMMEDIATE;"
        "UPDATE catalogue SET epoch = lower(hex(randomblob(16))),"
        " serial = max(serial, %lld) + %d, revision = max(revision, %lld) + 1,"
        " changed_at = %lld;"
        "UPDATE catalogue SET registry_revision = revision;"
        "UPDATE page SET revision = (SELECT revision FROM catalogue),"
        " changed_at = (SELECT changed_at FROM catalogue), same_second = max(1, same_second,"
        "  iif(changed_at > (SELECT changed_at FROM catalogue), changed_at, 0)),"
        " stamp = random();"
        "UPDATE sqlite_sequence SET seq = max(seq, CASE name WHEN 'site' THEN %lld"
        " WHEN 'sitemap_index' THEN %lld WHEN 'token' THEN %lld ELSE 0 END);"
        "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)",
        (long long)r->serial, r->old_known ? 0 : UNKNOWN_LEAP, (long long)r->revision,
        (long long)time(NULL), (long long)r->site, (long long)r->index, (long long)r->token);
    if (sql == NULL)
        status = CATALOGUE_NO_MEMORY;
    else if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        status = restore_fail(r, CATALOGUE_UNAVAILABLE, r->path, sqlite3_errmsg(db));
    sqlite3_free(sql);
    connection_close(db);
    return status;
}

/* ---- the old file ---------------------------------------------------------------------- */

/* A process that has a connection to the file; 0: none. */
static pid_t user_of(const char *path)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCKS_BEGIN, .l_len = LOCKS_LEN};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    pid_t user = 0;

    if (fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        user = lock.l_pid;
    if (fd >= 0)
        close(fd);
    return user;
}

static int64_t read_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row = NULL;
    int64_t value = 0;

    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return value;
}

/* Whether the file is empty, as after a start on a full disk or a truncation. */
static bool is_blank(const char *path)
{
    sqlite3 *db = NULL;
    bool blank =
        sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
        read_number(db, "SELECT count(*) = 0 FROM sqlite_schema") != 0;

    sqlite3_close(db);
    return blank;
}

static enum catalogue_status check_place(struct restore *r)
{
    struct stat st;
    pid_t user;

    if (stat(r->path, &st) != 0)
        return errno == ENOENT ? CATALOGUE_OK : restore_fail_errno(r, r->path);
    /* The rename would replace a device or a pipe, too. */
    if (!S_ISREG(st.st_mode))
        return restore_fail(r, CATALOGUE_REFUSED, r->path,
                            "is not a regular file; name another path");
    if (!r->options->replace && !is_blank(r->path))
        return restore_fail(r, CATALOGUE_CONFLICT, r->path, "already exists");
    user = user_of(r->path);
    if (user == 0)
        return CATALOGUE_OK;
    snprintf(r->why, r->why_size, "%s: locked: process %ld is using it; stop it first", r->path,
             (long)user);
    return CATALOGUE_BUSY;
}

/* Locks the old file exclusively and removes its write-ahead log, which SQLite would replay into
 * the new file. A file that is not readable as a catalogue has nothing to keep. */
static enum catalogue_status hold_old(struct restore *r)
{
    int rc;

    if (access(r->path, F_OK) != 0)
        return CATALOGUE_OK;
    rc = sqlite3_open_v2(r->path, &r->old, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(r->old,
                          "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE;"
                          "BEGIN EXCLUSIVE; SELECT serial FROM catalogue",
                          NULL, NULL, NULL);
    if (rc == SQLITE_BUSY)
        return restore_fail(r, CATALOGUE_BUSY, r->path,
                            "another process is using it; stop it first");
    r->old_known = rc == SQLITE_OK;
    if (!r->old_known)
        return CATALOGUE_OK;
    r->serial = read_number(r->old, "SELECT serial FROM catalogue");
    r->revision = read_number(r->old, "SELECT revision FROM catalogue");
    r->site = read_number(r->old, "SELECT seq FROM sqlite_sequence WHERE name = 'site'");
    r->index = read_number(r->old, "SELECT seq FROM sqlite_sequence WHERE name = 'sitemap_index'");
    r->token = read_number(r->old, "SELECT seq FROM sqlite_sequence WHERE name = 'token'");
    return CATALOGUE_OK;
}

/* ---- the new file ---------------------------------------------------------------------- */

static void remove_beside(const char *path)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"};
    char name[4096];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (snprintf(name, sizeof name, "%s%s", path, ends[i]) < (int)sizeof name)
            unlink(name);
}

static enum catalogue_status put_in_place(struct restore *r)
{
    char *folder = strdup(r->path), *slash = folder != NULL ? strrchr(folder, '/') : NULL;
    enum catalogue_status status = CATALOGUE_OK;

    if (folder == NULL)
        return CATALOGUE_NO_MEMORY;
    if (slash != NULL)
        slash[slash == folder] = '\0';
    remove_beside(r->temporary);
    if (!file_sync(r->temporary, O_RDWR))
        status = restore_fail_errno(r, r->path);
    if (status == CATALOGUE_OK)
        remove_beside(r->path);
    if (status == CATALOGUE_OK && rename(r->temporary, r->path) != 0)
        status = restore_fail_errno(r, r->path);
    if (status == CATALOGUE_OK && !file_sync(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY))
        status = restore_fail_errno(r, r->path);
    free(folder);
    return status;
}

enum catalogue_status catalogue_restore(const char *backup, const char *path,
                                        const struct catalogue_restore_options *options, char *why,
                                        size_t why_size)
{
    struct restore r = {
        .backup = backup, .path = path, .options = options, .why = why, .why_size = why_size};
    enum catalogue_status status;

    char *real = realpath(path, NULL); /* a symbolic link stays, and leads to the new file */

    why[0] = '\0';
    r.path = real != NULL ? real : path;
    status = restore_check_backup(&r);
    if (status == CATALOGUE_OK)
        status = check_place(&r);
    if (status == CATALOGUE_OK)
        status = restore_copy(&r);
    if (status == CATALOGUE_OK)
        status = restore_compare(&r);
    if (status == CATALOGUE_OK)
        status = restore_leave(&r);
    if (status == CATALOGUE_OK)
        status = restore_prove(&r);
    if (status == CATALOGUE_OK)
        status = hold_old(&r);
    if (status == CATALOGUE_OK)
        status = restore_renew(&r);
    if (status == CATALOGUE_OK)
        status = put_in_place(&r);
    sqlite3_close(r.old);
    if (status != CATALOGUE_OK && r.temporary != NULL) {
        unlink(r.temporary);
        remove_beside(r.temporary);
    }
    free(r.temporary);
    free(real);
    if (status != CATALOGUE_OK && why[0] == '\0')
        snprintf(why, why_size, "%s: %s", path, catalogue_status_word(status));
    return status;
}
