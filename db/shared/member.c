/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Connects the writer's transactions to the log: takes the lock, follows, sends effects, commits
 * there and then here. */
#include "db/shared/member.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/shared/effects.h"
#include "db/shared/followed.h"
#include "db/shared/join.h"
#include "db/shared/record.h"
#include "db/shared/replay.h"
#include "server/base/clock.h"
#include "server/base/text.h"

/* The thread that follows the log: waits for notifications, fetches records, and passes them to
 * the writer. */

#define LOOK_MS       1000 /* between two looks, and the longest between two tries to reach it */
#define RETRY_MS      50   /* before the first of these tries: doubled up to LOOK_MS */
#define CALL_MS       5000
#define NEWS_MOST     1024 /* records in the queue to the writer */
#define PROBE_EACH_MS 5000 /* while writes are refused */
/* A follower's pause after an unusable copy is doubled up to LOOK_MS times 2 to this. After the
 * first one, which is often only old, it requests a new one at once. */
#define LOOK_DOUBLED_MOST 4u

static void report_writer(struct lookout *l)
{
    atomic_store(&l->behind, true);
    writer_poke(l->catalogue);
}

/* Stops at the first record: its existence is enough. */
static bool see_record(void *context, const struct shared_record *record)
{
    *(bool *)context = true;
    (void)record;
    return false;
}

static bool read_record(void *context, const struct shared_record *record)
{
    (void)context;
    (void)record;
    return true;
}

/* Looks for newer records. `whole`: reads the next one to its end, which checks it. */
static enum shared_outcome look(struct lookout *l, bool whole)
{
    const struct shared_position at = standing_now(l->standing).at;
    bool seen = false;
    uint64_t head = 0;
    const struct shared_take take = {
        .begin = whole ? read_record : see_record, .end = see_record, .context = &seen};
    uint64_t asked_ns = clock_now_ns();
    enum shared_outcome outcome =
        l->log->calls->tail(l->log, &at, 1, &take, &head, clock_now_ms() + CALL_MS);
    if (outcome == SHARED_YES || seen)
        standing_record_trip(l->standing, (int64_t)(clock_now_ns() - asked_ns) / 1000);
    if (seen) {
        outcome = SHARED_YES;
        report_writer(l);
    }
    standing_record_head(l->standing, head);
    return outcome;
}

static bool has_ended(void *context)
{
    return standing_now(((struct lookout *)context)->standing).ended;
}

static void record_copy(void *context, uint64_t seq, uint64_t head)
{
    standing_record_copy(((struct lookout *)context)->standing, seq, head);
}

/* Fetches a snapshot and applies newer records to it. Uses the log's snapshot, not a peer's file,
 * if the log lost records that peers may still have, if this node's rows differed from theirs, or
 * if a peer's file did not fit the log's records. */
static enum shared_outcome make_copy(struct lookout *l, const struct join_node *node, char *why,
                                     size_t why_size)
{
    const struct join_catching_up how = {.node = node,
                                         .renews =
                                             standing_now(l->standing).has_lost && !l->follows,
                                         .fetched = l->copy_epoch,
                                         .stops = has_ended,
                                         .moved = record_copy,
                                         .context = l};
    if (!l->has_copy) {
        struct standing_now now = standing_now(l->standing);
        bool asks = l->follows || (!now.has_lost && !now.has_differed && !l->distrusts_peers);
        struct join_peers peers = {.calls = asks ? l->catalogue->options.shared.peers : NULL,
                                   .stops = has_ended,
                                   .context = l};
        enum shared_outcome fetched =
            join_fetch(l->log, l->catalogue->path, node, &peers, why, why_size);
        if (fetched != SHARED_YES)
            return fetched;
        l->copy_epoch[0] = '\0';
        l->distrusts_peers = peers.used; /* cleared once the copy reaches the head */
    }
    enum shared_outcome outcome = join_catch_up(l->log, l->catalogue->path, &how, why, why_size);
    /* Keep the copy: over a slow connection a large catalogue would never finish if it began again.
     */
    l->has_copy = outcome == SHARED_AWAY || outcome == SHARED_BUSY;
    if (outcome == SHARED_YES)
        l->distrusts_peers = false;
    return outcome;
}

