/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The store on disk (page_store_) with its clean-up, and the format of its files (page_file_). */
#include "server/pages/page_store.h"
#include "server/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "server/base/clock.h"
#include "server/pages/await.h"

#define TEMPORARY "writing.tmp"
#define NAME_SIZE 48 /* of `<index id>-<number>.page` */

struct page_store {
    struct page_store_options options;
    char *folder; /* owned */
    /* CLOCK_MONOTONIC; 0: on. A disk that cannot be written may still be read. */
    atomic_int_fast64_t unread_until_ms, unwritten_until_ms;
    atomic_uint_fast64_t bytes;
    atomic_bool logged; /* it was reported that the store is off */
    int folder_fd;      /* locked; -1: closed. This and `head`: the keeper's thread */
    struct str head;
};

static void page_store_name(int64_t index_id, uint32_t number, char out[NAME_SIZE]);
static uint64_t page_store_size_of(struct page_store *store, const char *name);
static void page_store_turn_off(struct page_store *store, const char *why);

#define BYTE_ORDER_MARK 0x01020304u

static const char magic[8] = "smd-page";

struct file_head {
    char magic[8];
    uint32_t byte_order, version;
    uint64_t made_by[2];
    char epoch[PAGE_FILE_EPOCH_SIZE];
    int64_t index_id;
    uint32_t number, entries;
    /* what page_file_belongs needs ends here */
    uint64_t revision, stamp;
    int64_t changed_at;
    uint32_t same_second, segment_count;
    uint64_t pieces_len;
    uint64_t hash[2]; /* XXH3-128 of all else: of the head up to here, the table, the pieces */
};
_Static_assert(sizeof(struct file_head) == PAGE_FILE_HEAD_BYTES, "no padding");
_Static_assert(offsetof(struct file_head, revision) <= PAGE_FILE_PEEK_BYTES, "enough to peek at");

struct file_segment {
    uint32_t len, raw_len, crc, entries;
    uint64_t hash[2];
};
_Static_assert(sizeof(struct file_segment) == 32, "no padding");

#define HASHED_HEAD offsetof(struct file_head, hash)

/* False when out of memory. */
static bool hash_file(const struct file_head *head, const void *table, size_t table_len,
                      const void *pieces, size_t pieces_len, uint64_t out[2])
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return false;
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, head, HASHED_HEAD);
    XXH3_128bits_update(state, table, table_len);
    XXH3_128bits_update(state, pieces, pieces_len);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    out[0] = hash.high64;
    out[1] = hash.low64;
    return true;
}

static void head_fill(struct file_head *head, const struct page_key *key, const uint64_t made_by[2])
{
    memset(head, 0, sizeof *head);
    memcpy(head->magic, magic, sizeof magic);
    head->byte_order = BYTE_ORDER_MARK;
    head->version = PAGE_FILE_VERSION;
    memcpy(head->made_by, made_by, sizeof head->made_by);
    memcpy(head->epoch, key->epoch, sizeof head->epoch);
    head->index_id = key->index_id;
    head->number = key->number;
    head->entries = key->entries;
    head->revision = key->revision;
    head->stamp = key->stamp;
    head->changed_at = key->changed_at;
    head->same_second = key->same_second;
}

bool page_file_encode(const struct page_key *key, const uint64_t made_by[2],
                      const struct resource *s, struct str *head, struct page_pieces *out)
{
    struct file_head h;
    struct file_segment table[PAGE_SEGMENTS];
    head_fill(&h, key, made_by);
    h.segment_count = out->count = s->segment_count;
    if (s->segment_count > 0)
        memcpy(out->segments, s->segments, s->segment_count * sizeof *s->segments);
    out->bytes = s->gzip;
    out->len = 0;
    for (uint32_t i = 0; i < s->segment_count; i++) {
        const struct snapshot_segment *from = &s->segments[i];
        table[i] = (struct file_segment){
            from->len, from->raw_len, from->crc, from->entries, {from->hash[0], from->hash[1]}};
        if (from->len == 0)
            continue;
        /* The pieces are contiguous in the page's buffer (gzip_page.c). */
        if (out->len == 0)
            out->bytes = s->gzip + from->offset;
        out->segments[i].offset = (uint32_t)out->len;
        out->len += from->len;
    }
    h.pieces_len = out->len;
    size_t table_len = s->segment_count * sizeof *table;
    if (!hash_file(&h, table, table_len, out->bytes, out->len, h.hash))
        return false;
    str_append(head, &h, sizeof h);
    str_append(head, table, table_len);
    return !head->failed;
}

