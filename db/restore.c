/* Puts a backup in the place of a catalogue. The copy is proved before anything of the old file is
 * touched, and begins a new life of its own:
 *
 * - another epoch, since cursors of changes that the backup does not have would count on (410);
 * - serials and ids above those of the file that it replaces, so that no id is ever given again;
 * - revisions above the old ones, and every page changed now: a visitor who holds a later page than
 *   the backup's must not be told 304 by its date (the tags, made of content, hold on). */
#include "db/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCKS_BEGIN 0x40000000 /* where SQLite locks a file; a connection that reads holds one */
#define LOCKS_LEN   512

enum catalogue_status restore_fail_errno(struct restore *r, const char *path)
{
    int error = errno;

    snprintf(r->why, r->why_size, "%s: %s", path, strerror(error));
    return error == ENOSPC || error == EDQUOT ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
}

enum catalogue_status restore_fail(struct restore *r, enum catalogue_status status,
                                   const char *path, const char *sentence)
{
    snprintf(r->why, r->why_size, "%s: %s", path, sentence);
    return status;
}

/* ---- the old file ---------------------------------------------------------------------- */

/* The process that has a connection to the file; 0: none. */
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

static enum catalogue_status check_place(struct restore *r)
{
    struct stat st;
    pid_t user;

    if (stat(r->path, &st) != 0)
        return errno == ENOENT ? CATALOGUE_OK : restore_fail_errno(r, r->path);
    if (!r->options->replace)
        return restore_fail(r, CATALOGUE_CONFLICT, r->path, "is there already");
    user = user_of(r->path);
    if (user == 0)
        return CATALOGUE_OK;
    snprintf(r->why, r->why_size, "%s: process %ld works on it; stop it first", r->path,
             (long)user);
    return CATALOGUE_BUSY;
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

/* Takes the old file for this process alone and puts its write-ahead log away: under the new file
 * it would be replayed into that. What cannot be read as a catalogue holds nothing to be kept. */
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
                            "another process works on it; stop it first");
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

static bool sync_path(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return synced;
}

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
    if (!sync_path(r->temporary, O_RDWR))
        status = restore_fail_errno(r, r->path);
    if (status == CATALOGUE_OK)
        remove_beside(r->path);
    if (status == CATALOGUE_OK && rename(r->temporary, r->path) != 0)
        status = restore_fail_errno(r, r->path);
    if (status == CATALOGUE_OK && !sync_path(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY))
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

    char *real = realpath(path, NULL); /* a link stays, and leads to the new file */

    why[0] = '\0';
    r.path = real != NULL ? real : path;
    status = restore_check_backup(&r);
    if (status == CATALOGUE_OK)
        status = check_place(&r);
    if (status == CATALOGUE_OK)
        status = restore_copy(&r);
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