/* False: try again later. */
static bool fetch(struct lookout *l)
{
    char why[256] = "";
    struct shared_state state;
    standing_state(l->standing, &state);
    const struct join_node node = {.name = state.node, .epoch = state.epoch};
    if (l->follows)
        l->log->calls->expect(l->log, "");
    enum shared_outcome outcome = make_copy(l, &node, why, sizeof why);
    bool fetched = outcome == SHARED_YES,
         is_away = outcome == SHARED_AWAY || outcome == SHARED_FOREIGN;
    if (is_away)
        standing_record_away(l->standing, l->log);
    else
        standing_record_there(l->standing, l->log);
    if (fetched)
        join_keep_diverged(l->catalogue, l->standing, has_ended, l);
    standing_record_fetched(l->standing, fetched, fetched || is_away ? NULL : why);
    if (fetched)
        report_writer(l);
    l->failures = fetched || is_away ? 0 : l->failures + 1;
    return fetched;
}

/* Queues records that arrived with their notifications for the writer. True if there are any. */
static bool pass_news(struct lookout *l)
{
    struct shared_news *news = l->log->calls->news != NULL ? l->log->calls->news(l->log) : NULL;
    if (news == NULL)
        return false;
    struct shared_news *newest = news;
    while (newest->next != NULL)
        newest = newest->next;
    standing_record_head(l->standing, newest->record.position.seq);
    pthread_mutex_lock(&l->lock);
    struct shared_news **last = &l->news;
    size_t waiting = 0;
    for (; *last != NULL && waiting < NEWS_MOST; waiting++)
        last = &(*last)->next;
    if (waiting < NEWS_MOST)
        *last = news;
    pthread_mutex_unlock(&l->lock);
    if (waiting == NEWS_MOST) /* the log has them */
        shared_news_free(news);
    report_writer(l);
    return true;
}

/* Tests without a write whether a failure of the writer is over: its connection, and whether the
 * log accepts records again. */
static void try_again(struct lookout *l)
{
    int64_t now_ms = clock_now_ms();
    struct shared_state state;
    standing_state(l->standing, &state);
    if (state.away_ms > 0) /* this connection works, so the writer's has failed */
        report_writer(l);
    if (state.refused_ms == 0 || l->log->calls->probe == NULL || now_ms < l->probe_at_ms)
        return;
    l->probe_at_ms = now_ms + PROBE_EACH_MS;
    enum shared_outcome outcome = l->log->calls->probe(l->log, now_ms + CALL_MS);
    if (outcome == SHARED_YES)
        standing_record_accepted(l->standing);
    else if (outcome != SHARED_STOPPED)
        standing_record_outcome(l->standing, l->log, outcome);
}

/* A check in the middle of a restore of PostgreSQL misses records that are restored a moment later:
 * then nothing was lost, and no copy is needed. All nodes may have left, and nobody would send the
 * snapshot that they wait for. A node that left for a corrupt record, or whose rows differed, needs
 * its copy. */
static bool finds_records_again(struct lookout *l, const struct standing_now *now)
{
    if (now->phase != SHARED_LEFT || !now->has_lost || now->has_differed || l->follows ||
        look(l, true) != SHARED_YES)
        return false;
    standing_record_there(l->standing, l->log);
    return standing_record_found(l->standing);
}

static int64_t retry_ms(struct lookout *l)
{
    int64_t ms = (int64_t)RETRY_MS << l->retries;
    if (ms >= LOOK_MS)
        return LOOK_MS;
    l->retries++;
    return ms;
}

/* Looks at the log at least once a second, even without a notification. */
static void wait_and_look(struct lookout *l)
{
    struct shared_state state;
    if (l->follows) {
        standing_state(l->standing, &state);
        l->log->calls->expect(l->log, state.epoch);
    }
    enum shared_outcome outcome = l->log->calls->wait(l->log, clock_now_ms() + LOOK_MS);
    bool passed = outcome == SHARED_YES && pass_news(l);
    if (passed && clock_now_ms() - l->looked_at_ms < LOOK_MS)
        return;
    l->looked_at_ms = clock_now_ms();
    if (outcome == SHARED_YES)
        outcome = look(l, false);
    if (outcome == SHARED_YES) {
        standing_record_there(l->standing, l->log);
        try_again(l);
        l->retries = 0;
    } else if (outcome != SHARED_STOPPED || !standing_now(l->standing).ended) {
        standing_record_outcome(l->standing, l->log, outcome);
        standing_pause(l->standing, retry_ms(l));
    }
}

static int64_t look_again_ms(struct lookout *l)
{
    if (l->failures < 2)
        return retry_ms(l);
    unsigned doubled = l->failures - 1;
    if (doubled > LOOK_DOUBLED_MOST)
        doubled = LOOK_DOUBLED_MOST;
    return l->follows ? (int64_t)LOOK_MS << doubled : LOOK_MS;
}

