/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Copies a snapshot into a new file, applies the newer records, and replaces the catalogue's file.
 */
#include "db/shared/join.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "db/catalogue.h"
#include "db/file/bind.h"
#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/shared/effects.h"
#include "db/shared/replay.h"
#include "db/shared/standing.h"
#include "db/tx/statements.h"
#include "server/base/clock.h"
#include "server/base/file.h"

/* Deadline of each part of a snapshot. */
#define PART_MS 30000
/* Deadline of a call that reads or writes the log; bytes applied between two checks of the head. */
#define CALL_MS    5000
#define STEP_BYTES (4u << 20)
/* Most rounds: if others write as fast as this node applies, the rest is applied once the file is
 * in place. */
#define ROUNDS_MOST 8
/* Between two tries while a reader holds up the last step. */
#define RETRY_MS 20

static char *fetched_name(const char *path)
{
    char *name = NULL;
    return asprintf(&name, "%s.joining", path) < 0 ? NULL : name;
}

/* ---- the node's identity */

static void copy_text(sqlite3_stmt *row, int column, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    snprintf(out, size, "%s", text != NULL ? text : "");
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
    int rc = row != NULL ? sqlite3_step(row) : sqlite3_extended_errcode(db);
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
    int rc = row != NULL ? sqlite3_step(row) : sqlite3_extended_errcode(db);
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
    if (status == CATALOGUE_OK && row != NULL) {
        sql_bind(row, node->epoch, node->name, start->seq,
                 sql_bytes(start->chain, SHARED_CHAIN_BYTES));
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

/* Empties the node's own tables in a copy. Returns SQLite's result code. */
static int empty_local_tables(sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    struct sqlite3_str *sql = sqlite3_str_new(db);
    int rc = sqlite3_prepare_v2(db,
                                "SELECT name FROM sqlite_schema WHERE type = 'table'"
                                " AND name GLOB 'local_*' AND name <> 'local_shared'",
                                -1, &row, NULL);
    while (sql_next(row, &rc))
        sqlite3_str_appendf(sql, "DELETE FROM \"%w\";", sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    char *text = sqlite3_str_finish(sql);
    if (rc == SQLITE_DONE && text != NULL)
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
    if (row == NULL)
        return sqlite3_extended_errcode(db);
    sql_bind(row, node->name, position->seq, sql_bytes(position->chain, SHARED_CHAIN_BYTES),
             node->epoch);
    int rc = sqlite3_step(row);
    sqlite3_finalize(row);
    if (rc != SQLITE_DONE)
        return rc;
    return sqlite3_changes(db) == 1 ? SQLITE_OK : SQLITE_MISMATCH;
}

/* The first difference of the fetched file from the schema of its version. */
struct difference {
    bool has;
    char words[160];
};

static void record_difference(void *context, const char *type, const char *name, const char *how,
                              bool foreign)
{
    struct difference *first = context;
    (void)foreign;
    if (!first->has)
        snprintf(first->words, sizeof first->words, "%.10s \"%.80s\" is %s", type, name, how);
    first->has = true;
}

/* Gives the fetched file this node's identity. No other process uses the file, so it needs no
 * journal. `at`: its position in the log; NULL: read from the file into `*found`. */
static enum shared_outcome make_own(const char *name, const struct join_node *node,
                                    const struct shared_position *at, struct shared_position *found,
                                    char *why, size_t why_size)
{
    sqlite3 *db = NULL;
    int version = 0;
    bool shared = false;
    struct difference first = {.has = false};
    int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF", NULL, NULL,
                          NULL);
    if (rc == SQLITE_OK && !schema_version(db, &version, &shared))
        rc = sqlite3_extended_errcode(db);
    bool known = shared && version <= SCHEMA_VERSION;
    /* before any write: this node would run a foreign trigger, and rely on a missing index */
    if (rc == SQLITE_OK && known)
        rc = schema_compare(db, record_difference, &first);
    bool fits = known && !first.has;
    if (rc == SQLITE_OK && fits && at == NULL && join_position(db, found) != CATALOGUE_OK)
        rc = SQLITE_MISMATCH;
    if (rc == SQLITE_OK && fits)
        rc = empty_local_tables(db);
    if (rc == SQLITE_OK && fits)
        rc = write_node(db, node, at != NULL ? at : found);
    if (rc == SQLITE_OK && fits)
        rc = sqlite3_exec(db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    if (rc == SQLITE_MISMATCH)
        snprintf(why, why_size, "the snapshot belongs to another catalogue than this file");
    else if (rc != SQLITE_OK)
        snprintf(why, why_size, "the snapshot: %s", sqlite3_errmsg(db));
    else if (!shared)
        snprintf(why, why_size, "the snapshot is not of a shared catalogue");
    else if (!known)
        snprintf(why, why_size, "the snapshot has a newer schema: upgrade this node");
    else if (first.has)
        snprintf(why, why_size, "the snapshot: the schema: %s", first.words);
    sqlite3_close(db);
    return rc == SQLITE_OK && fits ? SHARED_YES : SHARED_NO;
}

/* ---- from other nodes */

struct known_peers {
    const struct shared_peers *calls;
    const char *own;
    struct known_peer {
        char *name, *state;
    } * all;
    size_t count;
};

static bool record_peer(void *context, const struct shared_node *node)
{
    struct known_peers *k = context;
    const struct shared_member member = {.name = node->name, .state = node->state};
    if (strcmp(node->name, k->own) == 0 || node->silent_ms >= SHARED_SILENT_MS ||
        !k->calls->offers(k->calls->context, &member))
        return true;
    struct known_peer *grown = reallocarray(k->all, k->count + 1, sizeof *grown);
    if (grown == NULL)
        return false;
    k->all = grown;
    grown[k->count] = (struct known_peer){strdup(node->name), strdup(node->state)};
    k->count++;
    return grown[k->count - 1].name != NULL && grown[k->count - 1].state != NULL;
}

static void drop_peers(struct known_peers *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->all[i].name);
        free(k->all[i].state);
    }
    free(k->all);
}

static bool see_record(void *context, const struct shared_record *record)
{
    (void)record;
    *(bool *)context = true;
    return false;
}

/* Whether the log has the position, by its chain. If the log cannot be reached now, catching up
 * checks it again. */
static bool log_has(struct shared_log *log, const struct shared_position *at, char *why,
                    size_t why_size)
{
    bool seen = false;
    uint64_t head;
    const struct shared_take take = {.begin = see_record, .context = &seen};
    enum shared_outcome outcome =
        log->calls->tail(log, at, 1, &take, &head, clock_now_ms() + CALL_MS);
    bool lacks = !seen && (outcome == SHARED_DIVERGED || outcome == SHARED_TRIMMED ||
                           outcome == SHARED_FOREIGN);
    if (lacks)
        snprintf(why, why_size, "its position in the log is invalid: %s", log->calls->why(log));
    return !lacks;
}

/* Tries one node after another, from a random one on, until a file is good. */
static bool fetch_from_peers(struct shared_log *log, const char *name, int fd,
                             const struct join_node *node, const struct join_peers *peers,
                             char *why, size_t why_size)
{
    struct known_peers known = {.calls = peers->calls, .own = node->name};
    struct shared_overview overview;
    struct shared_position at;
    uint32_t first;
    bool fetched = false;
    if (log->calls->overview(log, &overview, clock_now_ms() + CALL_MS) == SHARED_YES)
        log->calls->list(log, record_peer, &known, clock_now_ms() + CALL_MS);
    sqlite3_randomness(sizeof first, &first);
    const struct join_node self = {node->name, overview.epoch};
    for (size_t i = 0; i < known.count && !fetched && !peers->stops(peers->context); i++) {
        const struct known_peer *from = &known.all[(first + i) % known.count];
        const struct shared_member member = {.name = from->name, .state = from->state};
        if (ftruncate(fd, 0) != 0 ||
            !peers->calls->fetch(peers->calls->context, &member, overview.epoch, fd, peers->stops,
                                 peers->context, why, why_size))
            continue;
        fetched = make_own(name, &self, NULL, &at, why, why_size) == SHARED_YES &&
                  log_has(log, &at, why, why_size);
        if (!fetched)
            peers->calls->reject(peers->calls->context, &member, why);
    }
    drop_peers(&known);
    return fetched;
}

enum shared_outcome join_fetch(struct shared_log *log, const char *path,
                               const struct join_node *node, struct join_peers *peers, char *why,
                               size_t why_size)
{
    struct shared_snapshot snapshot;
    char *name = fetched_name(path);
    int fd = name != NULL ? open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0) {
        snprintf(why, why_size, "%s.joining: %s", path, strerror(errno));
        free(name);
        return SHARED_NO;
    }
    enum shared_outcome outcome = SHARED_YES;
    char peer_why[200] = "";
    peers->used = peers->calls != NULL &&
                  fetch_from_peers(log, name, fd, node, peers, peer_why, sizeof peer_why);
    if (!peers->used)
        outcome = ftruncate(fd, 0) == 0 ? log->calls->snapshot_get(log, fd, &snapshot, PART_MS)
                                        : SHARED_STOPPED;
    close(fd);
    if (!peers->used && outcome == SHARED_YES)
        outcome = make_own(name, node, &snapshot.position, NULL, why, why_size);
    else if (outcome == SHARED_NO)
        snprintf(why, why_size, "%s%s%s",
                 *log->calls->why(log) != '\0' ? log->calls->why(log)
                                               : "the log has no snapshot yet",
                 *peer_why != '\0' ? "; another node's file: " : "", peer_why);
    else if (outcome != SHARED_YES)
        snprintf(why, why_size, "%s", log->calls->why(log));
    if (outcome != SHARED_YES)
        unlink(name);
    free(name);
    return outcome;
}

