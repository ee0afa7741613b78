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
    pthread_t thread;
    atomic_bool stops;
};

static inline void *log_readers_run(void *context)
{
    struct log_readers *r = context;
    struct catalogue_view *view, *next;
    assert_int_equal(catalogue_view_begin(r->c, &view), CATALOGUE_OK);
    for (bool stops = false; !stops; stops = atomic_load(&r->stops)) {
        usleep(5000);
        assert_int_equal(catalogue_view_begin(r->c, &next), CATALOGUE_OK);
        catalogue_view_end(view);
        view = next;
    }
    catalogue_view_end(view);
    return NULL;
}

static inline void log_readers_start(struct log_readers *r, struct catalogue *c)
{
    r->c = c;
    atomic_init(&r->stops, false);
    assert_int_equal(pthread_create(&r->thread, NULL, log_readers_run, r), 0);
}

static inline void log_readers_stop(struct log_readers *r)
{
    atomic_store(&r->stops, true);
    pthread_join(r->thread, NULL);
}

/* How long the log was at its longest: it is not cut below CHECKPOINT_WAL_KEPT. */
static inline int64_t log_bytes(const struct write_fixture *f)
{
    char path[128];
    struct stat wal;
    snprintf(path, sizeof path, "%s-wal", f->path);
    return stat(path, &wal) == 0 ? wal.st_size : 0;
}
