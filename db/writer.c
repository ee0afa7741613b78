#include "db/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/apply.h"
#include "db/connection.h"

/* ---- one transaction */

static void answer_applied(struct request *list, uint64_t revision)
{
    while (list) {
        struct request *request = list;
        list = request->next;
        request->result.revision = revision;
        request->done(request->done_context, &request->result);
        entry_record_done(&request->result.entry);
        free(request);
    }
}

/* The guard held something back: refused the change, or kept a scan's removals. */
static bool was_held(const struct request *request)
{
    const struct change_result *result = &request->result;
    return !request->change.dry_run &&
           (result->code == RULE_SHRINK_GUARD || result->would_remove > 0);
}

static bool removes_index(const struct request *request)
{
    return request->change.kind == CHANGE_INDEX_REMOVE ||
           request->change.kind == CHANGE_SITE_REMOVE;
}

static void measure(struct writer *w, uint64_t began_ns, uint64_t end_ns, size_t count)
{
    uint64_t now_ns = measure_now_ns();
    histogram_add(&w->write_ns, &histogram_times, now_ns - began_ns);
    histogram_add(&w->commit_ns, &histogram_times, now_ns - end_ns);
    histogram_add(&w->batch, &catalogue_batches, count);
}

/* Applies the requests in the open transaction and ends it. Answers them all. */
static void carry_out(struct writer *w, struct request *list)
{
    struct tx *tx = &w->tx;
    enum catalogue_status status = CATALOGUE_OK;
    bool keep = true;
    size_t count = 0;
    uint64_t began_ns = measure_now_ns(), end_ns = began_ns;
    for (struct request *r = list; r && status == CATALOGUE_OK; r = r->next, count++) {
        status = apply_change(tx, &r->change, &r->result, &keep);
        if (was_held(r))
            atomic_fetch_add(&w->held, 1);
        if (removes_index(r))
            w->purge_pending = true;
    }
    bool changed = tx->changed && keep;
    if (status != CATALOGUE_OK || !keep) {
        tx_rollback(tx);
    } else {
        end_ns = measure_now_ns();
        status = tx_commit(tx);
    }

    if (status != CATALOGUE_OK) {
        char why[sizeof tx->why];
        memcpy(why, tx->why, sizeof why);
        writer_note(w, status, why);
        writer_answer_failed(w, list, status, why);
        return;
    }
    if (!keep)
        list->result.changed = false; /* alone in its transaction */
    if (changed) {
        writer_note(w, CATALOGUE_OK, NULL);
        atomic_fetch_add(&w->commits, 1);
        atomic_fetch_add(&w->batched, count);
        atomic_store(&w->committed, tx->revision);
        measure(w, began_ns, end_ns, count);
        catalogue_wake(w->catalogue);
    }
    answer_applied(list, tx->revision);
}

static void set_cache(struct writer *w, int kib)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA cache_size=-%d", kib);
    sqlite3_exec(w->db, sql, NULL, NULL, NULL);
}

/* BEGIN, while the requests still wait in the queue. */
static enum catalogue_status begin(struct writer *w, bool for_queue)
{
    uint32_t timeout_ms = w->catalogue->options.write_timeout_ms;
    w->waits_for_queue = for_queue;
    w->lock_until_ms = for_queue ? queue_now_ms() + timeout_ms : 0;
    return tx_begin(&w->tx);
}

/* One transaction of small changes, or of the next one that goes alone. */
static void take_turn(struct writer *w, bool alone)
{
    enum catalogue_status status = writer_usable(w);
    if (status != CATALOGUE_OK) {
        static const char gone[] = "the catalogue file is gone or was replaced";
        writer_note(w, status, gone);
        writer_answer_failed(w, queue_take(&w->queue, alone, WRITER_BATCH_MAX), status, gone);
        return;
    }
    status = begin(w, true);
    if (status == CATALOGUE_BUSY) {
        /* Those whose time is over were answered; the others try again. */
        writer_note(w, status, "another process holds the lock");
        struct timespec pause = {0, WRITER_LOCK_STEP_MS * 1000000L};
        nanosleep(&pause, NULL);
        writer_answer_expired(w);
        return;
    }
    if (status != CATALOGUE_OK) {
        writer_note(w, status, w->tx.why);
        writer_answer_failed(w, queue_take(&w->queue, alone, WRITER_BATCH_MAX), status, w->tx.why);
        return;
    }
    writer_answer_expired(w);
    struct request *list = queue_take(&w->queue, alone, WRITER_BATCH_MAX);
    if (!list) {
        tx_commit(&w->tx);
        return;
    }
    if (alone)
        set_cache(w, WRITER_BULK_CACHE_KIB);
    carry_out(w, list);
    if (alone) {
        set_cache(w, WRITER_CACHE_KIB);
        sqlite3_db_release_memory(w->db);
    }
    if (w->catalogue->options.server)
        checkpoint_after_commit(&w->checkpoint);
}

/* True where there was something to do. */
static bool serve_queue(struct writer *w)
{
    bool small = queue_has(&w->queue, false), alone = queue_has(&w->queue, true);
    if (!small && !alone)
        return false;
    bool turn = alone && (w->alone_next || !small);
    w->alone_next = !turn;
    take_turn(w, turn);
    return true;
}

