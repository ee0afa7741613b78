/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Waits for commits of any process: by inotify on the write-ahead log, then by looking at the index
 * of the log at growing intervals. */
#include "db/file/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "db/file/connection.h"
#include "db/read/view_pool.h"
#include "server/base/clock.h"

/* A file that was replaced (a backup renamed into place) leaves the old one's write-ahead log at
 * the path of the new one's. SQLite cannot distinguish them and would replay the old pages into
 * the new file, so the log is moved away before the new file is opened, but only if it is the log
 * that this watch has seen at the old file. */

#define QUIET_MS      3000
#define QUIET_LOOK_MS 1000
#define FILE_EVENTS   (IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)
#define WAKE          ((uint64_t)1 << 32) /* a wake; smaller values are nudges */

/* ---- the connection -------------------------------------------------------------------- */

static int watch_read_version(sqlite3_stmt *data_version, int64_t *out)
{
    int rc = sqlite3_step(data_version);

    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(data_version, 0);
    /* The reset ends the implicit transaction, so that a later step sees later commits. */
    sqlite3_reset(data_version);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Stores the identity of the write-ahead log. It exists from the first read on (if the file is in
 * WAL mode, which a copy made by another program may not be), and stays while a connection is open.
 */
static void watch_find_log(struct watch *w)
{
    const char *path = sqlite3_filename_wal(sqlite3_db_filename(w->db, "main"));

    w->log_known = file_identity_read(path, &w->log);
}

/* Watches the files by inotify, so that a quiet catalogue need not be polled every
 * CATALOGUE_POLL_MS. Polls if inotify fails (too many instances). */
static void watch_files(struct watch *w)
{
    const char *path = sqlite3_db_filename(w->db, "main"), *log = sqlite3_filename_wal(path);

    if (w->files_fd >= 0)
        close(w->files_fd);
    w->files_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->files_fd >= 0 &&
        (inotify_add_watch(w->files_fd, log, FILE_EVENTS) < 0 ||
         inotify_add_watch(w->files_fd, path, FILE_EVENTS) < 0 || !w->log_known)) {
        close(w->files_fd);
        w->files_fd = -1;
    }
    w->moved_ms = clock_now_ms();
}

/* Takes over an open connection. After a result other than SQLITE_OK the caller still owns it, and
 * the watch is unchanged. */
static int watch_adopt(struct watch *w, sqlite3 *db, const struct file_identity *file)
{
    sqlite3_stmt *data_version = connection_prepare(db, "PRAGMA data_version");
    int64_t version = 0;
    int rc =
        data_version == NULL ? sqlite3_errcode(db) : watch_read_version(data_version, &version);

    if (rc != SQLITE_OK) {
        sqlite3_finalize(data_version);
        return rc;
    }
    sqlite3_finalize(w->data_version);
    connection_close(w->db);
    w->db = db;
    w->data_version = data_version;
    w->version = version;
    w->file = *file;
    watch_find_log(w);
    log_index_find(&w->index, w->db);
    watch_files(w);
    return SQLITE_OK;
}

/* Opens the path, provided that it names `file` before and after. NULL: see `*status`, `why`. */
static sqlite3 *watch_open_path(struct watch *w, const struct file_identity *file,
                                enum catalogue_status *status, char *why, size_t why_size)
{
    struct file_identity now;
    sqlite3 *db;

    *status = connection_open(w->catalogue->path, CONNECTION_READ, &db, why, why_size);
    if (*status != CATALOGUE_OK)
        return NULL;
    if (file_identity_read(w->catalogue->path, &now) && file_identity_equal(&now, file))
        return db;
    connection_close(db);
    snprintf(why, why_size, "%s: was replaced just now", w->catalogue->path);
    *status = CATALOGUE_UNAVAILABLE;
    return NULL;
}

/* ---- another file ---------------------------------------------------------------------- */

/* Moves the old file's log away if another file has the old file's path now. Checkpoints it first,
 * since somebody may have moved the old file to another path. */
static void clear_stale_log(struct watch *w)
{
    const char *old_path = sqlite3_db_filename(w->db, "main");
    const char *log_path = sqlite3_filename_wal(old_path);
    struct file_identity log;
    char *real_path = realpath(w->catalogue->path, NULL);
    /* If a symbolic link was changed, the old file and its log are still at their own path. */
    bool in_place = real_path != NULL && strcmp(real_path, old_path) == 0;

    free(real_path);
    if (!in_place || !w->log_known || !file_identity_read(log_path, &log) ||
        !file_identity_equal(&log, &w->log))
        return;
    sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (unlink(log_path) == 0) {
        char *index_path = sqlite3_mprintf("%s-shm", old_path);
        if (index_path != NULL)
            unlink(index_path);
        sqlite3_free(index_path);
    }
}

/* An empty file is not a catalogue: it may be a copy that has just begun. */
static bool is_catalogue(sqlite3 *db)
{
    sqlite3_stmt *row = connection_prepare(db, "SELECT epoch FROM catalogue WHERE one = 1");
    bool found = row != NULL && sqlite3_step(row) == SQLITE_ROW;

    sqlite3_finalize(row);
    return found;
}

