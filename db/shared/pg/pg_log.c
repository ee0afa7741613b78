/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Appends records to the log in PostgreSQL and reads them, and takes the lock and the turn of a
 * list. */
#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/shared/pg/pg_log.h"
#include "db/shared/pg/pg_news.h"
#include "server/base/clock.h"

/* PostgreSQL ends a transaction after two seconds without a query (pg_statements.def). */
#define KEEP_MS 500
/* After a longer application `stay` sends a query. */
#define LONG_MS 50
/* Time for an answer on the network. */
#define ANSWER_MS 250

int64_t pg_lock_key(const struct pg_log *l, const char *kind, const char *name)
{
    uint8_t hash[SHARED_CHAIN_BYTES];
    char text[512];
    int64_t key;
    int n = snprintf(text, sizeof text, "%s %s %s", l->session.schema, kind, name);

    if (n >= (int)sizeof text)
        n = sizeof text - 1;
    gnutls_hash_fast(GNUTLS_DIG_SHA256, text, (size_t)n, hash);
    memcpy(&key, hash, sizeof key);
    return (int64_t)__builtin_bswap64((uint64_t)key);
}

enum shared_outcome pg_log_run(struct pg_log *l, struct pg_results *out, int64_t deadline_ms)
{
    return pg_session_run(&l->session, out, deadline_ms);
}

enum shared_outcome pg_log_said(struct pg_log *l, enum shared_outcome outcome, const char *why)
{
    snprintf(l->session.why, sizeof l->session.why, "%s", why);
    return outcome;
}

static void free_log(struct shared_log *log)
{
    struct pg_log *l = pg_log_of(log);

    if (l == NULL)
        return;
    pg_session_done(&l->session);
    pg_log_forget_held(l);
    shared_packer_free(l->packer);
    shared_unpacker_free(l->unpacker);
    shared_news_free(l->news);
    explicit_bzero(l->key, sizeof l->key);
    free(l->node);
    free(l);
}

static const char *why(const struct shared_log *log)
{
    return ((const struct pg_log *)log)->session.why;
}

static const char *gist(const struct shared_log *log)
{
    return pg_session_gist(&((const struct pg_log *)log)->session);
}

static void interrupt(struct shared_log *log)
{
    pg_session_interrupt(&pg_log_of(log)->session);
}

/* Sent after a transaction, or before its COMMIT. */
static void send_idle_timeout(struct pg_log *l)
{
    if (l->keeps_lists_out || l->place.site_group != NO_SITE_GROUP)
        pg_send(&l->session, PG_IDLE_TIMEOUT, PG_IDLE_MS);
}

static void rollback(struct shared_log *log)
{
    struct pg_log *l = pg_log_of(log);

    if (!l->is_open)
        return;
    l->is_open = false;
    if (l->session.conn == NULL)
        return;
    pg_send(&l->session, PG_ROLLBACK);
    send_idle_timeout(l);
    if (pg_log_run(l, NULL, clock_now_ms() + 1000) != SHARED_YES)
        pg_session_drop(&l->session);
}

/* Ends the current transaction; keeps `outcome` and its reason. */
static enum shared_outcome abandon(struct pg_log *l, enum shared_outcome outcome)
{
    char said[PG_WHY_SIZE], sqlstate[sizeof l->session.sqlstate];

    memcpy(said, l->session.why, sizeof said);
    memcpy(sqlstate, l->session.sqlstate, sizeof sqlstate);
    rollback(&l->log);
    memcpy(l->session.why, said, sizeof said);
    memcpy(l->session.sqlstate, sqlstate, sizeof sqlstate);
    return outcome;
}

static enum shared_outcome keep(struct shared_log *log, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;

    if (!l->is_open || clock_now_ms() - l->asked_ms < KEEP_MS)
        return SHARED_YES;
    l->asked_ms = clock_now_ms();
    pg_send(&l->session, PG_ASK, pg_lock_key(l, "write", ""), pg_line_key(l));
    enum shared_outcome outcome = pg_log_run(l, &r, deadline_ms);
    if (outcome == SHARED_YES && l->awaited_since_ms == 0 && pg_get_integer(r.at[0], 0, 0) > 0)
        l->awaited_since_ms = l->asked_ms;
    pg_results_clear(&r);
    return outcome;
}

static int64_t awaited_ms(const struct shared_log *log)
{
    const struct pg_log *l = (const struct pg_log *)log;

    return l->is_open && l->awaited_since_ms != 0 ? clock_now_ms() - l->awaited_since_ms : 0;
}

static int64_t unix_ms_there(const struct shared_log *log)
{
    return clock_now_ms() + ((const struct pg_log *)log)->clock_offset_ms;
}

/* --- taking records --- */

enum { SEQ, ID, NODE, SCHEMA, REVISION, SERIAL, AT, CHAIN, TOTAL, PARTS, BODY };

