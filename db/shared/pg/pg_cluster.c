/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The cluster as a whole: its creation, and its state for people. */
#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/shared/pg/pg_log.h"
#include "server/base/clock.h"
#include "server/base/str.h"

/* The tables of a shared catalogue's log in PostgreSQL: in the schema that [shared]
 * names ("@", as in pg_statements.def). Layout 1; never changed once released.
 *
 * log: a row for each record, without gaps. `total` is the sum of all packed bodies up to this one.
 * A body of more than a MiB lies in `part`, without gaps from 0, and `body` is empty. Bodies are
 * packed already, so nobody packs them again (STORAGE EXTERNAL). */
static const char *const pg_schema[] = {
    "CREATE TABLE @.cluster("
    " one boolean PRIMARY KEY DEFAULT true CHECK (one),"
    " layout bigint NOT NULL,"
    " epoch text NOT NULL,"
    " salt bytea NOT NULL," /* of the key of notifications (pg_news.h) */
    " made_at timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE @.log("
    " seq bigint PRIMARY KEY,"
    " id uuid NOT NULL UNIQUE,"
    " node text NOT NULL,"
    " schema bigint NOT NULL,"   /* of the catalogue's file, before the record */
    " revision bigint NOT NULL," /* that the record follows */
    " serial bigint NOT NULL,"
    " at bigint NOT NULL," /* Unix milliseconds, by the node's clock */
    " stored_at timestamptz NOT NULL DEFAULT now(),"
    " chain bytea NOT NULL,"
    " total bigint NOT NULL,"
    " parts bigint NOT NULL,"
    " body bytea NOT NULL)",
    "ALTER TABLE @.log ALTER body SET STORAGE EXTERNAL",
    "CREATE TABLE @.part("
    " seq bigint NOT NULL, no bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (seq, no))",
    "ALTER TABLE @.part ALTER body SET STORAGE EXTERNAL",
    "CREATE TABLE @.node("
    " name text PRIMARY KEY,"
    " seen timestamptz NOT NULL,"
    " release text NOT NULL,"
    " schema bigint NOT NULL,"
    " applied bigint NOT NULL,"
    " digest_seq bigint NOT NULL,"
    " digest bytea NOT NULL,"
    " state text NOT NULL)",
    /* A snapshot counts once its row is there; its parts come before. */
    "CREATE TABLE @.snapshot("
    " seq bigint PRIMARY KEY,"
    " chain bytea NOT NULL,"
    " schema bigint NOT NULL,"
    " bytes bigint NOT NULL," /* of the file */
    " parts bigint NOT NULL,"
    " sha bytea NOT NULL,"    /* SHA-256 of all parts */
    " total bigint NOT NULL," /* of the record */
    " taken_at timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE @.snapshot_part("
    " seq bigint NOT NULL, no bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (seq, no))",
    "ALTER TABLE @.snapshot_part ALTER body SET STORAGE EXTERNAL",
};

/* Grants for a node's role, whose name is appended. */
static const char *const pg_grants[] = {
    "GRANT USAGE ON SCHEMA @ TO ",
    "GRANT SELECT ON @.cluster TO ",
    "GRANT SELECT, INSERT, DELETE ON @.log, @.part TO ",
    "GRANT SELECT, INSERT, DELETE ON @.snapshot, @.snapshot_part TO ",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON @.node TO ",
};

static void take_overview(const PGresult *all, const PGresult *last, struct shared_overview *out)
{
    size_t size;

    *out = (struct shared_overview){
        .synchronous = pg_get_integer(all, 0, 2) != 0,
        .durable = pg_get_integer(all, 0, 3) != 0,
        .waiting = (uint64_t)pg_get_integer(all, 0, 9),
        .waiting_ms = pg_get_integer(all, 0, 10),
        .first_seq = (uint64_t)pg_get_integer(all, 0, 4),
        .head.seq = (uint64_t)pg_get_integer(all, 0, 5),
        .bytes = (uint64_t)pg_get_integer(all, 0, 7),
        .has_snapshot = PQntuples(last) == 1,
    };
    uint64_t total = (uint64_t)pg_get_integer(all, 0, 8);
    const void *chain = pg_get_bytes(all, 0, 6, &size);

    if (size == sizeof out->head.chain)
        memcpy(out->head.chain, chain, size);
    pg_get_text(all, 0, 0, out->epoch, sizeof out->epoch);
    snprintf(out->server, sizeof out->server, "PostgreSQL %s", PQgetvalue(all, 0, 1));
    out->bytes_since_snapshot = total;
    if (!out->has_snapshot)
        return;
    out->snapshot.position.seq = (uint64_t)pg_get_integer(last, 0, 0);
    chain = pg_get_bytes(last, 0, 1, &size);
    if (size == sizeof out->snapshot.position.chain)
        memcpy(out->snapshot.position.chain, chain, size);
    out->snapshot.schema = (int)pg_get_integer(last, 0, 2);
    out->snapshot.bytes = (uint64_t)pg_get_integer(last, 0, 3);
    out->bytes_since_snapshot = total - (uint64_t)pg_get_integer(last, 0, 6);
    out->snapshot_age_ms = pg_get_integer(last, 0, 7);
}

