#include "server/publish/blob_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/rules/limits.h"

#define GZIP_MIN_BYTES 257u /* smaller ones fit a packet anyway */
#define GZIP_MIN_SAVED 10u  /* one part of so many must be saved */
#define GZIP_WINDOW    (15 + 16)
#define GZIP_OS        255 /* unknown: the same bytes everywhere */

#define SECOND_NS 1000000000
/* The coarsest time stamps of file systems in use are FAT's. */
#define SETTLED_NS (2 * (int64_t)SECOND_NS)

enum blob_load_status blob_load_error(int error)
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
        return BLOB_LOAD_GONE;
    case EAGAIN: /* a folder was moved while it was looked up */
        return BLOB_LOAD_CHANGING;
    case ENOMEM:
        return BLOB_LOAD_NO_MEMORY;
    default:
        return BLOB_LOAD_FAILED;
    }
}

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

enum blob_load_status blob_file_stat(int fd, struct blob_file *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return BLOB_LOAD_FAILED;
    *out = (struct blob_file){
        .device = st.st_dev,
        .inode = st.st_ino,
        .size = (uint64_t)st.st_size,
        .modified_ns = nanoseconds(st.st_mtim),
        .changed_ns = nanoseconds(st.st_ctim),
    };
    return S_ISREG(st.st_mode) && out->size <= LIMIT_PAGE_BYTES ? BLOB_LOADED : BLOB_LOAD_GONE;
}

bool blob_file_same(const struct blob_file *a, const struct blob_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

bool blob_file_settled(const struct blob_file *file, int64_t now_ns)
{
    int64_t age = now_ns - file->changed_ns;
    /* Far ahead of the clock is no recent change, but a clock that was set. */
    return age > SETTLED_NS || age < -SETTLED_NS;
}

/* Reads exactly `size` bytes. */
static enum blob_load_status read_all(int fd, uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(fd, to + at, size - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return BLOB_LOAD_FAILED;
        if (got == 0)
            return BLOB_LOAD_CHANGING; /* it has become shorter */
        at += (size_t)got;
    }
    return BLOB_LOADED;
}

static void write_tag(char out[SNAPSHOT_ETAG_SIZE], XXH128_hash_t hash)
{
    snprintf(out, SNAPSHOT_ETAG_SIZE, "\"%016llx%016llx\"", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

enum blob_load_status blob_read(int fd, const struct blob_file *file, struct blob **out)
{
    struct blob_file after;
    *out = NULL;
    struct blob *b = blob_new();
    if (b == NULL)
        return BLOB_LOAD_NO_MEMORY;
    enum blob_load_status status = BLOB_LOAD_NO_MEMORY;
    b->len = (size_t)file->size;
    b->bytes = malloc(b->len + 1); /* an empty file has a buffer too */
    if (b->bytes != NULL)
        status = read_all(fd, b->bytes, b->len);
    if (status == BLOB_LOADED)
        status = blob_file_stat(fd, &after);
    if (status == BLOB_LOADED && !blob_file_same(file, &after))
        status = BLOB_LOAD_CHANGING;
    if (status != BLOB_LOADED) {
        blob_unref(b);
        return status;
    }
    write_tag(b->etag, XXH3_128bits(b->bytes, b->len));
    *out = b;
    return BLOB_LOADED;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t len = strlen(text), n = strlen(suffix);
    return len >= n && strcasecmp(text + len - n, suffix) == 0;
}

static bool is_gzip(const struct blob *b)
{
    return b->len >= 2 && b->bytes[0] == 0x1f && b->bytes[1] == 0x8b;
}

/* The tag of the compressed form covers all that decides its bytes. */
static void write_gzip_tag(struct blob *b, int level)
{
    char made_of[SNAPSHOT_ETAG_SIZE + 64];
    int len = snprintf(made_of, sizeof made_of, "%s gzip zlib-%s level-%d", b->etag, zlibVersion(),
                       level);
    write_tag(b->etag_gzip, XXH3_128bits(made_of, (size_t)len));
}

/* Compresses into a buffer that holds no more than what is worth keeping. */
static bool make_gzip(struct blob *b, int level)
{
    size_t most = b->len - b->len / GZIP_MIN_SAVED;
    gz_header header = {.os = GZIP_OS};
    z_stream z = {.next_in = b->bytes, .avail_in = (uInt)b->len, .avail_out = (uInt)most};
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

bool blob_finish(struct blob *b, const char *path, int level)
{
    if (ends_with(path, ".gz") || is_gzip(b)) {
        /* A file, not an encoding of one: without Content-Encoding, compressed no further. */
        b->content_type = "application/gzip";
        return true;
    }
    b->content_type =
        ends_with(path, ".txt") ? "text/plain; charset=utf-8" : "application/xml; charset=utf-8";
    return b->len < GZIP_MIN_BYTES || make_gzip(b, level);
}
