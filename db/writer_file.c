#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "db/connection.h"
#include "db/schema.h"
#include "db/writer.h"

/* ---- the file */

/* Called by the engine while another process holds the lock. Requests go on expiring meanwhile. */
static int on_busy(void *context, int attempt)
{
    struct writer *w = context;
    (void)attempt;
    writer_answer_expired(w);
    if (queue_now_ms() >= w->lock_until_ms)
        return 0;
    if (w->waits_for_queue && queue_depth(&w->queue) == 0)
        return 0;
    if (atomic_load(&w->catalogue->lost))
        return 0;
    struct timespec pause = {0, WRITER_LOCK_STEP_MS * 1000000L};
    nanosleep(&pause, NULL);
    return 1;
}

static void on_breath(void *context)
{
    writer_answer_expired(context);
}

/* Opens the file and notes which one it is; a rename between the two is noticed. */
static enum catalogue_status open_noted(struct writer *w, bool create, char *why, size_t why_size)
{
    const char *path = w->catalogue->path;
    enum connection_mode mode = create ? CONNECTION_CREATE : CONNECTION_WRITE;
    struct stat before, after;
    bool existed = stat(path, &before) == 0;
    enum catalogue_status status = connection_open(path, mode, &w->db, why, why_size);
    if (status != CATALOGUE_OK)
        return status;
    if (stat(path, &after) != 0 ||
        (existed && (before.st_dev != after.st_dev || before.st_ino != after.st_ino))) {
        snprintf(why, why_size, "%s: was replaced while it was opened", path);
        return CATALOGUE_UNAVAILABLE;
    }
    w->device = after.st_dev;
    w->inode = after.st_ino;
    return CATALOGUE_OK;
}

enum catalogue_status writer_connect(struct writer *w, bool create, char *why, size_t why_size)
{
    enum catalogue_status status = open_noted(w, create, why, why_size);
    if (status == CATALOGUE_OK)
        status = schema_prepare(w->db, w->catalogue->path, why, why_size);
    if (status != CATALOGUE_OK) {
        connection_close(w->db);
        w->db = NULL;
        return status;
    }
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA cache_size=-%d", WRITER_CACHE_KIB);
    int rc = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(w->db, STATEMENTS_TEMP_TABLES, NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        status = connection_status(rc);
        connection_explain(w->catalogue->path, w->db, why, why_size);
    } else if (!tx_init(&w->tx, &w->catalogue->options, w->db)) {
        status = CATALOGUE_NO_MEMORY;
        snprintf(why, why_size, "out of memory");
    }
    if (status != CATALOGUE_OK) {
        writer_disconnect(w);
        return status;
    }
    sqlite3_busy_handler(w->db, on_busy, w);
    w->tx.breathe = on_breath;
    w->tx.breathe_context = w;
    checkpoint_attach(&w->checkpoint, w->db, w->catalogue->options.server);
    w->purge_pending = true;
    return CATALOGUE_OK;
}

void writer_disconnect(struct writer *w)
{
    if (!w->db)
        return;
    tx_done(&w->tx);
    connection_close(w->db);
    w->db = NULL;
}

enum catalogue_status writer_usable(struct writer *w)
{
    if (!w->db || atomic_load(&w->catalogue->lost))
        return CATALOGUE_UNAVAILABLE;
    /* The watch looks now and then; a write into a file that nobody will find must not be
     * acknowledged in between. */
    struct stat now;
    if (stat(w->catalogue->path, &now) != 0 || now.st_dev != w->device || now.st_ino != w->inode)
        return CATALOGUE_UNAVAILABLE;
    return CATALOGUE_OK;
}

void writer_follow(struct writer *w)
{
    if (!atomic_exchange(&w->reopen_wanted, false))
        return;
    char why[512] = "";
    writer_disconnect(w);
    enum catalogue_status status = writer_connect(w, false, why, sizeof why);
    writer_note(w, status, why);
    if (status == CATALOGUE_OK) {
        atomic_store(&w->committed, 0); /* it may be another file, with revisions of its own */
        atomic_store(&w->catalogue->lost, false);
    }
}

/* ---- answers */

void writer_note(struct writer *w, enum catalogue_status status, const char *why)
{
    pthread_mutex_lock(&w->trouble_lock);
    w->writable = status == CATALOGUE_OK;
    if (w->writable)
        w->trouble[0] = '\0';
    else
        snprintf(w->trouble, sizeof w->trouble, "%s%s%.200s", catalogue_status_word(status),
                 why && *why ? ": " : "", why ? why : "");
    pthread_mutex_unlock(&w->trouble_lock);
}

void writer_answer_failed(struct writer *w, struct request *list, enum catalogue_status status,
                          const char *why)
{
    while (list) {
        struct request *request = list;
        list = request->next;
        atomic_fetch_add(&w->failed[status], 1);
        entry_record_done(&request->result.entry);
        memset(&request->result, 0, sizeof request->result);
        request->result.status = status;
        snprintf(request->result.detail, sizeof request->result.detail, "%s", why ? why : "");
        request->done(request->done_context, &request->result);
        free(request);
    }
}

void writer_answer_expired(struct writer *w)
{
    struct request *expired = queue_take_expired(&w->queue, queue_now_ms());
    writer_answer_failed(w, expired, CATALOGUE_BUSY,
                         "the catalogue was busy for as long as a write may wait");
}
