/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies long changes that may write nothing on a private connection, where they do not block the
 * writer.
 *
 * A dry run, or a list, undo or restore that changes nothing, may take seconds for a large site,
 * and would block the writer. So the writer begins each long change itself. If others wait after
 * apply_step_ms, and the change has written nothing so far, the writer rolls it back and hands it
 * to this thread, which applies it to a private connection (file/overlay.h). Then
 *   - a dry run, or a change that was rejected or wrote nothing, is answered: the answer is that
 *     of the private connection's revision, which is not older than the request;
 *   - a change that wrote nothing and has an Idempotency-Key returns to the writer, which stores
 *     the answer; in a shared catalogue each one does, since what it found must be durable
 *     (`confirm`, db/shared/log.h);
 *   - a change that would write returns to the writer at once, which applies it to the end.
 * Sites take turns here as in the writer's queue. */
#include "db/write/writer.h"

#include <string.h>

#include "db/file/connection.h"
#include "db/file/overlay.h"
#include "db/read/view_pool.h"
#include "db/write/apply/apply.h"
#include "db/write/commit.h"
#include "server/base/clock.h"

#define WAIT_MS 60000 /* a request and the end wake it */

/* The private connection, and the read transaction that it needs. */
struct stage {
    sqlite3 *guard, *db;
    struct tx tx;
};

/* As in the writer: a change of a site's token may use half of the timeout of others. */
static bool is_pressed(void *context, int64_t site_id)
{
    struct rehearsal *r = context;
    int64_t half_ms = r->writer->catalogue->options.write_timeout_ms / 2, now_ms = clock_now_ms();
    return now_ms - atomic_load(&r->began_ms) >= half_ms &&
           queue_presses(&r->queue, site_id, now_ms + half_ms);
}

static void stage_close(struct stage *s)
{
    tx_done(&s->tx);
    if (s->db != NULL)
        connection_close(s->db);
    if (s->guard != NULL)
        connection_close(s->guard);
}

/* Whether the private connection has the same file as the read transaction: the same epoch, and a
 * revision that is not older. */
static bool is_same_file(struct stage *s)
{
    static const char sql[] = "SELECT epoch, revision FROM catalogue";
    sqlite3_stmt *row = connection_prepare(s->guard, sql);
    bool same = row != NULL && sqlite3_step(row) == SQLITE_ROW &&
                sqlite3_column_text(row, 0) != NULL &&
                strcmp((const char *)sqlite3_column_text(row, 0), s->tx.epoch) == 0 &&
                (uint64_t)sqlite3_column_int64(row, 1) <= s->tx.revision;
    sqlite3_finalize(row);
    return same;
}

static enum catalogue_status stage_open(struct rehearsal *r, struct stage *s, int64_t clock_offset)
{
    struct catalogue *c = r->writer->catalogue;
    char why[512];
    enum catalogue_status status = view_pool_connect(c->views, &s->guard, why, sizeof why);
    if (status == CATALOGUE_OK)
        status = connection_status(
            sqlite3_exec(s->guard, "BEGIN; SELECT revision FROM catalogue;", NULL, NULL, NULL));
    if (status == CATALOGUE_OK)
        status = overlay_open(c->path, &s->db, why, sizeof why);
    if (status == CATALOGUE_OK)
        status = connection_status(sqlite3_exec(s->db, STATEMENTS_TEMP_TABLES, NULL, NULL, NULL));
    if (status == CATALOGUE_OK && !tx_init(&s->tx, &c->options, s->db))
        status = CATALOGUE_NO_MEMORY;
    if (status != CATALOGUE_OK)
        return status;
    s->tx.shared = &r->shared;
    s->tx.is_pressed = is_pressed;
    s->tx.pressed_context = r;
    s->tx.clock_offset = clock_offset;
    s->tx.rehearsal = TX_REHEARSAL;
    status = tx_begin(&s->tx);
    return status == CATALOGUE_OK && !is_same_file(s) ? CATALOGUE_UNAVAILABLE : status;
}

/* Applies the change, a dry run with all its steps. */
static enum catalogue_status stage_apply(struct stage *s, struct write_request *request)
{
    struct change_result *result = &request->result;
    enum catalogue_status status;
    bool keep;
    do {
        status = apply_change(&s->tx, &request->change, result, &keep);
        request->wrote = s->tx.changed;
        s->tx.changed = false;
        if (status != CATALOGUE_OK || result->undecided || !request->change.dry_run)
            break;
        tx_rollback(&s->tx);
        if (result->more)
            status = tx_begin(&s->tx);
    } while (status == CATALOGUE_OK && result->more);
    result->revision = s->tx.found_revision;
    return status;
}

/* Whether the result can be answered: nothing is left to be written. */
static bool is_answer(const struct write_request *request)
{
    const struct change_result *result = &request->result;
    if (result->undecided || result->more)
        return false;
    return request->change.dry_run || result->status != CATALOGUE_OK || !request->wrote;
}

static void rehearse(struct rehearsal *r, struct write_request *request)
{
    struct stage s = {.db = NULL};
    atomic_store(&r->began_ms, clock_now_ms());
    enum catalogue_status status = stage_open(r, &s, request->clock_offset);
    if (status == CATALOGUE_OK)
        status = stage_apply(&s, request);
    if (s.db != NULL && !sqlite3_get_autocommit(s.db))
        tx_rollback(&s.tx);
    stage_close(&s);
    bool answers = status == CATALOGUE_OK && is_answer(request);
    bool applied = answers && !request->change.dry_run && request->result.status == CATALOGUE_OK;
    bool repeated = request->result.repeated;
    bool returns = applied && (r->writer->catalogue->member != NULL ||
                               (request->change.key != NULL && !repeated));
    if (answers && !returns) {
        atomic_fetch_add(&r->answered, 1);
        request->result.changed = false;
        writer_answer(r->writer, request);
    } else {
        request->turn = applied && !repeated ? TX_DECIDED : TX_FINAL;
        writer_requeue(r->writer, request);
    }
}

static void answer_expired(struct rehearsal *r)
{
    struct write_request *expired = queue_pop_expired(&r->queue, clock_now_ms());
    writer_answer_failed(r->writer, expired, CATALOGUE_BUSY, "timeout: the catalogue was busy");
}

static void rehearsal_run(void *context)
{
    struct rehearsal *r = context;
    for (;;) {
        answer_expired(r);
        struct write_request *request = queue_pop(&r->queue, QUEUE_ALONE);
        if (request != NULL)
            rehearse(r, request);
        else if (queue_is_closed(&r->queue))
            return;
        else
            queue_wait(&r->queue, WAIT_MS);
    }
}

bool rehearsal_start(struct rehearsal *r, struct writer *writer)
{
    r->writer = writer;
    queue_init(&r->queue, writer->queue.max);
    if (thread_start(&r->thread, "rehearsal", rehearsal_run, r))
        return true;
    queue_done(&r->queue);
    return false;
}

void rehearsal_pop(struct rehearsal *r, struct write_request *request)
{
    request->deadline_ms = clock_now_ms() + r->writer->catalogue->options.write_timeout_ms;
    if (queue_push(&r->queue, request) != QUEUE_ACCEPTED)
        writer_answer_failed(r->writer, request, CATALOGUE_BUSY, "too many writes are waiting");
}

void rehearsal_abandon(struct rehearsal *r)
{
    atomic_store(&r->shared.abandoned, true);
}

void rehearsal_finish(struct rehearsal *r)
{
    rehearsal_abandon(r);
    queue_close(&r->queue);
    thread_join(&r->thread);
    queue_done(&r->queue);
}