static bool get_chain(const PGresult *r, int row, uint8_t out[SHARED_CHAIN_BYTES])
{
    size_t size;
    const void *bytes = pg_get_bytes(r, row, CHAIN, &size);

    if (size != SHARED_CHAIN_BYTES)
        return false;
    memcpy(out, bytes, size);
    return true;
}

static enum shared_outcome diverged(struct pg_log *l, uint64_t seq, const char *what)
{
    snprintf(l->session.why, sizeof l->session.why, "record %llu of the log %s",
             (unsigned long long)seq, what);
    return SHARED_DIVERGED;
}

/* Deadline of a step after the caller's own work, which has none: applying a large record may take
 * longer than any call. */
#define STEP_MS 5000

static int64_t step_deadline(const struct pg_log *l)
{
    int64_t least_ms = clock_now_ms() + STEP_MS;
    return l->deadline_ms > least_ms ? l->deadline_ms : least_ms;
}

/* Called while a record is applied: sends a query so that the server keeps the transaction, and
 * keeps other nodes' lists out if small writes wait. Does not wait for a list that has begun. */
static enum shared_outcome stay(struct pg_log *l, const struct shared_take *take)
{
    enum shared_outcome outcome = SHARED_YES;
    struct pg_results r;

    if (l->is_open)
        return keep(&l->log, step_deadline(l)) == SHARED_YES ? SHARED_YES : SHARED_AWAY;
    if (clock_now_ms() < l->stay_ms)
        return SHARED_YES;
    if (!l->keeps_lists_out && take->writes_wait != NULL && take->writes_wait(take->context)) {
        pg_send(&l->session, PG_TRY_SHARED, pg_lock_key(l, "list", ""));
        outcome = pg_log_run(l, &r, step_deadline(l));
        if (outcome == SHARED_YES)
            l->keeps_lists_out = pg_get_integer(r.at[0], 0, 0) != 0;
        pg_results_clear(&r);
    }
    if (outcome == SHARED_YES)
        send_idle_timeout(l);
    if (l->session.queued > 0)
        outcome = pg_log_run(l, NULL, step_deadline(l));
    l->stay_ms = clock_now_ms() + KEEP_MS;
    return outcome == SHARED_YES ? SHARED_YES : SHARED_AWAY;
}

struct taking {
    struct pg_log *log;
    const struct shared_take *take;
    enum shared_outcome stays;
};

static bool take_piece(void *context, const void *bytes, size_t size)
{
    struct taking *t = context;

    if (t->take->bytes == NULL || t->take->bytes(t->take->context, bytes, size))
        t->stays = stay(t->log, t->take);
    else
        t->stays = SHARED_STOPPED;
    return t->stays == SHARED_YES;
}

static enum shared_outcome take_part(struct pg_log *l, struct taking *t, const void *part,
                                     size_t size)
{
    if (t->take->part != NULL && size > 0 && !t->take->part(t->take->context, part, size))
        return SHARED_STOPPED;
    return shared_unpacker_add(l->unpacker, part, size, take_piece, t);
}

/* Passes on a record's body; its hash is checked. */
static enum shared_outcome take_body(struct pg_log *l, const PGresult *tail, int row, uint64_t seq,
                                     const struct shared_take *take,
                                     uint8_t hash[SHARED_CHAIN_BYTES])
{
    struct taking taking = {l, take, SHARED_YES};
    int64_t parts = pg_get_integer(tail, row, PARTS);
    enum shared_outcome outcome;
    size_t size;

    shared_unpacker_begin(l->unpacker);
    const void *body = pg_get_bytes(tail, row, BODY, &size);

    outcome = take_part(l, &taking, body, size);
    for (int64_t no = 0; no < parts && outcome == SHARED_YES; no++) {
        struct pg_results r;

        pg_send(&l->session, PG_PART, seq, no);
        outcome = pg_log_run(l, &r, step_deadline(l));
        if (outcome == SHARED_NO)
            outcome = SHARED_AWAY;
        else if (outcome == SHARED_YES && PQntuples(r.at[0]) != 1)
            outcome = diverged(l, seq, "is incomplete");
        if (outcome == SHARED_YES) {
            body = pg_get_bytes(r.at[0], 0, 0, &size);
            outcome = take_part(l, &taking, body, size);
        }
        pg_results_clear(&r);
    }
    if (outcome == SHARED_STOPPED && taking.stays != SHARED_YES)
        outcome = taking.stays;
    if (outcome == SHARED_YES)
        outcome = shared_unpacker_end(l->unpacker, hash);
    if (outcome == SHARED_DIVERGED && !l->session.why[0])
        diverged(l, seq, "is corrupt");
    return outcome;
}

