/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The writer's thread: takes requests from the queue, applies them, commits, answers, reopens a
 * replaced file and applies records of other nodes. */
#include "db/write/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "db/file/connection.h"
#include "db/file/schema.h"
#include "db/history/recorder.h"
#include "db/shared/effects.h"
#include "db/shared/member.h"
#include "db/write/apply/apply.h"
#include "db/write/commit.h"
#include "server/base/clock.h"

/* Longest time of a batch (QUEUE_BATCH_MAX bounds the number): the other changes wait for the next
 * transaction, and may expire meanwhile. */
#define WRITER_BATCH_MS 100
/* Interval of attempts to get a lock that another process holds. */
#define WRITER_LOCK_STEP_MS 5
/* Shared: how often a list checks whether it is its turn. */
#define WRITER_LIST_MS 100
/* Shared: how long a write waits for a failover of PostgreSQL and for one of its calls; and how
 * long a stop waits for the result of a write. */
#define WRITER_AWAY_MS   5000
#define WRITER_SHARED_MS 2000
#define WRITER_STOP_MS   5000

const struct histogram_bounds catalogue_batches = {
    .count = 9,
    .upper = {1, 2, 5, 10, 20, 50, 100, 200, QUEUE_BATCH_MAX},
};

/* Measures a transaction of `count` changes that was just committed; its COMMIT began at `end_ns`.
 */
static void writer_measure(struct writer *w, uint64_t began_ns, uint64_t end_ns, size_t count)
{
    uint64_t now_ns = clock_now_ns();
    histogram_add(&w->write_ns, &histogram_times, now_ns - began_ns);
    histogram_add(&w->commit_ns, &histogram_times, now_ns - end_ns);
    histogram_add(&w->batch, &catalogue_batches, count);
}

/* Records when entries were registered, for the stats. The writer's thread, after the commit. */
static void writer_record_registered(struct writer *w, const struct write_request *list)
{
    for (const struct write_request *r = list; r != NULL; r = r->next) {
        switch (r->change.kind) {
        case CHANGE_ENTRY_PUT:
        case CHANGE_ENTRY_REMOVE:
        case CHANGE_BULK:
        case CHANGE_REPLACE:
            if (r->result.status != CATALOGUE_OK || r->change.dry_run)
                break;
            atomic_store(&w->registered_at, (int64_t)time(NULL));
            return;
        default:
            break;
        }
    }
}

/* ---- the file */

/* The busy handler: SQLite calls it while another process holds the lock, or while readers use
 * the log. Requests still expire meanwhile, and writer_abandon ends it. */
static int on_busy(void *context, int attempt)
{
    struct writer *w = context;
    bool checkpoints = w->checkpoint.until_ms != 0;
    int64_t until_ms = checkpoints ? w->checkpoint.until_ms : w->lock_until_ms;
    (void)attempt;
    if (clock_now_ms() >= until_ms || atomic_load(&w->shared.abandoned))
        return 0;
    if (!checkpoints && w->waits_for_queue && queue_depth(&w->queue) == 0)
        return 0;
    if (atomic_load(&w->catalogue->lost))
        return 0;
    struct timespec pause = {0, WRITER_LOCK_STEP_MS * 1000000L};
    nanosleep(&pause, NULL);
    return 1;
}

/* Rejects an empty file where a catalogue was served: it was truncated, and new tables would hide
 * that. */
static enum catalogue_status refuse_truncated(struct writer *w, bool create, char *why,
                                              size_t why_size)
{
    const char *path = w->catalogue->path;
    struct served last;
    if (!file_is_empty(path))
        return CATALOGUE_OK;
    if (!(w->lock.fd > 0 ? server_lock_last_served(&w->lock, &last)
                         : server_lock_peek(path, &last))) {
        if (create)
            return CATALOGUE_OK;
        snprintf(why, why_size,
                 "%s: is empty, not a catalogue: restore a backup, or name another path", path);
        return CATALOGUE_CORRUPT;
    }
    snprintf(why, why_size,
             "%s: is empty, but a catalogue at revision %ju was served from it: restore a backup, "
             "or delete it and %s.lock to create a new catalogue",
             path, last.revision, path);
    return CATALOGUE_CORRUPT;
}

/* Opens the file and stores its identity, even if it is renamed in between. */
static enum catalogue_status open_recorded(struct writer *w, bool create, char *why,
                                           size_t why_size)
{
    const char *path = w->catalogue->path;
    enum connection_mode mode = create ? CONNECTION_CREATE : CONNECTION_WRITE;
    struct file_identity after;
    bool existed = file_identity_read(path, &w->file);
    enum catalogue_status status = refuse_truncated(w, create, why, why_size);
    if (status != CATALOGUE_OK)
        return status;
    status = connection_open(path, mode, &w->db, why, why_size);
    if (status != CATALOGUE_OK)
        return status;
    if (!file_identity_read(path, &after) || (existed && !file_identity_equal(&w->file, &after))) {
        snprintf(why, why_size, "%s: was replaced while it was opened", path);
        return CATALOGUE_UNAVAILABLE;
    }
    w->file = after;
    return CATALOGUE_OK;
}