/* Reads the table of segments; false if it cannot be that of `entries` entries in `len` bytes. */
static bool parse_segments(const uint8_t *table, uint32_t count, size_t len, uint32_t entries,
                           struct page_pieces *out)
{
    uint64_t raw_len = 0, all_entries = 0;
    size_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct file_segment from;
        memcpy(&from, table + i * sizeof from, sizeof from);
        if (from.len > len - offset || from.entries > SEGMENT_POSITIONS ||
            from.raw_len > LIMIT_PAGE_BYTES || (from.len == 0) != (from.entries == 0) ||
            (from.len == 0) != (from.raw_len == 0))
            return false;
        out->segments[i] = (struct snapshot_segment){.offset = (uint32_t)offset,
                                                     .len = from.len,
                                                     .raw_len = from.raw_len,
                                                     .crc = from.crc,
                                                     .entries = from.entries,
                                                     .hash = {from.hash[0], from.hash[1]}};
        offset += from.len;
        raw_len += from.raw_len;
        all_entries += from.entries;
    }
    out->count = count;
    return offset == len && raw_len <= LIMIT_PAGE_BYTES && all_entries == entries &&
           out->segments[count - 1].len > 0;
}

/* True if a file of `file_bytes` that begins with these PAGE_FILE_HEAD_BYTES may be this state of
 * this page. Checked before memory is allocated for the rest. */
static bool page_file_fits(const uint8_t *bytes, uint64_t file_bytes, const struct page_key *key,
                           const uint64_t made_by[2])
{
    struct file_head head, expected;
    if (file_bytes < sizeof head || file_bytes > PAGE_FILE_MAX_BYTES)
        return false;
    memcpy(&head, bytes, sizeof head);
    /* All other members follow from the key, and are compared at once. */
    head_fill(&expected, key, made_by);
    expected.segment_count = head.segment_count;
    expected.pieces_len = head.pieces_len;
    if (memcmp(&head, &expected, HASHED_HEAD) != 0 || head.segment_count == 0 ||
        head.segment_count > PAGE_SEGMENTS)
        return false;
    uint64_t behind = file_bytes - sizeof head;
    uint64_t table_len = head.segment_count * sizeof(struct file_segment);
    return behind >= table_len && head.pieces_len == behind - table_len;
}

bool page_file_decode(const uint8_t *bytes, size_t len, const struct page_key *key,
                      const uint64_t made_by[2], struct page_pieces *out)
{
    struct file_head head;
    uint64_t hash[2];
    if (len < sizeof head || !page_file_fits(bytes, len, key, made_by))
        return false;
    memcpy(&head, bytes, sizeof head);
    size_t table_len = head.segment_count * sizeof(struct file_segment);
    const uint8_t *table = bytes + sizeof head;
    out->bytes = table + table_len;
    out->len = (size_t)head.pieces_len;
    return parse_segments(table, head.segment_count, out->len, key->entries, out) &&
           hash_file(&head, table, table_len, out->bytes, out->len, hash) &&
           memcmp(hash, head.hash, sizeof hash) == 0;
}

bool page_file_belongs(const uint8_t *bytes, size_t len, const char *epoch,
                       const uint64_t made_by[2])
{
    struct page_key key = {.number = 0};
    struct file_head expected;
    size_t epoch_len = strlen(epoch);
    if (len < PAGE_FILE_PEEK_BYTES || epoch_len >= sizeof key.epoch)
        return false;
    memcpy(key.epoch, epoch, epoch_len);
    head_fill(&expected, &key, made_by);
    return memcmp(bytes, &expected, offsetof(struct file_head, index_id)) == 0;
}

/* Clean-up. */

/* True if the name has the store's pattern; `*index_id` is 0 if no page can have it. */
static bool parse_name(const char *name, int64_t *index_id, uint32_t *number)
{
    char again[NAME_SIZE];
    size_t first = strspn(name, "0123456789");
    size_t second = name[first] == '-' ? strspn(name + first + 1, "0123456789") : 0;
    if (first == 0 || second == 0 || strcmp(name + first + 1 + second, ".page") != 0)
        return false;
    errno = 0;
    *index_id = strtoll(name, NULL, 10);
    unsigned long long value = strtoull(name + first + 1, NULL, 10);
    *number = value > UINT32_MAX ? 0 : (uint32_t)value;
    if (errno == 0 && *index_id > 0 && *number > 0)
        page_store_name(*index_id, *number, again);
    else
        again[0] = '\0';
    if (strcmp(again, name) != 0) /* too large, or not in canonical form */
        *index_id = 0;
    return true;
}

static bool belongs(struct page_store *store, const char *name, const char *epoch)
{
    uint8_t bytes[PAGE_FILE_PEEK_BYTES];
    int fd = openat(store->folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, bytes, sizeof bytes);
    close(fd);
    return got == (ssize_t)sizeof bytes &&
           page_file_belongs(bytes, sizeof bytes, epoch, store->options.made_by);
}