/* ---- catching up */

struct catching_up {
    const struct join_catching_up *how;
    struct shared_log *log;
    sqlite3 *db;
    struct replay *replay;
    struct shared_position at;
    uint64_t head;
};

/* The epoch of the catalogue, which is in tags and cursors, not that of the log. "": unreadable. */
static void read_epoch(sqlite3 *db, char out[JOIN_EPOCH_SIZE])
{
    sqlite3_stmt *row = connection_prepare(db, "SELECT epoch FROM catalogue");
    out[0] = '\0';
    if (row != NULL && sqlite3_step(row) == SQLITE_ROW)
        copy_text(row, 0, out, JOIN_EPOCH_SIZE);
    sqlite3_finalize(row);
}

static void read_epoch_at(const char *path, char out[JOIN_EPOCH_SIZE])
{
    char why[256];
    sqlite3 *db = NULL;
    out[0] = '\0';
    if (connection_open(path, CONNECTION_READ, &db, why, sizeof why) == CATALOGUE_OK)
        read_epoch(db, out);
    connection_close(db);
}

static void no_digest(void *context, uint64_t seq)
{
    (void)context;
    (void)seq;
}

static void record_moved(void *context, const struct shared_position *at, bool skipped)
{
    struct catching_up *c = context;
    (void)skipped;
    c->at = *at;
    c->how->moved(c->how->context, at->seq, c->head > at->seq ? c->head : at->seq);
}