/* ---- when there is nothing else to do */

/* Looked for by a read of its own: an idle writer must not take the lock from others. */
static bool has_purge_work(struct writer *w)
{
    sqlite3_stmt *find = tx_statement(&w->tx, ST_PURGE_FIND);
    int64_t index_id = 0;
    return find && statement_number(find, 0, &index_id) == CATALOGUE_OK && index_id != 0;
}

/* Drops a batch of a removed index's rows. True where there may be more. */
static bool purge_some(struct writer *w)
{
    if (!w->purge_pending || writer_usable(w) != CATALOGUE_OK)
        return false;
    w->purge_pending = has_purge_work(w);
    if (!w->purge_pending || begin(w, false) != CATALOGUE_OK)
        return false;
    struct change_result ignored = {.status = CATALOGUE_OK};
    bool more = false;
    enum catalogue_status status = apply_purge(&w->tx, &ignored, &more);
    if (status == CATALOGUE_OK)
        status = tx_commit(&w->tx);
    else
        tx_rollback(&w->tx);
    if (status == CATALOGUE_OK) {
        w->purge_pending = more;
        checkpoint_after_commit(&w->checkpoint);
    }
    return status == CATALOGUE_OK && more;
}

/* Finds out whether a trouble is over, though nobody writes. What it writes must differ from what
 * is there: SQLite leaves a page alone that would stay the same, and the disk is not asked. */
static void probe(struct writer *w)
{
    enum catalogue_status status = begin(w, false);
    if (status == CATALOGUE_OK) {
        sqlite3_stmt *row = tx_statement(&w->tx, ST_CATALOGUE_PROBE);
        status = row ? statement_run(row) : tx_failure(&w->tx);
        if (status == CATALOGUE_OK)
            status = tx_commit(&w->tx);
        else
            tx_rollback(&w->tx);
    }
    writer_note(w, status, w->tx.why);
}

static void look_around(struct writer *w)
{
    if (queue_now_ms() < w->idle_at_ms)
        return;
    w->idle_at_ms = queue_now_ms() + WRITER_IDLE_MS;
    if (writer_usable(w) != CATALOGUE_OK)
        return;
    w->purge_pending = true; /* maybe another process removed an index */
    checkpoint_when_idle(&w->checkpoint);
    pthread_mutex_lock(&w->trouble_lock);
    bool writable = w->writable;
    pthread_mutex_unlock(&w->trouble_lock);
    if (!writable)
        probe(w);
}

static void *run(void *context)
{
    struct writer *w = context;
    for (;;) {
        writer_follow(w);
        if (serve_queue(w))
            continue;
        if (queue_is_closed(&w->queue))
            return NULL;
        if (w->catalogue->options.server) {
            if (purge_some(w))
                continue;
            look_around(w);
        }
        queue_wait(&w->queue, WRITER_IDLE_MS);
    }
}

/* ---- start, stop, submit */

enum catalogue_status writer_start(struct catalogue *c, struct writer **out, char *why,
                                   size_t why_size)
{
    *out = NULL;
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        return CATALOGUE_NO_MEMORY;
    w->catalogue = c;
    w->writable = true;
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    if (!queue_init(&w->queue, c->options.max_queued))
        goto fail_queue;
    if (pthread_mutex_init(&w->trouble_lock, NULL) != 0)
        goto fail_lock;
    status = writer_connect(w, !c->options.must_exist, why, why_size);
    if (status != CATALOGUE_OK)
        goto fail_connect;
    *out = w;
    if (pthread_create(&w->thread, NULL, run, w) == 0)
        return CATALOGUE_OK;

    snprintf(why, why_size, "cannot start the writer's thread");
    status = CATALOGUE_NO_MEMORY;
    *out = NULL;
    writer_disconnect(w);
fail_connect:
    pthread_mutex_destroy(&w->trouble_lock);
fail_lock:
    queue_done(&w->queue);
fail_queue:
    free(w);
    return status;
}

void writer_finish(struct writer *w)
{
    if (!w || w->finished)
        return;
    queue_close(&w->queue);
    pthread_join(w->thread, NULL);
    w->finished = true;
}

void writer_free(struct writer *w)
{
    if (!w)
        return;
    if (w->catalogue->options.server && writer_usable(w) == CATALOGUE_OK)
        checkpoint_at_close(&w->checkpoint);
    writer_disconnect(w);
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
    struct request *request = calloc(1, sizeof *request);
    if (!request) {
        struct change_result result = {.status = CATALOGUE_NO_MEMORY};
        atomic_fetch_add(&w->failed[CATALOGUE_NO_MEMORY], 1);
        done(done_context, &result);
        return;
    }
    request->change = *change;
    request->done = done;
    request->done_context = done_context;
    request->deadline_ms = queue_now_ms() + w->catalogue->options.write_timeout_ms;
    switch (queue_push(&w->queue, request)) {
    case QUEUE_TAKEN:
        break;
    case QUEUE_FULL:
        writer_answer_failed(w, request, CATALOGUE_BUSY, "too many writes are waiting");
        break;
    case QUEUE_CLOSED:
        writer_answer_failed(w, request, CATALOGUE_CANCELLED, "the catalogue is closing");
        break;
    }
}