enum shared_outcome pg_log_overview(struct shared_log *log, struct shared_overview *out,
                                    int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;
    enum shared_outcome outcome = pg_session_connect(&l->session, deadline_ms);

    if (outcome != SHARED_YES)
        return outcome;
    pg_send(&l->session, PG_OVERVIEW);
    pg_send(&l->session, PG_SNAPSHOT_LAST);
    pg_send(&l->session, PG_LACKS);
    outcome = pg_log_run(l, &r, deadline_ms);
    if (outcome == SHARED_NO)
        outcome = SHARED_AWAY;
    else if (outcome == SHARED_YES && PQntuples(r.at[0]) != 1)
        outcome = pg_log_said(l, SHARED_FOREIGN, "the log has no record");
    if (outcome == SHARED_YES) {
        take_overview(r.at[0], r.at[1], out);
        pg_get_text(r.at[2], 0, 0, out->lacks, sizeof out->lacks);
    }
    pg_results_clear(&r);
    return outcome;
}

/* --- founding --- */

/* Runs one statement of the founding transaction: "@" is the schema, `role` is appended. */
static enum shared_outcome run_text(struct pg_log *l, const char *sql, const char *role,
                                    int64_t deadline_ms)
{
    struct str text = STR_INIT;

    pg_append_sql(&l->session, sql, &text);
    str_append_text(&text, role);
    if (!text.failed)
        pg_send_text(&l->session, text.data);
    enum shared_outcome outcome = text.failed ? SHARED_NO_MEMORY : pg_log_run(l, NULL, deadline_ms);

    str_done(&text);
    return outcome;
}

static enum shared_outcome grant(struct pg_log *l, const char *role, int64_t deadline_ms)
{
    char *quoted = PQescapeIdentifier(l->session.conn, role, strlen(role));
    enum shared_outcome outcome = quoted != NULL ? SHARED_YES : SHARED_NO_MEMORY;

    for (size_t i = 0; i < sizeof pg_grants / sizeof pg_grants[0] && outcome == SHARED_YES; i++)
        outcome = run_text(l, pg_grants[i], quoted, deadline_ms);
    PQfreemem(quoted);
    return outcome;
}

/* Record 0 has no body: it is the position of a new node, with which every read must begin. */
static void send_first(struct pg_log *l, const char *epoch, struct shared_position *start)
{
    static const uint8_t nothing[SHARED_CHAIN_BYTES];
    uint8_t hash[SHARED_CHAIN_BYTES], salt[PG_SALT_BYTES];
    char id[SHARED_ID_SIZE];

    shared_make_id(id);
    if (gnutls_rnd(GNUTLS_RND_KEY, salt, sizeof salt) < 0)
        abort(); /* a known one would let others write */
    gnutls_hash_fast(GNUTLS_DIG_SHA256, "", 0, hash);
    start->seq = 0;
    shared_chain(nothing, id, hash, start->chain);
    pg_send(&l->session, PG_CLUSTER_ADD, PG_LAYOUT, epoch, sql_bytes(salt, sizeof salt));
    pg_send(&l->session, PG_RECORD_ADD, 0, id, "", 0, 0, 0, 0,
            sql_bytes(start->chain, SHARED_CHAIN_BYTES), 0, 0, sql_bytes("", 0));
}

/* The end of the transaction that founds. */
static enum shared_outcome finish(struct pg_log *l, const char *epoch, const char *grant_to,
                                  struct shared_position *start, int64_t deadline_ms)
{
    enum shared_outcome outcome = grant_to != NULL ? grant(l, grant_to, deadline_ms) : SHARED_YES;

    if (outcome == SHARED_YES) {
        send_first(l, epoch, start);
        outcome = pg_log_run(l, NULL, deadline_ms);
    }
    if (outcome == SHARED_YES) {
        pg_send(&l->session, PG_COMMIT);
        outcome = pg_log_run(l, NULL, deadline_ms);
        l->is_open = outcome != SHARED_YES;
    }
    return outcome;
}

