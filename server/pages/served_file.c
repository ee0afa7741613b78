/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Loads files and copies of sitemaps into the cache, with dates that never go back. */
#include "server/pages/served_file.h"

#include <errno.h>
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
#include "server/base/text.h"
#include "server/pages/workers.h"
#include "server/rules/limits.h"

/* Which file, in which state: if these are equal, so are the bytes, unless the file was changed
 * within the file system's resolution of time (is_settled). The change time (ctime) shows changes
 * that rsync -t and touch -d hide in the modification time. */
struct file_state {
    uint64_t device, inode, from, size; /* the bytes after `from` are served */
    int64_t modified_ns, changed_ns;
};

enum served_file_load_status {
    SERVED_FILE_LOADED,
    SERVED_FILE_LOAD_GONE,     /* not a regular file, or too large: nothing can be served */
    SERVED_FILE_LOAD_CHANGING, /* it is being written now: try again */
    SERVED_FILE_LOAD_FAILED,   /* the disk failed */
    SERVED_FILE_LOAD_NO_MEMORY,
};

/* The place of a file in the cache. All members but `place` are used by the loader, one load at a
 * time. */
struct served_file {
    struct place place;
    struct file_state file; /* of the content in memory */
    bool settled;           /* of `file`, when it was read */
    /* The version served last, kept even if the file is evicted, so that its date never goes
     * back. */
    char etag[RESOURCE_ETAG_SIZE]; /* "": nothing yet */
    int64_t modified_at;
    bool shared_second; /* another content was served with that date */
};

struct served_files {
    struct served_files_options options;
    struct workers *workers; /* NULL: stopped */
    atomic_uint_fast64_t checks, loads, failures;
};

/* ---- from a file to a resource ------------------------------------------------------------ */

#define GZIP_MIN_BYTES 257u /* smaller files fit one packet uncompressed */
#define GZIP_MIN_SAVED 10u  /* compression must save at least 1/10 */
#define GZIP_WINDOW    (15 + 16)
#define GZIP_OS        255 /* "unknown": the same bytes everywhere */

/* The coarsest time stamps of file systems in use are FAT's. */
#define SETTLED_NS (2 * (int64_t)CLOCK_SECOND_NS)

/* The meaning of `errno` after an attempt to open a file. */
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

static enum served_file_load_status stat_file(int fd, uint64_t from, struct file_state *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return SERVED_FILE_LOAD_FAILED;
    *out = (struct file_state){
        .device = st.st_dev,
        .inode = st.st_ino,
        .from = from,
        .size = (uint64_t)st.st_size > from ? (uint64_t)st.st_size - from : 0,
        .modified_ns = nanoseconds(st.st_mtim),
        .changed_ns = nanoseconds(st.st_ctim),
    };
    return S_ISREG(st.st_mode) && out->size <= LIMIT_PAGE_BYTES ? SERVED_FILE_LOADED
                                                                : SERVED_FILE_LOAD_GONE;
}

