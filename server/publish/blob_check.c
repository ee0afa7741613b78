/* The cache's work on one file: look whether it is still what was read, read it if not, and tell
 * who waits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/publish/await.h"
#include "server/publish/blob_state.h"

#define MAX_ATTEMPTS   3  /* at a file that changes as it is read, or is invalidated meanwhile */
#define ATTEMPT_GAP_MS 10 /* for its writer to get on */
#define SECOND_NS      INT64_C(1000000000)

/* ---- one look at a file ------------------------------------------------------------------- */

struct look {
    struct blob *blob; /* the current one at first, then what is to be served; owned */
    bool fresh;        /* it was read now */
    struct blob_file file;
    bool settled; /* of `file` */
    int64_t started_ms;
};

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static enum blob_load_status read_file(struct blob_cache *cache, const char *path, int fd,
                                       const struct blob_file *file, struct look *look)
{
    struct blob *b = NULL;
    uint64_t bytes = 2 * file->size; /* what it is compressed to counts too */
    int64_t now_ns = clock_ns();
    if (!blob_budget_reserve(cache, bytes)) {
        /* What this file had in memory may be what is in the way. */
        blob_unref(look->blob);
        look->blob = NULL;
        if (!blob_budget_reserve(cache, bytes))
            return BLOB_LOAD_NO_MEMORY;
    }
    atomic_fetch_add(&cache->loads, 1);
    enum blob_load_status status = blob_read(fd, file, &b);
    bool same =
        status == BLOB_LOADED && look->blob != NULL && strcmp(b->etag, look->blob->etag) == 0;
    if (same) { /* compressed already */
        blob_unref(b);
        b = NULL;
    } else if (status == BLOB_LOADED && !blob_finish(b, path, cache->options.compression_level)) {
        blob_unref(b);
        b = NULL;
        status = BLOB_LOAD_NO_MEMORY;
    }
    blob_budget_settle(cache, bytes, b);
    if (status != BLOB_LOADED)
        return status;
    look->file = *file;
    look->settled = blob_file_settled(file, now_ns);
    if (!same) {
        blob_unref(look->blob);
        look->blob = b;
        look->fresh = true;
    }
    return BLOB_LOADED;
}

static enum blob_load_status look_once(struct blob_cache *cache, const struct blob_entry *e,
                                       struct look *look)
{
    struct blob_file file;
    look->started_ms = await_now_ms();
    atomic_fetch_add(&cache->checks, 1);
    int fd = cache->options.open(cache->options.open_context, e->source, e->path);
    if (fd < 0)
        return blob_load_error(errno);
    enum blob_load_status status = blob_file_stat(fd, &file);
    bool same = look->blob != NULL && look->settled && blob_file_same(&file, &look->file);
    if (status == BLOB_LOADED && !same)
        status = read_file(cache, e->path, fd, &file, look);
    close(fd);
    return status;
}

/* ---- what it means ------------------------------------------------------------------------ */

/* The date that goes with new content, by what was served before. */
static void date(struct blob_entry *e, struct blob *b, const struct blob_file *file, int64_t now)
{
    int64_t modified_at = file->modified_ns < 0 ? 0 : file->modified_ns / SECOND_NS;
    if (modified_at > now)
        modified_at = now;
    if (strcmp(e->etag, b->etag) != 0) {
        bool first = e->etag[0] == '\0';
        if (!first && modified_at <= e->modified_at)
            modified_at = now > e->modified_at ? now : e->modified_at;
        e->shared_second = !first && modified_at == e->modified_at;
        e->modified_at = modified_at;
        memcpy(e->etag, b->etag, sizeof e->etag);
    }
    b->modified_at = e->modified_at;
}

/* Takes over what was found, under the lock. `*retired` gets what it replaced, to be freed outside
 * it. */