static enum shared_outcome make(struct pg_log *l, bool has_schema, const char *epoch,
                                const char *grant_to, struct shared_position *start,
                                int64_t deadline_ms)
{
    pg_send(&l->session, PG_BEGIN);
    enum shared_outcome outcome = pg_log_run(l, NULL, deadline_ms);

    l->is_open = outcome == SHARED_YES;
    if (outcome == SHARED_YES && !has_schema)
        outcome = run_text(l, "CREATE SCHEMA @", "", deadline_ms);
    for (size_t i = 0; i < sizeof pg_schema / sizeof pg_schema[0] && outcome == SHARED_YES; i++)
        outcome = run_text(l, pg_schema[i], "", deadline_ms);
    return outcome == SHARED_YES ? finish(l, epoch, grant_to, start, deadline_ms) : outcome;
}

enum shared_outcome pg_log_grant(struct shared_log *log, const char *role, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    enum shared_outcome outcome = pg_session_connect(&l->session, deadline_ms);

    return outcome == SHARED_YES ? grant(l, role, deadline_ms) : outcome;
}

static const char founded_already[] =
    "this schema of the database already has a shared catalogue; to join it, start a node without "
    "`share init`, on a path where there is no file yet; to create another one, set --schema";

/* Removes, in a transaction that it begins, the log of a founder that sent no snapshot, so that
 * nobody could join it. If that founder continues after all, its snapshot belongs to no record of
 * the log, and is not used. NO: the log has been used. */
static enum shared_outcome take_away(struct pg_log *l, int64_t deadline_ms)
{
    struct pg_results r;
    enum shared_outcome outcome = pg_log_hold(&l->log, SHARED_SNAPSHOT_NAME, deadline_ms);

    if (outcome == SHARED_NO)
        return pg_log_said(l, outcome, founded_already);
    if (outcome != SHARED_YES)
        return outcome;
    pg_send(&l->session, PG_BEGIN);
    outcome = pg_log_run(l, NULL, deadline_ms);
    l->is_open = outcome == SHARED_YES;
    if (outcome != SHARED_YES)
        return outcome;
    pg_send(&l->session, PG_UNFOUND);
    outcome = pg_log_run(l, &r, deadline_ms);
    if (outcome == SHARED_YES && strcmp(PQcmdTuples(r.at[0]), "1") != 0)
        outcome = pg_log_said(l, SHARED_NO, founded_already);
    pg_results_clear(&r);
    if (outcome == SHARED_YES) {
        pg_send(&l->session, PG_UNFOUND_LOG);
        outcome = pg_log_run(l, NULL, deadline_ms);
    }
    return outcome;
}

/* An existing log may be of this cluster, if its founder got no answer. */
static enum shared_outcome check_founded(struct pg_log *l, const char *epoch, const char *grant_to,
                                         struct shared_position *start, int64_t deadline_ms)
{
    struct shared_overview there;
    enum shared_outcome outcome = pg_log_overview(&l->log, &there, deadline_ms);

    if (outcome != SHARED_YES)
        return outcome;
    *start = there.head;
    if (there.head.seq == 0 && strcmp(there.epoch, epoch) == 0)
        return SHARED_YES;
    outcome = take_away(l, deadline_ms);
    return outcome == SHARED_YES ? finish(l, epoch, grant_to, start, deadline_ms) : outcome;
}

enum shared_outcome pg_log_found(struct shared_log *log, const char *epoch, const char *grant_to,
                                 struct shared_position *start, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;
    bool has_schema = false, has_log = false;

    assert(!l->is_open);
    pg_session_drop(&l->session);
    l->session.is_founding = true;
    enum shared_outcome outcome = pg_session_connect(&l->session, deadline_ms);

    l->session.is_founding = false;
    if (outcome != SHARED_YES)
        return outcome;
    pg_send(&l->session, PG_FOUNDED);
    outcome = pg_log_run(l, &r, deadline_ms);
    if (outcome == SHARED_YES) {
        has_schema = pg_get_integer(r.at[0], 0, 0) != 0;
        has_log = pg_get_integer(r.at[0], 0, 1) != 0;
    }
    pg_results_clear(&r);
    if (outcome == SHARED_YES)
        outcome = has_log ? check_founded(l, epoch, grant_to, start, deadline_ms)
                          : make(l, has_schema, epoch, grant_to, start, deadline_ms);
    if (outcome != SHARED_YES) {
        l->is_open = false;
        pg_session_drop(&l->session);
    }
    return outcome;
}
