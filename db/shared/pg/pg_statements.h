/* Every statement that is told to PostgreSQL, but for those that make the schema (pg_schema.h).
 * Prepared at its first use on a connection. Parameters and results are binary (pg_session.h). */
#ifndef SITEMAPD_DB_SHARED_PG_PG_STATEMENTS_H
#define SITEMAPD_DB_SHARED_PG_PG_STATEMENTS_H

/* What a session must be, whoever configured the server or the role: commits wait for the standbys
 * (more is left alone), nothing ends a session that merely listens, and a transaction whose owner
 * stopped ends soon. Settings that this server has not are left out. */
#define PG_STATEMENTS(X)                                                                           \
    X(SETTINGS, "SELECT pg_catalog.set_config(s.name, v.value, false)"                             \
                " FROM pg_catalog.pg_settings s JOIN (VALUES"                                      \
                " ('synchronous_commit', 'on'), ('idle_in_transaction_session_timeout', '2000'),"  \
                " ('statement_timeout', '0'), ('idle_session_timeout', '0'),"                      \
                " ('transaction_timeout', '0'), ('client_connection_check_interval', '2000'),"     \
                " ('search_path', 'pg_catalog'), ('jit', 'off')) v(name, value) USING (name)"      \
                " WHERE NOT (s.name = 'synchronous_commit' AND s.setting = 'remote_apply')")       \
    X(CLUSTER, "SELECT layout, epoch FROM sitemapd.cluster")                                       \
    X(BEGIN, "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE")                                   \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    /* How many sessions wait for the advisory lock $1. */                                         \
    X(ASK, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND"         \
           " objsubid = 1 AND classid::bigint << 32 | objid::bigint = $1::bigint AND database ="   \
           " (SELECT oid FROM pg_database WHERE datname = current_database())")                    \
    X(LOCK_TIMEOUT, "SELECT set_config('lock_timeout', $1::text, false)")                          \
    X(LOCK, "SELECT pg_advisory_xact_lock($1::bigint)")                                            \
    /* The caller's own record ($1) without its body; then what it may take ($2 bytes, but $3      \
     * records in any case). */                                                                    \
    X(TAIL, "SELECT seq, id::text, node, schema, revision, serial, at, chain, total, parts,"       \
            " CASE WHEN seq > $1::bigint THEN body END FROM sitemapd.log"                          \
            " WHERE seq >= $1::bigint AND (seq <= $1::bigint + $3::bigint OR total <="             \
            " (SELECT total FROM sitemapd.log WHERE seq = $1::bigint) + $2::bigint)"               \
            " ORDER BY seq LIMIT 1000")                                                            \
    X(HEAD, "SELECT max(seq) FROM sitemapd.log")                                                   \
    X(FIRST, "SELECT min(seq) FROM sitemapd.log")                                                  \
    X(PART, "SELECT body FROM sitemapd.part WHERE seq = $1::bigint AND no = $2::bigint")           \
    X(PART_ADD,                                                                                    \
      "INSERT INTO sitemapd.part(seq, no, body) VALUES($1::bigint, $2::bigint, $3::bytea)")        \
    X(RECORD_ADD,                                                                                  \
      "INSERT INTO sitemapd.log(seq, id, node, schema, revision, serial, at, chain, total, parts," \
      " body) VALUES($1::bigint, $2::text::uuid, $3::text, $4::bigint, $5::bigint, $6::bigint,"    \
      " $7::bigint, $8::bytea, $9::bigint, $10::bigint, $11::bytea)")                              \
    /* A queue that nobody empties (a session that listens in a transaction) would fail the        \
     * commit: nobody depends on being told. */                                                    \
    X(NOTIFY, "SELECT pg_notify('sitemapd', $1::text) WHERE pg_notification_queue_usage() < 0.4")  \
    X(LISTEN, "LISTEN sitemapd")                                                                   \
    X(RECORD_HAS, "SELECT 1 FROM sitemapd.log WHERE id = $1::text::uuid")                          \
    /* Something to commit, so that the commit waits for the standbys. */                          \
    X(MARK, "SELECT pg_logical_emit_message(true, 'sitemapd', 'settle')")                          \
    X(TRY_LOCK, "SELECT pg_try_advisory_lock($1::bigint)")                                         \
    X(TRY_SHARED, "SELECT pg_try_advisory_lock_shared($1::bigint)")                                \
    X(TRY_XACT, "SELECT pg_try_advisory_xact_lock($1::bigint)")                                    \
    X(UNLOCK, "SELECT pg_advisory_unlock($1::bigint)")                                             \
    X(NODE_TELL,                                                                                   \
      "INSERT INTO sitemapd.node(name, seen, release, schema, applied, digest_seq, digest, state)" \
      " VALUES($1::text, now(), $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bytea,"          \
      " $7::text) ON CONFLICT (name) DO UPDATE SET seen = excluded.seen,"                          \
      " release = excluded.release, schema = excluded.schema, applied = excluded.applied,"         \
      " digest_seq = excluded.digest_seq, digest = excluded.digest, state = excluded.state")       \
    X(NODE_LIST, "SELECT name, release, schema, applied, digest_seq, digest, state,"               \
                 " greatest(0, extract(epoch FROM now() - seen) * 1000)::bigint"                   \
                 " FROM sitemapd.node ORDER BY name")                                              \
    X(NODE_FORGET, "DELETE FROM sitemapd.node WHERE name = $1::text")                              \
    X(NODES_FORGET, "DELETE FROM sitemapd.node WHERE seen < now() - interval '1 day'")             \
    X(SNAPSHOT_LAST, "SELECT seq, chain, schema, bytes, parts, sha, total,"                        \
                     " greatest(0, extract(epoch FROM now() - taken_at) * 1000)::bigint"           \
                     " FROM sitemapd.snapshot ORDER BY seq DESC LIMIT 1")                          \
    X(SNAPSHOT_CLEAN, "DELETE FROM sitemapd.snapshot_part WHERE (seq, no) IN"                      \
                      " (SELECT p.seq, p.no FROM sitemapd.snapshot_part p WHERE NOT EXISTS"        \
                      " (SELECT 1 FROM sitemapd.snapshot s WHERE s.seq = p.seq)"                   \
                      " ORDER BY p.seq, p.no LIMIT $1::bigint)")                                   \
    X(SNAPSHOT_OLD, "DELETE FROM sitemapd.snapshot WHERE seq <"                                    \
                    " (SELECT seq FROM sitemapd.snapshot ORDER BY seq DESC OFFSET 1 LIMIT 1)")     \
    X(SNAPSHOT_PART_ADD, "INSERT INTO sitemapd.snapshot_part(seq, no, body)"                       \
                         " VALUES($1::bigint, $2::bigint, $3::bytea)")                             \
    X(SNAPSHOT_ADD, "INSERT INTO sitemapd.snapshot(seq, chain, schema, bytes, parts, sha, total)"  \
                    " SELECT seq, chain, $3::bigint, $4::bigint, $5::bigint, $6::bytea, total"     \
                    " FROM sitemapd.log WHERE seq = $1::bigint AND chain = $2::bytea")             \
    X(SNAPSHOT_PART, "SELECT body FROM sitemapd.snapshot_part"                                     \
                     " WHERE seq = $1::bigint AND no = $2::bigint")                                \
    /* $1 records at most, from the oldest on, so that no gap is left: `now()` is when a           \
     * transaction began, and does not always grow with seq. */                                    \
    X(TRIM, "WITH edge AS (SELECT least("                                                          \
            " (SELECT min(seq) FROM sitemapd.log) + $1::bigint, bound.seq,"                        \
            " (SELECT seq FROM sitemapd.log WHERE stored_at >= now() - interval '1 day'"           \
            " ORDER BY seq LIMIT 1)) AS seq FROM"                                                  \
            " (SELECT seq FROM sitemapd.snapshot ORDER BY seq DESC OFFSET 1 LIMIT 1) bound),"      \
            " parts AS (DELETE FROM sitemapd.part p USING edge WHERE p.seq < edge.seq)"            \
            " DELETE FROM sitemapd.log l USING edge WHERE l.seq < edge.seq")                       \
    X(OVERVIEW, "SELECT epoch, current_setting('server_version'),"                                 \
                " current_setting('synchronous_standby_names') <> '',"                             \
                " current_setting('fsync')::bool AND current_setting('full_page_writes')::bool,"   \
                " first.seq, last.seq, last.chain, last.total - first.total, last.total"           \
                " FROM sitemapd.cluster,"                                                          \
                " (SELECT seq, total FROM sitemapd.log ORDER BY seq LIMIT 1) first,"               \
                " (SELECT seq, chain, total FROM sitemapd.log ORDER BY seq DESC LIMIT 1) last")    \
    X(FOUNDED, "SELECT to_regnamespace('sitemapd') IS NOT NULL,"                                   \
               " to_regclass('sitemapd.cluster') IS NOT NULL")                                     \
    X(UNFOUND, "DELETE FROM sitemapd.cluster WHERE NOT EXISTS (SELECT 1 FROM sitemapd.snapshot)"   \
               " AND NOT EXISTS (SELECT 1 FROM sitemapd.node)"                                     \
               " AND (SELECT max(seq) FROM sitemapd.log) = 0")                                     \
    X(UNFOUND_LOG, "DELETE FROM sitemapd.log")                                                     \
    X(CLUSTER_ADD, "INSERT INTO sitemapd.cluster(layout, epoch) VALUES($1::bigint, $2::text)")

enum pg_statement {
#define X(name, sql) PG_##name,
    PG_STATEMENTS(X)
#undef X
        PG_STATEMENT_COUNT,
    PG_TEXT = PG_STATEMENT_COUNT, /* one of its own text, not prepared (pg_send_text) */
};

#endif
