#include "server/publish/page_store_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/publish/await.h"

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

static void tell(struct page_store *store, const char *event, const char *why)
{
    char detail[512];
    snprintf(detail, sizeof detail, "%s: %s", store->folder, why);
    if (store->options.event != NULL)
        store->options.event(store->options.event_context, event, detail);
}

void page_store_turn_off(struct page_store *store, const char *why)
{
    atomic_store(&store->unwritten_until_ms, await_now_ms() + store->options.retry_ms);
    if (!atomic_exchange(&store->told, true))
        tell(store, "page-store-off", why);
}

static void is_on(struct page_store *store)
{
    if (atomic_exchange(&store->told, false))
        tell(store, "page-store-on", "pages are stored again");
}

static bool is_off(const atomic_int_fast64_t *until_ms)
{
    int64_t until = atomic_load(until_ms);
    return until != 0 && await_now_ms() < until;
}

void page_store_name(int64_t index_id, uint32_t number, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "%" PRId64 "-%" PRIu32 ".page", index_id, number);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The whole file, where its size and its head are those of the page: what anything else says of its
 * size is not made room for. 0, or an errno. */
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
        atomic_store(&store->unread_until_ms, await_now_ms() + store->options.retry_ms);
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

/* Makes the folder where it is not and takes its lock. False: not now. */
static bool open_folder(struct page_store *store)
{
    struct stat found;
    if (mkdir(store->folder, 0700) != 0 && errno != EEXIST)
        goto failed;
    /* Through a link it would be somebody else's folder that gets our mode and is swept. */
    store->folder_fd = open(store->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (store->folder_fd < 0 || fstat(store->folder_fd, &found) != 0)
        goto failed;
    /* Whoever may write here may choose what is served. */
    if (found.st_uid != geteuid())
        errno = EPERM;
    if (found.st_uid != geteuid() ||
        ((found.st_mode & 0777) != 0700 && fchmod(store->folder_fd, 0700) != 0))
        goto failed;
    if (flock(store->folder_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            goto failed;
        close_folder(store); /* another server writes; what it writes is read */
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

uint64_t page_store_size_of(struct page_store *store, const char *name)
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

static bool write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t put = write(fd, at, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        len -= (size_t)put;
    }
    return true;
}

static bool write_file(struct page_store *store, const char *name, const struct page_pieces *pieces)
{
    /* What stands there was left half written, or is a pipe or another name of some file: nothing
     * to write into. */
    unlinkat(store->folder_fd, TEMPORARY, 0);
    int fd = openat(store->folder_fd, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = write_all(fd, store->head.data, store->head.len) &&
                write_all(fd, pieces->bytes, pieces->len);
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
                                      const struct snapshot *s, uint64_t *written)
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
        remove_name(store, name); /* what stands there is of another state */
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
