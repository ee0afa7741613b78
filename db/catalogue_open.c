/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Opens and closes a catalogue for a process: the connection of its writer, its views, the watch
 * of the file and, for a node, the shared log. */
#include "db/catalogue.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/file/server_lock.h"
#include "db/shared/member.h"
#include "db/shared/presence.h"
#include "db/write/writer.h"
#include "server/base/clock.h"
#include "server/base/file.h"

/* ---- open and close */

/* Makes the path absolute, since the process may change its folder. Does not resolve links, so that
 * the watch notices a link that is changed. */
static char *absolute_path(const char *path)
{
    if (path[0] == '/')
        return strdup(path);
    char *folder = getcwd(NULL, 0);
    if (folder == NULL)
        return NULL;
    char *out = NULL;
    if (asprintf(&out, "%s/%s", folder, path) < 0)
        out = NULL;
    free(folder);
    return out;
}

/* Puts large temporary tables and sorts beside the database, since /tmp may be small. SQLite
 * reads the variable when it starts: call this once, before the first connection. */
static void prepare_engine(const char *path)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool set;
    pthread_mutex_lock(&lock);
    if (!set) {
        char *folder = strdup(path);
        if (folder != NULL) {
            char *slash = strrchr(folder, '/');
            slash[slash == folder ? 1 : 0] = '\0';
            setenv("SQLITE_TMPDIR", folder, 0);
            free(folder);
        }
        /* SQLite's memory statistics would take a lock for each allocation. */
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        set = true;
    }
    pthread_mutex_unlock(&lock);
}

/* Makes a sentence name the file as the caller did. */
static void name_as_given(const char *given, const char *kept, char *why, size_t why_size)
{
    char rest[512];
    size_t len = strlen(kept);

    if (strncmp(why, kept, len) != 0 || why[len] != ':')
        return;
    snprintf(rest, sizeof rest, "%s", why + len);
    snprintf(why, why_size, "%s%s", given, rest);
}

/* False if there is no file, or it cannot be read: then opening it says why. */
static bool is_shared_file(const char *path)
{
    sqlite3 *db = NULL;
    int version = 0;
    bool shared = false;
    char why[512];

    if (connection_open(path, CONNECTION_READ, &db, why, sizeof why) != CATALOGUE_OK)
        return false;
    shared = schema_version(db, &version, &shared) && shared;
    connection_close(db);
    return shared;
}

static bool start_presence(struct catalogue *c)
{
    struct presence *presence = presence_start(c);
    atomic_store(&c->presence, presence);
    return presence != NULL;
}

enum catalogue_status catalogue_open(const struct catalogue_options *options,
                                     struct catalogue **out, char *why, size_t why_size)
{
    *out = NULL;
    if (why_size > 0)
        why[0] = '\0';
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    struct catalogue *c = calloc(1, sizeof *c);
    if (c == NULL)
        goto fail;
    c->path = absolute_path(options->path);
    if (c->path == NULL)
        goto fail;
    c->options = *options;
    c->options.path = c->path;
    if (c->options.write_timeout_ms == 0)
        c->options.write_timeout_ms = WRITER_TIMEOUT_DEFAULT_MS;
    prepare_engine(c->path);
    if (options->shared.of_shared_file && !is_shared_file(c->path))
        c->options.shared = (struct catalogue_shared){0};
    bool is_shared = c->options.shared.database != NULL || c->options.shared.follows;
    if (is_shared && (c->member = member_new(c)) == NULL)
        goto fail;
    status = writer_start(c, &c->writer, why, why_size);
    if (status == CATALOGUE_OK)
        status = view_pool_new(c, &c->views, why, why_size);
    if (status == CATALOGUE_OK)
        status = watch_new(c, &c->watch, why, why_size);
    if (status != CATALOGUE_OK)
        goto fail;
    if (c->member != NULL && !member_start(c->member)) {
        status = CATALOGUE_NO_MEMORY;
        goto fail;
    }
    /* A follower leads nothing, and reports to nobody. */
    if (c->options.shared.database != NULL && options->server && !start_presence(c)) {
        status = CATALOGUE_NO_MEMORY;
        goto fail;
    }
    *out = c;
    return CATALOGUE_OK;

fail:
    if (why_size > 0 && why[0] == '\0')
        snprintf(why, why_size, "%s: %s", options->path, catalogue_status_word(status));
    if (c != NULL && c->path != NULL && why_size > 0)
        name_as_given(options->path, c->path, why, why_size);
    catalogue_close(c);
    return status;
}