static void keep_looking(void *context)
{
    struct lookout *l = context;
    for (;;) {
        struct standing_now now = standing_now(l->standing);
        if (now.ended)
            return;
        bool lacks_all = now.phase == SHARED_JOINING || now.phase == SHARED_LEFT;
        if (now.phase == SHARED_JOINED)
            wait_and_look(l);
        else if (!lacks_all || now.has_fetched || (!finds_records_again(l, &now) && !fetch(l)))
            standing_pause(l->standing, look_again_ms(l));
    }
}

static bool lookout_start(struct lookout *l)
{
    return thread_start(&l->thread, "lookout", keep_looking, l);
}

/* Ends the standing, then the thread. Does nothing if none was started. */
static void lookout_stop(struct lookout *l)
{
    if (!thread_runs(&l->thread))
        return;
    standing_end(l->standing);
    l->log->calls->interrupt(l->log);
    thread_join(&l->thread);
}

/* Most bytes of newer records that a node applies while it holds the lock. If there are more, it
 * applies them without the lock, while no list can begin (log.h), and tries again with twice as
 * many, up to the second number, which the small changes of one turn do not exceed. Otherwise a
 * node with few writes would never get a turn beside a node that writes much. */
#define ENTER_BYTES      (1u << 20)
#define ENTER_BYTES_MOST (32u << 20)
/* Bytes applied at a time, or one record; then writes have a turn. */
#define FOLLOW_BYTES (1u << 20)
/* Deadlines: of a call that reads records; of a COMMIT, which may wait for a standby. */
#define FOLLOW_MS       5000
#define COMMIT_MS       5000
#define SETTLE_PAUSE_MS 50 /* between two tries */
/* Steps of SQLite between two calls of `keep`. */
#define KEEP_STEPS 100000

struct member {
    struct catalogue *catalogue;  /* borrowed */
    char *database, *schema_name; /* owned; or NULL */
    struct followed *followed;    /* owned; of a follower, instead of these; NULL: not a follower */
    bool has_key;
    uint8_t key[SHARED_KEY_BYTES];
    struct standing standing;
    struct lookout lookout;
    atomic_bool stopping;

    /* For the writer's thread alone. */
    struct shared_log *log; /* owned */
    sqlite3 *db;            /* NULL: detached */
    struct tx *tx;
    struct tx_log tx_log;
    struct effects *effects;
    struct replay *replay;
    struct shared_unpacker
        *unpacker;  /* for records that arrived with their notification; or NULL */
    int schema;     /* of the file */
    bool entered;   /* a transaction is open there */
    bool elsewhere; /* for the last list: another node has its site group's turn */
    bool moved;     /* something was applied */
    bool is_stuck;  /* the last record could not be applied */
    uint32_t enter_bytes;
    char last_id[SHARED_ID_SIZE];
};

/* ---- the file's place in the log */

/* Called last in the record's transaction. A failure to read rows does not fail it. */
static void take_digest(void *context, uint64_t seq)
{
    struct member *m = context;
    struct digest_of taken = {.seq = seq};
    if (seq % DIGEST_EACH != 0 || m->effects == NULL || m->followed != NULL ||
        digest_take(m->db, effects_tables(m->effects), seq, taken.bytes) != CATALOGUE_OK)
        return;
    standing_keep_digest(&m->standing, &taken);
}

static enum catalogue_status open_parts(struct member *m);

/* Reads the file's position and schema, which another process may have changed. */
static enum catalogue_status look_where(struct member *m)
{
    struct shared_position at, known = standing_now(&m->standing).at;
    bool found, shared;
    int schema;
    enum catalogue_status status = replay_read_at(m->replay, &at, &found);
    if (status != CATALOGUE_OK || !found)
        return status;
    if (at.seq != known.seq && !schema_version(m->db, &schema, &shared))
        return CATALOGUE_UNAVAILABLE;
    if (at.seq != known.seq && schema != m->schema)
        status = open_parts(m);
    if (status == CATALOGUE_OK) /* otherwise it is checked again */
        standing_set_at(&m->standing, &at);
    return status;
}

/* ---- applying what others wrote */

static void on_moved(void *context, const struct shared_position *at, bool skipped)
{
    struct member *m = context;
    m->moved = true;
    standing_set_at(&m->standing, at);
    if (!skipped)
        standing_count(&m->standing, &m->standing.state.applied_records);
}

static bool is_stopping(void *context)
{
    return atomic_load(&((struct member *)context)->stopping);
}

