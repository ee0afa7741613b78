/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A consistent copy of the catalogue while others read and write. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/read/view_pool.h"
#include "server/base/file.h"

#define BACKUP_STEP_PAGES 1024 /* of 4 KiB, between two reports of progress */

struct backup {
    const char *path;
    char *temporary; /* owned: beside `path`, so that the rename stays within one file system */
    sqlite3 *from, *to;
    int64_t begun; /* Unix seconds; not after the copied state */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
    char *why;
    size_t why_size;
};

static enum catalogue_status fail_errno(struct backup *b, const char *path)
{
    int error = errno;

    snprintf(b->why, b->why_size, "%s: %s", path, strerror(error));
    if (error == EEXIST)
        return CATALOGUE_CONFLICT;
    return error == ENOSPC || error == EDQUOT ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
}

static enum catalogue_status fail_engine(struct backup *b, const char *path, int rc, sqlite3 *db)
{
    enum catalogue_status status = connection_status(rc);

    snprintf(b->why, b->why_size, "%s: %s", path,
             db != NULL && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db)
                                                            : sqlite3_errstr(rc));
    return status != CATALOGUE_OK ? status : CATALOGUE_UNAVAILABLE;
}

/* Only the owner may read the file: it has the hashes of tokens. */
static enum catalogue_status make_temporary(struct backup *b)
{
    struct stat st;
    int fd;

    if (lstat(b->path, &st) == 0) {
        errno = EEXIST;
        return fail_errno(b, b->path);
    }
    if (asprintf(&b->temporary, "%s.XXXXXX", b->path) < 0) {
        b->temporary = NULL;
        return CATALOGUE_NO_MEMORY;
    }
    fd = mkostemp(b->temporary, O_CLOEXEC);
    if (fd < 0) {
        enum catalogue_status status = fail_errno(b, b->path);
        free(b->temporary);
        b->temporary = NULL;
        return status;
    }
    close(fd);
    return CATALOGUE_OK;
}

/* The read transaction keeps the revision: without it, every commit of another connection would
 * restart the copy. */
static enum catalogue_status open_both(struct backup *b, struct catalogue *c)
{
    enum catalogue_status status = view_pool_connect(c->views, &b->from, b->why, b->why_size);
    int rc;

    if (status != CATALOGUE_OK)
        return status;
    b->begun = (int64_t)time(NULL);
    rc = sqlite3_exec(b->from, "BEGIN; SELECT revision FROM catalogue", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return fail_engine(b, c->path, rc, b->from);
    rc = sqlite3_open_v2(b->temporary, &b->to,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    /* No other process uses the new file yet: no journal, and one fsync at the end. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(b->to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL, NULL,
                          NULL);
    return rc == SQLITE_OK ? CATALOGUE_OK : fail_engine(b, b->path, rc, b->to);
}

/* After the copy, but within its second, pages may change and keep their date. A restored copy must
 * not answer 304 by such a date. */
static int distrust_dates(struct backup *b)
{
    char sql[128];

    snprintf(sql, sizeof sql,
             "UPDATE page SET same_second = 1 WHERE same_second = 0 AND changed_at >= %lld",
             (long long)b->begun);
    return sqlite3_exec(b->to, sql, NULL, NULL, NULL);
}

static enum catalogue_status copy(struct backup *b)
{
    sqlite3_backup *job = sqlite3_backup_init(b->to, "main", b->from, "main");
    bool goes_on = true;
    int rc;

    if (job == NULL)
        return fail_engine(b, b->path, sqlite3_extended_errcode(b->to), b->to);
    do {
        rc = sqlite3_backup_step(job, BACKUP_STEP_PAGES);
        if (b->progress != NULL && (rc == SQLITE_OK || rc == SQLITE_DONE)) {
            uint64_t total = (uint64_t)sqlite3_backup_pagecount(job);
            goes_on =
                b->progress(b->context, total - (uint64_t)sqlite3_backup_remaining(job), total);
        }
    } while (rc == SQLITE_OK && goes_on);
    sqlite3_backup_finish(job);
    if (!goes_on)
        return CATALOGUE_CANCELLED;
    if (rc != SQLITE_DONE)
        return fail_engine(b, b->path, rc, NULL);
    rc = distrust_dates(b);
    if (rc != SQLITE_OK)
        return fail_engine(b, b->path, rc, b->to);
    rc = sqlite3_close(b->to);
    if (rc != SQLITE_OK)
        return fail_engine(b, b->path, rc, NULL);
    b->to = NULL;
    return CATALOGUE_OK;
}

static bool sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    bool synced = folder != NULL && file_sync(folder, O_RDONLY | O_DIRECTORY);

    free(folder);
    return synced;
}

/* Gives the complete file its name, without replacing another file. */
static enum catalogue_status publish(struct backup *b)
{
    if (!file_sync(b->temporary, O_RDWR))
        return fail_errno(b, b->path);
    /* link(2), unlike rename(2), fails if the name exists; some file systems have no links. */
    if (link(b->temporary, b->path) != 0) {
        if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
            return fail_errno(b, b->path);
        if (renameat2(AT_FDCWD, b->temporary, AT_FDCWD, b->path, RENAME_NOREPLACE) != 0)
            return fail_errno(b, b->path);
    }
    unlink(b->temporary);
    return sync_folder(b->path) ? CATALOGUE_OK : fail_errno(b, b->path);
}

enum catalogue_status catalogue_backup(struct catalogue *c, const char *path,
                                       bool (*progress)(void *context, uint64_t done,
                                                        uint64_t total),
                                       void *context, char *why, size_t why_size)
{
    struct backup b = {
        .path = path, .progress = progress, .context = context, .why = why, .why_size = why_size};
    enum catalogue_status status;

    if (why_size > 0)
        why[0] = '\0';
    status = make_temporary(&b);
    if (status == CATALOGUE_OK)
        status = open_both(&b, c);
    if (status == CATALOGUE_OK)
        status = copy(&b);
    if (status == CATALOGUE_OK)
        status = publish(&b);
    sqlite3_close(b.to);
    connection_close(b.from);
    if (status != CATALOGUE_OK && b.temporary != NULL)
        unlink(b.temporary);
    free(b.temporary);
    if (status != CATALOGUE_OK && why_size > 0 && why[0] == '\0')
        snprintf(why, why_size, "%s: %s", path, catalogue_status_word(status));
    return status;
}