void catalogue_finish(struct catalogue *c)
{
    if (c != NULL)
        writer_finish(c->writer);
}

void catalogue_abandon(struct catalogue *c)
{
    if (c != NULL)
        writer_abandon(c->writer);
}

/* The writer's commits wake the watch, so its thread ends first; its connection closes last. */
void catalogue_close(struct catalogue *c)
{
    if (c == NULL)
        return;
    presence_stop(c->presence);
    writer_finish(c->writer);
    member_stop(c->member);
    watch_free(c->watch);
    view_pool_free(c->views);
    writer_free(c->writer);
    presence_free(c->presence);
    member_free(c->member);
    free(c->path);
    free(c);
}

/* ---- writes */

struct spool *catalogue_spool(const struct catalogue *c, uint64_t max_bytes)
{
    char *folder = strndup(c->path, (size_t)(strrchr(c->path, '/') - c->path));
    struct spool *spool = folder != NULL ? spool_new(folder, max_bytes) : NULL;
    free(folder);
    return spool;
}

int catalogue_scratch(const struct catalogue *c)
{
    char *folder = strndup(c->path, (size_t)(strrchr(c->path, '/') - c->path));
    int fd = folder != NULL ? file_open_nameless(folder) : -1;
    free(folder);
    return fd;
}

void catalogue_submit(struct catalogue *c, const struct change *change, change_done *done)
{
    writer_submit(c->writer, change, done, change->context);
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool is_answered;
    struct change_result *result;
};

static void on_answer(void *context, struct change_result *result)
{
    struct waiter *waiter = context;
    *waiter->result = *result;
    memset(result, 0, sizeof *result); /* taken over */
    pthread_mutex_lock(&waiter->lock);
    waiter->is_answered = true;
    pthread_cond_signal(&waiter->answered);
    pthread_mutex_unlock(&waiter->lock);
}

#define PROGRESS_MS 100

enum catalogue_status
catalogue_apply_with_progress(struct catalogue *c, const struct change *change,
                              void (*progress)(void *context, uint64_t rows_done), void *context,
                              struct change_result *result)
{
    struct waiter waiter = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER, .result = result};
    _Atomic uint64_t rows_done = 0;
    struct change copy = *change;
    copy.rows_done = &rows_done;
    writer_submit(c->writer, &copy, on_answer, &waiter);
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.is_answered) {
        struct timespec until = clock_after_ms(PROGRESS_MS);
        if (progress != NULL)
            pthread_cond_clockwait(&waiter.answered, &waiter.lock, CLOCK_MONOTONIC, &until);
        else
            pthread_cond_wait(&waiter.answered, &waiter.lock);
        if (progress != NULL)
            progress(context, atomic_load(&rows_done));
    }
    pthread_mutex_unlock(&waiter.lock);
    pthread_mutex_destroy(&waiter.lock);
    pthread_cond_destroy(&waiter.answered);
    return result->status;
}

enum catalogue_status catalogue_apply(struct catalogue *c, const struct change *change,
                                      struct change_result *result)
{
    return catalogue_apply_with_progress(c, change, NULL, NULL, result);
}

void catalogue_await_server(const struct catalogue *c)
{
    static const struct timespec pause = {0, 3 * CATALOGUE_POLL_MS * 1000000L};

    if (catalogue_is_served(c))
        nanosleep(&pause, NULL);
}