static struct served served_now(const struct writer *w)
{
    struct served now = {.inode = w->file.inode, .revision = w->tx.revision};

    memcpy(now.epoch, w->tx.epoch, sizeof now.epoch);
    memcpy(now.stamp, w->tx.stamp, sizeof now.stamp);
    return now;
}

/* Records the file's state as of the last transaction or look. */
void writer_saw(struct writer *w)
{
    struct served now = served_now(w);

    atomic_store(&w->clock_offset, w->tx.clock_offset);
    atomic_store(&w->changed_at, w->tx.changed_at);
    atomic_store(&w->history_bytes, (uint64_t)w->tx.history_bytes);
    atomic_store(&w->history_from, w->tx.history_from);
    if (w->catalogue->options.server)
        server_lock_record(&w->lock, &now);
}

/* Gives a file another epoch, and makes the dates of its pages give no 304, in one transaction: the
 * pages that were served with these dates are unknown. */
static enum catalogue_status renew(struct writer *w)
{
    enum catalogue_status status = tx_begin(&w->tx);
    if (status != CATALOGUE_OK)
        return status;
    status = tx_run(&w->tx, ST_CATALOGUE_RENEW);
    if (status == CATALOGUE_OK)
        status = tx_run(&w->tx, ST_PAGES_DISTRUST);
    if (status == CATALOGUE_OK)
        return tx_commit(&w->tx);
    tx_rollback(&w->tx);
    return status;
}