/* A node that cannot apply records (a full disk) does not hold up lists. */
static bool writes_wait(void *context)
{
    const struct member *m = context;
    return !m->is_stuck && writer_has_small(m->catalogue);
}

/* After a call that applied records: rolls back an incomplete one; one that does not fit is a
 * divergence. */
static enum catalogue_status end_applying(struct member *m, enum shared_outcome outcome)
{
    char why[256] = "";
    enum catalogue_status applied = replay_end(m->replay);
    m->is_stuck = applied != CATALOGUE_OK;
    if (applied == CATALOGUE_CORRUPT)
        snprintf(why, sizeof why,
                 "a record of the log cannot be applied to this node's file: %.180s",
                 replay_why(m->replay));
    if (replay_migrated(m->replay)) {
        enum catalogue_status status = open_parts(m);
        if (status != CATALOGUE_OK)
            return status;
    }
    if (applied == CATALOGUE_CORRUPT) {
        standing_set_phase(&m->standing, SHARED_LEFT, why);
        return CATALOGUE_DIVERGED;
    }
    if (applied == CATALOGUE_NEWER) {
        standing_set_phase(&m->standing, SHARED_TOO_OLD,
                           "the other nodes have a newer schema: upgrade this node");
        return CATALOGUE_UPGRADE_PENDING;
    }
    if (outcome == SHARED_STOPPED && applied != CATALOGUE_OK) { /* tried again */
        snprintf(why, sizeof why, "a record of the log cannot be written to this node's file: %s",
                 catalogue_status_word(applied));
        standing_set_trouble(&m->standing, why);
        return applied;
    }
    if (outcome == SHARED_YES && m->moved)
        standing_clear_trouble(&m->standing);
    return standing_record_outcome(&m->standing, m->log, outcome);
}

/* Whether the file's log and schema allow it to continue. */
static enum catalogue_status may_go_on(struct member *m)
{
    switch (standing_now(&m->standing).phase) {
    case SHARED_JOINED:
        return CATALOGUE_OK;
    case SHARED_JOINING:
        return CATALOGUE_SHARED_AWAY;
    case SHARED_TOO_OLD:
        return CATALOGUE_UPGRADE_PENDING;
    default:
        return CATALOGUE_DIVERGED;
    }
}

static struct shared_news *next_news(struct member *m)
{
    pthread_mutex_lock(&m->lookout.lock);
    struct shared_news *news = m->lookout.news;
    if (news != NULL)
        m->lookout.news = news->next;
    pthread_mutex_unlock(&m->lookout.lock);
    if (news != NULL)
        news->next = NULL;
    return news;
}

/* Applies records that arrived with their notifications, as far as they continue the file.
 * `*applied`: any. */
static enum catalogue_status follow_news(struct member *m, bool *applied)
{
    enum catalogue_status status = CATALOGUE_OK;
    *applied = false;
    for (struct shared_news *news; status == CATALOGUE_OK && (news = next_news(m)) != NULL;
         shared_news_free(news)) {
        struct shared_take take;
        struct shared_position at = standing_now(&m->standing).at;
        if (news->record.position.seq != at.seq + 1)
            continue;
        if (m->unpacker == NULL && (m->unpacker = shared_unpacker_new()) == NULL)
            continue;
        replay_start(m->replay, &take);
        enum shared_outcome outcome = shared_news_take(m->unpacker, news, &at, &take);
        if (outcome == SHARED_NO) { /* the record must be read from the log */
            replay_roll_back(m->replay);
            continue;
        }
        status = end_applying(m, outcome);
        *applied |= outcome == SHARED_YES && status == CATALOGUE_OK;
        if (outcome == SHARED_YES && status == CATALOGUE_OK)
            standing_count(&m->standing, &m->standing.state.notified);
    }
    return status;
}

/* One step; `*more` where there may be more. */
static enum catalogue_status follow_step(struct member *m, int64_t deadline_ms, bool *more)
{
    struct shared_take take;
    bool applied;
    enum catalogue_status status = follow_news(m, &applied);
    if (status != CATALOGUE_OK)
        return status;
    *more = applied && standing_record_head(&m->standing, 0);
    if (applied)
        return CATALOGUE_OK;
    replay_start(m->replay, &take);
    struct shared_position at = standing_now(&m->standing).at;
    uint64_t head = 0;
    enum shared_outcome outcome =
        m->log->calls->tail(m->log, &at, FOLLOW_BYTES, &take, &head, deadline_ms);
    status = end_applying(m, outcome);
    if (status == CATALOGUE_OK)
        *more = standing_record_head(&m->standing, head);
    return status;
}

/* ---- writing */