static enum shared_outcome take_record(struct pg_log *l, const PGresult *tail, int row,
                                       const struct shared_take *take,
                                       struct shared_position *reached)
{
    uint64_t seq = (uint64_t)pg_get_integer(tail, row, SEQ);
    struct shared_record record = {.schema = (int)pg_get_integer(tail, row, SCHEMA),
                                   .revision = (uint64_t)pg_get_integer(tail, row, REVISION),
                                   .serial = pg_get_integer(tail, row, SERIAL),
                                   .at = pg_get_integer(tail, row, AT),
                                   .position.seq = seq};
    uint8_t hash[SHARED_CHAIN_BYTES], chain[SHARED_CHAIN_BYTES];

    pg_get_text(tail, row, ID, record.id, sizeof record.id);
    pg_get_text(tail, row, NODE, record.node, sizeof record.node);
    if (seq != reached->seq + 1 || strlen(record.id) != SHARED_ID_SIZE - 1 ||
        !get_chain(tail, row, record.position.chain))
        return diverged(l, reached->seq + 1, "is missing");
    if (!take->begin(take->context, &record))
        return SHARED_STOPPED;
    enum shared_outcome outcome = take_body(l, tail, row, seq, take, hash);

    if (outcome != SHARED_YES)
        return outcome;
    shared_chain(reached->chain, record.id, hash, chain);
    if (memcmp(chain, record.position.chain, sizeof chain) != 0)
        return diverged(l, seq, "is corrupt");
    if (!take->end(take->context, &record))
        return SHARED_STOPPED;
    *reached = record.position;
    return keep(&l->log, step_deadline(l)) == SHARED_YES ? SHARED_YES : SHARED_AWAY;
}

/* Not a loss that a snapshot remedies: the log is never empty, so its table was emptied, or is
 * being restored. The next call connects again, which looks again. */
static enum shared_outcome is_empty(struct pg_log *l)
{
    pg_session_drop(&l->session);
    l->session.foreign = "table log of its shared catalogue is empty: restore it, or share the "
                         "state of a node again";
    snprintf(l->session.why, sizeof l->session.why, "%s", l->session.foreign);
    return SHARED_FOREIGN;
}

/* The log lacks `at`: decides whether it begins later or never had it. */
static enum shared_outcome check_missing(struct pg_log *l, const struct shared_position *at)
{
    struct pg_results r;

    pg_send(&l->session, PG_FIRST);
    enum shared_outcome outcome = pg_log_run(l, &r, l->deadline_ms);

    if (outcome != SHARED_YES)
        outcome = SHARED_AWAY;
    else if (PQgetisnull(r.at[0], 0, 0))
        outcome = is_empty(l);
    else if ((uint64_t)pg_get_integer(r.at[0], 0, 0) > at->seq) {
        snprintf(l->session.why, sizeof l->session.why,
                 "the log no longer has the records that this node lacks");
        outcome = SHARED_TRIMMED;
    } else
        outcome = diverged(l, at->seq, "exists on this node but not in PostgreSQL");
    pg_results_clear(&r);
    return outcome;
}

/* The rows of PG_TAIL: the first must be `at`, the others are taken. */
static enum shared_outcome take_tail(struct pg_log *l, const PGresult *tail,
                                     const struct shared_position *at,
                                     const struct shared_take *take,
                                     struct shared_position *reached)
{
    uint8_t chain[SHARED_CHAIN_BYTES];
    enum shared_outcome outcome = SHARED_YES;
    int rows = PQntuples(tail);

    *reached = *at;
    if (rows == 0 || (uint64_t)pg_get_integer(tail, 0, SEQ) != at->seq)
        return check_missing(l, at);
    if (!get_chain(tail, 0, chain) || memcmp(chain, at->chain, sizeof chain) != 0)
        return diverged(l, at->seq, "differs from that of this node");
    if (l->unpacker == NULL && (l->unpacker = shared_unpacker_new()) == NULL)
        return SHARED_NO_MEMORY;
    for (int row = 1; row < rows && outcome == SHARED_YES; row++)
        outcome = take_record(l, tail, row, take, reached);
    return outcome;
}

/* Forgets the shared locks of an earlier connection. */
static void know_shares(struct pg_log *l)
{
    if (l->lists_number == l->session.number)
        return;
    l->lists_number = l->session.number;
    l->keeps_lists_out = l->had_turn = false;
    l->place.site_group = NO_SITE_GROUP;
}

static void send_tail(struct pg_log *l, const struct shared_position *at, uint64_t max_bytes,
                      int64_t at_least)
{
    pg_send(&l->session, PG_TAIL, at->seq, max_bytes > INT32_MAX ? INT32_MAX : max_bytes, at_least);
    pg_send(&l->session, PG_HEAD);
}

