#include "server/input/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_STRING UINT16_MAX

/* One entry as it is spooled; its strings follow, each with its NUL, in this order. */
struct record {
    uint64_t line;
    rule_set remarks;
    uint32_t position;
    uint16_t loc_len, lastmod_len, digest_len, index_len, source_len; /* NO_STRING: NULL */
    uint8_t lastmod_state, digest_state;
};

/* Entries go to `tail`; when it is full it is written behind the others in the file. Reading takes
 * the file first, by way of `window`, then the tail where it is: a list that fits needs no file. */
struct spool {
    char *folder;
    uint64_t max_bytes;
    uint64_t count;
    int fd; /* -1: none yet */
    uint64_t file_bytes;
    struct spool_room *room; /* NULL: its own */
    _Atomic uint64_t *site;  /* what its site has of the room; NULL: it has no part of its own */
    uint64_t taken_bytes;    /* of the room */
    size_t tail_bytes;
    char *window; /* SPOOL_MEMORY_BYTES, made with the file */
    /* where reading is */
    uint64_t read_at; /* in the file: the first byte that is not in the window */
    size_t window_at, window_bytes;
    size_t tail_at;
    char tail[SPOOL_MEMORY_BYTES];
};

struct spool *spool_new(const char *folder, uint64_t max_bytes)
{
    struct spool *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    memset(s, 0, offsetof(struct spool, tail));
    s->fd = -1;
    s->max_bytes = max_bytes;
    s->folder = strdup(folder);
    if (!s->folder) {
        free(s);
        return NULL;
    }
    return s;
}

void spool_share(struct spool *s, struct spool_room *room, int64_t site_id)
{
    s->room = room;
    s->site = site_id != 0 ? &room->used_by[(uint64_t)site_id % SPOOL_SITES] : NULL;
}

void spool_free(struct spool *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    if (s->site) /* after the file has gone */
        atomic_fetch_sub(s->site, s->taken_bytes);
    if (s->room)
        atomic_fetch_sub(&s->room->used_bytes, s->taken_bytes);
    free(s->window);
    free(s->folder);
    free(s);
}

