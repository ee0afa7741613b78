/* A file that was replaced (a backup renamed into place) leaves the old one's write-ahead log at
 * the path of the new one's. The engine cannot tell the two apart and would replay the old pages
 * into the new file, so the log is put away before anything opens the new file. It is ours to put
 * away only if it is the very log that this watch held open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/connection.h"
#include "db/schema.h"
#include "db/watch.h"

/* ---- the connection -------------------------------------------------------------------- */

int watch_read_version(sqlite3_stmt *data_version, int64_t *out)
{
    int rc = sqlite3_step(data_version);

    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(data_version, 0);
    /* The reset ends the implicit transaction: a later step must see what is new then. */
    sqlite3_reset(data_version);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

void watch_find_log(struct watch *w)
{
    const char *path = sqlite3_filename_wal(sqlite3_db_filename(w->db, "main"));

    w->log_known = file_identity_read(path, &w->log);
}

int watch_adopt(struct watch *w, sqlite3 *db, const struct file_identity *file)
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
    return SQLITE_OK;
}

sqlite3 *watch_open_path(struct watch *w, const struct file_identity *file,
                         enum connection_mode mode, enum catalogue_status *status, char *why,
                         size_t why_size)
{
    struct file_identity now;
    sqlite3 *db;

    *status = connection_open(w->catalogue->path, mode, &db, why, why_size);
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

/* Puts the old file's log away, where another file has taken the old one's very place. What the
 * old file lacks of it is written back first: somebody may have moved that file elsewhere. */
static void clear_stale_log(struct watch *w)
{
    const char *old_path = sqlite3_db_filename(w->db, "main");
    const char *log_path = sqlite3_filename_wal(old_path);
    struct file_identity log;
    char *real_path = realpath(w->catalogue->path, NULL);
    /* A symbolic link turned elsewhere leaves the old file with its log where they were. */
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

/* The file's version; 0 where it is no catalogue: an empty file may be one that is being copied. */
static int64_t catalogue_version(sqlite3 *db)
{
    sqlite3_stmt *row = connection_prepare(db, "SELECT epoch FROM catalogue WHERE one = 1");
    int64_t version = 0;

    if (row != NULL && sqlite3_step(row) == SQLITE_ROW) {
        sqlite3_finalize(row);
        row = connection_prepare(db, "PRAGMA user_version");
        if (row != NULL && sqlite3_step(row) == SQLITE_ROW)
            version = sqlite3_column_int64(row, 0);
    }
    sqlite3_finalize(row);
    return version;
}

/* A backup may be of an earlier version. */
static bool migrate(struct watch *w, const struct file_identity *file)
{
    enum catalogue_status status;
    char why[256];
    sqlite3 *db = watch_open_path(w, file, CONNECTION_WRITE, &status, why, sizeof why);

    if (db == NULL)
        return false;
    status = schema_prepare(db, w->catalogue->path, why, sizeof why);
    connection_close(db);
    return status == CATALOGUE_OK;
}

bool watch_reopen(struct watch *w)
{
    enum catalogue_status status;
    struct file_identity file;
    int64_t version = 0;
    char why[256];
    sqlite3 *db;

    if (!file_identity_read(w->catalogue->path, &file))
        return false;
    if (!file_identity_equal(&file, &w->file))
        clear_stale_log(w);
    /* For reading, which leaves the file as it is until we know it to be ours. */
    db = watch_open_path(w, &file, CONNECTION_READ, &status, why, sizeof why);
    if (db == NULL)
        return false;
    version = catalogue_version(db);
    if (version < 1 || (version < SCHEMA_VERSION && !migrate(w, &file)) ||
        watch_adopt(w, db, &file) != SQLITE_OK) {
        connection_close(db);
        return false;
    }
    return true;
}