void page_store_sweep(struct page_store *store, const char *epoch,
                      bool (*keep)(void *context, int64_t index_id, uint32_t number), void *context)
{
    uint64_t bytes = 0;
    int fd = openat(store->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        page_store_turn_off(store, strerror(errno));
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int64_t index_id;
        uint32_t number;
        if (strcmp(entry->d_name, TEMPORARY) == 0)
            unlinkat(store->folder_fd, TEMPORARY, 0);
        if (!parse_name(entry->d_name, &index_id, &number))
            continue;
        if (index_id != 0 && keep(context, index_id, number) &&
            belongs(store, entry->d_name, epoch))
            bytes += page_store_size_of(store, entry->d_name);
        else
            unlinkat(store->folder_fd, entry->d_name, 0);
    }
    closedir(folder);
    atomic_store(&store->bytes, bytes);
}

struct page_store *page_store_new(const struct page_store_options *options)
{
    struct page_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->options = *options;
    if (store->options.retry_ms == 0)
        store->options.retry_ms = PAGE_STORE_RETRY_MS;
    store->folder_fd = -1;
    store->folder = strdup(options->folder);
    if (store->folder == NULL) {
        free(store);
        return NULL;
    }
    return store;
}

static void close_folder(struct page_store *store)
{
    if (store->folder_fd >= 0)
        close(store->folder_fd);
    store->folder_fd = -1;
}

void page_store_free(struct page_store *store)
{
    if (store == NULL)
        return;
    close_folder(store);
    str_done(&store->head);
    free(store->folder);
    free(store);
}

uint64_t page_store_bytes(struct page_store *store)
{
    return atomic_load(&store->bytes);
}

static void report_state(struct page_store *store, const char *event, const char *why)
{
    char detail[512];
    snprintf(detail, sizeof detail, "%s: %s", store->folder, why);
    if (store->options.event != NULL)
        store->options.event(store->options.event_context, event, detail);
}

/* Stops writing for a while; reported once until writing works again. */
static void page_store_turn_off(struct page_store *store, const char *why)
{
    atomic_store(&store->unwritten_until_ms, clock_now_ms() + store->options.retry_ms);
    if (!atomic_exchange(&store->logged, true))
        report_state(store, "page-store-off", why);
}

static void is_on(struct page_store *store)
{
    if (atomic_exchange(&store->logged, false))
        report_state(store, "page-store-on", "pages are stored again");
}

static bool is_off(const atomic_int_fast64_t *until_ms)
{
    int64_t until = atomic_load(until_ms);
    return until != 0 && clock_now_ms() < until;
}

static void page_store_name(int64_t index_id, uint32_t number, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "%" PRId64 "-%" PRIu32 ".page", index_id, number);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Reads the whole file if its size and head are those of the page: no memory is allocated for any
 * other size. Returns 0, or an errno. */