/* Whether the file is the one that this server, or the one before it, served last. */
static enum catalogue_status is_known(struct writer *w, bool *known)
{
    struct served now = served_now(w);
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(&w->tx, ST_CATALOGUE_LINEAGE, &row);
    if (status != CATALOGUE_OK)
        return status;
    const char *lineage = row != NULL ? (const char *)sqlite3_column_text(row, 0) : NULL;
    bool has = lineage != NULL; /* NULL: out of memory */
    *known = has && server_lock_knows(&w->lock, &now, lineage);
    sqlite3_reset(row);
    return has ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

/* Gives another file another epoch, so that cursors of the old file are rejected: a copy has the
 * epoch of its original, and passes through the same revisions. */
static enum catalogue_status adopt_file(struct writer *w)
{
    struct served last;
    bool known = true;
    enum catalogue_status status = tx_refresh(&w->tx);
    if (status == CATALOGUE_OK)
        w->was_served = w->was_served || server_lock_last_served(&w->lock, &last);
    /* An older state of a node's file keeps its epoch: the log brings it up to date. */
    if (status == CATALOGUE_OK && w->catalogue->member == NULL)
        status = is_known(w, &known);
    if (status == CATALOGUE_OK && !known) {
        status = renew(w);
        if (status == CATALOGUE_OK)
            status = tx_refresh(&w->tx);
    }
    if (status == CATALOGUE_OK)
        writer_saw(w);
    return status;
}

static void writer_disconnect(struct writer *w)
{
    if (w->db == NULL)
        return;
    if (w->catalogue->member != NULL)
        member_detach(w->catalogue->member);
    tx_done(&w->tx);
    connection_close(w->db);
    w->db = NULL;
}

/* For tx: a change of a site's token may block the writer for half of the time that others may
 * wait. Measured in time, since the cost of a row depends on the disk. */
static bool is_pressed(void *context, int64_t site_id)
{
    struct writer *w = context;
    int64_t half_ms = w->catalogue->options.write_timeout_ms / 2, now_ms = clock_now_ms();
    struct member *member = w->catalogue->member;
    return now_ms - atomic_load(&w->busy_since_ms) >= half_ms &&
           (queue_presses(&w->queue, site_id, now_ms + half_ms) ||
            (member != NULL && member_awaited_ms(member) >= half_ms));
}

/* For tx: whether the disk is nearly full, counting SQLite's cache, which the commit writes,
 * and the log, which the next checkpoint writes. If the size cannot be read, the next statement
 * fails. */
static bool is_short(void *context)
{
    struct writer *w = context;
    int64_t file_bytes = 0;
    int cached = 0, most = 0;
    if (atomic_load(&w->catalogue->space.free_bytes) > SPACE_PLENTY_BYTES)
        return false;
    if (tx_number(&w->tx, ST_FILE_BYTES, 0, &file_bytes) != CATALOGUE_OK)
        return false;
    sqlite3_db_status(w->db, SQLITE_DBSTATUS_CACHE_USED, &cached, &most, 0);
    return space_is_short(w->catalogue->path, (uint64_t)file_bytes, (uint64_t)cached);
}

/* For tx: a change in steps ends its current step if others wait or the server stops. */
static bool should_yield(void *context)
{
    struct writer *w = context;
    struct member *member = w->catalogue->member;
    if (apply_step_ms < 0) /* a test */
        return true;
    return clock_now_ms() - atomic_load(&w->busy_since_ms) >= apply_step_ms &&
           (queue_depth(&w->queue) > 0 ||
            (queue_is_closed(&w->queue) && w->tx.rehearsal != TX_FIRST_TRY) ||
            (member != NULL && member_awaited_ms(member) >= apply_step_ms));
}

/* Opens the connection and all that depends on it. */
static enum catalogue_status writer_connect(struct writer *w, bool create, char *why,
                                            size_t why_size)
{
    int before = 0, after;
    bool shared = false;
    enum catalogue_status status = open_recorded(w, create, why, why_size);
    if (status == CATALOGUE_OK && w->catalogue->options.server)
        status = server_lock_hold(&w->lock, w->catalogue->path, why, why_size);
    if (status == CATALOGUE_OK && !schema_version(w->db, &before, &shared))
        before = 0; /* the next call reports the failure */
    if (status == CATALOGUE_OK)
        status = w->catalogue->member != NULL
                     ? schema_prepare_shared(w->db, w->catalogue->path, why, why_size)
                     : schema_prepare(w->db, w->catalogue->path, why, why_size);
    if (status != CATALOGUE_OK) {
        connection_close(w->db);
        w->db = NULL;
        return status;
    }
    if (before > 0 && schema_version(w->db, &after, &shared) && after != before) {
        atomic_store(&w->catalogue->upgraded_to, after);
        atomic_store(&w->catalogue->upgraded_from, before);
    }
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA cache_size=-%d", CONNECTION_CACHE_KIB);
    int rc = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(w->db, STATEMENTS_TEMP_TABLES, NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        status = connection_status(rc);
        connection_explain(w->catalogue->path, w->db, why, why_size);
    } else if (w->catalogue->options.history_keep_ms > 0 && !recorder_is_supported()) {
        status = CATALOGUE_UNAVAILABLE;
        snprintf(why, why_size,
                 "this SQLite was built without SQLITE_ENABLE_PREUPDATE_HOOK, which the history "
                 "needs; use another, or set [history] keep = 0");
    } else if (!tx_init(&w->tx, &w->catalogue->options, w->db)) {
        status = CATALOGUE_NO_MEMORY;
        snprintf(why, why_size, "out of memory");
    } else if (w->catalogue->member != NULL) {
        status = member_attach(w->catalogue->member, &w->tx, why, why_size);
    }
    if (status == CATALOGUE_OK && w->catalogue->options.server) {
        status = adopt_file(w);
        if (status != CATALOGUE_OK)
            connection_explain(w->catalogue->path, w->db, why, why_size);
    }
    if (status != CATALOGUE_OK) {
        writer_disconnect(w);
        return status;
    }
    sqlite3_busy_handler(w->db, on_busy, w);
    w->tx.shared = &w->shared;
    w->tx.is_pressed = is_pressed;
    w->tx.gives_way = should_yield;
    w->tx.is_short = is_short;
    w->tx.pressed_context = w;
    checkpoint_attach(&w->checkpoint, w->db, w->catalogue->options.server);
    log_index_find(&w->index, w->db);
    w->purge_pending = true;
    return CATALOGUE_OK;
}

/* OK while the path still names the file that is open. */
enum catalogue_status writer_usable(struct writer *w)
{
    if (w->db == NULL || atomic_load(&w->catalogue->lost))
        return CATALOGUE_UNAVAILABLE;
    /* The watch looks only periodically; a write into a removed file must not be acknowledged in
     * between. */
    return file_identity_holds(w->catalogue->path, &w->file) ? CATALOGUE_OK : CATALOGUE_UNAVAILABLE;
}

static void writer_record(struct writer *w, enum catalogue_status status, const char *why)
{
    pthread_mutex_lock(&w->trouble_lock);
    w->writable = status == CATALOGUE_OK;
    if (w->writable)
        w->trouble[0] = '\0';
    else
        snprintf(w->trouble, sizeof w->trouble, "%s%s%.200s", catalogue_status_word(status),
                 why != NULL && *why ? ": " : "", why != NULL ? why : "");
    pthread_mutex_unlock(&w->trouble_lock);
}

const char *writer_lock_holder(const struct writer *w)
{
    return w->catalogue->member != NULL
               ? "another node holds the shared lock, perhaps to apply a long list, or another "
                 "process has locked this node's file"
               : "another process has locked the catalogue";
}

/* Records a failed write on the open file. If the disk is full, truncates the log. */
void writer_record_failed(struct writer *w, enum catalogue_status status, const char *why)
{
    writer_record(w, status, why);
    if (status == CATALOGUE_NO_SPACE)
        checkpoint_make_room(&w->checkpoint);
}

/* Records which file was opened last, and whether to try again. */
static void record_followed(struct writer *w, enum catalogue_status status)
{
    pthread_mutex_lock(&w->trouble_lock);
    w->tried = w->file;
    w->followed = status != CATALOGUE_BUSY;
    pthread_mutex_unlock(&w->trouble_lock);
}

bool writer_has_followed(struct catalogue *c, const struct file_identity *file)
{
    struct writer *w = c->writer;
    pthread_mutex_lock(&w->trouble_lock);
    bool followed = w->followed && file_identity_equal(&w->tried, file);
    pthread_mutex_unlock(&w->trouble_lock);
    return followed;
}

/* Reopens if the watch asked for it. */
static void writer_follow(struct writer *w)
{
    if (!atomic_exchange(&w->reopen_wanted, false))
        return;
    char why[512] = "";
    writer_disconnect(w);
    enum catalogue_status status = writer_connect(w, false, why, sizeof why);
    writer_record(w, status, why);
    record_followed(w, status);
    if (status == CATALOGUE_OK) {
        atomic_store(&w->committed, 0); /* it may be another file, with revisions of its own */
        atomic_fetch_add(&w->catalogue->files, 1);
        atomic_store(&w->catalogue->lost, false);
        catalogue_wake(w->catalogue);
    }
}

/* ---- answers */

static void answer(struct write_request *request)
{
    request->result.rows = request->change.rows;
    request->done(request->done_context, &request->result);
    change_result_done(&request->result);
    free(request);
}

static void forget_result(struct write_request *request)
{
    change_result_done(&request->result);
    memset(&request->result, 0, sizeof request->result);
}

/* Whether the shrink guard rejected the change, or held back removals of a scan. */
static bool was_held(const struct write_request *request)
{
    const struct change_result *result = &request->result;
    return !request->change.dry_run &&
           (result->code == RULE_SHRINK_GUARD || result->would_remove > 0);
}

void writer_answer(struct writer *w, struct write_request *request)
{
    if (was_held(request))
        atomic_fetch_add(&w->held, 1);
    writer_record_registered(w, request);
    answer(request);
}

void writer_answer_failed(struct writer *w, struct write_request *list,
                          enum catalogue_status status, const char *why)
{
    while (list != NULL) {
        struct write_request *request = list;
        list = request->next;
        atomic_fetch_add(&w->failed[status], 1);
        forget_result(request);
        request->result.status = status;
        snprintf(request->result.detail, sizeof request->result.detail, "%s",
                 why != NULL ? why : "");
        answer(request);
    }
}

/* ---- shared with other machines */

/* Records of other nodes were applied: drops cached state. */
static void record_moved(struct writer *w)
{
    tx_forget(&w->tx);
    if (tx_refresh(&w->tx) == CATALOGUE_OK) {
        outside_committed(&w->outside, &w->tx);
        writer_saw(w);
        atomic_store(&w->committed, w->tx.revision);
    }
    w->purge_pending = true;
    if (w->catalogue->options.server)
        checkpoint_after_commit(&w->checkpoint);
    catalogue_wake(w->catalogue);
}

static void follows(struct writer *w, bool on)
{
    w->checkpoint.follows = on && w->catalogue->options.server;
}

/* Takes the lock of all nodes (not for a dry run) and brings the file to the log's head. Waits only
 * shortly for other processes of this machine, since all nodes wait meanwhile. */
static enum catalogue_status enter_shared(struct writer *w, enum queue_turn turn)
{
    struct member *member = w->catalogue->member;
    bool moved;
    w->waits_for_queue = false;
    w->lock_until_ms = clock_now_ms() + WRITER_SHARED_MS;
    follows(w, true);
    w->checkpoint.hurries = true;
    enum catalogue_status status;
    int64_t site_id = turn == QUEUE_ALONE ? queue_next_site(&w->queue) : QUEUE_NO_SITE;
    if (turn == QUEUE_DRY) {
        member_pass(member, false); /* no list must wait for a dry run */
        status = member_catch_up(member, w->lock_until_ms, &moved);
    } else {
        status =
            member_enter(member, site_id != QUEUE_NO_SITE ? site_group_of(site_id) : NO_SITE_GROUP,
                         w->lock_until_ms, &moved);
    }
    if (site_id != QUEUE_NO_SITE && member_group_is_elsewhere(member))
        queue_skip_site(&w->queue, site_id);
    follows(w, false);
    if (moved)
        record_moved(w);
    w->checkpoint.hurries = false;
    return status;
}

/* Finds the outcome of a transaction without an answer: OK if it was applied, also to this file. */
static enum catalogue_status settle(struct writer *w)
{
    int64_t until_ms = clock_now_ms() + w->catalogue->options.write_timeout_ms;
    enum catalogue_status status = CATALOGUE_OUTCOME_UNKNOWN;
    bool stops = false;
    while ((status == CATALOGUE_OUTCOME_UNKNOWN || status == CATALOGUE_NO_SPACE) &&
           clock_now_ms() < until_ms) {
        if (!stops && queue_is_closed(&w->queue)) {
            stops = true;
            until_ms = clock_now_ms() + WRITER_STOP_MS;
        }
        int64_t step_ms = clock_now_ms() + WRITER_SHARED_MS;
        follows(w, true);
        status = member_settle(w->catalogue->member, step_ms < until_ms ? step_ms : until_ms);
        follows(w, false);
        if (status == CATALOGUE_NO_SPACE)
            checkpoint_make_room(&w->checkpoint);
        if (atomic_load(&w->shared.abandoned))
            break;
    }
    record_moved(w);
    return status == CATALOGUE_NO_SPACE ? CATALOGUE_OUTCOME_UNKNOWN : status;
}

/* Applies records of other nodes; true if there may be more. */
static bool follow_others(struct writer *w)
{
    struct member *member = w->catalogue->member;
    bool moved = false;
    if (member == NULL || writer_usable(w) != CATALOGUE_OK)
        return false;
    uint64_t replaced = standing_now(member_standing(member)).replacements;
    w->waits_for_queue = false;
    w->lock_until_ms = clock_now_ms() + WRITER_SHARED_MS;
    if (member_is_behind(member)) {
        follows(w, true);
        if (member_follow(member, &moved) == CATALOGUE_NO_SPACE)
            checkpoint_make_room(&w->checkpoint);
        follows(w, false);
    } else if (member_upgrade_is_due(member) && clock_now_ms() >= w->upgrade_at_ms) {
        w->upgrade_at_ms = clock_now_ms() + WRITER_IDLE_MS;
        member_upgrade(member, &moved);
    }
    if (moved && standing_now(member_standing(member)).replacements != replaced) {
        atomic_fetch_add(&w->catalogue->files, 1);
        atomic_store(&w->catalogue->replaced, true);
    }
    if (moved)
        record_moved(w);
    return moved;
}

bool writer_has_small(struct catalogue *c)
{
    return queue_has(&c->writer->queue, false);
}

void writer_poke(struct catalogue *c)
{
    queue_poke(&c->writer->queue);
}

static enum catalogue_status begin_here(struct writer *w, int64_t lock_until_ms)
{
    w->lock_until_ms = lock_until_ms;
    enum catalogue_status status = tx_begin(&w->tx);
    if (status == CATALOGUE_OK) {
        status = outside_check(&w->outside, &w->tx);
        if (status != CATALOGUE_OK)
            tx_rollback(&w->tx);
    } else if (w->catalogue->member != NULL) {
        member_leave(w->catalogue->member);
    }
    return status;
}

/* Lists of other nodes come before those that wait here. */
static void postpone_lists(struct writer *w)
{
    w->list_at_ms = clock_now_ms() + WRITER_LIST_MS;
}

/* The writes that waited here for the end of a list were applied: lists of other nodes may begin.
 */
static void pass_lists(struct writer *w)
{
    if (w->catalogue->member != NULL && w->db != NULL &&
        member_pass(w->catalogue->member, queue_has(&w->queue, true)))
        postpone_lists(w);
}

/* BEGIN; `for_queue`: while the requests still wait there. */
enum catalogue_status writer_begin(struct writer *w, bool for_queue, enum queue_turn turn)
{
    if (atomic_load(&w->shared.abandoned))
        return CATALOGUE_CANCELLED;
    uint32_t timeout_ms = w->catalogue->options.write_timeout_ms;
    if (w->catalogue->member != NULL) {
        enum catalogue_status entered = enter_shared(w, turn);
        if (entered != CATALOGUE_OK)
            return entered;
    }
    w->waits_for_queue = for_queue;
    enum catalogue_status status = begin_here(w, for_queue ? clock_now_ms() + timeout_ms : 0);
    if (status == CATALOGUE_OK && turn == QUEUE_DRY && w->tx.log != NULL)
        effects_stop(w->tx.log->effects); /* nothing is published: it is rolled back */
    return status;
}

/* COMMIT; publishes the transaction to the other nodes. */
enum catalogue_status writer_commit(struct writer *w)
{
    enum catalogue_status status = tx_commit(&w->tx);
    if (status == CATALOGUE_OK)
        outside_committed(&w->outside, &w->tx);
    return status;
}

/* ---- one transaction */

static void answer_applied(struct write_request *list)
{
    while (list != NULL) {
        struct write_request *request = list;
        list = request->next;
        answer(request);
    }
}

static bool removes_index(const struct write_request *request)
{
    return request->change.kind == CHANGE_INDEX_REMOVE ||
           request->change.kind == CHANGE_SITE_REMOVE;
}

/* Cuts the list after `last`, and queues the rest again. */
static void postpone(struct writer *w, struct write_request *last)
{
    struct write_request *rest = last->next;
    last->next = NULL;
    queue_return(&w->queue, false, rest);
}

static void name_unknown(const struct writer *w, char *why, size_t size)
{
    snprintf(why, size,
             "timeout: PostgreSQL did not confirm the change, which may have been applied: record "
             "%s; retry with the same Idempotency-Key, or check first",
             member_last_id(w->catalogue->member));
}

/* Queues the next step of a change after all that wait. */
static void queue_next_step(struct writer *w, struct write_request *request)
{
    if (queue_is_closed(&w->queue))
        writer_answer_failed(w, request, CATALOGUE_CANCELLED,
                             "the server is stopping; the part that was already applied stays");
    else
        queue_requeue(&w->queue, request);
}

static void push(struct writer *w, struct write_request *request)
{
    request->deadline_ms = clock_now_ms() + w->catalogue->options.write_timeout_ms;
    switch (queue_push(&w->queue, request)) {
    case QUEUE_ACCEPTED:
        break;
    case QUEUE_FULL:
        writer_answer_failed(w, request, CATALOGUE_BUSY, "too many writes are waiting");
        break;
    case QUEUE_NO_MEMORY:
        writer_answer_failed(w, request, CATALOGUE_NO_MEMORY, NULL);
        break;
    case QUEUE_CLOSED:
        writer_answer_failed(w, request, CATALOGUE_CANCELLED, "the catalogue is closing");
        break;
    }
}

void writer_requeue(struct writer *w, struct write_request *request)
{
    if (request->turn == TX_FINAL)
        forget_result(request);
    push(w, request);
}

/* Only the first step of a change alone in its transaction is a first try. */
static enum tx_turn turn_of(const struct write_request *request)
{
    const struct change_result *result = &request->result;
    bool fresh = apply_alone(request->change.kind) && !request->begun && result->step_at == 0;
    return request->turn == TX_FIRST_TRY && !fresh ? TX_FINAL : request->turn;
}

/* Answers the requests of a transaction that was not committed. */
static void answer_uncommitted(struct writer *w, struct write_request *list,
                               enum catalogue_status status)
{
    char why[sizeof w->tx.why];
    memcpy(why, w->tx.why, sizeof why);
    if (status == CATALOGUE_OUTCOME_UNKNOWN)
        name_unknown(w, why, sizeof why);
    else if (atomic_load(&w->shared.abandoned))
        status = CATALOGUE_CANCELLED;
    if (status != CATALOGUE_CANCELLED)
        writer_record_failed(w, status, why);
    writer_answer_failed(w, list, status, why);
}

/* Applies the requests in the open transaction and ends it. Answers those that had their turn. */
static void carry_out(struct writer *w, struct write_request *list)
{
    struct tx *tx = &w->tx;
    enum catalogue_status status = CATALOGUE_OK;
    bool keep = true;
    size_t count = 0;
    uint64_t before = tx->revision;
    uint64_t began_ns = clock_now_ns(), end_ns = began_ns;
    for (struct write_request *r = list; r != NULL && status == CATALOGUE_OK;
         r = r->next, count++) {
        tx->rehearsal = turn_of(r);
        status = apply_change(tx, &r->change, &r->result, &keep);
        /* A last step that found nothing left to do has the revision of the one before it. */
        bool keeps_own = r->result.group != 0 && !tx->changed;
        uint64_t revision = keep ? tx_end_change(tx) : before;
        r->result.revision = keeps_own ? r->result.revision : revision;
        if (!r->result.more && !r->result.undecided && was_held(r))
            atomic_fetch_add(&w->held, 1);
        if (removes_index(r))
            w->purge_pending = true;
        if (r->next != NULL && clock_now_ns() - began_ns > WRITER_BATCH_MS * 1000000ull)
            postpone(w, r);
    }
    bool changed = tx->revision != before;
    /* If PostgreSQL failed, the interrupted statement is not the cause. */
    if (status != CATALOGUE_OK && tx->log != NULL &&
        effects_status(tx->log->effects) != CATALOGUE_OK)
        status = effects_status(tx->log->effects);
    if (status != CATALOGUE_OK || !keep) {
        tx_rollback(tx);
    } else {
        end_ns = clock_now_ns();
        status = writer_commit(w);
        if (status == CATALOGUE_OUTCOME_UNKNOWN)
            status = settle(w);
    }

    if (status != CATALOGUE_OK) {
        answer_uncommitted(w, list, status);
        return;
    }
    if (list != NULL && list->result.undecided) {
        forget_result(list);
        list->clock_offset = tx->clock_offset;
        rehearsal_pop(&w->rehearsal, list);
        return;
    }
    if (!keep)
        list->result.changed = false; /* alone in its transaction */
    if (changed) {
        writer_record(w, CATALOGUE_OK, NULL);
        atomic_fetch_add(&w->commits, 1);
        atomic_fetch_add(&w->batched, count);
        atomic_store(&w->committed, tx->revision);
        writer_saw(w);
        writer_measure(w, began_ns, end_ns, count);
        catalogue_wake(w->catalogue);
    }
    writer_record_registered(w, list);
    if (list != NULL && list->result.more && list->result.status == CATALOGUE_OK)
        queue_next_step(w, list);
    else
        answer_applied(list);
}

static void set_cache(struct writer *w, int kib)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA cache_size=-%d", kib);
    sqlite3_exec(w->db, sql, NULL, NULL, NULL);
}