bool catalogue_is_served(const struct catalogue *c)
{
    return server_lock_is_held(c->path);
}

int catalogue_upgraded_from(struct catalogue *c, int *to)
{
    *to = atomic_load(&c->upgraded_to);
    return atomic_exchange(&c->upgraded_from, 0);
}

uint64_t catalogue_files(const struct catalogue *c)
{
    return atomic_load(&c->files);
}

int64_t catalogue_changed_at(const struct catalogue *c)
{
    return atomic_load(&c->writer->changed_at);
}

int64_t catalogue_now(const struct catalogue *c)
{
    int64_t (*clock)(void) = c->options.clock;
    return (clock != NULL ? clock() : (int64_t)time(NULL)) + atomic_load(&c->writer->clock_offset);
}

bool catalogue_was_served(const struct catalogue *c)
{
    return c->writer->was_served;
}

/* A transaction needs more than this beside the catalogue. */
#define DISK_FULL_BYTES (64u << 10)

bool catalogue_disk_is_full(const struct catalogue *c)
{
    return atomic_load(&c->space.disk_bytes) != 0 &&
           atomic_load(&c->space.free_bytes) < DISK_FULL_BYTES;
}

static void read_space(const struct space *s, struct catalogue_stats *out)
{
    out->file_bytes = atomic_load(&s->file_bytes);
    out->wal_file_bytes = atomic_load(&s->wal_bytes);
    out->disk_bytes = atomic_load(&s->disk_bytes);
    out->disk_free_bytes = atomic_load(&s->free_bytes);
    out->disk_short = out->disk_free_bytes < file_reserve_of(out->disk_bytes);
}

void catalogue_stats_get(struct catalogue *c, struct catalogue_stats *out)
{
    struct writer *w = c->writer;
    memset(out, 0, sizeof *out);
    int64_t since_ms = atomic_load(&w->busy_since_ms);
    out->busy_ms = since_ms != 0 ? (uint64_t)(clock_now_ms() - since_ms) : 0;
    out->write_timeout_ms = w->catalogue->options.write_timeout_ms;
    out->statements = atomic_load(&w->shared.statements);
    out->commits = atomic_load(&w->commits);
    out->batched_changes = atomic_load(&w->batched);
    out->queue_depth = queue_depth(&w->queue);
    out->max_queued = w->queue.max;
    out->revision = atomic_load(&w->committed);
    out->registered_at = atomic_load(&w->registered_at);
    out->held = atomic_load(&w->held);
    out->rehearsed = atomic_load(&w->rehearsal.answered);
    out->history_bytes = atomic_load(&w->history_bytes);
    out->history_from = atomic_load(&w->history_from);
    out->history_dropped = atomic_load(&w->history_dropped);
    for (size_t i = 0; i < sizeof out->failed / sizeof out->failed[0]; i++)
        out->failed[i] = atomic_load(&w->failed[i]);
    histogram_collect(&w->write_ns, &out->write_ns);
    histogram_collect(&w->commit_ns, &out->commit_ns);
    histogram_collect(&w->batch, &out->batch);
    histogram_collect(&w->checkpoint.took_ns, &out->checkpoint_ns);
    read_space(&w->catalogue->space, out);
    out->wal_bytes = atomic_load(&w->checkpoint.wal_bytes);
    out->checkpoints = atomic_load(&w->checkpoint.count);
    pthread_mutex_lock(&w->trouble_lock);
    out->writable = w->writable;
    memcpy(out->trouble, w->trouble, sizeof out->trouble);
    pthread_mutex_unlock(&w->trouble_lock);
    if (out->writable && atomic_load(&w->catalogue->lost)) {
        out->writable = false;
        snprintf(out->trouble, sizeof out->trouble, "the catalogue file is gone or was replaced");
    }
}