static enum catalogue_status send(void *context, const void *bytes, size_t len)
{
    struct member *m = context;
    if (!m->entered)
        return CATALOGUE_SHARED_AWAY;
    enum shared_outcome outcome =
        m->log->calls->add(m->log, bytes, len, clock_now_ms() + COMMIT_MS);
    return outcome == SHARED_YES ? CATALOGUE_OK
                                 : standing_record_outcome(&m->standing, m->log, outcome);
}

/* SQLite's progress handler; anything but 0 ends the statement. */
static int on_steps(void *context)
{
    struct member *m = context;
    if (!m->entered || !m->tx->open)
        return 0;
    enum shared_outcome outcome = m->log->calls->keep(m->log, clock_now_ms() + COMMIT_MS);
    if (outcome != SHARED_YES)
        effects_fail(m->effects, standing_record_outcome(&m->standing, m->log, outcome));
    return outcome != SHARED_YES;
}

void member_leave(struct member *m)
{
    if (m->entered)
        m->log->calls->rollback(m->log);
    m->entered = false;
}

static void drop(void *context)
{
    member_leave(context);
}

static int64_t clock_there(void *context)
{
    struct member *m = context;
    return m->entered ? m->log->calls->unix_ms(m->log) / 1000 : 0;
}

/* Applies records up to the known head. */
static enum catalogue_status catch_up(struct member *m, int64_t deadline_ms)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (bool more = true; more && status == CATALOGUE_OK;)
        status = clock_now_ms() < deadline_ms ? follow_step(m, deadline_ms, &more) : CATALOGUE_BUSY;
    return status == CATALOGUE_OK && clock_now_ms() >= deadline_ms ? CATALOGUE_BUSY : status;
}

/* Takes the lock and applies newer records; `*outcome` is the log's. */
static enum catalogue_status begin_there(struct member *m, int site_group, int64_t deadline_ms,
                                         enum shared_outcome *outcome)
{
    struct shared_take take;
    replay_start(m->replay, &take);
    struct shared_position at = standing_now(&m->standing).at;
    *outcome = m->log->calls->begin(m->log, &at, m->enter_bytes, site_group, &take, deadline_ms);
    m->elsewhere = *outcome == SHARED_ELSEWHERE;
    m->entered = *outcome == SHARED_YES;
    if (m->entered)
        m->enter_bytes = ENTER_BYTES;
    else if (*outcome == SHARED_BEHIND && m->enter_bytes < ENTER_BYTES_MOST)
        m->enter_bytes *= 2;
    return end_applying(m, *outcome);
}

static enum catalogue_status may_write(struct member *m)
{
    enum catalogue_status status = may_go_on(m);
    return status == CATALOGUE_OK && m->schema < SCHEMA_VERSION ? CATALOGUE_UPGRADE_PENDING
                                                                : status;
}

enum catalogue_status member_catch_up(struct member *m, int64_t deadline_ms, bool *moved)
{
    enum catalogue_status status = may_write(m);
    *moved = m->moved = false;
    if (status == CATALOGUE_OK)
        status = look_where(m);
    if (status == CATALOGUE_OK)
        status = catch_up(m, deadline_ms);
    *moved = m->moved;
    return status;
}

enum catalogue_status member_enter(struct member *m, int site_group, int64_t deadline_ms,
                                   bool *moved)
{
    enum catalogue_status status = may_write(m);
    *moved = m->moved = m->elsewhere = false;
    enum shared_outcome outcome = SHARED_BEHIND;
    while (status == CATALOGUE_OK && outcome == SHARED_BEHIND) {
        status = look_where(m);
        if (status != CATALOGUE_OK)
            break;
        status = begin_there(m, site_group, deadline_ms, &outcome);
        if (outcome == SHARED_BEHIND)
            status = catch_up(m, deadline_ms);
    }
    *moved = m->moved;
    if (status != CATALOGUE_OK)
        member_leave(m);
    return status;
}

bool member_group_is_elsewhere(const struct member *m)
{
    return m->elsewhere;
}

bool member_pass(struct member *m, bool waits)
{
    return m->log->calls->pass(m->log, waits, clock_now_ms() + COMMIT_MS);
}

int64_t member_awaited_ms(struct member *m)
{
    if (m->entered)
        return m->log->calls->awaited_ms(m->log);
    return standing_now(&m->standing).behind_ms;
}

/* Commits the record in the log. The file's new position was written before, so that after the
 * commit there the COMMIT here needs no more disk space. */
