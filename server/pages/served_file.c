#include "server/pages/served_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/base/clock.h"
#include "server/pages/workers.h"
#include "server/rules/limits.h"

/* How it works. An entry stands for one file, in memory or remembered; whoever asks first for one
 * that is not fresh sets `loading` and hands it to a worker, whoever asks meanwhile joins its
 * `waiters`. While it is loading the entry stays and its loader alone changes what it holds, so the
 * worker looks at the file, reads, hashes and compresses without the cache's lock: that is held for
 * pointers only, never over I/O, compression or a callback. */

/* Which file it is, and which state of it: what is the same here has the same bytes, unless it was
 * changed within the file system's resolution of time (served_file_file_settled). The change time
 * tells what rsync -t and touch -d hide from the modification time. */
struct served_file_file {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

enum served_file_load_status {
    SERVED_FILE_LOADED,
    SERVED_FILE_LOAD_GONE,     /* no regular file, or too large: there is nothing to serve */
    SERVED_FILE_LOAD_CHANGING, /* it is being written right now: try again */
    SERVED_FILE_LOAD_FAILED,   /* the disk */
    SERVED_FILE_LOAD_NO_MEMORY,
};

#define SERVED_FILE_BUCKETS 16384u /* a power of two */

struct served_file_entry {
    struct served_file_entry *next; /* in its bucket */
    struct served_file_list *list;
    struct served_file_entry *newer, *older;
    struct served_file_cache *cache;
    uint64_t hash;

    struct resource *blob; /* owned reference; NULL: none in memory */
    struct served_file_file file;
    bool settled;       /* of `file`, when it was read */
    int64_t checked_ms; /* when the file was last looked at; 0: it must be */

    /* What was served last, kept when the blob goes, so that its date never goes back. */
    char etag[RESOURCE_ETAG_SIZE]; /* "": nothing yet */
    int64_t modified_at;
    bool shared_second; /* another content was served with that date */

    /* While `loading` the entry stays, and the loader alone changes what is above. */
    bool loading;
    bool again; /* what is being loaded may be too old already */
    struct resource_waiter *waiters;

    size_t source;
    char path[];
};

struct served_file_list {
    struct served_file_entry *newest, *oldest;
    size_t count;
};

struct served_file_entries {
    struct served_file_entry *buckets[SERVED_FILE_BUCKETS];
    struct served_file_list held, remembered; /* with a blob; without */
    int64_t forgot_at;                        /* when one was forgotten with its date; 0: never */
};

struct served_file_cache {
    struct served_file_cache_options options;
    struct workers *workers; /* NULL: stopped */
    pthread_mutex_t lock;
    /* under lock: */
    struct served_file_entries entries;
    uint64_t reserved; /* bytes of loads under way */
    pthread_cond_t load_ended;

    atomic_uint_fast64_t bytes; /* of all blobs, `reserved` included */
    atomic_uint_fast64_t checks, loads, evictions, failures;
};

/* ---- from a file to a resource ------------------------------------------------------------ */

#define GZIP_MIN_BYTES 257u /* smaller ones fit a packet anyway */
#define GZIP_MIN_SAVED 10u  /* one part of so many must be saved */
#define GZIP_WINDOW    (15 + 16)
#define GZIP_OS        255 /* unknown: the same bytes everywhere */

/* The coarsest time stamps of file systems in use are FAT's. */
#define SETTLED_NS (2 * (int64_t)CLOCK_SECOND_NS)

/* What `errno` of an attempt to open a file means. */
static enum served_file_load_status served_file_load_error(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EXDEV: /* a symlink that leads out of the folder */
    case ENXIO: /* a socket, a pipe without a writer */
    case ENODEV:
    case EINVAL:
    case EACCES:
    case EPERM:
    case ENAMETOOLONG:
        return SERVED_FILE_LOAD_GONE;
    case EAGAIN: /* a folder was moved while it was looked up */
        return SERVED_FILE_LOAD_CHANGING;
    case ENOMEM:
        return SERVED_FILE_LOAD_NO_MEMORY;
    default:
        return SERVED_FILE_LOAD_FAILED;
    }
}

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

