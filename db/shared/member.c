#include "db/shared/member.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/shared/effects.h"
#include "db/shared/join.h"
#include "db/shared/migration.h"
#include "db/write/writer.h"
#include "server/base/clock.h"

/* What the lock's holder still applies with the others waiting; more is followed without it.
 * Meanwhile another may take the lock, for a list again: who has waited for so long applies more.
 */
#define ENTER_BYTES      (1u << 20)
#define ENTER_LATE_BYTES (64u << 20)
#define LATE_MS          3000
/* Followed at a time; then writes have a turn. */
#define FOLLOW_BYTES (8u << 20)
/* A call that follows; a COMMIT there, which may wait for another machine. */
#define FOLLOW_MS 5000
#define COMMIT_MS 5000
/* Between two looks, and two tries to reach it. */
#define LOOK_MS         1000
#define SETTLE_PAUSE_MS 50
/* Steps of the engine between two looks whether the log wants a word. */
#define KEEP_STEPS 100000
/* So much of one record: it gets the page cache of a bulk. */
#define LARGE_BYTES (4u << 20)

/* Digests that are kept for others to be compared with. */
#define DIGESTS_KEPT 64

struct member_digest {
    uint64_t seq; /* 0: none */
    uint8_t digest[DIGEST_BYTES];
};

struct member {
    struct catalogue *catalogue;      /* borrowed */
    struct shared_log *log, *looking; /* the writer's, the thread's; owned */
    char *database;                   /* owned */

    /* The writer's thread. */
    sqlite3 *db; /* NULL: detached */
    struct tx *tx;
    struct tx_log tx_log;
    struct effects *effects;
    struct effects_applier *applier;
    sqlite3_stmt *read_at, *write_at, *begin, *commit, *rollback;
    bool entered;           /* a transaction is open there */
    int64_t waits_since_ms; /* for one; 0: it does not */
    char last_id[SHARED_ID_SIZE];
    /* Of a record that is being applied. */
    bool skips, moved, migrated;
    uint64_t record_bytes;
    enum catalogue_status applying;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wakes;
    bool stops;
    struct shared_state state;
    struct shared_position at;
    int64_t behind_since_ms;
    bool has_fetched; /* a snapshot lies ready */
    struct member_digest digests[DIGESTS_KEPT], last_digest;
    uint64_t mismatch_seq, replacements;
    bool has_differed;
    int schema; /* of the file */
    atomic_bool behind;
    atomic_bool stopping;
    _Atomic int64_t away_ms_since;
};

/* ---- what is known */

static void set_phase(struct member *m, enum shared_phase phase, const char *trouble)
{
    pthread_mutex_lock(&m->lock);
    m->state.phase = phase;
    snprintf(m->state.trouble, sizeof m->state.trouble, "%s", trouble);
    pthread_cond_signal(&m->wakes);
    pthread_mutex_unlock(&m->lock);
}

static enum shared_phase phase_of(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    enum shared_phase phase = m->state.phase;
    pthread_mutex_unlock(&m->lock);
    return phase;
}

static struct shared_position where(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    struct shared_position at = m->at;
    pthread_mutex_unlock(&m->lock);
    return at;
}

/* The lock is held. */
static void note_head(struct member *m, uint64_t head)
{
    if (head > m->state.head)
        m->state.head = head;
    bool behind = m->state.head > m->at.seq;
    if (!behind)
        m->behind_since_ms = 0;
    else if (m->behind_since_ms == 0)
        m->behind_since_ms = clock_now_ms();
}

static void set_where(struct member *m, const struct shared_position *at)
{
    pthread_mutex_lock(&m->lock);
    m->at = *at;
    m->state.applied = at->seq;
    note_head(m, at->seq);
    pthread_mutex_unlock(&m->lock);
}

static void count(struct member *m, uint64_t *counter)
{
    pthread_mutex_lock(&m->lock);
    ++*counter;
    pthread_mutex_unlock(&m->lock);
}

