#include "db/shared/join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/file/connection.h"
#include "db/file/schema.h"

/* Of each part of a snapshot. */
#define PART_MS 30000
/* Between two tries while a reader holds up the last step. */
#define RETRY_MS 20

static char *fetched_name(const char *path)
{
    char *name = NULL;
    return asprintf(&name, "%s.joining", path) < 0 ? NULL : name;
}

/* ---- who this is */

static void copy_text(sqlite3_stmt *row, int column, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    snprintf(out, size, "%s", text ? text : "");
}

static void name_after_host(char *node)
{
    char host[100] = "node";
    uint32_t chance;
    gethostname(host, sizeof host - 1);
    sqlite3_randomness(sizeof chance, &chance);
    snprintf(node, SHARED_NODE_SIZE, "%s-%08x", host, (unsigned)chance);
}

enum catalogue_status join_know(sqlite3 *db, char *node, char *epoch)
{
    char named[SHARED_NODE_SIZE] = "";
    sqlite3_stmt *row = connection_prepare(db, "SELECT epoch, node FROM local_shared");
    int rc = row ? sqlite3_step(row) : sqlite3_extended_errcode(db);
    epoch[0] = '\0';
    if (rc == SQLITE_ROW) {
        copy_text(row, 0, epoch, SHARED_EPOCH_SIZE);
        copy_text(row, 1, named, sizeof named);
    }
    sqlite3_finalize(row);
    if (node[0] == '\0' && named[0] != '\0')
        memcpy(node, named, sizeof named);
    if (node[0] == '\0')
        name_after_host(node);
    return connection_status(rc);
}

enum catalogue_status join_position(sqlite3 *db, struct shared_position *out)
{
    sqlite3_stmt *row = connection_prepare(db, "SELECT seq, chain FROM local_shared");
    int rc = row ? sqlite3_step(row) : sqlite3_extended_errcode(db);
    bool found = rc == SQLITE_ROW && sqlite3_column_bytes(row, 1) == SHARED_CHAIN_BYTES;
    if (found) {
        out->seq = (uint64_t)sqlite3_column_int64(row, 0);
        memcpy(out->chain, sqlite3_column_blob(row, 1), SHARED_CHAIN_BYTES);
    }
    sqlite3_finalize(row);
    enum catalogue_status status = connection_status(rc);
    return status == CATALOGUE_OK && !found ? CATALOGUE_NOT_FOUND : status;
}

/* ---- founding and leaving */

