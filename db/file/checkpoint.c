/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Decides when a checkpoint runs and in which mode, by the size of the write-ahead log. */
#include "db/file/checkpoint.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/clock.h"

/* https://www.sqlite.org/fileformat2.html#walformat */
#define FRAME_HEADER_BYTES 24

static void record_waiting(struct checkpoint *cp)
{
    int waiting = cp->frames > cp->done ? cp->frames - cp->done : 0;
    atomic_store(&cp->wal_bytes, (uint64_t)waiting * (uint64_t)cp->frame_bytes);
}

static int read_page_bytes(sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    int bytes = 0;
    if (sqlite3_prepare_v2(db, "PRAGMA page_size", -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        bytes = sqlite3_column_int(row, 0);
    sqlite3_finalize(row);
    return bytes > 0 ? bytes : 4096;
}

static bool stat_wal(const struct checkpoint *cp, struct stat *out)
{
    const char *path = sqlite3_db_filename(cp->db, "main");
    char wal[4096 + 8];
    if (path == NULL || strlen(path) >= 4096)
        return false;
    snprintf(wal, sizeof wal, "%s-wal", path);
    return stat(wal, out) == 0;
}

static void run_checkpoint(struct checkpoint *cp, int mode, int wait_ms)
{
    int in_log = -1, done = -1;
    uint64_t began_ns = clock_now_ns();
    cp->until_ms = clock_now_ms() + wait_ms;
    int rc = sqlite3_wal_checkpoint_v2(cp->db, "main", mode, &in_log, &done);
    cp->until_ms = 0;
    atomic_fetch_add(&cp->count, 1);
    histogram_add(&cp->took_ns, &histogram_times, clock_now_ns() - began_ns);
    /* A reader or another process prevented it: the next one is due when the log has grown. */
    cp->next = (in_log > cp->frames ? in_log : cp->frames) + CHECKPOINT_WAL_BYTES / cp->frame_bytes;
    struct stat wal;
    if (done >= 0) {
        cp->frames = in_log; /* including those of other processes */
        cp->done = done;
        record_waiting(cp);
    }
    if (rc == SQLITE_OK && in_log == done) {
        cp->pending = false;
        if (stat_wal(cp, &wal)) {
            cp->wal_size = wal.st_size;
            cp->wal_time = wal.st_mtim;
        }
    }
}

/* Whether the log is so long that the checkpoint waits for readers. After one large transaction it
 * does not: the next transaction may find no reader. */
static bool is_too_long(const struct checkpoint *cp)
{
    int length = CHECKPOINT_WAL_LONG / cp->frame_bytes;
    int at = cp->wait_at > 0 ? cp->wait_at : length;
    return cp->next > 0 && cp->frames >= (cp->hurries ? at + length : at);
}

void checkpoint_after_commit(struct checkpoint *cp)
{
    int due = cp->next > 0 ? cp->next : CHECKPOINT_WAL_BYTES / cp->frame_bytes;
    int length = CHECKPOINT_WAL_LONG / cp->frame_bytes;
    if (cp->pending && is_too_long(cp)) {
        int wait_ms = cp->frames / length * CHECKPOINT_WAIT_MS;
        cp->wait_at = cp->frames + length;
        run_checkpoint(cp, SQLITE_CHECKPOINT_RESTART,
                       wait_ms < CHECKPOINT_WAIT_MAX_MS ? wait_ms : CHECKPOINT_WAIT_MAX_MS);
    } else if (cp->pending && cp->frames >= due) {
        run_checkpoint(cp, SQLITE_CHECKPOINT_PASSIVE, 0);
    }
}

void checkpoint_make_room(struct checkpoint *cp)
{
    struct stat wal;
    if (clock_now_ms() < cp->room_at_ms || !stat_wal(cp, &wal) || wal.st_size == 0)
        return;
    cp->room_at_ms = clock_now_ms() + CHECKPOINT_ROOM_MS;
    run_checkpoint(cp, SQLITE_CHECKPOINT_TRUNCATE, CHECKPOINT_WAIT_MAX_MS);
}

static int on_commit(void *context, sqlite3 *db, const char *name, int frames)
{
    struct checkpoint *cp = context;
    (void)db;
    (void)name;
    if (frames < cp->frames)
        cp->next = cp->wait_at = cp->done = 0; /* the log restarted */
    cp->frames = frames;
    cp->pending = true;
    record_waiting(cp);
    if (cp->follows)
        checkpoint_after_commit(cp);
    return SQLITE_OK;
}

void checkpoint_attach(struct checkpoint *cp, sqlite3 *db, bool server)
{
    cp->db = db;
    cp->frame_bytes = read_page_bytes(db) + FRAME_HEADER_BYTES;
    cp->frames = cp->done = 0;
    cp->next = cp->wait_at = 0;
    cp->pending = false;
    cp->wal_size = 0;
    memset(&cp->wal_time, 0, sizeof cp->wal_time);
    atomic_store(&cp->wal_bytes, 0);
    sqlite3_wal_hook(db, on_commit, cp);
    if (server) {
        char sql[64];
        snprintf(sql, sizeof sql, "PRAGMA journal_size_limit=%d", CHECKPOINT_WAL_KEPT);
        sqlite3_exec(db, sql, NULL, NULL, NULL);
    }
}

void checkpoint_when_idle(struct checkpoint *cp)
{
    struct stat wal;
    if (!stat_wal(cp, &wal) || wal.st_size < CHECKPOINT_WAL_BYTES)
        return;
    if (wal.st_size == cp->wal_size && wal.st_mtim.tv_sec == cp->wal_time.tv_sec &&
        wal.st_mtim.tv_nsec == cp->wal_time.tv_nsec)
        return;
    run_checkpoint(cp, SQLITE_CHECKPOINT_TRUNCATE, 0);
}

void checkpoint_at_close(struct checkpoint *cp)
{
    if (cp->pending)
        run_checkpoint(cp, SQLITE_CHECKPOINT_TRUNCATE, CHECKPOINT_WAIT_MAX_MS);
}