/* Whether PostgreSQL has been away only for a short time: writes then wait in the queue, where they
 * expire. */
static bool fails_over(const struct writer *w)
{
    struct shared_state state;
    standing_state(member_standing(w->catalogue->member), &state);
    return state.phase == SHARED_JOINED && state.away_ms < WRITER_AWAY_MS;
}

/* Whether the log cannot be read for longer than that, though a turn only found its lock taken. */
static bool is_cut_off(const struct writer *w)
{
    return w->catalogue->member != NULL &&
           standing_away_ms(member_standing(w->catalogue->member)) >= WRITER_AWAY_MS;
}

/* Whether a write has waited three quarters of its time. */
static bool is_near_its_end(struct writer *w)
{
    static const int64_t nobody = -1;
    int64_t quarter_ms = w->catalogue->options.write_timeout_ms / 4;
    return queue_presses(&w->queue, nobody, clock_now_ms() + quarter_ms);
}

/* Runs one transaction of small changes, or of the next change that needs one alone. */
static void run_turn(struct writer *w, enum queue_turn turn)
{
    bool alone = turn != QUEUE_SMALL;
    enum catalogue_status status = writer_usable(w);
    if (status != CATALOGUE_OK) {
        static const char gone[] = "the catalogue file is gone or was replaced";
        writer_record(w, status, gone);
        writer_answer_failed(w, queue_pop(&w->queue, turn), status, gone);
        return;
    }
    status = writer_begin(w, true, turn);
    if (status == CATALOGUE_SHARED_AWAY && fails_over(w)) {
        writer_record(w, status, "PostgreSQL cannot be reached");
        struct timespec pause = {0, 10 * WRITER_LOCK_STEP_MS * 1000000L};
        nanosleep(&pause, NULL);
        return;
    }
    if (status == CATALOGUE_BUSY && is_cut_off(w))
        status = CATALOGUE_SHARED_AWAY;
    if (status == CATALOGUE_BUSY && w->catalogue->member != NULL && alone) {
        postpone_lists(w);
        return;
    }
    if (status == CATALOGUE_BUSY) {
        /* Expired requests were answered; the others try again, in a shared catalogue at once,
         * since PostgreSQL grants its lock in order of arrival. Waiting for another node's list is
         * not a failure yet. */
        if (w->catalogue->member == NULL || is_near_its_end(w))
            writer_record(w, status, writer_lock_holder(w));
        w->alone_next = false; /* small changes waited for a list: they come before the next one */
        struct timespec pause = {0, WRITER_LOCK_STEP_MS * 1000000L};
        if (w->catalogue->member == NULL)
            nanosleep(&pause, NULL);
        return;
    }
    if (status != CATALOGUE_OK) {
        if (status != CATALOGUE_CANCELLED)
            writer_record_failed(w, status, w->tx.why);
        writer_answer_failed(w, queue_pop(&w->queue, turn), status, w->tx.why);
        if (!alone) /* lists of other nodes wait for these writes, not for later ones */
            pass_lists(w);
        return;
    }
    struct write_request *list = queue_pop(&w->queue, turn);
    if (list == NULL) {
        tx_commit(&w->tx);
        return;
    }
    if (alone)
        set_cache(w, CONNECTION_BULK_CACHE_KIB);
    w->alone_next = !alone;
    atomic_store(&w->busy_since_ms, clock_now_ms());
    carry_out(w, list);
    atomic_store(&w->busy_since_ms, 0);
    if (alone) {
        set_cache(w, CONNECTION_CACHE_KIB);
        sqlite3_db_release_memory(w->db);
        w->give_back_at_ms = clock_now_ms() + WRITER_GIVE_BACK_MS;
    }
    if (!alone)
        pass_lists(w);
    if (w->catalogue->options.server)
        checkpoint_after_commit(&w->checkpoint);
}