/* A file without a name, so that no crash leaves it behind. */
static int open_nameless(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system has O_TMPFILE (overlay, NFS): EOPNOTSUPP, EISDIR, EINVAL. */
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/.sitemapd-spool-XXXXXX", folder);
    if (len < 0 || (size_t)len >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC); /* makes it 0600 */
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* EFBIG: RLIMIT_FSIZE or the file system's own limit; room is out either way. */
static enum spool_status write_status(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SPOOL_NO_SPACE : SPOOL_FAILED;
}

static enum spool_status make_file(struct spool *s)
{
    if (!s->window) {
        s->window = malloc(SPOOL_MEMORY_BYTES);
        if (!s->window)
            return SPOOL_NO_MEMORY;
    }
    s->fd = open_nameless(s->folder);
    return s->fd >= 0 ? SPOOL_OK : write_status();
}

/* Takes what the tail needs of the room. */
static enum spool_status take_room(struct spool *s)
{
    uint64_t need = s->file_bytes + s->tail_bytes - s->taken_bytes;
    if (!s->room || need == 0)
        return SPOOL_OK;
    uint64_t max = atomic_load(&s->room->max_bytes);
    if (s->file_bytes + s->tail_bytes > (s->site ? max / 2 : max))
        return SPOOL_FULL;
    if (s->site && atomic_fetch_add(s->site, need) + need > max / 2) {
        atomic_fetch_sub(s->site, need);
        return SPOOL_CROWDED;
    }
    if (atomic_fetch_add(&s->room->used_bytes, need) + need > max) {
        atomic_fetch_sub(&s->room->used_bytes, need);
        if (s->site)
            atomic_fetch_sub(s->site, need);
        return SPOOL_CROWDED;
    }
    s->taken_bytes += need;
    return SPOOL_OK;
}

/* Writes the tail behind the file. A failure leaves both as they were. */
static enum spool_status flush_tail(struct spool *s)
{
    enum spool_status room = take_room(s);
    if (room != SPOOL_OK)
        return room;
    if (s->fd < 0) {
        enum spool_status status = make_file(s);
        if (status != SPOOL_OK)
            return status;
    }
    for (size_t done = 0; done < s->tail_bytes;) {
        ssize_t wrote =
            pwrite(s->fd, s->tail + done, s->tail_bytes - done, (off_t)(s->file_bytes + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return write_status();
        done += (size_t)wrote;
    }
    s->file_bytes += s->tail_bytes;
    s->tail_bytes = 0;
    return SPOOL_OK;
}

/* The length of `text` as a record holds it. False: longer than any the rules let through. */
static bool measure(const char *text, uint16_t *len, size_t *size)
{
    *len = NO_STRING;
    if (!text)
        return true;
    size_t length = strlen(text);
    if (length > LOC_MAX_CHARS)
        return false;
    *len = (uint16_t)length;
    *size += length + 1;
    return true;
}

static char *put(char *at, const char *text, uint16_t len)
{
    if (len == NO_STRING)
        return at;
    memcpy(at, text, len + 1u);
    return at + len + 1;
}

enum spool_status spool_add(struct spool *s, const struct entry *entry)
{
    struct record record;
    memset(&record, 0, sizeof record); /* its padding goes to the file */
    record.line = entry->line;
    record.remarks = entry->remarks;
    record.position = entry->position;
    record.lastmod_state = (uint8_t)entry->lastmod_state;
    record.digest_state = (uint8_t)entry->digest_state;
    size_t size = sizeof record;
    if (!measure(entry->loc, &record.loc_len, &size) ||
        !measure(entry->lastmod, &record.lastmod_len, &size) ||
        !measure(entry->digest, &record.digest_len, &size) ||
        !measure(entry->index, &record.index_len, &size) ||
        !measure(entry->source, &record.source_len, &size)) {
        errno = EINVAL;
        return SPOOL_FAILED;
    }
    if (s->file_bytes + s->tail_bytes + size > s->max_bytes)
        return SPOOL_FULL;
    if (size > sizeof s->tail - s->tail_bytes) {
        enum spool_status status = flush_tail(s);
        if (status != SPOOL_OK)
            return status;
    }
    char *at = s->tail + s->tail_bytes;
    memcpy(at, &record, sizeof record);
    at = put(at + sizeof record, entry->loc, record.loc_len);
    at = put(at, entry->lastmod, record.lastmod_len);
    at = put(at, entry->digest, record.digest_len);
    at = put(at, entry->index, record.index_len);
    put(at, entry->source, record.source_len);
    s->tail_bytes += size;
    s->count++;
    return SPOOL_OK;
}

uint64_t spool_count(const struct spool *s)
{
    return s->count;
}

static bool get(const char **at, const char *end, uint16_t len, const char **text)
{
    *text = NULL;
    if (len == NO_STRING)
        return true;
    if ((size_t)(end - *at) <= len || (*at)[len] != '\0')
        return false;
    *text = *at;
    *at += len + 1;
    return true;
}

/* Reads the record at `data`; its bytes, or 0 where it is not whole there. */
static size_t decode(const char *data, size_t len, struct entry *out)
{
    struct record record;
    if (len < sizeof record)
        return 0;
    memcpy(&record, data, sizeof record);
    const char *at = data + sizeof record;
    const char *end = data + len;
    *out = (struct entry){
        .lastmod_state = (enum field_state)record.lastmod_state,
        .digest_state = (enum field_state)record.digest_state,
        .position = record.position,
        .line = record.line,
        .remarks = record.remarks,
    };
    if (!get(&at, end, record.loc_len, &out->loc) ||
        !get(&at, end, record.lastmod_len, &out->lastmod) ||
        !get(&at, end, record.digest_len, &out->digest) ||
        !get(&at, end, record.index_len, &out->index) ||
        !get(&at, end, record.source_len, &out->source))
        return 0;
    return (size_t)(at - data);
}

/* Moves what is left in the window to its front and fills it up. False on a read error. */
static bool fill_window(struct spool *s)
{
    s->window_bytes -= s->window_at;
    memmove(s->window, s->window + s->window_at, s->window_bytes);
    s->window_at = 0;
    while (s->read_at < s->file_bytes && s->window_bytes < SPOOL_MEMORY_BYTES) {
        size_t want = SPOOL_MEMORY_BYTES - s->window_bytes;
        if (want > s->file_bytes - s->read_at)
            want = (size_t)(s->file_bytes - s->read_at);
        ssize_t got = pread(s->fd, s->window + s->window_bytes, want, (off_t)s->read_at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            if (got == 0) /* someone has cut the file */
                errno = EIO;
            return false;
        }
        s->window_bytes += (size_t)got;
        s->read_at += (uint64_t)got;
    }
    return true;
}

static int next_in_file(struct spool *s, struct entry *out)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        size_t size = decode(s->window + s->window_at, s->window_bytes - s->window_at, out);
        if (size > 0) {
            s->window_at += size;
            return 1;
        }
        if (attempt == 0 && !fill_window(s))
            return -1;
    }
    errno = EIO;
    return -1;
}

static int spool_next(void *context, struct entry *out)
{
    struct spool *s = context;
    if (s->read_at < s->file_bytes || s->window_at < s->window_bytes)
        return next_in_file(s, out);
    if (s->tail_at == s->tail_bytes)
        return 0;
    size_t size = decode(s->tail + s->tail_at, s->tail_bytes - s->tail_at, out);
    if (size == 0) {
        errno = EIO;
        return -1;
    }
    s->tail_at += size;
    return 1;
}

static bool spool_rewind(void *context)
{
    struct spool *s = context;
    s->read_at = 0;
    s->window_at = s->window_bytes = 0;
    s->tail_at = 0;
    return true;
}

struct entry_stream spool_stream(struct spool *s)
{
    spool_rewind(s);
    return (struct entry_stream){
        .context = s,
        .next = spool_next,
        .rewind = spool_rewind,
        .count = s->count,
    };
}