static int read_whole(const struct page_store *store, int fd, const struct page_key *key,
                      struct str *buffer)
{
    struct stat found;
    uint8_t head[PAGE_FILE_HEAD_BYTES];
    if (fstat(fd, &found) != 0)
        return errno;
    if (!S_ISREG(found.st_mode) || found.st_uid != geteuid() || found.st_size < 0)
        return EFBIG;
    ssize_t peeked = pread(fd, head, sizeof head, 0);
    if (peeked < 0)
        return errno;
    if (peeked != (ssize_t)sizeof head ||
        !page_file_fits(head, (uint64_t)found.st_size, key, store->options.made_by))
        return EFBIG;
    str_clear(buffer);
    if (!str_reserve(buffer, (size_t)found.st_size))
        return ENOMEM;
    while (buffer->len < (size_t)found.st_size) {
        ssize_t got = read(fd, buffer->data + buffer->len, (size_t)found.st_size - buffer->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        buffer->len += (size_t)got;
    }
    return 0;
}

enum page_store_found page_store_load(struct page_store *store, const struct page_key *key,
                                      struct str *buffer, struct page_pieces *out)
{
    char name[NAME_SIZE], path[4096];
    if (key->stamp == 0 || is_off(&store->unread_until_ms))
        return PAGE_STORE_NONE;
    page_store_name(key->index_id, key->number, name);
    if (snprintf(path, sizeof path, "%s/%s", store->folder, name) >= (int)sizeof path)
        return PAGE_STORE_NONE;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ELOOP ? PAGE_STORE_MISFIT : PAGE_STORE_NONE;
    int error = read_whole(store, fd, key, buffer);
    close(fd);
    if (error == EIO) {
        atomic_store(&store->unread_until_ms, clock_now_ms() + store->options.retry_ms);
        page_store_turn_off(store, strerror(error));
    }
    if (error == ENOMEM)
        return PAGE_STORE_NONE;
    if (error != 0 || !page_file_decode((const uint8_t *)buffer->data, buffer->len, key,
                                        store->options.made_by, out))
        return PAGE_STORE_MISFIT;
    return PAGE_STORE_HIT;
}

/* ---- the folder ---------------------------------------------------------------------------- */

/* Makes the folder if it does not exist, and takes its lock. False: not now. */
static bool open_folder(struct page_store *store)
{
    struct stat found;
    if (mkdir(store->folder, 0700) != 0 && errno != EEXIST)
        goto failed;
    /* A symbolic link could lead to another folder, whose mode would be changed and which would be
     * swept. */
    store->folder_fd = open(store->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (store->folder_fd < 0 || fstat(store->folder_fd, &found) != 0)
        goto failed;
    /* A process that can write here can choose what is served. */
    if (found.st_uid != geteuid())
        errno = EPERM;
    if (found.st_uid != geteuid() ||
        ((found.st_mode & 0777) != 0700 && fchmod(store->folder_fd, 0700) != 0))
        goto failed;
    if (flock(store->folder_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            goto failed;
        close_folder(store); /* another server writes to the folder; this one only reads */
        return false;
    }
    return true;

failed:
    page_store_turn_off(store, strerror(errno));
    close_folder(store);
    return false;
}

/* The folder may be deleted or replaced at any time. */
static bool folder_is_there(struct page_store *store)
{
    struct stat here, there;
    return store->folder_fd >= 0 && fstat(store->folder_fd, &here) == 0 &&
           lstat(store->folder, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

bool page_store_ready(struct page_store *store, bool *fresh)
{
    *fresh = false;
    if (is_off(&store->unwritten_until_ms))
        return false;
    if (folder_is_there(store))
        return true;
    close_folder(store);
    *fresh = open_folder(store);
    return *fresh;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The size of a file in the folder; 0 if none exists. The keeper's thread. */
static uint64_t page_store_size_of(struct page_store *store, const char *name)
{
    struct stat found;
    bool there =
        fstatat(store->folder_fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode);
    return there ? (uint64_t)found.st_size : 0;
}

static uint64_t bytes_without(struct page_store *store, uint64_t size)
{
    uint64_t bytes = atomic_load(&store->bytes);
    return size < bytes ? bytes - size : 0;
}

static void remove_name(struct page_store *store, const char *name)
{
    uint64_t size = page_store_size_of(store, name);
    if (unlinkat(store->folder_fd, name, 0) == 0)
        atomic_store(&store->bytes, bytes_without(store, size));
}

void page_store_remove(struct page_store *store, int64_t index_id, uint32_t number)
{
    char name[NAME_SIZE];
    page_store_name(index_id, number, name);
    remove_name(store, name);
}

static bool write_file(struct page_store *store, const char *name, const struct page_pieces *pieces)
{
    /* An existing file may be half written, a pipe or a hard link: never write into it. */
    unlinkat(store->folder_fd, TEMPORARY, 0);
    int fd = openat(store->folder_fd, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = file_write(fd, store->head.data, store->head.len) &&
                file_write(fd, pieces->bytes, pieces->len);
    int error = errno;
    if (close(fd) != 0 && done) {
        error = errno;
        done = false;
    }
    if (done && renameat(store->folder_fd, TEMPORARY, store->folder_fd, name) == 0)
        return true;
    if (done)
        error = errno;
    unlinkat(store->folder_fd, TEMPORARY, 0);
    errno = error;
    return false;
}

static bool has_room(struct page_store *store, uint64_t size, uint64_t old)
{
    struct statvfs disk;
    if (bytes_without(store, old) + size > store->options.budget_bytes)
        return false;
    return fstatvfs(store->folder_fd, &disk) != 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= size + PAGE_STORE_SPARE_BYTES;
}

enum page_store_saved page_store_save(struct page_store *store, const struct page_key *key,
                                      const struct resource *s, uint64_t *written)
{
    char name[NAME_SIZE];
    struct page_pieces pieces;
    *written = 0;
    page_store_name(key->index_id, key->number, name);
    str_clear(&store->head);
    uint64_t old = page_store_size_of(store, name);
    if (!page_file_encode(key, store->options.made_by, s, &store->head, &pieces))
        return PAGE_STORE_FULL;
    uint64_t size = store->head.len + pieces.len;
    if (size > PAGE_FILE_MAX_BYTES || !has_room(store, size, old)) {
        remove_name(store, name); /* the existing file is of another state */
        return PAGE_STORE_FULL;
    }
    if (!write_file(store, name, &pieces)) {
        page_store_turn_off(store, strerror(errno));
        return PAGE_STORE_FAILED;
    }
    atomic_store(&store->bytes, bytes_without(store, old) + size);
    *written = size;
    is_on(store);
    return PAGE_STORE_SAVED;
}