/* Shared: changes of the node's own tables wait for no other machine. True if there was one. */
static bool serve_own(struct writer *w)
{
    struct write_request *request = NULL;
    if (w->catalogue->member != NULL && writer_usable(w) == CATALOGUE_OK &&
        !atomic_load(&w->shared.abandoned))
        request = queue_pop_own(&w->queue);
    if (request == NULL)
        return false;
    w->waits_for_queue = false;
    enum catalogue_status status =
        begin_here(w, clock_now_ms() + w->catalogue->options.write_timeout_ms);
    if (status == CATALOGUE_OK)
        carry_out(w, request);
    else
        writer_answer_failed(w, request, status, w->tx.why);
    return true;
}

/* True if there was something to do. */
static bool serve_queue(struct writer *w)
{
    bool small = queue_has(&w->queue, false), alone = queue_has(&w->queue, true);
    if (!small)
        pass_lists(w);
    if (!small && !alone)
        return false;
    int64_t wait_ms = w->list_at_ms - clock_now_ms();
    if (!small && wait_ms > 0) {
        queue_wait_small(&w->queue, (int)wait_ms);
        return true;
    }
    enum queue_turn turn = QUEUE_SMALL;
    if (alone && wait_ms <= 0 && (w->alone_next || !small))
        turn = queue_next_is_dry(&w->queue) ? QUEUE_DRY : QUEUE_ALONE;
    run_turn(w, turn);
    return true;
}

