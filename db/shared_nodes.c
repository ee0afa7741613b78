/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands of `sitemapd share`: init, grant, upgrade and status. */
#include "db/shared.h"

#include <stdio.h>
#include <string.h>

#include "db/catalogue.h"
#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/shared/followed.h"
#include "db/shared/join.h"
#include "db/shared/log.h"
#include "db/shared/member.h"
#include "db/shared/presence.h"
#include "server/base/clock.h"

/* ---- what a node reports within its process */

bool catalogue_shared_state(struct catalogue *c, struct shared_state *out)
{
    memset(out, 0, sizeof *out);
    if (c->member != NULL)
        standing_state(member_standing(c->member), out);
    if (c->options.shared.follows)
        out->followed =
            c->options.shared.followed != NULL ? c->options.shared.followed->origin : "";
    if (c->presence != NULL)
        presence_fill(c->presence, out);
    if (c->member != NULL && member_followed(c->member) != NULL) {
        struct relay_head head;

        followed_head(member_followed(c->member), &head);
        out->refused_ms = head.refused_ms;
        snprintf(out->refused_said, sizeof out->refused_said, "its log shows the reason");
    }
    return c->member != NULL;
}

void catalogue_shared_members(struct catalogue *c, shared_member_each *each, void *context)
{
    if (c->presence != NULL)
        presence_members(c->presence, each, context);
}

bool catalogue_shared_exchange(struct catalogue *c, int64_t timeout_ms)
{
    return c->presence == NULL || presence_exchange(c->presence, timeout_ms);
}

void catalogue_shared_say(struct catalogue *c, const char *state)
{
    if (c->presence != NULL)
        presence_say(c->presence, state);
}

bool catalogue_leads(struct catalogue *c, const char *name)
{
    struct presence *presence = c->member != NULL ? c->presence : NULL;

    return c->member == NULL || (presence != NULL && presence_leads(presence, name));
}

void catalogue_lead_end(struct catalogue *c, const char *name)
{
    if (c->presence != NULL)
        presence_lead_end(c->presence, name);
}

void catalogue_lead_leave(struct catalogue *c, const char *name, bool leaves)
{
    if (c->presence != NULL)
        presence_lead_leave(c->presence, name, leaves);
}

/* ---- commands */

#define CALL_MS 10000

static enum catalogue_status status_of(enum shared_outcome outcome)
{
    switch (outcome) {
    case SHARED_YES:
        return CATALOGUE_OK;
    case SHARED_NO:
        return CATALOGUE_CONFLICT;
    case SHARED_FOREIGN:
        return CATALOGUE_NOT_FOUND;
    case SHARED_NO_MEMORY:
        return CATALOGUE_NO_MEMORY;
    case SHARED_BUSY:
        return CATALOGUE_BUSY;
    default:
        return CATALOGUE_SHARED_AWAY;
    }
}

static enum catalogue_status fail(const struct shared_log *log, enum shared_outcome outcome,
                                  char *why, size_t why_size)
{
    const char *said = log->calls->why(log);

    snprintf(why, why_size, "PostgreSQL: %s", *said != '\0' ? said : shared_outcome_word(outcome));
    return status_of(outcome);
}

/* ---- init */

struct founding {
    const char *path;
    struct shared_log *log;
    sqlite3 *db;
    char epoch[SHARED_EPOCH_SIZE], node[SHARED_NODE_SIZE];
    char *why;
    size_t why_size;
};

static enum catalogue_status fail_file(struct founding *f)
{
    enum catalogue_status status = connection_status(sqlite3_extended_errcode(f->db));

    snprintf(f->why, f->why_size, "%s: %s", f->path, sqlite3_errmsg(f->db));
    return status != CATALOGUE_OK ? status : CATALOGUE_UNAVAILABLE;
}

/* Migrates the file to this release's schema as a server would, with the server's lock. */
static enum catalogue_status prepare(struct founding *f)
{
    const struct catalogue_options options = {
        .path = f->path, .server = true, .write_timeout_ms = CALL_MS, .max_queued = 1};
    struct catalogue *c;
    enum catalogue_status status = catalogue_open(&options, &c, f->why, f->why_size);

    if (status == CATALOGUE_OK)
        catalogue_close(c);
    return status;
}