static bool stops(void *context)
{
    const struct catching_up *c = context;
    return c->how->stops(c->how->context);
}

static bool nothing_waits(void *context)
{
    (void)context;
    return false;
}

static bool open_replay(struct catching_up *c)
{
    const struct replay_events events = {no_digest, record_moved, stops, nothing_waits, c};
    replay_free(c->replay);
    c->replay = replay_new(c->db, &events);
    return c->replay != NULL;
}

static bool open_fetched(struct catching_up *c, const char *name)
{
    char pragmas[128];
    bool found = false;
    int rc = sqlite3_open_v2(name, &c->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    /* No other process reads the file, and it is discarded after a crash. */
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; PRAGMA cache_size=-%d",
             CONNECTION_CACHE_KIB);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c->db, pragmas, NULL, NULL, NULL);
    return rc == SQLITE_OK && open_replay(c) &&
           replay_read_at(c->replay, &c->at, &found) == CATALOGUE_OK && found;
}

static void close_fetched(struct catching_up *c)
{
    replay_free(c->replay);
    sqlite3_close(c->db);
}

/* The outcome of a call that applied records. `*is_newer`: the next record has a schema that this
 * release does not know, so that it cannot go further. */
static enum shared_outcome end_applying(struct catching_up *c, enum shared_outcome outcome,
                                        bool *is_newer, char *why, size_t why_size)
{
    enum catalogue_status applied = replay_end(c->replay);
    *is_newer = applied == CATALOGUE_NEWER;
    if (*is_newer)
        return SHARED_YES;
    if (applied == CATALOGUE_CORRUPT)
        snprintf(why, why_size,
                 "a record of the log cannot be applied to the log's snapshot: %.160s",
                 replay_why(c->replay));
    else if (applied != CATALOGUE_OK)
        snprintf(why, why_size, "the log's snapshot cannot be brought up to date: %s",
                 catalogue_status_word(applied));
    else if (outcome != SHARED_YES && outcome != SHARED_STOPPED)
        snprintf(why, why_size, "%s", c->log->calls->why(c->log));
    if (applied != CATALOGUE_OK)
        return SHARED_NO;
    if (replay_migrated(c->replay) && !open_replay(c))
        return SHARED_NO_MEMORY;
    return outcome;
}