static bool is_same_state(const struct file_state *a, const struct file_state *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->from == b->from && a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

/* True if the file's last change was so long before `now_ns`, when it was read, that a later change
 * would be visible in its times. */
static bool is_settled(const struct file_state *file, int64_t now_ns)
{
    int64_t age = now_ns - file->changed_ns;
    /* Far ahead of the clock is not a recent change, but a clock that was set. */
    return age > SETTLED_NS || age < -SETTLED_NS;
}

/* Reads exactly `size` bytes from the offset on. */
static enum served_file_load_status read_all(int fd, uint64_t from, uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(fd, to + at, size - at, (off_t)(from + at));
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
static enum served_file_load_status served_file_read(int fd, const struct file_state *file,
                                                     struct resource **out)
{
    struct file_state after;
    *out = NULL;
    struct resource *b = resource_new(HELD_FILE);
    if (b == NULL)
        return SERVED_FILE_LOAD_NO_MEMORY;
    enum served_file_load_status status = SERVED_FILE_LOAD_NO_MEMORY;
    b->raw_len = (size_t)file->size;
    uint8_t *bytes = malloc(b->raw_len + 1); /* an empty file has a buffer too */
    b->bytes = bytes;
    if (bytes != NULL)
        status = read_all(fd, file->from, bytes, b->raw_len);
    if (status == SERVED_FILE_LOADED)
        status = stat_file(fd, file->from, &after);
    if (status == SERVED_FILE_LOADED && !is_same_state(file, &after))
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

/* A text list of URLs, whatever its name: it does not begin as XML does. */
static bool is_list(const struct resource *b)
{
    size_t at = b->raw_len >= 3 && memcmp(b->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < b->raw_len && ascii_is_space((char)b->bytes[at]))
        at++;
    return at < b->raw_len && b->bytes[at] != '<';
}

/* The tag of the compressed form covers all that decides its bytes. */
static void write_gzip_tag(struct resource *b, int level)
{
    char made_of[RESOURCE_ETAG_SIZE + 64];
    int len = snprintf(made_of, sizeof made_of, "%s gzip zlib-%s level-%d", b->etag_identity,
                       zlibVersion(), level);
    write_tag(b->etag_gzip, XXH3_128bits(made_of, (size_t)len));
}

/* Compresses into a buffer whose size is the largest result worth keeping. */
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

/* Sets the content type by `path` and, unless the file is compressed itself, makes the gzip form if
 * it saves enough. False: out of memory. */
static bool served_file_finish(struct resource *b, const char *path, int level)
{
    if (ends_with(path, ".gz") || is_gzip(b)) {
        /* A file, not an encoding of one: without Content-Encoding, compressed no further. */
        b->content_type = is_gzip(b) ? "application/gzip" : "application/octet-stream";
        return true;
    }
    if (ends_with(path, ".txt") || is_list(b))
        b->content_type = "text/plain; charset=utf-8";
    return b->raw_len < GZIP_MIN_BYTES || make_gzip(b, level);
}

/* ---- one check of a file ------------------------------------------------------------------- */

#define MAX_ATTEMPTS   3  /* attempts to read a file that changes meanwhile */
#define ATTEMPT_GAP_MS 10 /* pause for its writer */

static bool is_listed(struct served_files *files, const struct served_file *f, int64_t *lastmod)
{
    *lastmod = 0;
    return files->options.listed != NULL &&
           files->options.listed(files->options.context, (size_t)f->place.key.of, f->place.key.name,
                                 lastmod);
}

/* The date of the file: its modification time unless that is in the future, or the date of its
 * entry if that is later. The catalogue keeps the latter over a restart: when the file was changed
 * although its modification time was set back. */
static int64_t date_of(struct served_files *files, const struct served_file *f, int64_t now)
{
    int64_t modified_at = f->file.modified_ns < 0 ? 0 : f->file.modified_ns / CLOCK_SECOND_NS;
    int64_t lastmod;
    is_listed(files, f, &lastmod);
    if (modified_at > now)
        modified_at = lastmod != 0 ? 0 : now;
    if (modified_at < lastmod)
        modified_at = lastmod < now ? lastmod : now;
    return modified_at;
}

/* Sets the date of new content, by what was served before. */
static void date(struct served_files *files, struct served_file *f, struct resource *b, int64_t now)
{
    if (strcmp(f->etag, b->etag_identity) != 0) {
        int64_t modified_at = date_of(files, f, now);
        bool first = f->etag[0] == '\0';
        if (!first && modified_at <= f->modified_at)
            modified_at = now > f->modified_at ? now : f->modified_at;
        f->shared_second = (!first && modified_at == f->modified_at) ||
                           modified_at <= cache_forgot_at(f->place.cache);
        f->modified_at = modified_at;
        memcpy(f->etag, b->etag_identity, sizeof f->etag);
    }
    b->changed_at = f->modified_at;
}

/* Reads the file into a new resource, unless it holds what `*resource` does. */
static enum served_file_load_status read_file(struct served_files *files, struct served_file *f,
                                              int fd, const struct file_state *file,
                                              struct resource **resource)
{
    struct cache *cache = files->options.cache;
    struct resource *b = NULL;
    uint64_t bytes = 2 * file->size; /* its compressed form counts, too */
    int64_t now_ns = clock_unix_ns();
    if (!cache_reserve(cache, bytes, *resource == NULL)) {
        /* The version of this file that is in memory may use the room. */
        resource_unref(*resource);
        *resource = NULL;
        if (!cache_reserve(cache, bytes, true))
            return SERVED_FILE_LOAD_NO_MEMORY;
    }
    atomic_fetch_add(&files->loads, 1);
    enum served_file_load_status status = served_file_read(fd, file, &b);
    bool same = status == SERVED_FILE_LOADED && *resource != NULL &&
                strcmp(b->etag_identity, (*resource)->etag_identity) == 0;
    if (status == SERVED_FILE_LOADED && !same &&
        !served_file_finish(b, f->place.key.name, files->options.compression_level))
        status = SERVED_FILE_LOAD_NO_MEMORY;
    bool taken = status == SERVED_FILE_LOADED && !same; /* the same content is compressed already */
    if (taken)
        cache_count(cache, b);
    cache_settle(cache, bytes);
    struct resource *unused = b;
    if (status == SERVED_FILE_LOADED) {
        f->file = *file;
        f->settled = is_settled(file, now_ns);
    }
    if (taken) {
        date(files, f, b, now_ns / CLOCK_SECOND_NS);
        unused = *resource;
        *resource = b;
    }
    resource_unref(unused);
    return status;
}

static enum served_file_load_status check_file(struct served_files *files, struct served_file *f,
                                               struct resource **resource)
{
    struct file_state file;
    uint64_t from = 0;
    atomic_fetch_add(&files->checks, 1);
    int fd = files->options.open(files->options.context, (size_t)f->place.key.of, f->place.key.name,
                                 &from);
    if (fd < 0)
        return served_file_load_error(errno);
    enum served_file_load_status status = stat_file(fd, from, &file);
    if (status == SERVED_FILE_LOADED &&
        (*resource == NULL || !f->settled || !is_same_state(&file, &f->file)))
        status = read_file(files, f, fd, &file, resource);
    close(fd);
    return status;
}

/* The cache's loader: checks whether the file has changed since it was read, and reads it again if
 * so. */
static void load_served_file(void *context, struct place *place, struct load *l)
{
    struct served_files *files = context;
    struct served_file *f = (struct served_file *)place;
    enum served_file_load_status status;
    int64_t started_ms;
    for (int attempt = 1;; attempt++) {
        started_ms = clock_now_ms();
        status = check_file(files, f, &l->resource);
        if (status != SERVED_FILE_LOAD_CHANGING || attempt == MAX_ATTEMPTS)
            break;
        nanosleep(&(struct timespec){.tv_nsec = ATTEMPT_GAP_MS * 1000000L}, NULL);
    }
    int64_t lastmod;
    if (status == SERVED_FILE_LOAD_GONE && is_listed(files, f, &lastmod))
        status = SERVED_FILE_LOAD_FAILED;
    if (status == SERVED_FILE_LOAD_GONE) {
        resource_unref(l->resource);
        l->resource = NULL;
    } else if (status == SERVED_FILE_LOADED) {
        /* Until the second is over, other content may get the same date. */
        bool same_second =
            f->shared_second || l->resource->changed_at >= clock_unix_ns() / CLOCK_SECOND_NS;
        atomic_store(&l->resource->same_second, same_second);
    } else { /* the last complete content is still served */
        atomic_fetch_add(&files->failures, 1);
    }
    l->result = l->resource != NULL               ? AWAIT_DONE
                : status == SERVED_FILE_LOAD_GONE ? AWAIT_NONE
                                                  : AWAIT_UNAVAILABLE;
    l->fresh_until_ms = started_ms + files->options.fresh_ms;
    /* The date of a removed file stays known: other content may come with the same date. */
    l->forget = f->etag[0] == '\0';
}

/* ---- requests ----------------------------------------------------------------------------- */

#define MAX_QUEUED 4096u

static struct place_key key_of(size_t source, const char *path)
{
    return (struct place_key){.kind = HELD_FILE, .of = (int64_t)source, .name = path};
}

struct resource *served_files_get(struct served_files *files, size_t source, const char *path)
{
    struct place_key key = key_of(source, path);
    return cache_fresh(files->options.cache, &key);
}

void served_files_await(struct served_files *files, size_t source, const char *path,
                        int64_t site_id, resource_awaited *done, void *context)
{
    struct place_key key = key_of(source, path);
    struct place *place = cache_place(files->options.cache, &key, sizeof(struct served_file));
    if (place == NULL) {
        done(context, AWAIT_UNAVAILABLE, NULL);
        return;
    }
    cache_await(place, site_id, done, context);
    place_unref(place);
}

void served_files_invalidate(struct served_files *files, size_t source)
{
    cache_invalidate(files->options.cache, (int64_t)source);
}

void served_files_stats_get(struct served_files *files, struct served_files_stats *out)
{
    struct cache_stats cache;
    cache_stats_get(files->options.cache, HELD_FILE, &cache);
    *out = (struct served_files_stats){
        .files = cache.resources,
        .bytes = cache.bytes,
        .checks = atomic_load(&files->checks),
        .loads = atomic_load(&files->loads),
        .evictions = cache.evictions,
        .failures = atomic_load(&files->failures),
    };
}

/* ---- life --------------------------------------------------------------------------------- */

struct served_files *served_files_new(const struct served_files_options *options)
{
    struct served_files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return NULL;
    files->options = *options;
    files->workers = workers_new(options->threads, MAX_QUEUED);
    if (files->workers == NULL) {
        free(files);
        return NULL;
    }
    struct loader loader = {load_served_file, files, files->workers};
    cache_set_loader(options->cache, HELD_FILE, &loader);
    return files;
}

void served_files_stop(struct served_files *files)
{
    if (files == NULL)
        return;
    workers_free(files->workers);
    files->workers = NULL;
}

static bool keep_none(void *context, struct place *place)
{
    (void)context;
    (void)place;
    return false;
}

void served_files_free(struct served_files *files)
{
    if (files == NULL)
        return;
    served_files_stop(files);
    cache_sweep(files->options.cache, HELD_FILE, keep_none, NULL);
    free(files);
}