static void note_away(struct member *m, const struct shared_log *log)
{
    int64_t none = 0;
    atomic_compare_exchange_strong(&m->away_ms_since, &none, clock_now_ms());
    pthread_mutex_lock(&m->lock);
    snprintf(m->state.trouble, sizeof m->state.trouble, "%s", log->calls->why(log));
    pthread_mutex_unlock(&m->lock);
}

static void clear_trouble(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    if (m->state.phase == SHARED_JOINED)
        m->state.trouble[0] = '\0';
    pthread_mutex_unlock(&m->lock);
}

static void note_there(struct member *m)
{
    if (atomic_exchange(&m->away_ms_since, 0) != 0)
        clear_trouble(m);
}

/* What a call came to, for the writes that wait for it. */
static enum catalogue_status judge(struct member *m, struct shared_log *log,
                                   enum shared_outcome outcome)
{
    switch (outcome) {
    case SHARED_YES:
        note_there(m);
        return CATALOGUE_OK;
    case SHARED_BUSY:
    case SHARED_BEHIND:
        note_there(m);
        return CATALOGUE_BUSY;
    case SHARED_DIVERGED:
    case SHARED_TRIMMED:
        note_there(m);
        if (phase_of(m) == SHARED_JOINED)
            set_phase(m, SHARED_LEFT, log->calls->why(log));
        return CATALOGUE_DIVERGED;
    case SHARED_NO_MEMORY:
        return CATALOGUE_NO_MEMORY;
    case SHARED_STOPPED:
        return CATALOGUE_SHARED_AWAY;
    default:
        note_away(m, log);
        return CATALOGUE_SHARED_AWAY;
    }
}

/* ---- the file's place in the log */

/* A result code of SQLite. Step and reset. */
static int run(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement), reset = sqlite3_reset(statement);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset;
}

/* `*found`: false: the file has nothing of it yet. */
static enum catalogue_status read_at(struct member *m, struct shared_position *at, bool *found)
{
    int rc = sqlite3_step(m->read_at);
    *found = rc == SQLITE_ROW;
    if (*found) {
        const void *chain = sqlite3_column_blob(m->read_at, 1);
        at->seq = (uint64_t)sqlite3_column_int64(m->read_at, 0);
        if (chain && sqlite3_column_bytes(m->read_at, 1) == SHARED_CHAIN_BYTES)
            memcpy(at->chain, chain, SHARED_CHAIN_BYTES);
    }
    sqlite3_reset(m->read_at);
    return connection_status(rc);
}

static enum catalogue_status write_at(struct member *m, const struct shared_position *at)
{
    sqlite3_bind_int64(m->write_at, 1, (sqlite3_int64)at->seq);
    sqlite3_bind_blob(m->write_at, 2, at->chain, SHARED_CHAIN_BYTES, SQLITE_TRANSIENT);
    return connection_status(run(m->write_at));
}

/* In the record's transaction, last. What cannot be read for it is no reason to fail. */
static void take_digest(struct member *m, uint64_t seq)
{
    struct member_digest taken = {.seq = seq};
    if (seq % DIGEST_EACH != 0 ||
        digest_take(m->db, effects_tables(m->effects), seq, taken.digest) != CATALOGUE_OK)
        return;
    pthread_mutex_lock(&m->lock);
    m->digests[seq / DIGEST_EACH % DIGESTS_KEPT] = m->last_digest = taken;
    pthread_mutex_unlock(&m->lock);
}

static enum catalogue_status open_parts(struct member *m);

/* Where the file is, which another process may have brought further, and to a newer form. */
static enum catalogue_status look_where(struct member *m)
{
    struct shared_position at, known = where(m);
    bool found, shared;
    int schema;
    enum catalogue_status status = read_at(m, &at, &found);
    if (status != CATALOGUE_OK || !found)
        return status;
    set_where(m, &at);
    if (at.seq == known.seq)
        return CATALOGUE_OK;
    if (!schema_version(m->db, &schema, &shared))
        return CATALOGUE_UNAVAILABLE;
    return schema == m->schema ? CATALOGUE_OK : open_parts(m);
}

/* ---- applying what others wrote */