static enum catalogue_status set_version(sqlite3 *db, bool shared)
{
    int version;
    bool was;
    if (!schema_version(db, &version, &was))
        return connection_status(sqlite3_extended_errcode(db));
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA user_version=%d", version + (shared ? SCHEMA_SHARED : 0));
    return connection_status(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

enum catalogue_status join_found(sqlite3 *db, const struct join_node *node,
                                 const struct shared_position *start)
{
    enum catalogue_status status =
        connection_status(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    sqlite3_stmt *row = connection_prepare(db, "REPLACE INTO local_shared(one, epoch, node, seq,"
                                               " chain) VALUES (1, ?1, ?2, ?3, ?4)");
    if (status == CATALOGUE_OK && row) {
        sqlite3_bind_text(row, 1, node->epoch, -1, SQLITE_STATIC);
        sqlite3_bind_text(row, 2, node->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(row, 3, (sqlite3_int64)start->seq);
        sqlite3_bind_blob(row, 4, start->chain, SHARED_CHAIN_BYTES, SQLITE_STATIC);
        sqlite3_step(row);
        status = connection_status(sqlite3_reset(row));
    } else if (status == CATALOGUE_OK) {
        status = CATALOGUE_NO_MEMORY;
    }
    sqlite3_finalize(row);
    if (status == CATALOGUE_OK)
        status = set_version(db, true);
    if (status == CATALOGUE_OK)
        status = connection_status(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

enum catalogue_status join_leave(sqlite3 *db)
{
    enum catalogue_status status =
        connection_status(sqlite3_exec(db, "DELETE FROM local_shared", NULL, NULL, NULL));
    return status == CATALOGUE_OK ? set_version(db, false) : status;
}

/* ---- fetching */

/* What is a node's own is not in its copy elsewhere. A result code of SQLite. */
static int empty_local_tables(sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    struct sqlite3_str *sql = sqlite3_str_new(db);
    int rc = sqlite3_prepare_v2(db,
                                "SELECT name FROM sqlite_schema WHERE type = 'table'"
                                " AND name GLOB 'local_*' AND name <> 'local_shared'",
                                -1, &row, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        sqlite3_str_appendf(sql, "DELETE FROM \"%w\";", sqlite3_column_text(row, 0));
        rc = SQLITE_OK;
    }
    sqlite3_finalize(row);
    char *text = sqlite3_str_finish(sql);
    if (rc == SQLITE_DONE && text)
        rc = sqlite3_exec(db, text, NULL, NULL, NULL);
    sqlite3_free(text);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A result code of SQLite. */
static int write_node(sqlite3 *db, const struct join_node *node,
                      const struct shared_position *position)
{
    sqlite3_stmt *row = connection_prepare(db, "UPDATE local_shared SET node = ?1, seq = ?2,"
                                               " chain = ?3 WHERE one = 1 AND ?4 IN ('', epoch)");
    if (!row)
        return sqlite3_extended_errcode(db);
    sqlite3_bind_text(row, 1, node->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 2, (sqlite3_int64)position->seq);
    sqlite3_bind_blob(row, 3, position->chain, SHARED_CHAIN_BYTES, SQLITE_STATIC);
    sqlite3_bind_text(row, 4, node->epoch, -1, SQLITE_STATIC);
    int rc = sqlite3_step(row);
    sqlite3_finalize(row);
    if (rc != SQLITE_DONE)
        return rc;
    return sqlite3_changes(db) == 1 ? SQLITE_OK : SQLITE_MISMATCH;
}

/* Makes what was fetched this node's. The file is nobody else's: no log is kept beside it. */
static enum shared_outcome make_own(const char *name, const struct join_node *node,
                                    const struct shared_snapshot *snapshot, char *why,
                                    size_t why_size)
{
    sqlite3 *db = NULL;
    int version = 0;
    bool shared = false;
    int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF", NULL, NULL,
                          NULL);
    if (rc == SQLITE_OK && !schema_version(db, &version, &shared))
        rc = sqlite3_extended_errcode(db);
    bool fits = shared && version <= SCHEMA_VERSION;
    if (rc == SQLITE_OK && fits)
        rc = empty_local_tables(db);
    if (rc == SQLITE_OK && fits)
        rc = write_node(db, node, &snapshot->position);
    if (rc == SQLITE_OK && fits)
        rc = sqlite3_exec(db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    if (rc == SQLITE_MISMATCH)
        snprintf(why, why_size, "the log's snapshot is another catalogue's than this file's");
    else if (rc != SQLITE_OK)
        snprintf(why, why_size, "the log's snapshot: %s", sqlite3_errmsg(db));
    else if (!fits)
        snprintf(why, why_size, "the log's snapshot has a newer form: upgrade this node");
    sqlite3_close(db);
    return rc == SQLITE_OK && fits ? SHARED_YES : SHARED_NO;
}

enum shared_outcome join_fetch(struct shared_log *log, const char *path,
                               const struct join_node *node, char *why, size_t why_size)
{
    struct shared_snapshot snapshot;
    char *name = fetched_name(path);
    int fd = name ? open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0) {
        snprintf(why, why_size, "%s.joining: %s", path, strerror(errno));
        free(name);
        return SHARED_NO;
    }
    enum shared_outcome outcome = log->calls->snapshot_get(log, fd, &snapshot, PART_MS);
    close(fd);
    if (outcome == SHARED_YES)
        outcome = make_own(name, node, &snapshot, why, why_size);
    else if (outcome == SHARED_NO)
        snprintf(why, why_size, "the log has no snapshot yet");
    else
        snprintf(why, why_size, "%s", log->calls->why(log));
    if (outcome != SHARED_YES)
        unlink(name);
    free(name);
    return outcome;
}

/* ---- taking its place */

/* All pages in one transaction. A result code of SQLite. */
static int copy_pages(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
    if (!copy)
        return sqlite3_extended_errcode(to);
    int rc;
    for (int tries = 0; (rc = sqlite3_backup_step(copy, -1)) == SQLITE_BUSY && tries < 250; tries++)
        sqlite3_sleep(RETRY_MS);
    int finished = sqlite3_backup_finish(copy);
    return rc == SQLITE_DONE ? finished : rc;
}

enum catalogue_status join_replace(const char *path, sqlite3 *db, char *why, size_t why_size)
{
    char *name = fetched_name(path);
    if (!name)
        return CATALOGUE_NO_MEMORY;
    sqlite3 *from = NULL;
    int rc = sqlite3_open_v2(name, &from, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK)
        rc = copy_pages(db, from);
    if (rc != SQLITE_OK)
        snprintf(why, why_size, "a snapshot could not take the file's place: %s",
                 sqlite3_errstr(rc));
    sqlite3_close(from);
    unlink(name);
    free(name);
    return connection_status(rc);
}