/* Whether there is a catalogue at the path, which the writer may open. */
static bool watch_find_catalogue(struct watch *w, const struct file_identity *file)
{
    enum catalogue_status status;
    char why[256];
    sqlite3 *db;

    if (!file_identity_equal(file, &w->file))
        clear_stale_log(w);
    /* Opened for reading, which does not change a file that may not be a catalogue. */
    db = watch_open_path(w, file, &status, why, sizeof why);
    if (db == NULL)
        return false;
    bool found = is_catalogue(db);
    connection_close(db);
    return found;
}

/* Opens the file that the path names now, after the writer. False: there is no catalogue, or the
 * writer has not opened it yet; the watch is unchanged. */
static bool watch_reopen(struct watch *w)
{
    enum catalogue_status status;
    struct file_identity file;
    char why[256];
    sqlite3 *db;

    if (!file_identity_read(w->catalogue->path, &file) || file_is_empty(w->catalogue->path))
        return false;
    if (!writer_has_followed(w->catalogue, &file)) {
        if (watch_find_catalogue(w, &file))
            writer_reopen(w->catalogue);
        return false;
    }
    db = watch_open_path(w, &file, &status, why, sizeof why);
    if (db == NULL)
        return false;
    if (is_catalogue(db) && watch_adopt(w, db, &file) == SQLITE_OK)
        return true;
    connection_close(db);
    return false;
}

/* This handle's commits write to wake_fd, those of other processes change PRAGMA data_version, and
 * a stat of the path shows whether it still names the same file. */

/* ---- looking --------------------------------------------------------------------------- */

static enum catalogue_wait_result lose_file(struct watch *w)
{
    w->lost = true;
    atomic_store(&w->catalogue->lost, true);
    view_pool_lose(w->catalogue->views);
    return CATALOGUE_WAIT_LOST;
}

static enum catalogue_wait_result poll_lost(struct watch *w)
{
    if (!watch_reopen(w))
        return CATALOGUE_WAIT_TIMEOUT;
    w->lost = false;
    view_pool_renew(w->catalogue->views, &w->file);
    if (atomic_load(&w->catalogue->lost))
        writer_reopen(w->catalogue); /* the file was gone and is back, or is read-only */
    return CATALOGUE_WAIT_REOPENED;
}

/* One look. TIMEOUT: nothing new. */
static enum catalogue_wait_result poll_once(struct watch *w)
{
    int64_t version = w->version;
    int rc;

    space_refresh(&w->catalogue->space, w->catalogue->path, clock_now_ms());
    if (w->lost)
        return poll_lost(w);
    if (!file_identity_holds(w->catalogue->path, &w->file))
        return lose_file(w);
    if (atomic_load(&w->catalogue->lost))
        writer_reopen(w->catalogue); /* again: it has not succeeded yet */
    if (!log_index_moved(&w->index))
        return CATALOGUE_WAIT_TIMEOUT;
    rc = watch_read_version(w->data_version, &version);
    if (rc != SQLITE_OK) {
        enum catalogue_status status = connection_status(rc);
        bool passing = status == CATALOGUE_BUSY || status == CATALOGUE_NO_MEMORY;
        log_index_forget(&w->index);
        return passing ? CATALOGUE_WAIT_TIMEOUT : lose_file(w);
    }
    if (version == w->version)
        return CATALOGUE_WAIT_TIMEOUT;
    w->version = version;
    if (!w->log_known || w->index.head == NULL) {
        watch_find_log(w);
        log_index_find(&w->index, w->db);
        watch_files(w);
    }
    return CATALOGUE_WAIT_CHANGED;
}

/* ---- waiting --------------------------------------------------------------------------- */

/* Reads the kernel's events. False: there were none. */
static bool read_file_events(const struct watch *w)
{
    char events[4096];
    bool some = false;

    while (w->files_fd >= 0 && read(w->files_fd, events, sizeof events) > 0)
        some = true;
    return some;
}

/* A commit is visible only after its fsync, which follows the write that the kernel reports, so the
 * index is polled for QUIET_MS after an event. If a disk needs longer, the poll every QUIET_LOOK_MS
 * finds the commit. It also finds what the kernel does not report: a renamed folder, a changed
 * symlink. */
static bool is_quiet(const struct watch *w, int64_t now_ms)
{
    return w->files_fd >= 0 && w->index.head != NULL && !w->lost &&
           now_ms - w->moved_ms >= QUIET_MS;
}

enum call { CALL_NONE, CALL_NUDGE, CALL_WAKE };

/* Waits for a wake or a nudge, `wait_ms` at most, and consumes it. */
static enum call wait_call(struct watch *w, int64_t wait_ms, bool quiet)
{
    struct pollfd fds[] = {{.fd = w->wake_fd, .events = POLLIN},
                           {.fd = quiet ? w->files_fd : -1, .events = POLLIN}};
    uint64_t calls = 0;