/* Applies records until the head is reached. */
static enum shared_outcome follow(struct catching_up *c, bool *is_newer, char *why, size_t why_size)
{
    enum shared_outcome outcome = SHARED_YES;
    uint64_t goal = UINT64_MAX; /* the head when the round began */
    *is_newer = false;
    for (int round = 0; round < ROUNDS_MOST && outcome == SHARED_YES && !*is_newer;) {
        struct shared_take take;
        const struct shared_position at = c->at;
        replay_start(c->replay, &take);
        outcome =
            c->log->calls->tail(c->log, &at, STEP_BYTES, &take, &c->head, clock_now_ms() + CALL_MS);
        outcome = end_applying(c, outcome, is_newer, why, why_size);
        if (outcome == SHARED_YES && c->at.seq >= c->head)
            break;
        if (goal == UINT64_MAX || c->at.seq >= goal) {
            goal = c->head;
            round++;
        }
    }
    return outcome;
}

static enum catalogue_status send(void *context, const void *bytes, size_t len)
{
    const struct catching_up *c = context;
    return c->log->calls->add(c->log, bytes, len, clock_now_ms() + CALL_MS) == SHARED_YES
               ? CATALOGUE_OK
               : CATALOGUE_SHARED_AWAY;
}

/* As `renew` of the writer for another file. */
static enum catalogue_status write_epoch(sqlite3 *db)
{
    static const enum statement steps[] = {ST_CATALOGUE_RENEW, ST_PAGES_DISTRUST};
    struct statements statements;
    enum catalogue_status status = CATALOGUE_OK;
    statements_init(&statements, db);
    for (size_t i = 0; status == CATALOGUE_OK && i < sizeof steps / sizeof *steps; i++) {
        sqlite3_stmt *step = statements_get(&statements, steps[i]);
        status = step != NULL ? statement_run(step) : CATALOGUE_NO_MEMORY;
    }
    statements_done(&statements);
    return status;
}