static enum catalogue_status commit_there(struct member *m, struct shared_record *record)
{
    struct shared_position next = standing_now(&m->standing).at;
    next.seq++;
    enum catalogue_status status = replay_write_at(m->replay, &next);
    if (status != CATALOGUE_OK)
        return status;
    shared_make_id(record->id);
    memcpy(m->last_id, record->id, sizeof m->last_id);
    snprintf(record->node, sizeof record->node, "%s", m->standing.state.node);
    record->at = clock_unix_ms();
    enum shared_outcome outcome = m->log->calls->commit(m->log, record, clock_now_ms() + COMMIT_MS);
    m->entered = false;
    return standing_record_commit(&m->standing, m->log, outcome);
}

/* Ends a transaction that has no record. What it found, such as an earlier change that the client
 * repeats, is acknowledged only once it is durable. */
static enum catalogue_status confirm(struct member *m)
{
    if (!m->entered) /* only the node's own tables */
        return CATALOGUE_OK;
    m->entered = false;
    return standing_record_outcome(&m->standing, m->log,
                                   m->log->calls->confirm(m->log, clock_now_ms() + COMMIT_MS));
}

/* Between the stamp and COMMIT. */
static enum catalogue_status append(void *context, struct tx *tx)
{
    struct member *m = context;
    enum catalogue_status status = effects_end(m->effects);
    if (status != CATALOGUE_OK)
        return status;
    if (!effects_are_any(m->effects)) {
        if (tx->revision != tx->found_revision) /* its rows were not recorded: no local commit */
            return CATALOGUE_UNAVAILABLE;
        return confirm(m);
    }
    if (!m->entered)
        return CATALOGUE_SHARED_AWAY;
    struct shared_record record = {
        .schema = m->schema, .revision = tx->found_revision, .serial = tx->first_serial};
    status = commit_there(m, &record);
    if (status != CATALOGUE_OK)
        return status;
    /* Now the record is in the log: if it cannot be committed here, it is applied later like those
     * of other nodes. */
    if (replay_write_at(m->replay, &record.position) != CATALOGUE_OK)
        return CATALOGUE_OUTCOME_UNKNOWN;
    take_digest(m, record.position.seq);
    standing_set_at(&m->standing, &record.position);
    return CATALOGUE_OK;
}

const char *member_last_id(const struct member *m)
{
    return m->last_id;
}

enum catalogue_status member_settle(struct member *m, int64_t deadline_ms)
{
    enum shared_outcome outcome = SHARED_UNKNOWN;
    enum catalogue_status status = look_where(m); /* the position of append() was rolled back */
    while (outcome == SHARED_UNKNOWN && !atomic_load(&m->stopping)) {
        outcome = m->log->calls->settle(m->log, m->last_id, deadline_ms);
        if (clock_now_ms() >= deadline_ms)
            break;
        if (outcome == SHARED_UNKNOWN)
            standing_pause(&m->standing, SETTLE_PAUSE_MS);
    }
    if (outcome == SHARED_UNKNOWN)
        return CATALOGUE_OUTCOME_UNKNOWN;
    standing_count(&m->standing, &m->standing.state.settled);
    standing_record_there(&m->standing, m->log);
    if (outcome == SHARED_NO)
        return CATALOGUE_SHARED_AWAY;
    bool more = status == CATALOGUE_OK;
    while (more && status == CATALOGUE_OK)
        status = follow_step(m, deadline_ms, &more);
    if (status == CATALOGUE_OK)
        return status;
    standing_pause(&m->standing,
                   SETTLE_PAUSE_MS); /* the log has it, but it cannot be applied here */
    return status == CATALOGUE_NO_SPACE ? status : CATALOGUE_OUTCOME_UNKNOWN;
}

/* ---- following */

bool member_is_behind(const struct member *m)
{
    return atomic_load_explicit(&m->lookout.behind, memory_order_relaxed);
}

/* Reads the node's identity; again after the file was replaced, perhaps by another node's. */
static enum catalogue_status know_node(struct member *m)
{
    char node[SHARED_NODE_SIZE], epoch[SHARED_EPOCH_SIZE];
    memcpy(node, m->standing.state.node, sizeof node);
    enum catalogue_status status = join_know(m->db, node, epoch);
    standing_know(&m->standing, node, epoch);
    return status;
}

/* Replaces the content of the file by the fetched copy. */
static enum catalogue_status replace(struct member *m)
{
    char why[256] = "";
    bool joins = standing_now(&m->standing).phase == SHARED_JOINING;
    enum catalogue_status status = join_replace(m->catalogue->path, m->db, why, sizeof why);
    m->moved = status == CATALOGUE_OK;
    if (m->moved) {
        standing_forget_head(&m->standing);
        status = know_node(m);
    }
    if (status == CATALOGUE_OK)
        status = open_parts(m);
    standing_record_replaced(&m->standing, joins, m->moved ? NULL : why);
    return status;
}