static enum shared_outcome tail(struct shared_log *log, const struct shared_position *at,
                                uint64_t max_bytes, const struct shared_take *take, uint64_t *head,
                                int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct shared_position reached;
    struct pg_results r;
    enum shared_outcome outcome = pg_session_connect(&l->session, deadline_ms);

    assert(!l->is_open);
    if (outcome != SHARED_YES)
        return outcome;
    l->deadline_ms = deadline_ms;
    l->stay_ms = clock_now_ms() + LONG_MS;
    know_shares(l);
    send_tail(l, at, max_bytes, 1);
    outcome = pg_log_run(l, &r, deadline_ms);
    if (outcome == SHARED_YES) {
        *head = (uint64_t)pg_get_integer(r.at[1], 0, 0);
        outcome = take_tail(l, r.at[0], at, take, &reached);
        if (outcome == SHARED_YES && reached.seq > *head)
            *head = reached.seq;
    } else if (outcome == SHARED_NO) {
        outcome = SHARED_AWAY;
    }
    pg_results_clear(&r);
    return outcome;
}

/* --- writing --- */

/* Of the batch that send_lock begins: the statement that takes the lock, and their number. */
enum { LOCKS = 2, LOCK_STATEMENTS = 4 };

/* Whether the lock of all nodes was the lock for which a timeout ended the wait, and not one of a
 * table. */
static bool lock_is_busy(const struct pg_log *l, const struct pg_results *r)
{
    return strcmp(l->session.sqlstate, PG_LOCKED) == 0 &&
           (r->at[LOCKS] == NULL || PQresultStatus(r->at[LOCKS]) != PGRES_TUPLES_OK);
}

/* Opens a transaction and takes the lock, as the first statements of a batch. The timeout on the
 * server, also of locks of tables, ends before the caller's deadline. */
static void send_lock(struct pg_log *l, bool is_list, int64_t deadline_ms)
{
    char timeout[24];
    int64_t left = deadline_ms - clock_now_ms();
    int64_t write_key = pg_lock_key(l, "write", "");

    left -= left > 2 * ANSWER_MS ? ANSWER_MS : left / 2;
    snprintf(timeout, sizeof timeout, "%lld", (long long)(left > 0 ? left : 1));
    pg_send(&l->session, PG_BEGIN);
    pg_send(&l->session, PG_LOCK_TIMEOUT, timeout);
    if (is_list)
        pg_send(&l->session, PG_LOCK_LIST, pg_lock_key(l, "list", ""), write_key,
                l->keeps_lists_out);
    else
        pg_send(&l->session, PG_LOCK, write_key);
    if (left > PG_TABLE_MS)
        snprintf(timeout, sizeof timeout, "%d", PG_TABLE_MS);
    pg_send(&l->session, PG_LOCK_TIMEOUT, timeout);
}

static void send_share_behind(struct pg_log *l, const struct shared_position *at,
                              uint64_t max_bytes)
{
    pg_send(&l->session, PG_SHARE_BEHIND, at->seq, max_bytes > INT32_MAX ? INT32_MAX : max_bytes,
            pg_lock_key(l, "list", ""));
}

/* Longest time between the releases of the two locks of another node's list, at its commit. */
#define RELEASE_MS "250"

/* Called in the transaction, before its rollback: takes a shared lock so that other nodes' lists
 * wait. If another list still has that lock, waits for it after the transaction, since in it the
 * next list would wait for this node; if that fails, nothing is held. */
static void keep_lists_out(struct pg_log *l)
{
    int64_t key = pg_lock_key(l, "list", "");
    struct pg_results r;
    char timeout[24];

    if (l->keeps_lists_out)
        return;
    pg_send(&l->session, PG_TRY_SHARED, key);
    if (pg_log_run(l, &r, clock_now_ms() + 1000) == SHARED_YES)
        l->keeps_lists_out = pg_get_integer(r.at[0], 0, 0) != 0;
    pg_results_clear(&r);
    if (l->keeps_lists_out)
        return;
    rollback(&l->log);
    pg_send(&l->session, PG_LOCK_TIMEOUT, RELEASE_MS);
    pg_send(&l->session, PG_SHARE, key);
    snprintf(timeout, sizeof timeout, "%d", PG_TABLE_MS);
    pg_send(&l->session, PG_LOCK_TIMEOUT, timeout);
    pg_send(&l->session, PG_IDLE_TIMEOUT, PG_IDLE_MS);
    l->keeps_lists_out = pg_log_run(l, NULL, clock_now_ms() + 1000) == SHARED_YES;
}

static bool pass(struct shared_log *log, bool waits, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;
    bool awaited = false;

    assert(!l->is_open);
    if (l->session.conn == NULL || l->lists_number != l->session.number)
        return false;
    bool leaves = l->place.site_group != NO_SITE_GROUP && (l->had_turn || !waits);
    if (!l->keeps_lists_out && !leaves)
        return false;
    pg_send(&l->session, PG_ASK, 0, pg_line_key(l));
    if (l->keeps_lists_out)
        pg_send(&l->session, PG_UNLOCK_SHARED, pg_lock_key(l, "list", ""));
    l->keeps_lists_out = false;
    if (leaves)
        pg_line_leave(l);
    if (l->place.site_group == NO_SITE_GROUP)
        pg_send(&l->session, PG_IDLE_TIMEOUT, "0");
    if (pg_log_run(l, &r, deadline_ms) == SHARED_YES)
        awaited = pg_get_integer(r.at[0], 0, 0) > 0;
    else
        pg_session_drop(&l->session);
    pg_results_clear(&r);
    return awaited;
}

