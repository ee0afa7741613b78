/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A row is a struct whose first members are strings. In the spool a row is the length of each
 * string (with its NUL; 0: NULL), the other members unchanged, and the strings.
 *
 * Rows are appended to `tail`, which is appended to the file when it is full. Reading first reads
 * the file, by `window`, then the tail: a list that fits into the tail needs no file. */
#include "db/spool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"

/* The rules accept no longer string. */
#define TEXT_MAX_BYTES (LOC_MAX_CHARS + 1u)

struct shape {
    size_t size, texts;    /* of the struct; how many strings */
    size_t last_max_bytes; /* of the last of them */
};

#define TEXTS_MAX 8u
static const struct shape entries = {sizeof(struct entry), 6, EXTENSIONS_MAX_BYTES + 1};
static const struct shape files = {sizeof(struct source_file), TEXTS_MAX, TEXT_MAX_BYTES};
_Static_assert(offsetof(struct entry, lastmod_state) == 6 * sizeof(char *) &&
                   offsetof(struct source_file, state) == TEXTS_MAX * sizeof(char *),
               "the strings stand first, and are all");

struct spool {
    char *folder;
    uint64_t max_bytes;
    uint64_t count;
    int fd; /* -1: none yet */
    uint64_t file_bytes;
    struct spool_room *room;       /* NULL: not shared */
    int64_t site_id;               /* 0: of no single site */
    uint64_t reserved_bytes;       /* of the room */
    char *tail, *window;           /* made with the first row, with the file */
    size_t tail_size, window_size; /* SPOOL_MEMORY_BYTES, or as large as the largest row */
    size_t largest;                /* size of the largest row */
    size_t tail_bytes;
    /* the read position */
    uint64_t read_at; /* in the file: the first byte that is not in the window */
    size_t window_at, window_bytes;
    size_t tail_at;
};

