/* The copy of a backup: taken, proved, and given a life of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/restore.h"

#define COPY_STEP    1048576u
#define UNKNOWN_LEAP 1000000000 /* of serials, where the old file cannot tell what it gave */

/* ---- the copy -------------------------------------------------------------------------- */

/* A file with a log beside it is at work: the copy of it alone may be torn. */
enum catalogue_status restore_check_backup(struct restore *r)
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
        return restore_fail(r, CATALOGUE_REFUSED, r->backup,
                            "is a catalogue at work, no backup; make one with `sitemapd backup`");
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

enum catalogue_status restore_copy(struct restore *r)
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
        if (!copy_bytes(from, to) || !connection_give_away(r->path, to))
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

/* Brings the copy to this version's schema and checks all of it. */
enum catalogue_status restore_prove(struct restore *r)
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
    } else { /* the sentence names the copy, which nobody knows */
        behind = strncmp(why, r->temporary, strlen(r->temporary)) == 0
                     ? why + strlen(r->temporary) + strspn(why + strlen(r->temporary), ": ")
                     : why;
        return restore_fail(r, status, r->backup, behind);
    }
    return r->problems == 0
               ? CATALOGUE_OK
               : restore_fail(r, CATALOGUE_CORRUPT, r->backup, "is damaged; nothing was restored");
}

/* ---- the new life ---------------------------------------------------------------------- */

enum catalogue_status restore_renew(struct restore *r)
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
        " changed_at = max(changed_at, %lld);"
        "UPDATE catalogue SET registry_revision = revision;"
        "UPDATE page SET revision = (SELECT revision FROM catalogue),"
        " changed_at = (SELECT changed_at FROM catalogue), same_second = 1, stamp = random();"
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