enum catalogue_status member_follow(struct member *m, bool *moved)
{
    atomic_store(&m->lookout.behind, false);
    *moved = m->moved = false;
    enum catalogue_status status =
        standing_now(&m->standing).has_fetched ? replace(m) : may_go_on(m);
    bool more = false;
    if (status == CATALOGUE_OK)
        status = look_where(m);
    if (status == CATALOGUE_OK)
        status = follow_step(m, clock_now_ms() + FOLLOW_MS, &more);
    if (status == CATALOGUE_OK && more)
        atomic_store(&m->lookout.behind, true);
    *moved = m->moved;
    return status;
}

/* ---- migrations */

bool member_upgrade_is_due(const struct member *m)
{
    return m->schema > 0 && m->schema < SCHEMA_VERSION;
}

/* With the lock of all nodes, in a transaction here. */
static enum catalogue_status append_migration(struct member *m, struct shared_record *record)
{
    effects_begin(m->effects);
    enum catalogue_status status = migration_run(m->db, m->effects, m->schema);
    if (status == CATALOGUE_OK)
        status = effects_end(m->effects);
    effects_stop(m->effects);
    if (status == CATALOGUE_OK)
        status = commit_there(m, record);
    if (status == CATALOGUE_OK)
        status = replay_write_at(m->replay, &record->position);
    return status;
}

enum catalogue_status member_upgrade(struct member *m, bool *moved)
{
    *moved = m->moved = false;
    enum catalogue_status status = may_go_on(m);
    if (status != CATALOGUE_OK || !member_upgrade_is_due(m) ||
        m->catalogue->options.shared.upgrade_by_hand || m->followed != NULL)
        return status;
    int64_t deadline_ms = clock_now_ms() + FOLLOW_MS;
    enum shared_outcome outcome;
    status = begin_there(m, NO_SITE_GROUP, deadline_ms, &outcome);
    *moved = m->moved;
    if (status != CATALOGUE_OK || !member_upgrade_is_due(m)) { /* another node did it */
        member_leave(m);
        return status;
    }
    struct shared_record record = {.schema = m->schema};
    outcome = m->log->calls->older_are_gone(m->log, SCHEMA_VERSION, deadline_ms);
    if (outcome == SHARED_NO)
        status = CATALOGUE_BUSY;
    else
        status = standing_record_outcome(&m->standing, m->log, outcome);
    if (status == CATALOGUE_OK)
        status = replay_begin(m->replay);
    if (status == CATALOGUE_OK)
        status = append_migration(m, &record);
    if (status == CATALOGUE_OK)
        status = replay_commit(m->replay);
    replay_roll_back(m->replay);
    member_leave(m);
    if (status == CATALOGUE_OK) {
        m->moved = *moved = true;
        status = open_parts(m);
    }
    return status;
}

/* ---- making */

struct shared_log *(*member_open_log)(const struct shared_log_options *options, char *why,
                                      size_t why_size) = shared_log_open_postgresql;