static enum shared_outcome begin(struct shared_log *log, const struct shared_position *at,
                                 uint64_t max_bytes, int site_group, const struct shared_take *take,
                                 int64_t deadline_ms)
{
    enum { TAILS = LOCK_STATEMENTS, HEADS, SHARES };
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;
    bool is_list = site_group != NO_SITE_GROUP;
    enum shared_outcome outcome = pg_session_connect(&l->session, deadline_ms);

    assert(!l->is_open);
    if (outcome != SHARED_YES)
        return outcome;
    if (l->packer == NULL && (l->packer = shared_packer_new()) == NULL)
        return SHARED_NO_MEMORY;
    l->deadline_ms = deadline_ms;
    know_shares(l);
    if (is_list && (outcome = pg_line_wait(l, site_group, deadline_ms)) != SHARED_YES)
        return outcome;
    send_lock(l, is_list, deadline_ms);
    send_tail(l, at, max_bytes, 0);
    bool asks = !is_list && !l->keeps_lists_out;
    if (asks)
        send_share_behind(l, at, max_bytes);
    outcome = pg_log_run(l, &r, deadline_ms);
    l->is_open = outcome == SHARED_YES || outcome == SHARED_NO;
    int64_t unix_ms = outcome == SHARED_YES ? pg_get_integer(r.at[HEADS], 0, 1) : 0;
    int64_t asked_ms = l->asked_ms = clock_now_ms();
    l->awaited_since_ms = 0;
    if (outcome == SHARED_NO && lock_is_busy(l, &r))
        outcome = SHARED_BUSY;
    if (outcome == SHARED_YES && asks && PQntuples(r.at[SHARES]) > 0)
        l->keeps_lists_out = pg_get_integer(r.at[SHARES], 0, 0) != 0;
    if (outcome == SHARED_YES && is_list) {
        l->keeps_lists_out |= !PQgetisnull(r.at[LOCKS], 0, 0);
        l->had_turn = !PQgetisnull(r.at[LOCKS], 0, 0);
        outcome = l->had_turn ? SHARED_YES : SHARED_BUSY;
    }
    if (outcome == SHARED_YES)
        outcome = take_tail(l, r.at[TAILS], at, take, &l->head);
    if (outcome == SHARED_YES && (uint64_t)pg_get_integer(r.at[HEADS], 0, 0) != l->head.seq) {
        outcome = SHARED_BEHIND;
        keep_lists_out(l);
    }
    if (outcome == SHARED_YES) {
        l->clock_offset_ms = unix_ms - asked_ms;
        l->total = (uint64_t)pg_get_integer(r.at[TAILS], PQntuples(r.at[TAILS]) - 1, TOTAL);
        l->parts = 0;
        shared_packer_begin(l->packer);
    }
    pg_results_clear(&r);
    return outcome == SHARED_YES ? outcome : abandon(l, outcome);
}

static void send_part(struct pg_log *l, const void *part, size_t size)
{
    pg_send(&l->session, PG_PART_ADD, l->head.seq + 1, l->parts, sql_bytes(part, size));
    l->parts++;
}

static enum shared_outcome put_part(void *context, const void *part, size_t size)
{
    struct pg_log *l = context;

    send_part(l, part, size);
    return pg_log_run(l, NULL, l->deadline_ms);
}

static enum shared_outcome add(struct shared_log *log, const void *bytes, size_t size,
                               int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);

    assert(l->is_open);
    l->deadline_ms = deadline_ms;
    enum shared_outcome outcome = shared_packer_add(l->packer, bytes, size, put_part, l);

    return outcome == SHARED_YES ? keep(log, deadline_ms) : outcome;
}

static enum shared_outcome older_are_gone(struct shared_log *log, int schema, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    enum shared_outcome outcome = SHARED_YES;

    assert(l->is_open);
    for (int older = SHARED_FIRST_SCHEMA; older < schema && outcome == SHARED_YES; older++) {
        char name[16];
        struct pg_results r;

        snprintf(name, sizeof name, "%d", older);
        pg_send(&l->session, PG_TRY_XACT, pg_lock_key(l, "release", name));
        outcome = pg_log_run(l, &r, deadline_ms);
        if (outcome == SHARED_NO)
            outcome = SHARED_AWAY;
        else if (outcome == SHARED_YES && !pg_get_integer(r.at[0], 0, 0))
            outcome = SHARED_NO;
        pg_results_clear(&r);
    }
    return outcome;
}