static enum served_file_load_status served_file_file_stat(int fd, struct served_file_file *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return SERVED_FILE_LOAD_FAILED;
    *out = (struct served_file_file){
        .device = st.st_dev,
        .inode = st.st_ino,
        .size = (uint64_t)st.st_size,
        .modified_ns = nanoseconds(st.st_mtim),
        .changed_ns = nanoseconds(st.st_ctim),
    };
    return S_ISREG(st.st_mode) && out->size <= LIMIT_PAGE_BYTES ? SERVED_FILE_LOADED
                                                                : SERVED_FILE_LOAD_GONE;
}

static bool served_file_file_same(const struct served_file_file *a,
                                  const struct served_file_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

/* True where the file was last changed so long before `now_ns`, when it was read, that another
 * change since would show. */
static bool served_file_file_settled(const struct served_file_file *file, int64_t now_ns)
{
    int64_t age = now_ns - file->changed_ns;
    /* Far ahead of the clock is no recent change, but a clock that was set. */
    return age > SETTLED_NS || age < -SETTLED_NS;
}

/* Reads exactly `size` bytes. */
static enum served_file_load_status read_all(int fd, uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(fd, to + at, size - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return SERVED_FILE_LOAD_FAILED;
        if (got == 0)
            return SERVED_FILE_LOAD_CHANGING; /* it has become shorter */
        at += (size_t)got;
    }
    return SERVED_FILE_LOADED;
}

static void write_tag(char out[RESOURCE_ETAG_SIZE], XXH128_hash_t hash)
{
    snprintf(out, RESOURCE_ETAG_SIZE, "\"%016llx%016llx\"", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* Reads `file->size` bytes of `fd` into a new blob with its tag. CHANGING where the file is another
 * one afterwards. The caller owns the blob. */
static enum served_file_load_status served_file_read(int fd, const struct served_file_file *file,
                                                     struct resource **out)
{
    struct served_file_file after;
    *out = NULL;
    struct resource *b = resource_new(HELD_FILE);
    if (b == NULL)
        return SERVED_FILE_LOAD_NO_MEMORY;
    enum served_file_load_status status = SERVED_FILE_LOAD_NO_MEMORY;
    b->raw_len = (size_t)file->size;
    uint8_t *bytes = malloc(b->raw_len + 1); /* an empty file has a buffer too */
    b->bytes = bytes;
    if (bytes != NULL)
        status = read_all(fd, bytes, b->raw_len);
    if (status == SERVED_FILE_LOADED)
        status = served_file_file_stat(fd, &after);
    if (status == SERVED_FILE_LOADED && !served_file_file_same(file, &after))
        status = SERVED_FILE_LOAD_CHANGING;
    if (status != SERVED_FILE_LOADED) {
        resource_unref(b);
        return status;
    }
    write_tag(b->etag_identity, XXH3_128bits(b->bytes, b->raw_len));
    *out = b;
    return SERVED_FILE_LOADED;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t len = strlen(text), n = strlen(suffix);
    return len >= n && strcasecmp(text + len - n, suffix) == 0;
}

static bool is_gzip(const struct resource *b)
{
    return b->raw_len >= 2 && b->bytes[0] == 0x1f && b->bytes[1] == 0x8b;
}

/* The tag of the compressed form covers all that decides its bytes. */
static void write_gzip_tag(struct resource *b, int level)
{
    char made_of[RESOURCE_ETAG_SIZE + 64];
    int len = snprintf(made_of, sizeof made_of, "%s gzip zlib-%s level-%d", b->etag_identity,
                       zlibVersion(), level);
    write_tag(b->etag_gzip, XXH3_128bits(made_of, (size_t)len));
}

/* Compresses into a buffer that holds no more than what is worth keeping. */
static bool make_gzip(struct resource *b, int level)
{
    size_t most = b->raw_len - b->raw_len / GZIP_MIN_SAVED;
    gz_header header = {.os = GZIP_OS};
    z_stream z = {.next_in = (z_const Bytef *)b->bytes,
                  .avail_in = (uInt)b->raw_len,
                  .avail_out = (uInt)most};
    uint8_t *gzip = malloc(most);
    if (gzip == NULL)
        return false;
    z.next_out = gzip;
    if (deflateInit2(&z, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return false;
    }
    deflateSetHeader(&z, &header);
    bool worth_it = deflate(&z, Z_FINISH) == Z_STREAM_END;
    size_t len = most - z.avail_out;
    deflateEnd(&z);
    if (!worth_it) {
        free(gzip);
        return true;
    }
    uint8_t *fitting = realloc(gzip, len);
    b->gzip = fitting != NULL ? fitting : gzip;
    b->gzip_len = len;
    write_gzip_tag(b, level);
    return true;
}

/* Sets the content type by `path` and, for what is not compressed as it is, makes the gzip form if
 * it is worth it. False: out of memory. */
static bool served_file_finish(struct resource *b, const char *path, int level)
{
    if (ends_with(path, ".gz") || is_gzip(b)) {
        /* A file, not an encoding of one: without Content-Encoding, compressed no further. */
        b->content_type = is_gzip(b) ? "application/gzip" : "application/octet-stream";
        return true;
    }
    if (ends_with(path, ".txt"))
        b->content_type = "text/plain; charset=utf-8";
    return b->raw_len < GZIP_MIN_BYTES || make_gzip(b, level);
}

/* ---- the entries: a table by (source, path), two lists by use ------------------------------ */

static uint64_t hash_of(size_t source, const char *path)
{
    return XXH3_64bits_withSeed(path, strlen(path), source);
}

static struct served_file_entry *served_file_entries_find(const struct served_file_entries *t,
                                                          size_t source, const char *path)
{
    uint64_t hash = hash_of(source, path);
    struct served_file_entry *e = t->buckets[hash & (SERVED_FILE_BUCKETS - 1)];
    while (e != NULL && (e->hash != hash || e->source != source || strcmp(e->path, path) != 0))
        e = e->next;
    return e;
}

static void unlink_entry(struct served_file_entry *e)
{
    struct served_file_list *l = e->list;
    if (l == NULL)
        return;
    *(e->newer != NULL ? &e->newer->older : &l->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &l->oldest) = e->newer;
    l->count--;
    e->list = NULL;
}

/* It is the most recently used now; moves it to the list where it belongs. */
static void served_file_entries_use(struct served_file_entries *t, struct served_file_entry *e)
{
    struct served_file_list *l = e->blob != NULL ? &t->held : &t->remembered;
    unlink_entry(e);
    e->list = l;
    e->newer = NULL;
    e->older = l->newest;
    *(l->newest != NULL ? &l->newest->newer : &l->oldest) = e;
    l->newest = e;
    l->count++;
}

/* Finds or makes; NULL when out of memory. */
static struct served_file_entry *served_file_entries_get(struct served_file_entries *t,
                                                         size_t source, const char *path)
{
    uint64_t hash = hash_of(source, path);
    struct served_file_entry *e = served_file_entries_find(t, source, path);
    if (e != NULL)
        return e;
    size_t size = strlen(path) + 1;
    e = calloc(1, sizeof *e + size);
    if (e == NULL)
        return NULL;
    e->hash = hash;
    e->source = source;
    memcpy(e->path, path, size);
    struct served_file_entry **bucket = &t->buckets[hash & (SERVED_FILE_BUCKETS - 1)];
    e->next = *bucket;
    *bucket = e;
    served_file_entries_use(t, e);
    return e;
}

/* Takes the blob off; the caller owns the reference. */
static struct resource *served_file_entries_drop(struct served_file_entries *t,
                                                 struct served_file_entry *e)
{
    struct resource *b = e->blob;
    e->blob = NULL;
    if (b != NULL)
        served_file_entries_use(t, e);
    return b;
}

/* Takes the entry out and frees it; it has no blob and nobody waits. */
static void served_file_entries_remove(struct served_file_entries *t, struct served_file_entry *e)
{
    struct served_file_entry **at = &t->buckets[e->hash & (SERVED_FILE_BUCKETS - 1)];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_entry(e);
    free(e);
}

/* ---- budget ------------------------------------------------------------------------------- */

#define CUT_LOOK_MS             20 /* whether those that were cut are gone */
#define SERVED_FILE_CUT_WAIT_MS 4000

static void released(void *context, size_t bytes)
{
    struct served_file_cache *cache = context;
    atomic_fetch_sub(&cache->bytes, bytes);
}

static bool evict(struct served_file_cache *cache, struct served_file_entry *e)
{
    struct resource *b = e == NULL ? NULL : served_file_entries_drop(&cache->entries, e);
    pthread_mutex_unlock(&cache->lock);
    if (b == NULL)
        return false;
    atomic_fetch_add(&cache->evictions, 1);
    resource_unref(b);
    return true;
}

/* Drops the least used blob; false where there is none. */
static bool served_file_budget_evict(struct served_file_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    return evict(cache, cache->entries.held.oldest);
}

/* The least used whose bytes are free without it: nobody else has a reference, and whoever wants
 * one needs the lock. */
static struct served_file_entry *unread(const struct served_file_cache *cache)
{
    struct served_file_entry *e = cache->entries.held.oldest;
    while (e != NULL && atomic_load(&e->blob->references) > 1)
        e = e->newer;
    return e;
}

/* Has slow readers cut, and lets some time go by. */
static void take_back(struct served_file_cache *cache, uint64_t bytes)
{
    cache->options.cut_slow_readers(cache->options.cut_context, bytes);
    nanosleep(&(struct timespec){.tv_nsec = CUT_LOOK_MS * 1000000L}, NULL);
}

/* Makes room for a load of `bytes`, evicting the least used of those that nobody reads; other loads
 * are waited for. False where what is read holds too much; `cut`: its slow readers are ended first,
 * and waited for up to SERVED_FILE_CUT_WAIT_MS. */
static bool served_file_budget_reserve(struct served_file_cache *cache, uint64_t bytes, bool cut)
{
    uint64_t budget = cache->options.budget_bytes;
    int64_t until = cut && cache->options.cut_slow_readers != NULL
                        ? clock_now_ms() + SERVED_FILE_CUT_WAIT_MS
                        : 0;
    for (;;) {
        pthread_mutex_lock(&cache->lock);
        uint64_t held = atomic_load(&cache->bytes);
        if (held == 0 || held + bytes <= budget) {
            cache->reserved += bytes;
            atomic_fetch_add(&cache->bytes, bytes);
            pthread_mutex_unlock(&cache->lock);
            return true;
        }
        struct served_file_entry *e = unread(cache);
        if (e != NULL) {
            evict(cache, e);
            continue;
        }
        bool loading = cache->reserved > 0;
        if (loading)
            pthread_cond_wait(&cache->load_ended, &cache->lock);
        pthread_mutex_unlock(&cache->lock);
        if (loading)
            continue;
        if (clock_now_ms() >= until)
            return false;
        take_back(cache, bytes < budget ? held + bytes - budget : held);
    }
}

/* The load is over; `b` (NULL: it failed) counts for itself from here on. */
static void served_file_budget_settle(struct served_file_cache *cache, uint64_t bytes,
                                      struct resource *b)
{
    pthread_mutex_lock(&cache->lock);
    if (b != NULL) {
        resource_count(b, released, cache);
        atomic_fetch_add(&cache->bytes, b->held.bytes);
    }
    cache->reserved -= bytes;
    atomic_fetch_sub(&cache->bytes, bytes);
    pthread_cond_broadcast(&cache->load_ended);
    pthread_mutex_unlock(&cache->lock);
}

/* The cache's work on one file: look whether it is still what was read, read it if not, and tell
 * who waits. */

#define MAX_ATTEMPTS   3  /* at a file that changes as it is read, or is invalidated meanwhile */
#define ATTEMPT_GAP_MS 10 /* for its writer to get on */

/* ---- one look at a file ------------------------------------------------------------------- */

struct look {
    struct resource *blob; /* the current one at first, then what is to be served; owned */
    bool fresh;            /* it was read now */
    struct served_file_file file;
    bool settled; /* of `file` */
    int64_t started_ms;
};

static enum served_file_load_status read_file(struct served_file_cache *cache, const char *path,
                                              int fd, const struct served_file_file *file,
                                              struct look *look)
{
    struct resource *b = NULL;
    uint64_t bytes = 2 * file->size; /* what it is compressed to counts too */
    int64_t now_ns = clock_unix_ns();
    if (!served_file_budget_reserve(cache, bytes, look->blob == NULL)) {
        /* What this file had in memory may be what is in the way. */
        resource_unref(look->blob);
        look->blob = NULL;
        if (!served_file_budget_reserve(cache, bytes, true))
            return SERVED_FILE_LOAD_NO_MEMORY;
    }
    atomic_fetch_add(&cache->loads, 1);
    enum served_file_load_status status = served_file_read(fd, file, &b);
    bool same = status == SERVED_FILE_LOADED && look->blob != NULL &&
                strcmp(b->etag_identity, look->blob->etag_identity) == 0;
    if (same) { /* compressed already */
        resource_unref(b);
        b = NULL;
    } else if (status == SERVED_FILE_LOADED &&
               !served_file_finish(b, path, cache->options.compression_level)) {
        resource_unref(b);
        b = NULL;
        status = SERVED_FILE_LOAD_NO_MEMORY;
    }
    served_file_budget_settle(cache, bytes, b);
    if (status != SERVED_FILE_LOADED)
        return status;
    look->file = *file;
    look->settled = served_file_file_settled(file, now_ns);
    if (!same) {
        resource_unref(look->blob);
        look->blob = b;
        look->fresh = true;
    }
    return SERVED_FILE_LOADED;
}

static enum served_file_load_status look_once(struct served_file_cache *cache,
                                              const struct served_file_entry *e, struct look *look)
{
    struct served_file_file file;
    look->started_ms = clock_now_ms();
    atomic_fetch_add(&cache->checks, 1);
    int fd = cache->options.open(cache->options.open_context, e->source, e->path);
    if (fd < 0)
        return served_file_load_error(errno);
    enum served_file_load_status status = served_file_file_stat(fd, &file);
    bool same = look->blob != NULL && look->settled && served_file_file_same(&file, &look->file);
    if (status == SERVED_FILE_LOADED && !same)
        status = read_file(cache, e->path, fd, &file, look);
    close(fd);
    return status;
}

/* ---- what it means ------------------------------------------------------------------------ */

/* The date that goes with new content, by what was served before. */
static void date(struct served_file_entry *e, struct resource *b,
                 const struct served_file_file *file, int64_t now)
{
    int64_t modified_at = file->modified_ns < 0 ? 0 : file->modified_ns / CLOCK_SECOND_NS;
    if (modified_at > now)
        modified_at = now;
    if (strcmp(e->etag, b->etag_identity) != 0) {
        bool first = e->etag[0] == '\0';
        if (!first && modified_at <= e->modified_at)
            modified_at = now > e->modified_at ? now : e->modified_at;
        e->shared_second =
            (!first && modified_at == e->modified_at) || modified_at <= e->cache->entries.forgot_at;
        e->modified_at = modified_at;
        memcpy(e->etag, b->etag_identity, sizeof e->etag);
    }
    b->changed_at = e->modified_at;
}

/* Takes over what was found, under the lock. `*retired` gets what it replaced, to be freed outside
 * it. */
static void take(struct served_file_entry *e, struct look *look, struct resource **retired)
{
    struct served_file_entries *entries = &e->cache->entries;
    int64_t now = clock_unix_ns() / CLOCK_SECOND_NS;
    struct resource *b = look->blob;
    if (look->fresh)
        date(e, b, &look->file, now);
    /* Until a second is over, another content may yet come with it. */
    atomic_store(&b->same_second, e->shared_second || b->changed_at >= now);
    e->file = look->file;
    e->settled = look->settled;
    e->checked_ms = look->started_ms;
    if (e->blob != b) { /* new, or evicted while it was looked at */
        *retired = e->blob;
        resource_ref(b);
        e->blob = b;
    }
    served_file_entries_use(entries, e);
}

/* Ends the load: takes or drops what was found and takes the waiters off. NULL and `*again` where
 * the file was invalidated meanwhile. */
static struct resource_waiter *finish(struct served_file_entry *e,
                                      enum served_file_load_status status, bool last,
                                      struct look *look, bool *again)
{
    struct served_file_cache *cache = e->cache;
    struct resource *retired = NULL;
    struct resource_waiter *waiters = NULL;
    pthread_mutex_lock(&cache->lock);
    *again = e->again && !last;
    if (status == SERVED_FILE_LOADED) {
        take(e, look, &retired);
    } else if (look->blob != NULL && status != SERVED_FILE_LOAD_GONE) {
        e->checked_ms = look->started_ms; /* the last whole one is served on */
    } else {
        retired = served_file_entries_drop(&cache->entries, e);
    }
    if (!*again) {
        if (e->again)
            e->checked_ms = 0;
        waiters = e->waiters;
        e->waiters = NULL;
        e->loading = false;
        /* Of a file that is gone the date stays known: another may come with it. */
        if (e->etag[0] == '\0')
            served_file_entries_remove(&cache->entries, e);
    }
    pthread_mutex_unlock(&cache->lock);
    resource_unref(retired);
    return waiters;
}

static void look_begin(struct served_file_entry *e, struct look *look)
{
    struct served_file_cache *cache = e->cache;
    pthread_mutex_lock(&cache->lock);
    e->again = false;
    *look = (struct look){.blob = e->blob, .file = e->file, .settled = e->settled};
    if (look->blob != NULL)
        resource_ref(look->blob);
    pthread_mutex_unlock(&cache->lock);
}

/* The job of a worker: looks at the file of an entry that is `loading`, reads it if
 * it must, answers who waits. */
static void served_file_check_run(void *entry)
{
    struct served_file_entry *e = entry;
    struct served_file_cache *cache = e->cache;
    struct resource_waiter *waiters = NULL;
    enum served_file_load_status status;
    struct look look;
    bool again;
    for (int attempt = 1;; attempt++) {
        bool last = attempt >= MAX_ATTEMPTS;
        look_begin(e, &look);
        status = look_once(cache, e, &look);
        if (status == SERVED_FILE_LOAD_CHANGING && !last) {
            resource_unref(look.blob);
            nanosleep(&(struct timespec){.tv_nsec = ATTEMPT_GAP_MS * 1000000L}, NULL);
            continue;
        }
        waiters = finish(e, status, last, &look, &again); /* e may be gone now */
        if (!again)
            break;
        resource_unref(look.blob);
    }
    if (status != SERVED_FILE_LOADED && status != SERVED_FILE_LOAD_GONE)
        atomic_fetch_add(&cache->failures, 1);
    if (status == SERVED_FILE_LOAD_GONE) {
        resource_unref(look.blob);
        resource_answer(waiters, AWAIT_NONE, NULL);
    } else {
        resource_answer(waiters, look.blob == NULL ? AWAIT_UNAVAILABLE : AWAIT_DONE, look.blob);
    }
}

/* The same where no worker takes it: who waits is told to try again. */
static void served_file_check_refuse(struct served_file_entry *e)
{
    struct look look;
    bool again;
    look_begin(e, &look); /* what there is stays, unchecked */
    struct resource_waiter *waiters = finish(e, SERVED_FILE_LOAD_NO_MEMORY, true, &look, &again);
    resource_unref(look.blob);
    resource_answer(waiters, AWAIT_UNAVAILABLE, NULL);
}

#define MAX_QUEUED 4096u

/* Forgets the least used entries where there are too many; returns the blob of one, to be freed
 * outside the lock. */
static struct resource *trim(struct served_file_entries *t)
{
    struct resource *b = NULL;
    if (t->held.count + t->remembered.count <= SERVED_FILE_CACHE_MAX_ENTRIES)
        return NULL;
    struct served_file_entry *e = t->remembered.oldest;
    while (e != NULL && e->loading)
        e = e->newer;
    if (e == NULL)
        for (e = t->held.oldest; e != NULL && e->loading; e = e->newer)
            ;
    if (e == NULL)
        return NULL;
    b = served_file_entries_drop(t, e);
    if (e->etag[0] != '\0')
        t->forgot_at = clock_unix_ns() / CLOCK_SECOND_NS;
    served_file_entries_remove(t, e);
    return b;
}

/* ---- who asks ----------------------------------------------------------------------------- */

/* A reference to the entry's blob where it is fresh, under the lock. */
static struct resource *fresh(struct served_file_cache *cache, struct served_file_entry *e)
{
    if (e == NULL || e->blob == NULL || e->checked_ms == 0 ||
        clock_now_ms() - e->checked_ms >= cache->options.fresh_ms)
        return NULL;
    served_file_entries_use(&cache->entries, e);
    resource_ref(e->blob);
    return e->blob;
}

struct resource *served_file_cache_get(struct served_file_cache *cache, size_t source,
                                       const char *path)
{
    pthread_mutex_lock(&cache->lock);
    struct resource *b = fresh(cache, served_file_entries_find(&cache->entries, source, path));
    pthread_mutex_unlock(&cache->lock);
    return b;
}

void served_file_cache_await(struct served_file_cache *cache, size_t source, const char *path,
                             resource_awaited *done, void *context)
{
    bool start = false;
    struct resource *b = NULL, *forgotten = NULL;
    struct resource_waiter *w = resource_waiter_new(done, context);
    pthread_mutex_lock(&cache->lock);
    struct served_file_entry *e =
        w == NULL ? NULL : served_file_entries_get(&cache->entries, source, path);
    if (e != NULL)
        b = fresh(cache, e);
    if (e != NULL && b == NULL) {
        w->next = e->waiters;
        e->waiters = w;
        start = !e->loading;
        if (start) { /* no worker has the entry */
            e->cache = cache;
            e->loading = true;
        }
        forgotten = trim(&cache->entries);
    }
    pthread_mutex_unlock(&cache->lock);
    resource_unref(forgotten);
    if (e == NULL || b != NULL) {
        free(w);
        done(context, b != NULL ? AWAIT_DONE : AWAIT_UNAVAILABLE, b);
    } else if (start && !workers_run(cache->workers, served_file_check_run, e)) {
        served_file_check_refuse(e);
    }
}

void served_file_cache_invalidate(struct served_file_cache *cache, size_t source)
{
    struct served_file_list *lists[] = {&cache->entries.held, &cache->entries.remembered};
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < 2; i++)
        for (struct served_file_entry *e = lists[i]->newest; e != NULL; e = e->older)
            if (e->source == source) {
                e->checked_ms = 0;
                e->again = e->loading;
            }
    pthread_mutex_unlock(&cache->lock);
}

void served_file_cache_stats_get(struct served_file_cache *cache,
                                 struct served_file_cache_stats *out)
{
    *out = (struct served_file_cache_stats){
        .bytes = atomic_load(&cache->bytes),
        .checks = atomic_load(&cache->checks),
        .loads = atomic_load(&cache->loads),
        .evictions = atomic_load(&cache->evictions),
        .failures = atomic_load(&cache->failures),
    };
    pthread_mutex_lock(&cache->lock);
    out->files = cache->entries.held.count;
    pthread_mutex_unlock(&cache->lock);
}

/* ---- life --------------------------------------------------------------------------------- */

struct served_file_cache *served_file_cache_new(const struct served_file_cache_options *options)
{
    struct served_file_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->options = *options;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->load_ended, NULL);
    cache->workers = workers_new(options->threads, MAX_QUEUED);
    if (cache->workers == NULL) {
        served_file_cache_free(cache);
        return NULL;
    }
    return cache;
}

void served_file_cache_stop(struct served_file_cache *cache)
{
    if (cache == NULL)
        return;
    workers_free(cache->workers);
    cache->workers = NULL;
}

void served_file_cache_free(struct served_file_cache *cache)
{
    if (cache == NULL)
        return;
    served_file_cache_stop(cache);
    while (served_file_budget_evict(cache))
        ;
    while (cache->entries.remembered.oldest != NULL)
        served_file_entries_remove(&cache->entries, cache->entries.remembered.oldest);
    pthread_cond_destroy(&cache->load_ended);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