/* The effects stay the same, since `tx_log` and the connection's hook refer to them. */
static enum catalogue_status read_tables(struct member *m)
{
    if (m->effects != NULL)
        return effects_reload(m->effects);
    m->effects = effects_new(m->db, &m->tx->recorder, send, m);
    m->tx_log = (struct tx_log){m->effects, append, drop, clock_there, m};
    return m->effects != NULL ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

static void close_parts(struct member *m)
{
    replay_free(m->replay);
    effects_free(m->effects);
    m->replay = NULL;
    m->effects = NULL;
}

/* Creates the parts that depend on the file's schema, or replaces them after it changed. If memory
 * runs out, the old ones stay and it is tried again. */
static enum catalogue_status open_parts(struct member *m)
{
    const struct replay_events events = {take_digest, on_moved, is_stopping, writes_wait, m};
    bool found = false;
    struct shared_position at = {0};
    struct replay *replay = replay_new(m->db, &events);
    enum catalogue_status status = replay != NULL ? read_tables(m) : CATALOGUE_NO_MEMORY;
    if (status != CATALOGUE_OK) {
        replay_free(replay);
        return status;
    }
    replay_free(m->replay);
    m->replay = replay;
    m->schema = replay_schema(m->replay);
    status = replay_read_at(m->replay, &at, &found);
    if (status != CATALOGUE_OK)
        return status;
    standing_record_file(&m->standing, found ? &at : NULL, m->schema, m->schema < SCHEMA_VERSION);
    return CATALOGUE_OK;
}

/* Opens two handles of the file's log, each for one thread. */
static bool open_logs(struct member *m, char *why, size_t why_size)
{
    const struct shared_state *state = &m->standing.state;
    const struct shared_log_options options = {.database = m->database,
                                               .schema = m->schema_name,
                                               .epoch = state->epoch[0] ? state->epoch : NULL,
                                               .node = state->node,
                                               .key = m->has_key ? m->key : NULL};
    if (m->log == NULL)
        m->log = m->followed != NULL ? followed_open_log(m->followed, FOLLOWED_READS)
                                     : member_open_log(&options, why, why_size);
    if (m->log != NULL && m->lookout.log == NULL)
        m->lookout.log = m->followed != NULL ? followed_open_log(m->followed, FOLLOWED_FETCHES)
                                             : member_open_log(&options, why, why_size);
    return m->lookout.log != NULL;
}

enum catalogue_status member_attach(struct member *m, struct tx *tx, char *why, size_t why_size)
{
    m->tx = tx;
    m->db = tx->db;
    enum catalogue_status status = open_parts(m);
    if (status == CATALOGUE_OK)
        status = know_node(m);
    if (status == CATALOGUE_OK)
        status =
            connection_status(sqlite3_exec(m->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL));
    if (status != CATALOGUE_OK) {
        snprintf(why, why_size, "%s: cannot be used as a node's file: %s", m->catalogue->path,
                 sqlite3_errmsg(m->db));
    } else if (!open_logs(m, why, why_size)) {
        status = CATALOGUE_UNAVAILABLE;
    }
    if (status != CATALOGUE_OK) {
        member_detach(m);
        return status;
    }
    tx->log = &m->tx_log;
    sqlite3_progress_handler(m->db, KEEP_STEPS, on_steps, m);
    return CATALOGUE_OK;
}

void member_detach(struct member *m)
{
    if (m->db == NULL)
        return;
    member_leave(m);
    sqlite3_progress_handler(m->db, 0, NULL, NULL);
    close_parts(m);
    m->tx->log = NULL;
    m->db = NULL;
    m->tx = NULL;
}

struct member *member_new(struct catalogue *c)
{
    struct member *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->catalogue = c;
    m->enter_bytes = ENTER_BYTES;
    standing_init(&m->standing, c->options.shared.node);
    m->lookout = (struct lookout){
        .catalogue = c, .standing = &m->standing, .follows = c->options.shared.follows};
    pthread_mutex_init(&m->lookout.lock, NULL);
    m->has_key = c->options.shared.key != NULL;
    if (m->has_key)
        memcpy(m->key, c->options.shared.key, sizeof m->key);
    bool failed = c->options.shared.follows &&
                  (m->followed = followed_new(c->options.shared.followed, c->path)) == NULL;
    m->database = text_copy(c->options.shared.database, &failed);
    m->schema_name = text_copy(c->options.shared.schema, &failed);
    if (!failed)
        return m;
    member_free(m);
    return NULL;
}

void member_free(struct member *m)
{
    if (m == NULL)
        return;
    assert(m->db == NULL && !thread_runs(&m->lookout.thread));
    if (m->log != NULL)
        m->log->calls->free(m->log);
    if (m->lookout.log != NULL)
        m->lookout.log->calls->free(m->lookout.log);
    followed_free(m->followed);
    standing_done(&m->standing);
    shared_unpacker_free(m->unpacker);
    shared_news_free(m->lookout.news);
    pthread_mutex_destroy(&m->lookout.lock);
    explicit_bzero(m->key, sizeof m->key);
    free(m->database);
    free(m->schema_name);
    free(m);
}

bool member_start(struct member *m)
{
    return lookout_start(&m->lookout);
}

void member_abandon(struct member *m)
{
    atomic_store(&m->stopping, true);
    if (m->log != NULL)
        m->log->calls->interrupt(m->log);
}

void member_stop(struct member *m)
{
    if (m != NULL)
        lookout_stop(&m->lookout);
}

struct standing *member_standing(struct member *m)
{
    return &m->standing;
}

struct followed *member_followed(struct member *m)
{
    return m->followed;
}

unsigned member_hops(struct member *m)
{
    struct relay_head head = {.hops = 0};
    if (m->followed == NULL)
        return 0;
    followed_head(m->followed, &head);
    return head.hops + 1;
}