/* The outcome of a batch with a COMMIT. Any answer but a clear yes or no is UNKNOWN: the server may
 * have stopped while it waited for its standby, and a cancelled wait ends in a success with a
 * warning. */
static enum shared_outcome check_commit(const struct pg_session *s, enum shared_outcome outcome,
                                        const PGresult *commit)
{
    static const char *const unsure[] = {"08", "57P0", "40003"};

    if (outcome == SHARED_YES)
        return s->warned                                                ? SHARED_UNKNOWN
               : strcmp(PQcmdStatus((PGresult *)commit), "COMMIT") == 0 ? SHARED_YES
                                                                        : SHARED_NO;
    if (outcome != SHARED_NO || s->fatal)
        return SHARED_UNKNOWN;
    for (size_t i = 0; i < sizeof unsure / sizeof unsure[0]; i++)
        if (strncmp(s->sqlstate, unsure[i], strlen(unsure[i])) == 0)
            return SHARED_UNKNOWN;
    return SHARED_NO;
}

/* The key of notifications: only a role that may read the log's tables and has the nodes' secret
 * can write a record. NULL: without that secret. */
static const uint8_t *news_key(const struct pg_log *l, uint8_t key[SHARED_KEY_BYTES])
{
    uint8_t both[SHARED_KEY_BYTES + PG_SALT_BYTES];

    if (!l->has_key)
        return NULL;
    memcpy(both, l->key, SHARED_KEY_BYTES);
    memcpy(both + SHARED_KEY_BYTES, l->session.salt, PG_SALT_BYTES);
    bool good = gnutls_hash_fast(GNUTLS_DIG_SHA256, both, sizeof both, key) >= 0;
    explicit_bzero(both, sizeof both);
    return good ? key : NULL;
}

/* Runs the batch, which ends the transaction with a COMMIT. After a YES, everything up to record
 * `seq` is durable: it is earlier in the server's WAL than this commit. */
static enum shared_outcome run_commit(struct pg_log *l, uint64_t seq, int64_t deadline_ms)
{
    struct pg_results r;

    send_idle_timeout(l);
    pg_send(&l->session, PG_COMMIT);
    size_t last = l->session.queued > 0 ? l->session.queued - 1 : 0;
    enum shared_outcome outcome = pg_log_run(l, &r, deadline_ms);

    outcome = check_commit(&l->session, outcome, r.at[last]);
    pg_results_clear(&r);
    if (outcome == SHARED_NO)
        return abandon(l, outcome);
    l->is_open = false;
    if (outcome == SHARED_UNKNOWN) {
        pg_session_drop(&l->session);
        return outcome;
    }
    l->durable = seq;
    l->durable_number = l->session.number;
    return outcome;
}

static enum shared_outcome confirm(struct shared_log *log, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);

    if (!l->is_open || l->session.conn == NULL)
        return abandon(l, SHARED_NO);
    if (l->durable_number == l->session.number && l->durable >= l->head.seq)
        return abandon(l, SHARED_YES);
    pg_send(&l->session, PG_MARK);
    return run_commit(l, l->head.seq, deadline_ms);
}

static enum shared_outcome commit(struct shared_log *log, struct shared_record *record,
                                  int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    uint8_t hash[SHARED_CHAIN_BYTES];
    const void *rest;
    size_t size;

    if (!l->is_open || l->session.conn == NULL)
        return abandon(l, SHARED_NO);
    l->deadline_ms = deadline_ms;
    if (shared_packer_end(l->packer, put_part, l, &rest, &size) != SHARED_YES)
        return abandon(l, SHARED_NO);
    shared_packer_hash(l->packer, hash);
    record->position.seq = l->head.seq + 1;
    shared_chain(l->head.chain, record->id, hash, record->position.chain);
    if (l->parts > 0) {
        send_part(l, rest, size);
        size = 0;
    }
    char news[PG_NEWS_SIZE];
    uint8_t key[SHARED_KEY_BYTES];

    pg_news_write(news, l->session.schema, l->node != NULL ? l->node : "", record, rest, size,
                  l->parts == 0 ? news_key(l, key) : NULL);
    pg_send(&l->session, PG_RECORD_ADD, record->position.seq, record->id, record->node,
            record->schema, record->revision, record->serial, record->at,
            sql_bytes(record->position.chain, SHARED_CHAIN_BYTES),
            l->total + shared_packer_packed(l->packer), l->parts, sql_bytes(rest, size));
    pg_send(&l->session, PG_NOTIFY, news, l->session.schema);
    return run_commit(l, record->position.seq, deadline_ms);
}

/* Not the number of a record: those count from 0. */
#define PROBE_SEQ   (-1)
#define PROBE_BYTES ((size_t)1 << 20) /* a part of a list */