/* In a shared catalogue one node does the maintenance for all. */
static bool does_maintenance(const struct writer *w)
{
    return w->catalogue->options.server && catalogue_leads(w->catalogue, "care");
}

static void writer_run(void *context)
{
    struct writer *w = context;
    id_t own = (id_t)gettid();
    if (w->catalogue->options.server && getpriority(PRIO_PROCESS, own) < WRITER_NICE)
        setpriority(PRIO_PROCESS, own, WRITER_NICE);
    for (;;) {
        writer_follow(w);
        outside_report(&w->outside, &w->catalogue->options, clock_now_ms());
        if (follow_others(w) && !queue_has(&w->queue, false) && !queue_has(&w->queue, true)) {
            pass_lists(w); /* the writes that waited for its end have expired */
            continue;
        }
        if (serve_own(w))
            continue;
        if (serve_queue(w)) {
            if (does_maintenance(w))
                maintenance_run(w);
            continue;
        }
        if (queue_is_closed(&w->queue))
            return;
        int rest_ms = WRITER_IDLE_MS;
        if (w->catalogue->options.server) {
            if (does_maintenance(w) && (maintenance_purge(w) || maintenance_run(w)))
                continue;
            rest_ms = maintenance_watch(w);
        }
        queue_wait(&w->queue, rest_ms);
    }
}