static void read_revision(sqlite3 *db, struct shared_record *record)
{
    sqlite3_stmt *row = connection_prepare(db, "SELECT revision, serial FROM catalogue");
    if (row != NULL && sqlite3_step(row) == SQLITE_ROW) {
        record->revision = (uint64_t)sqlite3_column_int64(row, 0);
        record->serial = sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
}

/* Called with the lock, while the file is at the head: appends the record, then applies it to the
 * file. */
static enum shared_outcome append_epoch(struct catching_up *c)
{
    struct shared_record record = {.schema = replay_schema(c->replay), .at = clock_unix_ms()};
    struct effects *effects = effects_new(c->db, NULL, send, c);
    enum catalogue_status status = effects != NULL ? replay_begin(c->replay) : CATALOGUE_NO_MEMORY;
    enum shared_outcome outcome = SHARED_NO;
    if (status == CATALOGUE_OK) {
        read_revision(c->db, &record);
        effects_begin(effects);
        status = write_epoch(c->db);
    }
    if (status == CATALOGUE_OK)
        status = effects_end(effects);
    if (status == CATALOGUE_OK) {
        shared_make_id(record.id);
        snprintf(record.node, sizeof record.node, "%s", c->how->node->name);
        outcome = c->log->calls->commit(c->log, &record, clock_now_ms() + CALL_MS);
    } else {
        c->log->calls->rollback(c->log);
    }
    if (outcome == SHARED_YES && (replay_write_at(c->replay, &record.position) != CATALOGUE_OK ||
                                  replay_commit(c->replay) != CATALOGUE_OK))
        outcome = SHARED_NO; /* the record is applied like those of other nodes */
    if (outcome == SHARED_YES)
        c->at = record.position;
    replay_roll_back(c->replay);
    effects_free(effects);
    return outcome;
}

/* If the record was not committed, or that is unknown, the file does not have it: BUSY, and the
 * next call checks whether it is still needed. */
static enum shared_outcome append(struct catching_up *c, char *why, size_t why_size)
{
    if (append_epoch(c) == SHARED_YES)
        return SHARED_YES;
    snprintf(why, why_size, "the catalogue's new epoch could not be written: %s",
             c->log->calls->why(c->log));
    return SHARED_BUSY;
}

/* Gives the catalogue another epoch, once for all nodes that were ahead of the log. `lost`: the
 * epoch of this node's old file. If the log has another epoch since the snapshot, another node did
 * it. */
static enum shared_outcome renew(struct catching_up *c, const char *lost, char *why,
                                 size_t why_size)
{
    char now[JOIN_EPOCH_SIZE];
    enum shared_outcome outcome = SHARED_BEHIND;
    bool is_newer = false;
    while (outcome == SHARED_BEHIND && !is_newer) {
        struct shared_take take;
        const struct shared_position at = c->at;
        replay_start(c->replay, &take);
        outcome = c->log->calls->begin(c->log, &at, STEP_BYTES, NO_SITE_GROUP, &take,
                                       clock_now_ms() + CALL_MS);
        bool entered = outcome == SHARED_YES;
        outcome = end_applying(c, outcome, &is_newer, why, why_size);
        read_epoch(c->db, now);
        if (outcome == SHARED_BEHIND)
            outcome =
                follow(c, &is_newer, why, why_size) == SHARED_YES ? SHARED_BEHIND : SHARED_AWAY;
        else if (!entered)
            break;
        else if (outcome != SHARED_YES || is_newer || now[0] == '\0' ||
                 (strcmp(lost, c->how->fetched) == 0 && strcmp(lost, now) != 0))
            c->log->calls->rollback(c->log);
        else
            outcome = append(c, why, why_size);
    }
    c->log->calls->pass(c->log, false, clock_now_ms() + CALL_MS);
    return outcome;
}

enum shared_outcome join_catch_up(struct shared_log *log, const char *path,
                                  const struct join_catching_up *how, char *why, size_t why_size)
{
    struct catching_up c = {.how = how, .log = log};
    char lost[JOIN_EPOCH_SIZE] = "";
    bool is_newer = false;
    char *name = fetched_name(path);
    enum shared_outcome outcome = name != NULL ? SHARED_YES : SHARED_NO_MEMORY;
    if (name != NULL && !open_fetched(&c, name)) {
        snprintf(why, why_size, "the log's snapshot: %s", sqlite3_errmsg(c.db));
        outcome = SHARED_NO;
    }
    if (outcome == SHARED_YES) {
        if (how->fetched[0] == '\0')
            read_epoch(c.db, how->fetched);
        outcome = follow(&c, &is_newer, why, why_size);
    }
    if (outcome == SHARED_YES && how->renews && !is_newer) {
        read_epoch_at(path, lost);
        outcome = renew(&c, lost, why, why_size);
    }
    close_fetched(&c);
    if (name != NULL && outcome != SHARED_YES && outcome != SHARED_AWAY && outcome != SHARED_BUSY &&
        outcome != SHARED_STOPPED)
        unlink(name);
    free(name);
    return outcome;
}

/* ---- replacing the local catalogue */

/* For so long a kept file is not replaced by a later one. */
#define KEPT_SECONDS 86400

struct keeping {
    bool (*stops)(void *context);
    void *context;
};

static bool goes_on(void *context, uint64_t done, uint64_t total)
{
    const struct keeping *k = context;
    (void)done;
    (void)total;
    return !k->stops(k->context);
}

static bool has_room(const char *path)
{
    char wal[PATH_MAX];
    struct stat file, log;
    struct statvfs disk;
    snprintf(wal, sizeof wal, "%s-wal", path);
    if (stat(path, &file) != 0 || statvfs(path, &disk) != 0)
        return false;
    uint64_t bytes = (uint64_t)file.st_size + (stat(wal, &log) == 0 ? (uint64_t)log.st_size : 0);
    return (uint64_t)disk.f_bavail * disk.f_frsize >=
           bytes + file_reserve_of((uint64_t)disk.f_blocks * disk.f_frsize);
}

/* Makes a copy a catalogue of its own, so that `check`, `export` and `restore` accept it anywhere.
 */
static enum catalogue_status set_apart(const char *copy, char *why, size_t why_size)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(copy, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA synchronous=FULL; BEGIN IMMEDIATE", NULL, NULL, NULL);
    enum catalogue_status status = connection_status(rc);
    if (status == CATALOGUE_OK)
        status = join_leave(db);
    if (status == CATALOGUE_OK)
        status = connection_status(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
    if (status != CATALOGUE_OK)
        snprintf(why, why_size, "%s: %s", copy, sqlite3_errmsg(db));
    sqlite3_close(db);
    return status;
}

/* The copy has its name only once it is complete. */
static enum catalogue_status copy_diverged(struct catalogue *c, const char *kept,
                                           struct keeping *keeping, char *why, size_t why_size)
{
    char *copy;
    if (asprintf(&copy, "%s.new", kept) < 0)
        return CATALOGUE_NO_MEMORY;
    unlink(copy); /* left by a process that was killed */
    enum catalogue_status status = catalogue_backup(c, copy, goes_on, keeping, why, why_size);
    if (status == CATALOGUE_OK)
        status = set_apart(copy, why, why_size);
    if (status == CATALOGUE_OK && rename(copy, kept) != 0) {
        snprintf(why, why_size, "%s: %s", kept, strerror(errno));
        status = CATALOGUE_UNAVAILABLE;
    }
    if (status != CATALOGUE_OK)
        unlink(copy);
    free(copy);
    return status;
}

static void keep(struct catalogue *c, struct keeping *keeping, char *said, size_t size)
{
    struct stat earlier;
    char why[256] = "", *kept;
    if (asprintf(&kept, "%s.diverged", c->path) < 0)
        return;
    if (lstat(kept, &earlier) == 0 && earlier.st_mtime > clock_unix_ms() / 1000 - KEPT_SECONDS)
        snprintf(said, size,
                 "the replaced file was not kept: %s is less than a day old and is not "
                 "overwritten, because it may have more changes",
                 kept);
    else if (!has_room(c->path))
        snprintf(said, size, "no-space: the disk has no room to keep the replaced file as %s",
                 kept);
    else if (copy_diverged(c, kept, keeping, why, sizeof why) == CATALOGUE_OK)
        snprintf(said, size,
                 "the replaced file was kept as %s; if the shared catalogue lost changes that it "
                 "has, restore it (sitemapd restore --replace) and share it again (sitemapd share "
                 "init); otherwise delete it",
                 kept);
    else
        snprintf(said, size, "the replaced file could not be kept: %s", why);
    free(kept);
}

void join_keep_diverged(struct catalogue *c, struct standing *s, bool (*ends)(void *context),
                        void *context)
{
    struct keeping keeping = {ends, context};
    struct standing_now now = standing_now(s);
    struct shared_state state;
    standing_state(s, &state);
    if (now.phase != SHARED_LEFT || state.kept[0] != '\0' || !(now.has_lost || now.has_differed))
        return;
    keep(c, &keeping, state.kept, sizeof state.kept);
    standing_set_kept(s, state.kept);
}

/* All pages in one transaction. A result code of SQLite. */
static int copy_pages(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *copy = sqlite3_backup_init(to, "main", from, "main");
    if (copy == NULL)
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
    if (name == NULL)
        return CATALOGUE_NO_MEMORY;
    sqlite3 *from = NULL;
    int rc = sqlite3_open_v2(name, &from, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK)
        rc = copy_pages(db, from);
    if (rc != SQLITE_OK)
        snprintf(why, why_size, "a snapshot could not replace the file: %s", sqlite3_errstr(rc));
    sqlite3_close(from);
    unlink(name);
    free(name);
    return connection_status(rc);
}