static void set_cache(struct member *m, int kib)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA cache_size=-%d", kib);
    sqlite3_exec(m->db, sql, NULL, NULL, NULL);
}

static bool begin_record(void *context, const struct shared_record *record)
{
    struct member *m = context;
    struct shared_position at = {0};
    bool found;
    m->record_bytes = 0;
    if (atomic_load(&m->stopping))
        return false;
    if (record->schema > SCHEMA_VERSION) {
        m->applying = CATALOGUE_NEWER;
        return false;
    }
    m->applying = connection_status(run(m->begin));
    if (m->applying == CATALOGUE_OK)
        m->applying = read_at(m, &at, &found);
    if (m->applying != CATALOGUE_OK)
        return false;
    m->skips = at.seq >= record->position.seq; /* another process did it */
    if (!m->skips && at.seq + 1 != record->position.seq)
        m->applying = CATALOGUE_UNAVAILABLE;
    effects_apply_begin(m->applier);
    return m->applying == CATALOGUE_OK;
}

static bool apply_bytes(void *context, const void *bytes, size_t size)
{
    struct member *m = context;
    if (m->skips)
        return true;
    if (m->record_bytes < LARGE_BYTES && m->record_bytes + size >= LARGE_BYTES)
        set_cache(m, WRITER_BULK_CACHE_KIB);
    m->record_bytes += size;
    m->applying = effects_apply(m->applier, bytes, size);
    return m->applying == CATALOGUE_OK && !atomic_load(&m->stopping);
}

static void roll_back(struct member *m)
{
    if (!sqlite3_get_autocommit(m->db))
        run(m->rollback);
    if (m->record_bytes >= LARGE_BYTES) {
        set_cache(m, WRITER_CACHE_KIB);
        sqlite3_db_release_memory(m->db);
    }
    m->record_bytes = 0;
}

static bool end_record(void *context, const struct shared_record *record)
{
    struct member *m = context;
    if (!m->skips) {
        m->applying = effects_apply_end(m->applier);
        if (m->applying == CATALOGUE_OK)
            m->applying = write_at(m, &record->position);
        if (m->applying == CATALOGUE_OK && !effects_apply_migrated(m->applier))
            take_digest(m, record->position.seq);
        if (m->applying == CATALOGUE_OK)
            m->applying = connection_status(run(m->commit));
    }
    roll_back(m); /* nothing, where it was committed */
    if (m->applying != CATALOGUE_OK)
        return false;
    m->moved = true;
    set_where(m, &record->position);
    if (!m->skips)
        count(m, &m->state.applied_records);
    m->migrated |= !m->skips && effects_apply_migrated(m->applier);
    return true;
}

/* After a call that applied: what is half done goes, and what does not fit is divergence. */
static enum catalogue_status end_applying(struct member *m, enum shared_outcome outcome)
{
    roll_back(m);
    if (m->migrated) {
        m->migrated = false;
        enum catalogue_status status = open_parts(m);
        if (status != CATALOGUE_OK)
            return status;
    }
    if (m->applying == CATALOGUE_CORRUPT) {
        char why[256];
        snprintf(why, sizeof why, "a record of the log does not fit this node's file: %.180s",
                 effects_apply_why(m->applier));
        set_phase(m, SHARED_LEFT, why);
        return CATALOGUE_DIVERGED;
    }
    if (m->applying == CATALOGUE_NEWER) {
        set_phase(m, SHARED_TOO_OLD,
                  "the others have a newer form of the catalogue: upgrade this node");
        return CATALOGUE_UPGRADE_PENDING;
    }
    if (outcome == SHARED_STOPPED && m->applying != CATALOGUE_OK) { /* tried again */
        pthread_mutex_lock(&m->lock);
        snprintf(m->state.trouble, sizeof m->state.trouble, "a record cannot be written here: %s",
                 catalogue_status_word(m->applying));
        pthread_mutex_unlock(&m->lock);
        return m->applying;
    }
    if (outcome == SHARED_YES && m->moved)
        clear_trouble(m);
    return judge(m, m->log, outcome);
}

static const char not_here[] = "this node has nothing of the shared catalogue yet";