static void answer_expired(void *context)
{
    struct writer *w = context;
    while (queue_wait_expired(&w->queue)) {
        struct write_request *expired = queue_pop_expired(&w->queue, clock_now_ms());
        if (w->catalogue->member != NULL &&
            standing_away_ms(member_standing(w->catalogue->member)) > 0)
            writer_answer_failed(w, expired, CATALOGUE_SHARED_AWAY, "PostgreSQL cannot be reached");
        else
            writer_answer_failed(w, expired, CATALOGUE_BUSY, "timeout: the catalogue was busy");
    }
}

/* ---- start, stop, submit */

static bool start_threads(struct writer *w)
{
    if (!rehearsal_start(&w->rehearsal, w))
        return false;
    if (thread_start(&w->expiry, "expiry", answer_expired, w) &&
        thread_start(&w->thread, "writer", writer_run, w))
        return true;
    queue_end_expiry(&w->queue);
    thread_join(&w->expiry);
    rehearsal_finish(&w->rehearsal);
    return false;
}

enum catalogue_status writer_start(struct catalogue *c, struct writer **out, char *why,
                                   size_t why_size)
{
    *out = NULL;
    struct writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return CATALOGUE_NO_MEMORY;
    w->catalogue = c;
    w->writable = true;
    queue_init(&w->queue, c->options.max_queued);
    pthread_mutex_init(&w->trouble_lock, NULL);
    enum catalogue_status status = writer_connect(w, !c->options.must_exist, why, why_size);
    if (status != CATALOGUE_OK)
        goto fail_connect;
    record_followed(w, status);
    *out = w;
    if (start_threads(w))
        return CATALOGUE_OK;

    snprintf(why, why_size, "cannot start the writer's threads");
    status = CATALOGUE_NO_MEMORY;
    *out = NULL;
    writer_disconnect(w);
fail_connect:
    server_lock_done(&w->lock);
    pthread_mutex_destroy(&w->trouble_lock);
    queue_done(&w->queue);
    free(w);
    return status;
}

