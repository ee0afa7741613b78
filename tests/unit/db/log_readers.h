/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Readers of a catalogue that take each other's place: there is never a moment without a view, as
 * beside a publisher under load. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "db/catalogue.h"
#include "db/file/checkpoint.h"
#include "tests/unit/db/write/write_fixture.h"

/* What the log comes to beside them: readers are waited for at CHECKPOINT_WAL_LONG, and where the
 * machine was too busy for that, once or twice more. */
#define LOG_READERS_MAX ((int64_t)3 * CHECKPOINT_WAL_LONG + CHECKPOINT_WAL_BYTES)

struct log_readers {
    struct catalogue *c;
    char log[128]; /* its path */
    pthread_t thread;
    atomic_bool stops;
    /* Bytes, of the log at its longest, once they have stopped. No lower bound holds: an idle
     * writer empties the log, and on a busy machine that may come before the first look. */
    int64_t longest;
};

static inline void log_readers_measure(struct log_readers *r)
{
    struct stat log;
    if (stat(r->log, &log) == 0 && log.st_size > r->longest)
        r->longest = log.st_size;
}

static inline void *log_readers_run(void *context)
{
    struct log_readers *r = context;
    struct catalogue_view *view, *next;
    assert_int_equal(catalogue_view_begin(r->c, &view), CATALOGUE_OK);
    for (bool stops = false; !stops; stops = atomic_load(&r->stops)) {
        usleep(5000);
        log_readers_measure(r);
        assert_int_equal(catalogue_view_begin(r->c, &next), CATALOGUE_OK);
        catalogue_view_end(view);
        view = next;
    }
    catalogue_view_end(view);
    return NULL;
}

static inline void log_readers_start(struct log_readers *r, const struct write_fixture *f)
{
    r->c = f->c;
    r->longest = 0;
    snprintf(r->log, sizeof r->log, "%s-wal", f->path);
    atomic_init(&r->stops, false);
    assert_int_equal(pthread_create(&r->thread, NULL, log_readers_run, r), 0);
}

/* Fails where the log became too long beside them. */
static inline void log_readers_stop(struct log_readers *r)
{
    atomic_store(&r->stops, true);
    pthread_join(r->thread, NULL);
    log_readers_measure(r);
    print_message("the log: %lld bytes\n", (long long)r->longest);
    assert_true(r->longest <= LOG_READERS_MAX);
}