/* Whether the file is one that may go on. */
static enum catalogue_status may_go_on(struct member *m)
{
    switch (phase_of(m)) {
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

static struct shared_take take_of(struct member *m)
{
    m->applying = CATALOGUE_OK;
    return (struct shared_take){begin_record, apply_bytes, end_record, m};
}

/* One step; `*more` where there may be more. */
static enum catalogue_status follow_step(struct member *m, int64_t deadline_ms, bool *more)
{
    struct shared_take take = take_of(m);
    struct shared_position at = where(m);
    uint64_t head = 0;
    enum shared_outcome outcome =
        m->log->calls->tail(m->log, &at, FOLLOW_BYTES, &take, &head, deadline_ms);
    enum catalogue_status status = end_applying(m, outcome);
    if (status == CATALOGUE_OK) {
        pthread_mutex_lock(&m->lock);
        note_head(m, head);
        *more = m->state.head > m->at.seq;
        pthread_mutex_unlock(&m->lock);
    }
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
    return outcome == SHARED_YES ? CATALOGUE_OK : judge(m, m->log, outcome);
}

/* Now and then while the engine works; anything but 0 ends the statement. */
static int on_steps(void *context)
{
    struct member *m = context;
    if (!m->entered || !m->tx->open)
        return 0;
    enum shared_outcome outcome = m->log->calls->keep(m->log, clock_now_ms() + COMMIT_MS);
    if (outcome != SHARED_YES)
        effects_fail(m->effects, judge(m, m->log, outcome));
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

enum catalogue_status member_enter(struct member *m, int64_t deadline_ms, bool *moved)
{
    enum catalogue_status status = may_go_on(m);
    *moved = m->moved = false;
    if (status == CATALOGUE_OK && m->schema < SCHEMA_VERSION)
        status = CATALOGUE_UPGRADE_PENDING;
    enum shared_outcome outcome = SHARED_BEHIND;
    if (m->waits_since_ms == 0)
        m->waits_since_ms = clock_now_ms();
    while (status == CATALOGUE_OK && outcome == SHARED_BEHIND) {
        status = look_where(m);
        if (status != CATALOGUE_OK)
            break;
        struct shared_take take = take_of(m);
        struct shared_position at = where(m);
        bool late = clock_now_ms() - m->waits_since_ms >= LATE_MS;
        outcome = m->log->calls->begin(m->log, &at, late ? ENTER_LATE_BYTES : ENTER_BYTES, &take,
                                       deadline_ms);
        status = end_applying(m, outcome);
        bool more = outcome == SHARED_BEHIND;
        if (more)
            status = CATALOGUE_OK;
        while (more && status == CATALOGUE_OK)
            status =
                clock_now_ms() < deadline_ms ? follow_step(m, deadline_ms, &more) : CATALOGUE_BUSY;
    }
    *moved = m->moved;
    m->entered = outcome == SHARED_YES;
    if (status != CATALOGUE_OK)
        member_leave(m);
    if (status != CATALOGUE_BUSY)
        m->waits_since_ms = 0;
    return status;
}

int64_t member_awaited_ms(const struct member *m)
{
    return m->entered ? m->log->calls->awaited_ms(m->log) : 0;
}

/* Commits what was recorded there. Where the file is then is written before, too: what is left to
 * do behind the COMMIT there needs no room of the disk that it has not. */
static enum catalogue_status commit_there(struct member *m, struct shared_record *record)
{
    struct shared_position next = where(m);
    next.seq++;
    enum catalogue_status status = write_at(m, &next);
    if (status != CATALOGUE_OK)
        return status;
    shared_make_id(record->id);
    memcpy(m->last_id, record->id, sizeof m->last_id);
    snprintf(record->node, sizeof record->node, "%s", m->state.node);
    record->at = clock_unix_ms();
    enum shared_outcome outcome = m->log->calls->commit(m->log, record, clock_now_ms() + COMMIT_MS);
    m->entered = false;
    switch (outcome) {
    case SHARED_YES:
        note_there(m);
        count(m, &m->state.appended);
        return CATALOGUE_OK;
    case SHARED_UNKNOWN:
        note_away(m, m->log);
        count(m, &m->state.unknown);
        return CATALOGUE_OUTCOME_UNKNOWN;
    default:
        count(m, &m->state.refused);
        return outcome == SHARED_NO_MEMORY ? CATALOGUE_NO_MEMORY : CATALOGUE_SHARED_AWAY;
    }
}

/* Between the stamp and COMMIT. */
static enum catalogue_status append(void *context, struct tx *tx)
{
    struct member *m = context;
    enum catalogue_status status = effects_end(m->effects);
    if (status != CATALOGUE_OK)
        return status;
    if (!effects_are_any(m->effects)) { /* the node's own alone */
        member_leave(m);
        return CATALOGUE_OK;
    }
    if (!m->entered)
        return CATALOGUE_SHARED_AWAY;
    struct shared_record record = {
        .schema = m->schema, .revision = tx->found_revision, .serial = tx->first_serial};
    status = commit_there(m, &record);
    if (status != CATALOGUE_OK)
        return status;
    /* From here on it is everybody's: where it cannot be written here, it comes as others' do. */
    if (write_at(m, &record.position) != CATALOGUE_OK)
        return CATALOGUE_OUTCOME_UNKNOWN;
    take_digest(m, record.position.seq);
    set_where(m, &record.position);
    return CATALOGUE_OK;
}

const char *member_last_id(const struct member *m)
{
    return m->last_id;
}

static void pause_ms(struct member *m, int64_t ms)
{
    struct timespec until = clock_after_ms(CLOCK_MONOTONIC, ms);
    pthread_mutex_lock(&m->lock);
    if (!m->stops)
        pthread_cond_clockwait(&m->wakes, &m->lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&m->lock);
}

enum catalogue_status member_settle(struct member *m, int64_t deadline_ms)
{
    enum shared_outcome outcome = SHARED_UNKNOWN;
    enum catalogue_status status = look_where(m); /* what append() noted was rolled back */
    while (outcome == SHARED_UNKNOWN && !atomic_load(&m->stopping)) {
        outcome = m->log->calls->settle(m->log, m->last_id, deadline_ms);
        if (clock_now_ms() >= deadline_ms)
            break;
        if (outcome == SHARED_UNKNOWN)
            pause_ms(m, SETTLE_PAUSE_MS);
    }
    if (outcome == SHARED_UNKNOWN)
        return CATALOGUE_OUTCOME_UNKNOWN;
    count(m, &m->state.settled);
    note_there(m);
    if (outcome == SHARED_NO)
        return CATALOGUE_SHARED_AWAY;
    bool more = status == CATALOGUE_OK;
    while (more && status == CATALOGUE_OK)
        status = follow_step(m, deadline_ms, &more);
    if (status == CATALOGUE_OK)
        return status;
    pause_ms(m, SETTLE_PAUSE_MS); /* it is there, and cannot be written here: a full disk */
    return CATALOGUE_OUTCOME_UNKNOWN;
}

/* ---- following */

bool member_is_behind(const struct member *m)
{
    return atomic_load_explicit(&m->behind, memory_order_relaxed);
}

/* What was fetched takes the place of all that is here. */
static enum catalogue_status replace(struct member *m)
{
    char why[256] = "", node[SHARED_NODE_SIZE] = "", epoch[SHARED_EPOCH_SIZE] = "";
    enum catalogue_status status = join_replace(m->catalogue->path, m->db, why, sizeof why);
    bool replaced = status == CATALOGUE_OK, joins = phase_of(m) == SHARED_JOINING;
    if (replaced)
        status = join_know(m->db, node, epoch);
    if (replaced && status == CATALOGUE_OK)
        status = open_parts(m);
    m->moved = replaced;
    pthread_mutex_lock(&m->lock);
    if (replaced)
        memcpy(m->state.epoch, epoch, sizeof m->state.epoch);
    m->has_fetched = false; /* behind the phase, or it is fetched again */
    m->state.replaced += replaced && !joins;
    m->replacements += replaced;
    if (!replaced)
        snprintf(m->state.trouble, sizeof m->state.trouble, "%.250s", why);
    pthread_mutex_unlock(&m->lock);
    return status;
}

enum catalogue_status member_follow(struct member *m, bool *moved)
{
    atomic_store(&m->behind, false);
    *moved = m->moved = false;
    pthread_mutex_lock(&m->lock);
    bool has_fetched = m->has_fetched;
    pthread_mutex_unlock(&m->lock);
    enum catalogue_status status = has_fetched ? replace(m) : may_go_on(m);
    bool more = false;
    if (status == CATALOGUE_OK)
        status = look_where(m);
    if (status == CATALOGUE_OK)
        status = follow_step(m, clock_now_ms() + FOLLOW_MS, &more);
    if (status == CATALOGUE_OK && more)
        atomic_store(&m->behind, true);
    *moved = m->moved;
    return status;
}

/* ---- migrations */

bool member_upgrade_is_due(const struct member *m)
{
    return m->schema > 0 && m->schema < SCHEMA_VERSION;
}

/* Within the lock there, and a transaction here. */
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
        status = write_at(m, &record->position);
    return status;
}

enum catalogue_status member_upgrade(struct member *m, bool *moved)
{
    *moved = m->moved = false;
    enum catalogue_status status = may_go_on(m);
    if (status != CATALOGUE_OK || !member_upgrade_is_due(m) ||
        m->catalogue->options.shared.upgrade_by_hand)
        return status;
    int64_t deadline_ms = clock_now_ms() + FOLLOW_MS;
    struct shared_take take = take_of(m);
    struct shared_position at = where(m);
    enum shared_outcome outcome =
        m->log->calls->begin(m->log, &at, ENTER_BYTES, &take, deadline_ms);
    status = end_applying(m, outcome);
    m->entered = outcome == SHARED_YES;
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
        status = judge(m, m->log, outcome);
    if (status == CATALOGUE_OK)
        status = connection_status(run(m->begin));
    if (status == CATALOGUE_OK)
        status = append_migration(m, &record);
    if (status == CATALOGUE_OK)
        status = connection_status(run(m->commit));
    roll_back(m);
    member_leave(m);
    if (status == CATALOGUE_OK) {
        m->moved = *moved = true;
        status = open_parts(m);
    }
    return status;
}

/* ---- the thread */

/* Stops at the first record: there is one. */
static bool see_record(void *context, const struct shared_record *record)
{
    *(bool *)context = true;
    (void)record;
    return false;
}

/* Looks whether there is something newer than what is here, and tells the writer. */
static enum shared_outcome look(struct member *m)
{
    struct shared_position at = where(m);
    bool seen = false;
    uint64_t head = 0;
    const struct shared_take take = {see_record, NULL, NULL, &seen};
    enum shared_outcome outcome =
        m->looking->calls->tail(m->looking, &at, 1, &take, &head, clock_now_ms() + FOLLOW_MS);
    if (seen) {
        outcome = SHARED_YES;
        atomic_store(&m->behind, true);
        writer_poke(m->catalogue);
    }
    pthread_mutex_lock(&m->lock);
    note_head(m, head);
    pthread_mutex_unlock(&m->lock);
    return outcome;
}

/* False: it is to be tried again after a while. */
static bool fetch(struct member *m)
{
    char why[256] = "";
    struct shared_state state;
    member_state(m, &state);
    const struct join_node node = {.name = state.node, .epoch = state.epoch};
    enum shared_outcome outcome =
        join_fetch(m->looking, m->catalogue->path, &node, why, sizeof why);
    if (outcome == SHARED_AWAY || outcome == SHARED_FOREIGN)
        note_away(m, m->looking);
    else
        note_there(m);
    pthread_mutex_lock(&m->lock);
    m->has_fetched = outcome == SHARED_YES;
    if (outcome != SHARED_YES && *why != '\0')
        snprintf(m->state.trouble, sizeof m->state.trouble, "%.250s", why);
    pthread_mutex_unlock(&m->lock);
    if (outcome == SHARED_YES) {
        atomic_store(&m->behind, true);
        writer_poke(m->catalogue);
    }
    return outcome == SHARED_YES;
}

static bool needs_snapshot(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    bool needs =
        (m->state.phase == SHARED_JOINING || m->state.phase == SHARED_LEFT) && !m->has_fetched;
    pthread_mutex_unlock(&m->lock);
    return needs;
}

static bool stops(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    bool stops = m->stops;
    pthread_mutex_unlock(&m->lock);
    return stops;
}

static void *keep_looking(void *context)
{
    struct member *m = context;
    while (!stops(m)) {
        if (needs_snapshot(m)) {
            if (!fetch(m))
                pause_ms(m, LOOK_MS);
            continue;
        }
        if (phase_of(m) != SHARED_JOINED) {
            pause_ms(m, LOOK_MS);
            continue;
        }
        enum shared_outcome outcome = m->looking->calls->wait(m->looking, clock_now_ms() + LOOK_MS);
        if (outcome == SHARED_YES)
            outcome = look(m);
        if (outcome == SHARED_YES)
            note_there(m);
        else if (outcome != SHARED_STOPPED || !stops(m)) {
            judge(m, m->looking, outcome);
            pause_ms(m, LOOK_MS);
        }
    }
    return NULL;
}

/* ---- making */

struct shared_log *(*member_open_log)(const struct shared_log_options *options, char *why,
                                      size_t why_size) = shared_log_open_postgresql;

static void close_parts(struct member *m)
{
    effects_applier_free(m->applier);
    effects_free(m->effects);
    m->applier = NULL;
    m->effects = NULL;
    sqlite3_stmt **const statements[] = {&m->read_at, &m->write_at, &m->begin, &m->commit,
                                         &m->rollback};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        sqlite3_finalize(*statements[i]);
        *statements[i] = NULL;
    }
}

/* All that hangs on what the file holds. */
static enum catalogue_status open_parts(struct member *m)
{
    bool shared, found = false;
    int schema;
    struct shared_position at = {0};
    close_parts(m);
    m->effects = effects_new(m->db, m->tx->recorder, send, m);
    m->applier = effects_applier_new(m->db);
    m->read_at = connection_prepare(m->db, "SELECT seq, chain FROM local_shared WHERE one = 1");
    m->write_at =
        connection_prepare(m->db, "UPDATE local_shared SET seq = ?1, chain = ?2 WHERE one = 1");
    m->begin = connection_prepare(m->db, "BEGIN IMMEDIATE");
    m->commit = connection_prepare(m->db, "COMMIT");
    m->rollback = connection_prepare(m->db, "ROLLBACK");
    if (!m->effects || !m->applier || !m->read_at || !m->write_at || !m->begin || !m->commit ||
        !m->rollback || !schema_version(m->db, &schema, &shared))
        return CATALOGUE_NO_MEMORY;
    m->tx_log = (struct tx_log){m->effects, append, drop, m};
    m->schema = schema;
    enum catalogue_status status = read_at(m, &at, &found);
    if (status != CATALOGUE_OK)
        return status;
    if (found)
        set_where(m, &at);
    pthread_mutex_lock(&m->lock);
    m->state.upgrade_pending = found && schema < SCHEMA_VERSION;
    pthread_mutex_unlock(&m->lock);
    set_phase(m, found ? SHARED_JOINED : SHARED_JOINING, found ? "" : not_here);
    return CATALOGUE_OK;
}

/* Each is one thread's, and both are of the log that the file belongs to. */
static bool open_logs(struct member *m, char *why, size_t why_size)
{
    const struct shared_log_options options = {.database = m->database,
                                               .epoch = m->state.epoch[0] ? m->state.epoch : NULL,
                                               .node = m->state.node};
    if (!m->log)
        m->log = member_open_log(&options, why, why_size);
    if (m->log && !m->looking)
        m->looking = member_open_log(&options, why, why_size);
    return m->looking != NULL;
}

/* Again where the file was replaced, which may be another node's. */
static enum catalogue_status know_node(struct member *m)
{
    char node[SHARED_NODE_SIZE], epoch[SHARED_EPOCH_SIZE];
    memcpy(node, m->state.node, sizeof node); /* this thread alone writes it */
    enum catalogue_status status = join_know(m->db, node, epoch);
    pthread_mutex_lock(&m->lock);
    memcpy(m->state.node, node, sizeof node);
    memcpy(m->state.epoch, epoch, sizeof epoch);
    pthread_mutex_unlock(&m->lock);
    return status;
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
        snprintf(why, why_size, "%s: cannot be a node's: %s", m->catalogue->path,
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
    if (!m->db)
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
    if (!m)
        return NULL;
    m->catalogue = c;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->wakes, NULL);
    if (c->options.shared.node)
        snprintf(m->state.node, sizeof m->state.node, "%s", c->options.shared.node);
    m->database = strdup(c->options.shared.database);
    if (m->database)
        return m;
    member_free(m);
    return NULL;
}

void member_free(struct member *m)
{
    if (!m)
        return;
    assert(!m->db && !m->has_thread);
    if (m->log)
        m->log->calls->free(m->log);
    if (m->looking)
        m->looking->calls->free(m->looking);
    pthread_cond_destroy(&m->wakes);
    pthread_mutex_destroy(&m->lock);
    free(m->database);
    free(m);
}

bool member_start(struct member *m)
{
    m->has_thread = pthread_create(&m->thread, NULL, keep_looking, m) == 0;
    return m->has_thread;
}

void member_abandon(struct member *m)
{
    atomic_store(&m->stopping, true);
}

void member_stop(struct member *m)
{
    if (!m || !m->has_thread)
        return;
    pthread_mutex_lock(&m->lock);
    m->stops = true;
    pthread_cond_broadcast(&m->wakes);
    pthread_mutex_unlock(&m->lock);
    m->looking->calls->interrupt(m->looking);
    pthread_join(m->thread, NULL);
    m->has_thread = false;
}

void member_state(struct member *m, struct shared_state *out)
{
    int64_t now_ms = clock_now_ms();
    pthread_mutex_lock(&m->lock);
    *out = m->state;
    out->behind_ms = m->behind_since_ms != 0 ? now_ms - m->behind_since_ms : 0;
    pthread_mutex_unlock(&m->lock);
    out->away_ms = member_away_ms(m);
}

bool member_digest(struct member *m, uint64_t *seq, uint8_t digest[DIGEST_BYTES])
{
    pthread_mutex_lock(&m->lock);
    *seq = m->last_digest.seq;
    memcpy(digest, m->last_digest.digest, DIGEST_BYTES);
    pthread_mutex_unlock(&m->lock);
    return *seq != 0;
}

int member_compare_digest(struct member *m, uint64_t seq, const uint8_t digest[DIGEST_BYTES])
{
    pthread_mutex_lock(&m->lock);
    const struct member_digest *own = &m->digests[seq / DIGEST_EACH % DIGESTS_KEPT];
    int same = 0;
    if (seq != 0 && own->seq == seq)
        same = memcmp(own->digest, digest, DIGEST_BYTES) == 0 ? 1 : -1;
    if (same < 0 && m->mismatch_seq != seq) {
        m->mismatch_seq = seq;
        m->state.digest_mismatches++;
    }
    pthread_mutex_unlock(&m->lock);
    return same;
}

void member_differs(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    bool again = m->has_differed || m->state.phase != SHARED_JOINED;
    m->has_differed = true;
    memset(m->digests, 0, sizeof m->digests);
    memset(&m->last_digest, 0, sizeof m->last_digest);
    pthread_mutex_unlock(&m->lock);
    if (!again)
        set_phase(m, SHARED_LEFT, "rows of this node differ from those that the others agree on");
}

uint64_t member_replaced(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    uint64_t replaced = m->replacements;
    pthread_mutex_unlock(&m->lock);
    return replaced;
}

int64_t member_away_ms(const struct member *m)
{
    int64_t since_ms = atomic_load(&m->away_ms_since);
    return since_ms != 0 ? clock_now_ms() - since_ms + 1 : 0;
}