static enum shared_outcome probe(struct shared_log *log, int64_t deadline_ms)
{
    static uint8_t zeros[PROBE_BYTES]; /* not const, so that the program file does not contain it */
    struct pg_log *l = pg_log_of(log);
    char id[SHARED_ID_SIZE];
    enum shared_outcome outcome = pg_session_connect(&l->session, deadline_ms);

    assert(!l->is_open);
    if (outcome != SHARED_YES)
        return outcome;
    shared_make_id(id);
    pg_send(&l->session, PG_BEGIN);
    pg_send(&l->session, PG_RECORD_ADD, PROBE_SEQ, id, "", 0, 0, 0, 0,
            sql_bytes(zeros, SHARED_CHAIN_BYTES), 0, 0, sql_bytes("", 0));
    pg_send(&l->session, PG_PART_ADD, PROBE_SEQ, 0, sql_bytes(zeros, PROBE_BYTES));
    pg_send(&l->session, PG_ROLLBACK);
    outcome = pg_log_run(l, NULL, deadline_ms);
    l->is_open = outcome == SHARED_NO;
    return abandon(l, outcome);
}

/* The lock is free only once the transaction in doubt has ended, even if its server still waits for
 * a standby; and this commit, after it, waits for the same standby. */
static enum shared_outcome settle(struct shared_log *log, const char *id, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;

    assert(!l->is_open);
    pg_session_drop(&l->session);
    if (pg_session_connect(&l->session, deadline_ms) != SHARED_YES)
        return SHARED_UNKNOWN;
    send_lock(l, false, deadline_ms);
    pg_send(&l->session, PG_RECORD_HAS, id);
    pg_send(&l->session, PG_MARK);
    pg_send(&l->session, PG_COMMIT);
    enum shared_outcome outcome = pg_log_run(l, &r, deadline_ms);

    if (outcome == SHARED_NO && lock_is_busy(l, &r))
        l->session.sqlstate[0] = l->session.why[0] = '\0';
    outcome = check_commit(&l->session, outcome, r.at[LOCK_STATEMENTS + 2]);
    if (outcome == SHARED_YES) {
        outcome = PQntuples(r.at[LOCK_STATEMENTS]) > 0 ? SHARED_YES : SHARED_NO;
    } else {
        pg_session_drop(&l->session);
        outcome = SHARED_UNKNOWN;
    }
    pg_results_clear(&r);
    return outcome;
}

/* --- following --- */

/* Most queued notifications with records; further records are read from the log. */
#define NEWS_MOST 1024

static bool note_news(void *context, const char *text)
{
    struct pg_log *l = context;
    uint8_t key[SHARED_KEY_BYTES];

    if (!pg_news_is_other(text, l->node))
        return false;
    struct shared_news *news =
        l->news_count < NEWS_MOST ? pg_news_read(text, l->session.schema, news_key(l, key)) : NULL;
    if (news != NULL) {
        *l->last_news = news;
        l->last_news = &news->next;
        l->news_count++;
    }
    return true;
}

static struct shared_news *take_news(struct shared_log *log)
{
    struct pg_log *l = pg_log_of(log);
    struct shared_news *news = l->news;

    l->news = NULL;
    l->last_news = &l->news;
    l->news_count = 0;
    return news;
}

/* Connecting may take longer than a wait: hosts that drop packets may be tried first, or hosts are
 * far away. */
#define CONNECT_MS 5000

static enum shared_outcome wait_for_news(struct shared_log *log, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_session *s = &l->session;
    int64_t connected_ms = clock_now_ms() + CONNECT_MS;
    enum shared_outcome outcome = pg_session_connect(s, connected_ms);

    if (outcome == SHARED_YES && !s->is_listening) {
        pg_send(s, PG_LISTEN);
        outcome = pg_log_run(l, NULL, connected_ms);
        if (outcome == SHARED_NO)
            outcome = SHARED_AWAY;
        s->is_listening =
            outcome == SHARED_YES; /* earlier notifications were missed: read the log */
    } else if (outcome == SHARED_YES) {
        const struct pg_heard heard = {note_news, l};
        outcome = pg_session_wait(s, &heard, deadline_ms);
    }
    return outcome;
}

static const struct shared_log_calls calls = {
    .free = free_log,
    .why = why,
    .gist = gist,
    .interrupt = interrupt,
    .begin = begin,
    .pass = pass,
    .add = add,
    .keep = keep,
    .awaited_ms = awaited_ms,
    .unix_ms = unix_ms_there,
    .older_are_gone = older_are_gone,
    .commit = commit,
    .confirm = confirm,
    .rollback = rollback,
    .settle = settle,
    .probe = probe,
    .tail = tail,
    .wait = wait_for_news,
    .news = take_news,
    .snapshot_put = pg_log_snapshot_put,
    .snapshot_get = pg_log_snapshot_get,
    .trim = pg_log_trim,
    .hold = pg_log_hold,
    .is_held = pg_log_is_held,
    .let_go = pg_log_let_go,
    .lease = pg_log_lease,
    .report = pg_log_report,
    .list = pg_log_list,
    .forget = pg_log_forget,
    .overview = pg_log_overview,
    .found = pg_log_found,
    .grant = pg_log_grant,
};