static void take(struct blob_entry *e, struct look *look, struct blob **retired)
{
    struct blob_entries *entries = &e->cache->entries;
    int64_t now = clock_ns() / SECOND_NS;
    struct blob *b = look->blob;
    if (look->fresh)
        date(e, b, &look->file, now);
    /* Until a second is over, another content may yet come with it. */
    atomic_store(&b->same_second, e->shared_second || b->modified_at >= now);
    e->file = look->file;
    e->settled = look->settled;
    e->checked_ms = look->started_ms;
    if (e->blob != b) { /* new, or evicted while it was looked at */
        *retired = e->blob;
        blob_ref(b);
        e->blob = b;
    }
    blob_entries_use(entries, e);
}

/* Ends the load: takes or drops what was found and takes the waiters off. NULL and `*again` where
 * the file was invalidated meanwhile. */
static struct blob_waiter *finish(struct blob_entry *e, enum blob_load_status status, bool last,
                                  struct look *look, bool *again)
{
    struct blob_cache *cache = e->cache;
    struct blob *retired = NULL;
    struct blob_waiter *waiters = NULL;
    pthread_mutex_lock(&cache->lock);
    *again = e->again && !last;
    if (status == BLOB_LOADED) {
        take(e, look, &retired);
    } else if (look->blob != NULL && status != BLOB_LOAD_GONE) {
        e->checked_ms = look->started_ms; /* the last whole one is served on */
    } else {
        retired = blob_entries_drop(&cache->entries, e);
    }
    if (!*again) {
        if (e->again)
            e->checked_ms = 0;
        waiters = e->waiters;
        e->waiters = NULL;
        e->loading = false;
        if (status == BLOB_LOAD_GONE || e->etag[0] == '\0')
            blob_entries_remove(&cache->entries, e);
    }
    pthread_mutex_unlock(&cache->lock);
    blob_unref(retired);
    return waiters;
}

/* Takes over the reference; the last waiter gets it, so that none is left behind an answer to count
 * against the budget. */
static void answer(struct blob_waiter *waiters, enum blob_result result, struct blob *b)
{
    while (waiters != NULL) {
        struct blob_waiter *w = waiters;
        waiters = w->next;
        if (b != NULL && waiters != NULL)
            blob_ref(b);
        w->done(w->context, result, b);
        free(w);
    }
}

static void look_begin(struct blob_entry *e, struct look *look)
{
    struct blob_cache *cache = e->cache;
    pthread_mutex_lock(&cache->lock);
    e->again = false;
    *look = (struct look){.blob = e->blob, .file = e->file, .settled = e->settled};
    if (look->blob != NULL)
        blob_ref(look->blob);
    pthread_mutex_unlock(&cache->lock);
}

void blob_check_run(void *entry)
{
    struct blob_entry *e = entry;
    struct blob_cache *cache = e->cache;
    struct blob_waiter *waiters = NULL;
    enum blob_load_status status;
    struct look look;
    bool again;
    for (int attempt = 1;; attempt++) {
        bool last = attempt >= MAX_ATTEMPTS;
        look_begin(e, &look);
        status = look_once(cache, e, &look);
        if (status == BLOB_LOAD_CHANGING && !last) {
            blob_unref(look.blob);
            nanosleep(&(struct timespec){.tv_nsec = ATTEMPT_GAP_MS * 1000000L}, NULL);
            continue;
        }
        waiters = finish(e, status, last, &look, &again); /* e may be gone now */
        if (!again)
            break;
        blob_unref(look.blob);
    }
    if (status != BLOB_LOADED && status != BLOB_LOAD_GONE)
        atomic_fetch_add(&cache->failures, 1);
    if (status == BLOB_LOAD_GONE) {
        blob_unref(look.blob);
        answer(waiters, BLOB_NONE, NULL);
    } else {
        answer(waiters, look.blob == NULL ? BLOB_BUSY : BLOB_FOUND, look.blob);
    }
}

void blob_check_refuse(struct blob_entry *e)
{
    struct look look;
    bool again;
    look_begin(e, &look); /* what there is stays, unchecked */
    struct blob_waiter *waiters = finish(e, BLOB_LOAD_NO_MEMORY, true, &look, &again);
    blob_unref(look.blob);
    answer(waiters, BLOB_BUSY, NULL);
}