void writer_finish(struct writer *w)
{
    if (w == NULL || w->finished)
        return;
    queue_close(&w->queue);
    thread_join(&w->thread);
    queue_end_expiry(&w->queue);
    thread_join(&w->expiry);
    rehearsal_finish(&w->rehearsal);
    w->finished = true;
}

void writer_abandon(struct writer *w)
{
    atomic_store(&w->shared.abandoned, true);
    rehearsal_abandon(&w->rehearsal);
    if (w->catalogue->member != NULL)
        member_abandon(w->catalogue->member);
    queue_poke(&w->queue);
}

void writer_free(struct writer *w)
{
    if (w == NULL)
        return;
    if (w->catalogue->options.server && writer_usable(w) == CATALOGUE_OK)
        checkpoint_at_close(&w->checkpoint);
    writer_disconnect(w);
    server_lock_done(&w->lock);
    pthread_mutex_destroy(&w->trouble_lock);
    queue_done(&w->queue);
    free(w);
}

void writer_reopen(struct catalogue *c)
{
    atomic_store(&c->writer->reopen_wanted, true);
    queue_poke(&c->writer->queue);
}

void writer_submit(struct writer *w, const struct change *change, change_done *done,
                   void *done_context)
{
    struct write_request *request = calloc(1, sizeof *request + change_block_bytes(change));
    if (request == NULL) {
        struct change_result result = {.status = CATALOGUE_NO_MEMORY, .rows = change->rows};
        atomic_fetch_add(&w->failed[CATALOGUE_NO_MEMORY], 1);
        done(done_context, &result);
        change_result_done(&result);
        return;
    }
    request->change = *change;
    change_keep(&request->change, request->block);
    request->done = done;
    request->done_context = done_context;
    if (w->catalogue->options.shared.follows && !apply_is_own(change->kind))
        writer_answer_failed(w, request, CATALOGUE_FOLLOWS, "");
    else
        push(w, request);
}