struct spool *spool_new(const char *folder, uint64_t max_bytes)
{
    struct spool *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->fd = -1;
    s->max_bytes = max_bytes;
    s->folder = strdup(folder);
    if (s->folder == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

bool spool_room_take(struct spool_room *room, int64_t site_id, uint64_t bytes)
{
    return site_uses_take(&room->used, site_id, bytes, atomic_load(&room->max_bytes));
}

void spool_room_give(struct spool_room *room, int64_t site_id, uint64_t bytes)
{
    site_uses_give(&room->used, site_id, bytes);
}

void spool_share(struct spool *s, struct spool_room *room, int64_t site_id)
{
    s->room = room;
    s->site_id = site_id;
}

void spool_free(struct spool *s)
{
    if (s == NULL)
        return;
    if (s->fd >= 0)
        close(s->fd);
    if (s->room != NULL) /* after the file has gone */
        spool_room_give(s->room, s->site_id, s->reserved_bytes);
    free(s->tail);
    free(s->window);
    free(s->folder);
    free(s);
}

/* EFBIG: RLIMIT_FSIZE or the file system's own limit; room is out either way. */
static enum spool_status write_status(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SPOOL_NO_SPACE : SPOOL_FAILED;
}

/* Grows `*memory` to the size of the largest row. */
static bool hold_row(const struct spool *s, char **memory, size_t *size)
{
    size_t wanted = s->largest > SPOOL_MEMORY_BYTES ? s->largest : SPOOL_MEMORY_BYTES;
    if (*size >= wanted)
        return true;
    char *grown = realloc(*memory, wanted);
    if (grown == NULL)
        return false;
    *memory = grown;
    *size = wanted;
    return true;
}

static enum spool_status make_file(struct spool *s)
{
    if (!hold_row(s, &s->window, &s->window_size))
        return SPOOL_NO_MEMORY;
    s->fd = file_open_nameless(s->folder);
    return s->fd >= 0 ? SPOOL_OK : write_status();
}

/* Reserves space in the room for the tail. */
static enum spool_status reserve_room(struct spool *s)
{
    uint64_t need = s->file_bytes + s->tail_bytes - s->reserved_bytes;
    if (s->room == NULL || need == 0)
        return SPOOL_OK;
    uint64_t max = atomic_load(&s->room->max_bytes);
    if (s->file_bytes + s->tail_bytes > (s->site_id != 0 ? max / 2 : max))
        return SPOOL_FULL;
    if (!spool_room_take(s->room, s->site_id, need))
        return SPOOL_CROWDED;
    s->reserved_bytes += need;
    return SPOOL_OK;
}

/* Appends the tail to the file. A failure leaves both unchanged. */
static enum spool_status flush_tail(struct spool *s)
{
    enum spool_status room = reserve_room(s);
    if (room != SPOOL_OK)
        return room;
    if (s->fd < 0) {
        enum spool_status status = make_file(s);
        if (status != SPOOL_OK)
            return status;
    }
    if (s->site_id != 0 && !file_has_reserve(s->fd)) {
        errno = ENOSPC;
        return SPOOL_NO_SPACE;
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

static enum spool_status add(struct spool *s, const void *row, const struct shape *shape)
{
    const char *texts[TEXTS_MAX];
    uint32_t sizes[TEXTS_MAX];
    const size_t texts_bytes = shape->texts * sizeof texts[0];
    const size_t sizes_bytes = shape->texts * sizeof sizes[0];
    size_t size = sizes_bytes + shape->size - texts_bytes;
    memcpy(texts, row, texts_bytes);
    for (size_t i = 0; i < shape->texts; i++) {
        size_t bytes = texts[i] != NULL ? strlen(texts[i]) + 1 : 0;
        if (bytes > (i + 1 < shape->texts ? TEXT_MAX_BYTES : shape->last_max_bytes)) {
            errno = EINVAL;
            return SPOOL_FAILED;
        }
        sizes[i] = (uint32_t)bytes;
        size += bytes;
    }
    if (size > s->largest)
        s->largest = size;
    if (s->file_bytes + s->tail_bytes + size > s->max_bytes)
        return SPOOL_FULL;
    if (!hold_row(s, &s->tail, &s->tail_size))
        return SPOOL_NO_MEMORY;
    if (size > s->tail_size - s->tail_bytes) {
        enum spool_status status = flush_tail(s);
        if (status != SPOOL_OK)
            return status;
    }
    char *at = s->tail + s->tail_bytes;
    memcpy(at, sizes, sizes_bytes);
    at += sizes_bytes;
    memcpy(at, (const char *)row + texts_bytes, shape->size - texts_bytes);
    at += shape->size - texts_bytes;
    for (size_t i = 0; i < shape->texts; at += sizes[i++])
        if (texts[i] != NULL)
            memcpy(at, texts[i], sizes[i]);
    s->tail_bytes += size;
    s->count++;
    return SPOOL_OK;
}

enum spool_status spool_add(struct spool *s, const struct entry *entry)
{
    return add(s, entry, &entries);
}

enum spool_status spool_add_file(struct spool *s, const struct source_file *file)
{
    return add(s, file, &files);
}

uint64_t spool_count(const struct spool *s)
{
    return s != NULL ? s->count : 0;
}

/* Decodes the row at `data`. Returns its size; 0: incomplete. */
static size_t decode(const char *data, size_t len, const struct shape *shape, void *out)
{
    const char *texts[TEXTS_MAX];
    uint32_t sizes[TEXTS_MAX];
    const size_t texts_bytes = shape->texts * sizeof texts[0];
    const size_t sizes_bytes = shape->texts * sizeof sizes[0];
    size_t at = sizes_bytes + shape->size - texts_bytes;
    if (len < at)
        return 0;
    memcpy(sizes, data, sizes_bytes);
    for (size_t i = 0; i < shape->texts; at += sizes[i++]) {
        if (len - at < sizes[i] || (sizes[i] > 0 && data[at + sizes[i] - 1u] != '\0'))
            return 0;
        texts[i] = sizes[i] > 0 ? data + at : NULL;
    }
    memcpy(out, texts, texts_bytes);
    memcpy((char *)out + texts_bytes, data + sizes_bytes, shape->size - texts_bytes);
    return at;
}

/* Moves the rest of the window to its front and fills it up. False: read error, or out of memory.
 */
static bool fill_window(struct spool *s)
{
    if (!hold_row(s, &s->window, &s->window_size))
        return false;
    s->window_bytes -= s->window_at;
    memmove(s->window, s->window + s->window_at, s->window_bytes);
    s->window_at = 0;
    while (s->read_at < s->file_bytes && s->window_bytes < s->window_size) {
        size_t want = s->window_size - s->window_bytes;
        if (want > s->file_bytes - s->read_at)
            want = (size_t)(s->file_bytes - s->read_at);
        ssize_t got = pread(s->fd, s->window + s->window_bytes, want, (off_t)s->read_at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            if (got == 0) /* the file was truncated */
                errno = EIO;
            return false;
        }
        s->window_bytes += (size_t)got;
        s->read_at += (uint64_t)got;
    }
    return true;
}

static int next(struct spool *s, const struct shape *shape, void *out)
{
    size_t size = 0;
    if (s == NULL)
        return 0;
    if (s->read_at < s->file_bytes || s->window_at < s->window_bytes) {
        for (int attempt = 0; size == 0 && attempt < 2; attempt++) {
            if (attempt > 0 && !fill_window(s))
                return -1;
            size = decode(s->window + s->window_at, s->window_bytes - s->window_at, shape, out);
        }
        s->window_at += size;
    } else if (s->tail_at < s->tail_bytes) {
        size = decode(s->tail + s->tail_at, s->tail_bytes - s->tail_at, shape, out);
        s->tail_at += size;
    } else {
        return 0;
    }
    if (size == 0)
        errno = EIO;
    return size > 0 ? 1 : -1;
}

int spool_next(struct spool *s, struct entry *out)
{
    return next(s, &entries, out);
}

int spool_next_file(struct spool *s, struct source_file *out)
{
    return next(s, &files, out);
}

void spool_rewind(struct spool *s)
{
    if (s != NULL)
        s->read_at = s->window_at = s->window_bytes = s->tail_at = 0;
}