    if (wait_ms > 0 && poll(fds, 2, (int)wait_ms) == 0)
        return CALL_NONE;
    if (fds[1].revents != 0) {
        read_file_events(w);
        w->moved_ms = clock_now_ms();
    }
    if (read(w->wake_fd, &calls, sizeof calls) != (ssize_t)sizeof calls)
        return CALL_NONE;
    return calls >= WAKE ? CALL_WAKE : CALL_NUDGE;
}

/* Time until the next look, at most `most_ms`. `*quiet`: no event for QUIET_MS. */
static int64_t next_check_ms(struct watch *w, int64_t now_ms, int64_t most_ms, bool *quiet)
{
    *quiet = is_quiet(w, now_ms);
    if (*quiet && read_file_events(w)) {
        w->moved_ms = now_ms;
        *quiet = false;
    }
    int64_t look_ms = *quiet ? QUIET_LOOK_MS : CATALOGUE_POLL_MS;
    return look_ms < most_ms ? look_ms : most_ms;
}

static enum catalogue_wait_result wait_for_news(struct catalogue *c, uint32_t timeout_ms)
{
    struct watch *w = c->watch;
    int64_t deadline_ms = clock_now_ms() + timeout_ms;
    enum call call = wait_call(w, 0, false); /* the first look also covers that commit */

    if (atomic_exchange(&c->replaced, false))
        return CATALOGUE_WAIT_REOPENED;

    for (;;) {
        enum catalogue_wait_result result = poll_once(w);
        int64_t now = clock_now_ms();
        bool quiet;
        if (result != CATALOGUE_WAIT_TIMEOUT) {
            w->moved_ms = now;
            if (result == CATALOGUE_WAIT_CHANGED && call != CALL_WAKE)
                writer_poke(c); /* it does not know of this commit: it is of another process */
            return result;
        }
        if (call == CALL_WAKE)
            return atomic_exchange(&c->replaced, false) ? CATALOGUE_WAIT_REOPENED
                                                        : CATALOGUE_WAIT_CHANGED;
        if (now >= deadline_ms || call == CALL_NUDGE)
            return CATALOGUE_WAIT_TIMEOUT;
        int64_t wait_ms = next_check_ms(w, now, deadline_ms - now, &quiet);
        call = wait_call(w, wait_ms, quiet);
    }
}

enum catalogue_wait_result catalogue_wait(struct catalogue *c, uint32_t timeout_ms)
{
    enum catalogue_wait_result result = wait_for_news(c, timeout_ms);

    if (result != CATALOGUE_WAIT_TIMEOUT)
        atomic_fetch_add(&c->news, 1);
    return result;
}

uint64_t catalogue_news(const struct catalogue *c)
{
    return atomic_load(&c->news);
}

static void wake_watch(struct catalogue *c, uint64_t value)
{
    struct watch *w = c->watch;

    /* NULL: a commit while the handle is being made or closed. */
    if (w != NULL && write(w->wake_fd, &value, sizeof value) < 0)
        return; /* it is full of wakes */
}

void catalogue_wake(struct catalogue *c)
{
    atomic_fetch_add(&c->news, 1);
    wake_watch(c, WAKE);
}

void catalogue_nudge(struct catalogue *c)
{
    wake_watch(c, 1);
}

/* ---- making ---------------------------------------------------------------------------- */

enum catalogue_status watch_new(struct catalogue *c, struct watch **out, char *why, size_t why_size)
{
    struct watch *w = calloc(1, sizeof *w);
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    struct file_identity file;
    sqlite3 *db;

    *out = NULL;
    if (w != NULL)
        *w = (struct watch){
            .catalogue = c, .files_fd = -1, .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (w == NULL || w->wake_fd < 0) {
        snprintf(why, why_size, "%s: %s", c->path, strerror(errno));
        free(w);
        return CATALOGUE_NO_MEMORY;
    }
    if (!file_identity_read(c->path, &file)) {
        snprintf(why, why_size, "%s: %s", c->path, strerror(errno));
        status = CATALOGUE_UNAVAILABLE;
        goto fail;
    }
    db = watch_open_path(w, &file, &status, why, why_size);
    if (db == NULL)
        goto fail;
    int rc = watch_adopt(w, db, &file);
    if (rc != SQLITE_OK) {
        snprintf(why, why_size, "%s: %s", c->path, sqlite3_errstr(rc));
        status = connection_status(rc);
        if (status == CATALOGUE_OK)
            status = CATALOGUE_UNAVAILABLE;
        connection_close(db);
        goto fail;
    }
    space_refresh(&c->space, c->path, clock_now_ms());
    *out = w;
    return CATALOGUE_OK;

fail:
    watch_free(w);
    return status;
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    sqlite3_finalize(w->data_version);
    connection_close(w->db);
    if (w->files_fd >= 0)
        close(w->files_fd);
    close(w->wake_fd);
    free(w);
}