struct shared_log *shared_log_open_postgresql(const struct shared_log_options *options,
                                              char *why_not, size_t why_size)
{
    struct pg_log *l = calloc(1, sizeof *l);

    if (l == NULL) {
        snprintf(why_not, why_size, "out of memory");
        return NULL;
    }
    l->log.calls = &calls;
    if (options->node != NULL && (l->node = strdup(options->node)) == NULL) {
        snprintf(why_not, why_size, "out of memory");
        free(l);
        return NULL;
    }
    l->last_news = &l->news;
    l->has_key = options->key != NULL;
    if (l->has_key)
        memcpy(l->key, options->key, sizeof l->key);
    if (!pg_session_init(&l->session, options)) {
        snprintf(why_not, why_size, "%s", l->session.why);
        free_log(&l->log);
        return NULL;
    }
    return &l->log;
}

/* The line in which site groups (log.h) of all nodes wait for their turn with a list. A waiting
 * node has a shared advisory lock whose key contains group and number, so that all nodes see who is
 * before them, and a lost node leaves the line. A group has only one place among all nodes, and
 * gets the next one, after all others, once that list has ended. */

#define GROUP_SHIFT 24
#define NUMBER_MOST 0xffffff
/* No place, since another node has the group's. */
#define NOWHERE NUMBER_MOST

int64_t pg_line_key(const struct pg_log *l)
{
    return (int64_t)((uint64_t)pg_lock_key(l, "line", "") & ~(uint64_t)UINT32_MAX);
}

static int64_t key_of(const struct pg_log *l, const struct pg_place *place)
{
    return pg_line_key(l) | (int64_t)place->site_group << GROUP_SHIFT | place->number;
}

void pg_line_leave(struct pg_log *l)
{

    pg_send(&l->session, PG_UNLOCK_SHARED, key_of(l, &l->place));
    l->place.site_group = NO_SITE_GROUP;
    l->had_turn = false;
}

static void send_stand(struct pg_log *l, struct pg_place place)
{

    if (l->place.site_group == place.site_group && l->place.number == place.number)
        return;
    if (l->place.site_group != NO_SITE_GROUP)
        pg_line_leave(l);
    pg_send(&l->session, PG_SHARE, key_of(l, &place));
    pg_send(&l->session, PG_IDLE_TIMEOUT, PG_IDLE_MS);
    l->place = place;
}

struct line {
    bool is_taken; /* another node has the group's place */
    int64_t first, last;
};

static struct line look(const PGresult *others, int site_group, const struct pg_place *own)
{
    struct line line = {.first = NOWHERE};

    for (int row = 0; row < PQntuples(others); row++) {
        int64_t number = pg_get_integer(others, row, 1);

        if (number == NOWHERE)
            continue;
        /* Two nodes that checked at the same time may both have a place: the first one counts. */
        if (pg_get_integer(others, row, 0) == site_group &&
            !(own->site_group == site_group && own->number < number))
            line.is_taken = true;
        if (number < line.first)
            line.first = number;
        if (number > line.last)
            line.last = number;
    }
    return line;
}

enum shared_outcome pg_line_wait(struct pg_log *l, int site_group, int64_t deadline_ms)
{
    struct pg_place place = {.site_group = site_group, .number = NOWHERE};
    struct pg_results r;

    pg_send(&l->session, PG_LINE, pg_line_key(l));
    enum shared_outcome outcome = pg_log_run(l, &r, deadline_ms);

    if (outcome != SHARED_YES) {
        pg_results_clear(&r);
        return outcome == SHARED_NO ? SHARED_AWAY : outcome;
    }
    bool has_one = l->place.site_group != NO_SITE_GROUP && l->place.number != NOWHERE;
    const struct line line = look(r.at[0], site_group, &l->place);

    pg_results_clear(&r);
    if (!line.is_taken && has_one)
        place.number = l->place.number; /* the node's own sites have turns of their own */
    else if (!line.is_taken)
        place.number = line.last + 1 < NOWHERE ? line.last + 1 : NOWHERE - 1;
    else if (has_one && l->place.site_group != site_group)
        return SHARED_ELSEWHERE; /* the other node keeps the place */
    send_stand(l, place);
    if (l->session.queued > 0)
        outcome = pg_log_run(l, NULL, deadline_ms);
    if (outcome != SHARED_YES)
        return outcome == SHARED_NO ? SHARED_AWAY : outcome;
    if (line.is_taken)
        return SHARED_ELSEWHERE;
    return place.number <= line.first ? SHARED_YES : SHARED_BUSY;
}
