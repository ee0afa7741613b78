/* Whether there is something newer: own commits wake a condition variable, those of other processes
 * show in PRAGMA data_version, and a stat of the path tells whether it still names our file. */
#include "db/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- looking --------------------------------------------------------------------------- */

static enum catalogue_wait_result lose(struct watch *w)
{
    w->lost = true;
    atomic_store(&w->catalogue->lost, true);
    view_pool_lose(w->catalogue->views);
    return CATALOGUE_WAIT_LOST;
}

static enum catalogue_wait_result poll_lost(struct watch *w)
{
    if (!watch_reopen(w))
        return CATALOGUE_WAIT_TIMEOUT;
    w->lost = false;
    view_pool_renew(w->catalogue->views, &w->file);
    writer_reopen(w->catalogue);
    return CATALOGUE_WAIT_REOPENED;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One look. TIMEOUT: nothing new. */
static enum catalogue_wait_result poll_once(struct watch *w)
{
    struct file_identity now;
    int64_t version = w->version;
    int rc;

    space_look(&w->catalogue->space, w->catalogue->path, now_ms());
    if (w->lost)
        return poll_lost(w);
    if (!file_identity_read(w->catalogue->path, &now) || !file_identity_equal(&now, &w->file))
        return lose(w);
    if (atomic_load(&w->catalogue->lost))
        writer_reopen(w->catalogue); /* it did not succeed yet */
    rc = watch_read_version(w->data_version, &version);
    if (rc != SQLITE_OK) {
        enum catalogue_status status = connection_status(rc);
        bool passing = status == CATALOGUE_BUSY || status == CATALOGUE_NO_MEMORY;
        return passing ? CATALOGUE_WAIT_TIMEOUT : lose(w);
    }
    if (version == w->version)
        return CATALOGUE_WAIT_TIMEOUT;
    w->version = version;
    if (!w->log_known)
        watch_find_log(w);
    return CATALOGUE_WAIT_CHANGED;
}

/* ---- waiting --------------------------------------------------------------------------- */

/* Until somebody wakes us or `until_ms`. Takes the wake-up. */
static bool wait_woken(struct watch *w, int64_t until_ms)
{
    struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    bool woken;

    pthread_mutex_lock(&w->lock);
    while (!w->woken && pthread_cond_timedwait(&w->wakes, &w->lock, &until) != ETIMEDOUT)
        ;
    woken = w->woken;
    w->woken = false;
    pthread_mutex_unlock(&w->lock);
    return woken;
}

enum catalogue_wait_result catalogue_wait(struct catalogue *c, uint32_t timeout_ms)
{
    struct watch *w = c->watch;
    int64_t deadline_ms = now_ms() + timeout_ms;
    bool woken = wait_woken(w, 0); /* before the first look, which then covers that commit too */

    for (;;) {
        enum catalogue_wait_result result = poll_once(w);
        int64_t now = now_ms();
        if (result != CATALOGUE_WAIT_TIMEOUT)
            return result;
        if (woken)
            return CATALOGUE_WAIT_CHANGED;
        if (now >= deadline_ms)
            return CATALOGUE_WAIT_TIMEOUT;
        woken = wait_woken(w, now + CATALOGUE_POLL_MS < deadline_ms ? now + CATALOGUE_POLL_MS
                                                                    : deadline_ms);
    }
}

void catalogue_wake(struct catalogue *c)
{
    struct watch *w = c->watch;

    if (w == NULL)
        return; /* a commit while the handle is being made or closed */
    pthread_mutex_lock(&w->lock);
    w->woken = true;
    pthread_cond_signal(&w->wakes);
    pthread_mutex_unlock(&w->lock);
}

/* ---- making ---------------------------------------------------------------------------- */

static bool make_sync(struct watch *w)
{
    pthread_condattr_t monotonic;
    bool made;

    if (pthread_condattr_init(&monotonic) != 0)
        return false;
    made = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
           pthread_cond_init(&w->wakes, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    if (made)
        pthread_mutex_init(&w->lock, NULL);
    return made;
}

enum catalogue_status watch_new(struct catalogue *c, struct watch **out, char *why, size_t why_size)
{
    struct watch *w = calloc(1, sizeof *w);
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    struct file_identity file;
    sqlite3 *db;

    *out = NULL;
    if (w == NULL || !make_sync(w)) {
        snprintf(why, why_size, "%s: out of memory", c->path);
        free(w);
        return CATALOGUE_NO_MEMORY;
    }
    w->catalogue = c;
    if (!file_identity_read(c->path, &file)) {
        snprintf(why, why_size, "%s: %s", c->path, strerror(errno));
        status = CATALOGUE_UNAVAILABLE;
        goto fail;
    }
    db = watch_open_path(w, &file, CONNECTION_READ, &status, why, why_size);
    if (db == NULL)
        goto fail;
    int rc = watch_adopt(w, db, &file);
    if (rc != SQLITE_OK) {
        snprintf(why, why_size, "%s: %s", c->path, sqlite3_errstr(rc));
        status = connection_status(rc);
        if (status == CATALOGUE_OK)
            status = CATALOGUE_UNAVAILABLE;
        connection_close(db);
        goto fail;
    }
    space_look(&c->space, c->path, now_ms());
    *out = w;
    return CATALOGUE_OK;

fail:
    watch_free(w);
    return status;
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    sqlite3_finalize(w->data_version);
    connection_close(w->db);
    pthread_cond_destroy(&w->wakes);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
