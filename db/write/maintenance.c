/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The writer's work between writes (writer.h). */
#include "db/write/writer.h"

#include <malloc.h>

#include "db/history/recorder.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/commit.h"
#include "db/write/repeat.h"
#include "server/base/clock.h"

/* Pause between two batches of expired page URLs. */
#define EXPIRE_MS 50

/* Looks for rows to purge outside of a transaction: an idle writer must not take the lock. */
static bool has_purge_work(struct writer *w)
{
    int64_t index_id = 0;
    return apply_purge_find(&w->tx, &index_id) == CATALOGUE_OK && index_id != 0;
}

/* Commits a batch if `status` is OK. True if it was committed. */
static bool batch_end(struct writer *w, enum catalogue_status status)
{
    if (status != CATALOGUE_OK)
        tx_rollback(&w->tx);
    else if (writer_commit(w) != CATALOGUE_OK)
        return false;
    else
        checkpoint_after_commit(&w->checkpoint);
    return status == CATALOGUE_OK;
}

bool maintenance_purge(struct writer *w)
{
    if (!w->purge_pending || writer_usable(w) != CATALOGUE_OK)
        return false;
    w->purge_pending = has_purge_work(w);
    if (!w->purge_pending || writer_begin(w, false, QUEUE_SMALL) != CATALOGUE_OK)
        return false;
    struct change_result ignored = {.status = CATALOGUE_OK};
    bool more = false;
    if (!batch_end(w, apply_purge(&w->tx, &ignored, &more)))
        return false;
    w->purge_pending = more;
    return more;
}

/* Drops a batch of old history; true if there may be more. Looks only every WRITER_TRIM_MS, so that
 * it mostly costs one comparison. */
static bool trim_some(struct writer *w)
{
    struct tx *tx = &w->tx;
    bool full = tx->history_bytes > (int64_t)w->catalogue->options.history_max_bytes;
    if ((!full && clock_now_ms() < w->trim_at_ms) || writer_usable(w) != CATALOGUE_OK)
        return false;
    w->trim_at_ms = clock_now_ms() + WRITER_TRIM_MS;
    bool more = false;
    uint64_t dropped = 0;
    if (!recorder_trim_is_due(tx) || writer_begin(w, false, QUEUE_SMALL) != CATALOGUE_OK)
        return false;
    if (!batch_end(w, recorder_trim(tx, &more, &dropped)))
        return false;
    atomic_fetch_add(&w->history_dropped, dropped);
    writer_saw(w);
    if (more)
        w->trim_at_ms = 0;
    return more;
}

/* Drops a batch of expired Idempotency-Keys; true if there may be more. */
static bool forget_some(struct writer *w)
{
    struct tx *tx = &w->tx;
    if (clock_now_ms() < w->forget_at_ms || writer_usable(w) != CATALOGUE_OK)
        return false;
    w->forget_at_ms = clock_now_ms() + WRITER_TRIM_MS;
    if (!repeat_purge_is_due(tx) || writer_begin(w, false, QUEUE_SMALL) != CATALOGUE_OK)
        return false;
    if (!batch_end(w, repeat_purge(tx)))
        return false;
    w->forget_at_ms = 0;
    return true;
}

/* Any thread. */
static void expired(void *context, struct change_result *result)
{
    struct writer *w = context;
    (void)result;
    atomic_store(&w->expires, false);
}

/* Queues a change that removes a batch of expired page URLs; true if it did. One at a time, since
 * it may wait for lists like any other change. */
static bool expire_some(struct writer *w)
{
    static const struct change change = {.kind = CHANGE_EXPIRE, .by = "expiry", .via = "config"};
    if (clock_now_ms() < w->expire_at_ms || atomic_load(&w->expires) ||
        writer_usable(w) != CATALOGUE_OK)
        return false;
    bool due = urlset_expiry_is_due(&w->tx);
    w->expire_at_ms = clock_now_ms() + (due ? EXPIRE_MS : WRITER_TRIM_MS);
    atomic_store(&w->expires, due);
    if (due)
        writer_submit(w, &change, expired, w);
    return due;
}

bool maintenance_run(struct writer *w)
{
    return expire_some(w) || trim_some(w) || forget_some(w);
}

/* Tests whether writes succeed again. The new value must differ from the old one: SQLite does not
 * write a page that stays the same. */
static void probe(struct writer *w)
{
    enum catalogue_status status = writer_begin(w, false, QUEUE_SMALL);
    if (status == CATALOGUE_OK) {
        status = tx_run(&w->tx, ST_LOCAL_PROBE);
        if (status == CATALOGUE_OK)
            status = writer_commit(w);
        else
            tx_rollback(&w->tx);
    }
    writer_record_failed(w, status, status == CATALOGUE_BUSY ? writer_lock_holder(w) : w->tx.why);
}

static bool is_writable(struct writer *w)
{
    pthread_mutex_lock(&w->trouble_lock);
    bool writable = w->writable;
    pthread_mutex_unlock(&w->trouble_lock);
    return writable;
}

/* `moved`: something was committed since the last look. */
static void look_around(struct writer *w, bool moved)
{
    if (writer_usable(w) != CATALOGUE_OK) {
        log_index_forget(&w->index); /* as if something had moved, until it is usable */
        return;
    }
    char ignored[512];
    server_lock_hold(&w->lock, w->catalogue->path, ignored, sizeof ignored);
    /* A lock file that was made again has no state yet. */
    if ((moved || !w->lock.noted) && tx_refresh(&w->tx) == CATALOGUE_OK) {
        writer_saw(w);
        outside_check(&w->outside, &w->tx);
    } else if (moved) {
        log_index_forget(&w->index);
    }
    w->purge_pending = true; /* another process may have removed an index */
    checkpoint_when_idle(&w->checkpoint);
    if (!is_writable(w))
        probe(w);
}

int maintenance_watch(struct writer *w)
{
    int64_t now_ms = clock_now_ms();
    if (w->db == NULL || now_ms < w->idle_at_ms)
        return WRITER_IDLE_MS;
    w->idle_at_ms = now_ms + WRITER_IDLE_MS;
    if (w->give_back_at_ms != 0 && now_ms >= w->give_back_at_ms) {
        w->give_back_at_ms = 0;
        malloc_trim(0);
    }
    bool moved = log_index_moved(&w->index);
    bool settled = !moved && is_writable(w) && w->lock.noted;
    if (!settled || now_ms >= w->look_at_ms) {
        w->look_at_ms = now_ms + WRITER_TRIM_MS;
        look_around(w, moved);
    }
    return settled && w->give_back_at_ms == 0 && w->outside.count == 0 &&
                   w->catalogue->member == NULL
               ? WRITER_TRIM_MS
               : WRITER_IDLE_MS;
}
