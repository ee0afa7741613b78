/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Holds names, the lease of the release, and the node's row among the nodes. Locks belong to the
 * session and are released with it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/shared/pg/pg_log.h"
#include "server/base/clock.h"

void pg_log_forget_held(struct pg_log *l)
{
    for (size_t i = 0; i < l->held_count; i++)
        free(l->held[i].name);
    free(l->held);
    l->held = NULL;
    l->held_count = 0;
    l->leased = 0;
}

/* Connects if needed; forgets the locks of an earlier connection. */
static enum shared_outcome connect_presence(struct pg_log *l, int64_t deadline_ms)
{
    enum shared_outcome outcome = pg_session_connect(&l->session, deadline_ms);

    if (l->held_number != l->session.number || l->session.conn == NULL) {
        pg_log_forget_held(l);
        l->held_number = l->session.number;
    }
    return outcome;
}

/* Runs one statement. An error of the server counts as AWAY, not as NO. */
static enum shared_outcome ask(struct pg_log *l, enum pg_statement statement,
                               const struct sql_value *values, struct pg_results *out,
                               int64_t deadline_ms)
{
    pg_send_values(&l->session, statement, values);
    enum shared_outcome outcome = pg_log_run(l, out, deadline_ms);

    return outcome == SHARED_NO ? SHARED_AWAY : outcome;
}

static enum shared_outcome try_lock(struct pg_log *l, enum pg_statement how, int64_t key,
                                    int64_t deadline_ms)
{
    struct pg_results r;
    enum shared_outcome outcome = ask(l, how, SQL_VALUES(key), &r, deadline_ms);

    if (outcome == SHARED_YES && !pg_get_integer(r.at[0], 0, 0))
        outcome = SHARED_NO;
    pg_results_clear(&r);
    return outcome;
}

static struct pg_held *held_of(const struct pg_log *l, const char *name)
{
    if (l->session.conn == NULL || l->held_number != l->session.number)
        return NULL;
    for (size_t i = 0; i < l->held_count; i++)
        if (strcmp(l->held[i].name, name) == 0)
            return &l->held[i];
    return NULL;
}

bool pg_log_is_held(const struct shared_log *log, const char *name)
{
    const struct pg_log *l = (const struct pg_log *)log;

    return l->session.conn != NULL && PQstatus(l->session.conn) == CONNECTION_OK &&
           held_of(l, name) != NULL;
}

enum shared_outcome pg_log_hold(struct shared_log *log, const char *name, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    int64_t key = pg_lock_key(l, "name", name);
    enum shared_outcome outcome = connect_presence(l, deadline_ms);

    if (outcome != SHARED_YES || held_of(l, name) != NULL)
        return outcome;
    struct pg_held *held = realloc(l->held, (l->held_count + 1) * sizeof *held);
    char *copy = strdup(name);

    if (held != NULL)
        l->held = held;
    if (held == NULL || copy == NULL) {
        free(copy);
        return SHARED_NO_MEMORY;
    }
    if (l->held_count == 0)
        outcome = ask(l, PG_IDLE_TIMEOUT, SQL_VALUES(PG_HELD_MS), NULL, deadline_ms);
    if (outcome == SHARED_YES)
        outcome = try_lock(l, PG_TRY_LOCK, key, deadline_ms);
    if (outcome == SHARED_YES)
        l->held[l->held_count++] = (struct pg_held){copy, key};
    else
        free(copy);
    return outcome;
}

void pg_log_let_go(struct shared_log *log, const char *name, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_held *held = held_of(l, name);

    if (l->session.conn == NULL || l->held_number != l->session.number)
        return;
    if (held != NULL) {
        pg_send(&l->session, PG_UNLOCK, held->key);
        free(held->name);
        *held = l->held[--l->held_count];
    } else if (l->held_count > 0 || l->leased != 0) {
        return;
    }
    /* Also if another node has the name: a session that holds nothing may be idle. */
    if (l->held_count == 0 && l->leased == 0)
        pg_send(&l->session, PG_IDLE_TIMEOUT, "0");
    if (pg_log_run(l, NULL, deadline_ms) != SHARED_YES)
        pg_session_drop(&l->session); /* releases all locks */
}

enum shared_outcome pg_log_lease(struct shared_log *log, int schema, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    char name[16];
    enum shared_outcome outcome = connect_presence(l, deadline_ms);

    if (outcome != SHARED_YES || l->leased == schema)
        return outcome;
    assert(l->leased == 0);
    snprintf(name, sizeof name, "%d", schema);
    outcome = try_lock(l, PG_TRY_SHARED, pg_lock_key(l, "release", name), deadline_ms);
    if (outcome == SHARED_YES)
        l->leased = schema;
    return outcome;
}

enum shared_outcome pg_log_report(struct shared_log *log, const struct shared_node *node,
                                  int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    enum shared_outcome outcome = connect_presence(l, deadline_ms);

    if (outcome == SHARED_YES)
        outcome = pg_session_find_rival(&l->session, deadline_ms);
    if (outcome != SHARED_YES)
        return outcome;
    pg_send(&l->session, PG_NO_WAIT); /* valid for this batch, which is a transaction */
    const struct sql_value *values = SQL_VALUES(
        node->name, node->release, node->schema, node->applied, node->digest_seq,
        sql_bytes(node->digest, SHARED_CHAIN_BYTES), node->state != NULL ? node->state : "");
    return ask(l, PG_NODE_REPORT, values, NULL, deadline_ms);
}

enum shared_outcome pg_log_list(struct shared_log *log,
                                bool (*take)(void *context, const struct shared_node *node),
                                void *context, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;
    enum shared_outcome outcome = connect_presence(l, deadline_ms);

    if (outcome != SHARED_YES)
        return outcome;
    outcome = ask(l, PG_NODE_LIST, SQL_VALUES(), &r, deadline_ms);
    for (int row = 0; outcome == SHARED_YES && row < PQntuples(r.at[0]); row++) {
        struct shared_node node = {
            .name = PQgetvalue(r.at[0], row, 0),
            .release = PQgetvalue(r.at[0], row, 1),
            .schema = (int)pg_get_integer(r.at[0], row, 2),
            .applied = (uint64_t)pg_get_integer(r.at[0], row, 3),
            .digest_seq = (uint64_t)pg_get_integer(r.at[0], row, 4),
            .state = PQgetvalue(r.at[0], row, 6),
            .silent_ms = pg_get_integer(r.at[0], row, 7),
        };
        size_t size;
        const void *digest = pg_get_bytes(r.at[0], row, 5, &size);

        if (size == sizeof node.digest)
            memcpy(node.digest, digest, size);
        if (!take(context, &node))
            outcome = SHARED_STOPPED;
    }
    pg_results_clear(&r);
    return outcome;
}

enum shared_outcome pg_log_forget(struct shared_log *log, const char *name, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    enum shared_outcome outcome = connect_presence(l, deadline_ms);

    return outcome == SHARED_YES ? ask(l, PG_NODE_FORGET, SQL_VALUES(name), NULL, deadline_ms)
                                 : outcome;
}