static enum catalogue_status open_file(struct founding *f)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(f->db, "SELECT epoch FROM catalogue", -1, &row, NULL);
    if (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        snprintf(f->epoch, sizeof f->epoch, "%s", (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    if (f->epoch[0] == '\0')
        return fail_file(f);
    char other[SHARED_EPOCH_SIZE];
    enum catalogue_status status = join_know(f->db, f->node, other);
    if (status == CATALOGUE_OK && other[0] != '\0') {
        snprintf(f->why, f->why_size,
                 "%s: is already a node's file; `sitemapd share status` shows the nodes", f->path);
        return CATALOGUE_CONFLICT;
    }
    return status == CATALOGUE_OK ? CATALOGUE_OK : fail_file(f);
}

static enum catalogue_status mark(struct founding *f, const struct shared_position *start)
{
    const struct join_node node = {.name = f->node, .epoch = f->epoch};

    if (sqlite3_exec(f->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL) != SQLITE_OK)
        return fail_file(f);
    enum catalogue_status status = join_found(f->db, &node, start);
    if (status != CATALOGUE_OK)
        snprintf(f->why, f->why_size, "%s: %s", f->path, catalogue_status_word(status));
    return status;
}

static enum catalogue_status put_snapshot(struct founding *f)
{
    enum shared_outcome outcome =
        f->log->calls->hold(f->log, SHARED_SNAPSHOT_NAME, clock_now_ms() + CALL_MS);

    if (outcome == SHARED_YES)
        outcome = presence_put_snapshot(f->log, f->path, 1);
    if (outcome == SHARED_YES)
        return CATALOGUE_OK;
    snprintf(f->why, f->why_size,
             "the catalogue is shared, but its first snapshot could not be stored (%s): start a "
             "server on %s, which stores it",
             f->log->calls->why(f->log), f->path);
    return status_of(outcome);
}

enum catalogue_status catalogue_share_init(const char *path, const struct catalogue_shared *shared,
                                           const char *grant_to, char *why, size_t why_size)
{
    struct founding f = {.path = path, .why = why, .why_size = why_size};
    struct shared_position start;
    struct shared_log_options options = {.database = shared->database, .schema = shared->schema};
    enum catalogue_status status = prepare(&f);

    if (status == CATALOGUE_OK)
        status = open_file(&f);
    if (status == CATALOGUE_OK) {
        f.log = shared_log_open_postgresql(&options, why, why_size);
        status = f.log != NULL ? CATALOGUE_OK : CATALOGUE_UNAVAILABLE;
    }
    if (status == CATALOGUE_OK) {
        enum shared_outcome outcome =
            f.log->calls->found(f.log, f.epoch, grant_to, &start, clock_now_ms() + CALL_MS);
        status = outcome == SHARED_YES ? CATALOGUE_OK : fail(f.log, outcome, why, why_size);
    }
    if (status == CATALOGUE_OK)
        status = mark(&f, &start);
    sqlite3_close(f.db); /* checkpoints the log, so that the file is complete */
    if (status == CATALOGUE_OK)
        status = put_snapshot(&f);
    if (f.log != NULL)
        f.log->calls->free(f.log);
    return status;
}

enum catalogue_status catalogue_share_grant(const struct catalogue_shared *shared, const char *role,
                                            char *why, size_t why_size)
{
    const struct shared_log_options options = {.database = shared->database,
                                               .schema = shared->schema};
    struct shared_log *log = shared_log_open_postgresql(&options, why, why_size);

    if (log == NULL)
        return CATALOGUE_UNAVAILABLE;
    enum shared_outcome outcome = log->calls->grant(log, role, clock_now_ms() + CALL_MS);
    enum catalogue_status status =
        outcome == SHARED_YES ? CATALOGUE_OK : fail(log, outcome, why, why_size);
    log->calls->free(log);
    return status;
}

/* ---- upgrade */

#define UPGRADE_MS 30000
#define LOOK_MS    50

enum catalogue_status catalogue_share_upgrade(const char *path,
                                              const struct catalogue_shared *shared, char *why,
                                              size_t why_size)
{
    const struct catalogue_options options = {
        .path = path,
        .must_exist = true,
        .write_timeout_ms = UPGRADE_MS,
        .max_queued = 1,
        .shared = {.database = shared->database, .schema = shared->schema}};
    struct catalogue *c;
    struct shared_state state = {.upgrade_pending = true};
    enum catalogue_status status = catalogue_open(&options, &c, why, why_size);

    if (status != CATALOGUE_OK)
        return status;
    int64_t until = clock_now_ms() + UPGRADE_MS;
    while (state.upgrade_pending && clock_now_ms() < until) {
        sqlite3_sleep(LOOK_MS);
        catalogue_shared_state(c, &state);
    }
    if (state.upgrade_pending)
        snprintf(why, why_size, "%s",
                 state.said[0] != '\0'      ? state.said
                 : state.trouble[0] != '\0' ? state.trouble
                                            : "a node still runs an older release; `sitemapd share "
                                              "status` names it");
    catalogue_close(c);
    return state.upgrade_pending ? CATALOGUE_BUSY : CATALOGUE_OK;
}

/* ---- status */

struct each_call {
    shared_member_each *each;
    void *context;
};

static bool report_node(void *context, const struct shared_node *node)
{
    struct each_call *t = context;
    const struct shared_member member = {node->name,    node->release,   node->schema,
                                         node->applied, node->silent_ms, node->state};

    t->each(t->context, &member);
    return true;
}

enum catalogue_status catalogue_share_status(const struct catalogue_shared *shared,
                                             struct share_status *out, shared_member_each *each,
                                             void *context, char *why, size_t why_size)
{
    struct each_call t = {each, context};
    struct shared_overview o;
    const struct shared_log_options options = {.database = shared->database,
                                               .schema = shared->schema};
    struct shared_log *log = shared_log_open_postgresql(&options, why, why_size);

    if (log == NULL)
        return CATALOGUE_UNAVAILABLE;
    enum shared_outcome outcome = log->calls->overview(log, &o, clock_now_ms() + CALL_MS);
    enum catalogue_status status = CATALOGUE_OK;
    if (outcome == SHARED_YES) {
        *out = (struct share_status){
            .synchronous = o.synchronous,
            .durable = o.durable,
            .waiting = o.waiting,
            .first = o.first_seq,
            .head = o.head.seq,
            .log_bytes = o.bytes,
            .has_snapshot = o.has_snapshot,
            .snapshot_at = o.snapshot.position.seq,
            .snapshot_bytes = o.snapshot.bytes,
            .snapshot_age_ms = o.snapshot_age_ms,
        };
        memcpy(out->epoch, o.epoch, sizeof out->epoch);
        snprintf(out->server, sizeof out->server, "%s", o.server);
        snprintf(out->lacks, sizeof out->lacks, "%s", o.lacks);
        if (each != NULL)
            outcome = log->calls->list(log, report_node, &t, clock_now_ms() + CALL_MS);
    }
    if (outcome != SHARED_YES)
        status = fail(log, outcome, why, why_size);
    log->calls->free(log);
    return status;
}
