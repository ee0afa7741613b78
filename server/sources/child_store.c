/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A copy is the file FOLDER/SITE/HASH; HASH is the hash of the loc. It begins with a head of three
 * lines: a mark, the hash of the content with the time of writing, and the loc. The sitemap
 * follows. The loc guards against two locs with the same hash; the hash of the content shows
 * whether the copy matches the catalogue, since another node may have polled the sitemap.
 *
 * A copy is written under another name, synchronised, and renamed: a crash leaves the older copy.
 * FOLDER/SITE/changed/ has the copies that were replaced (child_changes.h). The mutex `places`
 * guards the names that several threads use. */
#include "server/sources/child_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "db/catalogue.h"
#include "db/check.h"
#include "db/view.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/thread.h"
#include "server/rules/limits.h"

#define MARK        "sitemapd child 2\n"
#define HASH_CHARS  CHILD_HASH_CHARS
#define STAMP_CHARS (HASH_CHARS + 16)
#define HEAD_BYTES  (sizeof MARK + STAMP_CHARS + LOC_MAX_CHARS + 2)

/* Maintenance of the store: the interval, the first one after the start, and the shortest pause
 * before another, if time ran out or the limit is exceeded. */
#define LOOK_MS  (10 * 60 * 1000)
#define FIRST_MS 2000
#define AGAIN_MS 5000
/* Memory is returned to the system after the store has grown by so many copies and a tenth. */
#define TRIM_COPIES 10000u
/* After so many failed fetches in a row the rest of a source's missing copies is left to its next
 * polls. */
#define FAILED_MOST 5u
/* How long replaced copies wait for their changes to be sent. */
#define REPLACED_KEPT_S (2 * 86400)

struct wish {
    int64_t site_id, at_ms;
};

struct child_store {
    struct child_store_options options;
    char *folder; /* owned */
    struct thread thread;
    atomic_uint_fast64_t max_bytes, copies, bytes, missing;
    atomic_bool failing;        /* the last write failed; reported once */
    atomic_bool full;           /* the limit is exceeded; reported once */
    atomic_bool keeping_failed; /* reported once */
    atomic_int folder_fd;       /* -1: not opened yet; never changes afterwards */
    int64_t started_ms;
    pthread_mutex_t lock;
    pthread_mutex_t places; /* never taken while `lock` is held */
    /* The sites whose replaced copies are kept, and when (clock_now_ms) that was last requested;
     * guarded by `lock`. */
    struct wish *wishes; /* owned */
    size_t wish_count;
    /* The thread waits for this; guarded by `lock`. */
    pthread_cond_t fetched;
    bool fetching;
};

struct child_copy {
    struct child_store *store;
    int fd;
    bool failed;
    gzFile packed; /* NULL: not packed */
    int64_t site_id;
    char hash[HASH_CHARS + 1]; /* of the loc */
    char name[CHILD_PATH_SIZE], beside[CHILD_PATH_SIZE];
    char loc[LOC_MAX_CHARS + 1];
};

/* The head of a file. */
struct head {
    uint64_t hash[2];
    int64_t written_ns; /* Unix time */
    char loc[LOC_MAX_CHARS + 1];
    size_t len;
};

static void report(const struct child_store *s, int level, const char *event, const char *what,
                   int error)
{
    char detail[512];
    snprintf(detail, sizeof detail, "%s: %s: %s", s->folder, what, strerror(error));
    s->options.event(s->options.context, level, event, detail);
}

void child_store_path(int64_t site_id, const char *within, const char *hash, const char *end,
                      char out[CHILD_PATH_SIZE])
{
    snprintf(out, CHILD_PATH_SIZE, "%" PRId64 "/%s%s%s", site_id, within, hash, end);
}

void child_store_lock_places(struct child_store *s)
{
    pthread_mutex_lock(&s->places);
}

void child_store_unlock_places(struct child_store *s)
{
    pthread_mutex_unlock(&s->places);
}

static void hash_of(const char *loc, char out[HASH_CHARS + 1])
{
    XXH128_hash_t hash = XXH3_128bits(loc, strlen(loc));
    snprintf(out, HASH_CHARS + 1, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}

/* Whether somebody removed the folder, which is allowed at any time. */
static bool is_removed(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* Creates and opens the folder. If it was removed, it is opened again with the same descriptor
 * number, which other threads may be using. -1 with errno. */
static int make_folder(struct child_store *s)
{
    pthread_mutex_lock(&s->lock);
    int fd = atomic_load(&s->folder_fd);
    if (fd < 0 || is_removed(fd)) {
        mkdir(s->folder, 0700);
        int made = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            atomic_store(&s->folder_fd, made);
        else if (made >= 0 && dup3(made, fd, O_CLOEXEC) >= 0)
            close(made);
    }
    fd = atomic_load(&s->folder_fd);
    pthread_mutex_unlock(&s->lock);
    return fd;
}

/* The folder; -1: none exists. */
static int open_folder(struct child_store *s)
{
    int fd = atomic_load(&s->folder_fd);
    if (fd >= 0)
        return fd;
    pthread_mutex_lock(&s->lock);
    if (atomic_load(&s->folder_fd) < 0)
        atomic_store(&s->folder_fd,
                     open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    fd = atomic_load(&s->folder_fd);
    pthread_mutex_unlock(&s->lock);
    return fd;
}

/* ---- the head of a file */

static size_t write_head(char *out, size_t size, const uint64_t hash[2], const char *loc)
{
    return (size_t)snprintf(out, size, MARK "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "\n%s\n",
                            hash[0], hash[1], (uint64_t)clock_unix_ns(), loc);
}

static bool read_head(int fd, struct head *out)
{
    char text[HEAD_BYTES];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    const size_t loc_at = sizeof MARK - 1 + STAMP_CHARS + 1;
    uint64_t written;
    if (got < (ssize_t)loc_at || memcmp(text, MARK, sizeof MARK - 1) != 0)
        return false;
    text[got] = '\0';
    const char *end = memchr(text + loc_at, '\n', (size_t)got - loc_at);
    size_t loc_len = end != NULL ? (size_t)(end - text) - loc_at : SIZE_MAX;
    if (loc_len > LOC_MAX_CHARS ||
        sscanf(text + sizeof MARK - 1, "%16" SCNx64 "%16" SCNx64 "%16" SCNx64, &out->hash[0],
               &out->hash[1], &written) != 3)
        return false;
    out->written_ns = (int64_t)written;
    memcpy(out->loc, text + loc_at, loc_len);
    out->loc[loc_len] = '\0';
    out->len = loc_at + loc_len + 1;
    return true;
}

/* Opens a copy; -1 with errno. ENOENT also if the file is a copy of another loc. */
static int open_copy(struct child_store *s, int64_t site_id, const char *loc, struct head *head)
{
    char name[CHILD_PATH_SIZE], hash[HASH_CHARS + 1];
    int folder = open_folder(s);
    if (folder < 0)
        return -1;
    hash_of(loc, hash);
    child_store_path(site_id, "", hash, "", name);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && (!read_head(fd, head) || strcmp(head->loc, loc) != 0)) {
        close(fd);
        errno = ENOENT;
        fd = -1;
    }
    return fd;
}

static bool same_hash(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

bool child_store_has(struct child_store *s, int64_t site_id, const char *loc,
                     const uint64_t hash[2])
{
    return child_store_date(s, site_id, loc, hash, INT64_MIN) != INT64_MIN;
}

int64_t child_store_date(struct child_store *s, int64_t site_id, const char *loc,
                         const uint64_t hash[2], int64_t missing)
{
    struct head head;
    struct stat st;
    int fd = open_copy(s, site_id, loc, &head);
    bool is_same = fd >= 0 && same_hash(head.hash, hash) && fstat(fd, &st) == 0;
    if (fd >= 0)
        close(fd);
    return is_same ? st.st_mtim.tv_sec : missing;
}

/* ---- writing */

static void unlink_new(const struct child_copy *copy)
{
    unlinkat(atomic_load(&copy->store->folder_fd), copy->beside, 0);
}

/* Reports a failure, once until a copy is kept again. */
static void fail(struct child_copy *copy, const char *what)
{
    if (!atomic_exchange(&copy->store->failing, true))
        report(copy->store, 1, "child-store-failed", what, errno);
    copy->failed = true;
}

/* Opens a gzip writer that appends to the file, with its own descriptor. */
static gzFile open_packed(int fd)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    gzFile packed = own >= 0 ? gzdopen(own, "wb") : NULL;
    if (packed == NULL && own >= 0)
        close(own);
    return packed;
}

/* Ends the gzip writer. False: the packed data is incomplete. */
static bool close_packed(struct child_copy *copy)
{
    gzFile packed = copy->packed;
    copy->packed = NULL;
    return packed == NULL || gzclose(packed) == Z_OK;
}

/* Creates the temporary file of the copy, and the site's folder if necessary. -1 with errno. */
static int open_beside(struct child_copy *copy)
{
    char site[CHILD_PATH_SIZE];
    int folder = make_folder(copy->store);
    if (folder < 0)
        return -1;
    child_store_path(copy->site_id, "", "", "", site);
    child_store_lock_places(copy->store);
    mkdirat(folder, site, 0700);
    int fd =
        openat(folder, copy->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    child_store_unlock_places(copy->store);
    return fd;
}

struct child_copy *child_copy_begin(struct child_store *s, int64_t site_id, const char *loc,
                                    bool packed)
{
    /* A placeholder: the hash is known only at the end. */
    static const uint64_t none[2];
    char head[HEAD_BYTES];
    struct child_copy *copy = malloc(sizeof *copy);
    if (copy == NULL || strlen(loc) > LOC_MAX_CHARS) {
        free(copy);
        return NULL;
    }
    copy->store = s;
    copy->failed = false;
    copy->packed = NULL;
    copy->site_id = site_id;
    memcpy(copy->loc, loc, strlen(loc) + 1);
    hash_of(loc, copy->hash);
    child_store_path(site_id, "", copy->hash, "", copy->name);
    child_store_path(site_id, "", copy->hash, ".new", copy->beside);
    copy->fd = open_beside(copy);
    if (copy->fd < 0) {
        fail(copy, "a copy of a sitemap cannot be created");
        free(copy);
        return NULL;
    }
    if (!file_write(copy->fd, head, write_head(head, sizeof head, none, loc)))
        fail(copy, "a copy of a sitemap cannot be written");
    if (packed && !copy->failed && !(copy->packed = open_packed(copy->fd)))
        fail(copy, "a copy of a sitemap cannot be compressed");
    return copy;
}

void child_copy_write(struct child_copy *copy, const char *bytes, size_t len)
{
    if (copy->failed)
        return;
    bool room = file_has_reserve(copy->fd);
    if (!room)
        errno = ENOSPC;
    bool put = room && (copy->packed ? len == 0 || gzwrite(copy->packed, bytes, (unsigned)len) > 0
                                     : file_write(copy->fd, bytes, len));
    if (!put)
        fail(copy, "a copy of a sitemap cannot be written");
}

void child_copy_drop(struct child_copy *copy)
{
    if (copy == NULL)
        return;
    close_packed(copy);
    close(copy->fd);
    unlink_new(copy);
    free(copy);
}

static uint64_t size_of(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* If changes are wanted, keeps the older copy, unless one is kept already: that of the first change
 * that was not sent. */
static void keep_replaced(const struct child_copy *copy, const uint64_t hash[2])
{
    int folder = atomic_load(&copy->store->folder_fd);
    char replaced[CHILD_PATH_SIZE];
    child_store_path(copy->site_id, CHILD_CHANGED, copy->hash, "", replaced);
    if (child_store_has(copy->store, copy->site_id, copy->loc, hash) ||
        linkat(folder, copy->name, folder, replaced, 0) == 0)
        return;
    /* ENOENT: changes are not wanted, or there is no older copy. EEXIST: one is kept already. */
    if (errno != ENOENT && errno != EEXIST && !atomic_exchange(&copy->store->keeping_failed, true))
        report(
            copy->store, 1, "child-changes-failed",
            "the changes of a sitemap cannot be stored for IndexNow, which is not notified of them",
            errno);
}

/* Writes the head and the date, synchronises the file, and renames it. */
static bool settle_copy(struct child_copy *copy, const uint64_t hash[2], int64_t date)
{
    char head[HEAD_BYTES];
    size_t len = write_head(head, sizeof head, hash, copy->loc);
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = date}};
    int folder = atomic_load(&copy->store->folder_fd);
    if (pwrite(copy->fd, head, len, 0) != (ssize_t)len || futimens(copy->fd, times) != 0 ||
        fsync(copy->fd) != 0)
        return false;
    child_store_lock_places(copy->store);
    keep_replaced(copy, hash);
    bool settled = renameat(folder, copy->beside, folder, copy->name) == 0;
    child_store_unlock_places(copy->store);
    return settled;
}

bool child_copy_keep(struct child_copy *copy, const uint64_t hash[2], int64_t date)
{
    struct child_store *s = copy->store;
    struct stat st = {.st_size = 0};
    uint64_t before = size_of(atomic_load(&s->folder_fd), copy->name);
    bool kept = close_packed(copy) && !copy->failed && fstat(copy->fd, &st) == 0 &&
                settle_copy(copy, hash, date);
    if (!kept) {
        if (!copy->failed)
            fail(copy, "a copy of a sitemap cannot be written");
        child_copy_drop(copy);
        return false;
    }
    atomic_fetch_add(&s->bytes, (uint64_t)st.st_size);
    atomic_fetch_sub(&s->bytes, before);
    if (before == 0)
        atomic_fetch_add(&s->copies, 1);
    if (atomic_exchange(&s->failing, false))
        s->options.event(s->options.context, 2, "child-store-recovered", s->folder);
    if (atomic_load(&s->bytes) > atomic_load(&s->max_bytes))
        thread_wake(&s->thread);
    s->options.changed(s->options.context, copy->site_id);
    close(copy->fd);
    free(copy);
    return true;
}

/* ---- reading */

/* What the catalogue has about a sitemap. */
struct known {
    bool served; /* a source with `serve` lists it */
    bool good;
    uint64_t hash[2];
    int64_t checked_at;
};

/* Whether an index still lists a sitemap that its source has dropped: the shrink guard or a freeze
 * holds the removal. */
static enum catalogue_status is_held(struct catalogue_view *view,
                                     const struct check_record *dropped, const char *loc,
                                     bool *held)
{
    char source[NAME_MAX_BYTES + 1]; /* the record's texts hold until the next read */
    struct entry_record entry;
    snprintf(source, sizeof source, "%s", dropped->source);
    enum catalogue_status status = catalogue_view_entry_by_loc(view, dropped->site_id, loc, &entry);
    *held = status == CATALOGUE_OK && strcmp(entry.source, source) == 0;
    if (status == CATALOGUE_OK)
        entry_record_done(&entry);
    return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
}

static enum catalogue_status look_up(struct child_store *s, struct catalogue_view *view,
                                     int64_t site_id, const char *loc, struct known *out)
{
    struct check_record record;
    enum catalogue_status status = catalogue_view_check_by_loc(view, site_id, loc, &record);
    *out = (struct known){.served = false};
    if (status != CATALOGUE_OK)
        return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
    *out = (struct known){
        .served = *record.source != '\0' && !(record.marks & CHECK_SPLIT) &&
                  s->options.serves(s->options.context, record.source),
        .good = record.state == CHECK_GOOD,
        .hash = {record.hash[0], record.hash[1]},
        .checked_at = record.checked_at,
    };
    return out->served && (record.marks & CHECK_DROPPED) ? is_held(view, &record, loc, &out->served)
                                                         : CATALOGUE_OK;
}

/* Whether another node found different content since the copy was made here. */
static bool is_old(const struct head *head, const struct known *known)
{
    return known->good && !same_hash(head->hash, known->hash) &&
           head->written_ns / CLOCK_SECOND_NS <= known->checked_at;
}

int child_store_open(struct child_store *s, int64_t site_id, const char *loc, uint64_t *from)
{
    struct catalogue_view *view;
    struct known known;
    struct head head;
    enum catalogue_status status = catalogue_view_begin(s->options.catalogue, &view);
    if (status == CATALOGUE_OK) {
        status = look_up(s, view, site_id, loc, &known);
        catalogue_view_end(view);
    }
    if (status != CATALOGUE_OK) {
        errno = status == CATALOGUE_NO_MEMORY ? ENOMEM : EIO;
        return -1;
    }
    if (!known.served) {
        errno = ENOENT;
        return -1;
    }
    int fd = open_copy(s, site_id, loc, &head);
    if (fd < 0) {
        if (errno != ENOMEM && errno != EMFILE && errno != ENFILE && errno != EIO)
            errno = ENODATA; /* whatever happened to the file or its folder */
        return -1;
    }
    if (is_old(&head, &known))
        s->options.fetch(s->options.context, site_id, loc, NULL, NULL);
    *from = head.len;
    return fd;
}

int child_store_folder(struct child_store *s)
{
    return open_folder(s);
}

int child_store_open_file(struct child_store *s, const char *name, uint64_t *from,
                          char loc[LOC_MAX_CHARS + 1])
{
    struct head head;
    int folder = open_folder(s);
    int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && !read_head(fd, &head)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    if (fd >= 0) {
        *from = head.len;
        memcpy(loc, head.loc, sizeof head.loc);
    }
    return fd;
}

/* ---- maintenance */

struct stored {
    int64_t site_id, written_ns;
    uint64_t bytes;
    ino_t inode;
    /* The order in which a site loses files: replaced copies, copies that can be fetched again,
     * others. */
    enum { REPLACED, FETCHABLE, LAST } kind;
    char name[HASH_CHARS + sizeof ".now"];
};

struct missing {
    int64_t site_id;
    char *loc; /* owned */
};

#define ROWS_A_VIEW 500u

struct round {
    struct child_store *store;
    int64_t until_ms;
    uint64_t copies, bytes;
    /* All files, if some must be removed. */
    bool gathers;
    struct stored *all; /* owned */
    size_t count, room;
    bool failed;
    uint64_t unsent; /* removed replaced copies whose changes were not sent */
    /* Missing copies. */
    uint64_t missing, fetched;
    unsigned failed_fetches; /* in a row */
    int64_t after;
    size_t wanted;
    struct missing wants[ROWS_A_VIEW];
};

static bool stops(struct child_store *s)
{
    return thread_stops(&s->thread);
}

/* Removes the file with this inode, not another one that has its name now. */
static bool remove_file(struct child_store *s, int folder, const char *name, ino_t inode)
{
    struct stat st;
    child_store_lock_places(s);
    bool removed = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == inode &&
                   unlinkat(folder, name, 0) == 0;
    child_store_unlock_places(s);
    return removed;
}

/* If the catalogue cannot be read, the sitemap counts as served, and its copy stays. */
static struct known known_of(struct child_store *s, int64_t site_id, const struct head *head)
{
    const struct known unknown = {.served = true};
    struct catalogue_view *view;
    struct known known;
    if (catalogue_view_begin(s->options.catalogue, &view) != CATALOGUE_OK)
        return unknown;
    enum catalogue_status status = look_up(s, view, site_id, head->loc, &known);
    catalogue_view_end(view);
    return status == CATALOGUE_OK ? known : unknown;
}

static void add_stored(struct round *r, const struct stored *file)
{
    r->copies += file->kind != REPLACED;
    r->bytes += file->bytes;
    if (!r->gathers)
        return;
    if (r->count == r->room) {
        size_t room = r->room == 0 ? 1024 : r->room * 2;
        struct stored *grown = reallocarray(r->all, room, sizeof *grown);
        r->failed = r->failed || grown == NULL;
        if (grown == NULL)
            return;
        r->all = grown;
        r->room = room;
    }
    r->all[r->count++] = *file;
}

/* Whether a crash left this temporary file. A recent one is being written. */
static bool is_leftover(const struct stat *st)
{
    return time(NULL) - st->st_ctim.tv_sec > LOOK_MS / 1000;
}

static void check_copy(struct round *r, int64_t site_id, int site_fd, const char *name)
{
    struct stat st;
    struct head head;
    int fd = openat(site_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    struct known known = {.served = false};
    bool file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    bool whole = strlen(name) == HASH_CHARS;
    if (whole && file && read_head(fd, &head))
        known = known_of(r->store, site_id, &head);
    bool stays = whole ? known.served : file && !is_leftover(&st);
    close(fd);
    if (file && !stays)
        remove_file(r->store, site_fd, name, st.st_ino);
    if (!stays || !whole)
        return;
    struct stored stored = {.site_id = site_id,
                            .written_ns = head.written_ns,
                            .bytes = (uint64_t)st.st_size,
                            .inode = st.st_ino,
                            .kind = known.good ? FETCHABLE : LAST};
    memcpy(stored.name, name, HASH_CHARS + 1);
    add_stored(r, &stored);
}

/* Whether changes of the site are wanted; true for a while after the start, when that is not known
 * yet. */
static bool wants_changes(struct child_store *s, int64_t site_id)
{
    int64_t since_ms = clock_now_ms() - LOOK_MS;
    bool wanted = s->started_ms > since_ms;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; !wanted && i < s->wish_count; i++)
        wanted = s->wishes[i].site_id == site_id && s->wishes[i].at_ms > since_ms;
    pthread_mutex_unlock(&s->lock);
    return wanted;
}

/* Drops a replaced copy if its sitemap is no longer served, its changes are not wanted, or nobody
 * sent them for too long. */
static void check_replaced_file(struct round *r, int64_t site_id, int site_fd, int fd,
                                const char *name, bool wanted)
{
    struct stat st;
    char copy[HASH_CHARS + 1];
    struct stored stored = {.site_id = site_id, .kind = REPLACED};
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    snprintf(copy, sizeof copy, "%.*s", HASH_CHARS, name);
    bool served = faccessat(site_fd, copy, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    bool old = time(NULL) - st.st_ctim.tv_sec > REPLACED_KEPT_S;
    if (!wanted || !served || old || strlen(name) >= sizeof stored.name) {
        if (remove_file(r->store, fd, name, st.st_ino))
            r->unsent += wanted && served && strlen(name) == HASH_CHARS;
        return;
    }
    stored.written_ns = st.st_ctim.tv_sec * CLOCK_SECOND_NS;
    stored.bytes = st.st_nlink == 1 ? (uint64_t)st.st_size : 0;
    stored.inode = st.st_ino;
    memcpy(stored.name, name, strlen(name) + 1);
    add_stored(r, &stored);
}

static void find_replaced(struct round *r, int64_t site_id, int site_fd)
{
    bool wanted = wants_changes(r->store, site_id);
    int fd = openat(site_fd, CHILD_CHANGED, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *file;
    if (files == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((file = readdir(files)) != NULL)
        if (file->d_name[0] != '.')
            check_replaced_file(r, site_id, site_fd, fd, file->d_name, wanted);
    closedir(files);
    if (!wanted)
        unlinkat(site_fd, CHILD_CHANGED, AT_REMOVEDIR);
}

static void look_at_site(struct round *r, int folder, const char *name)
{
    char *end;
    int64_t site_id = strtoll(name, &end, 10);
    int fd = *end == '\0' && site_id > 0
                 ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    if (files == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    const struct dirent *file;
    while (!stops(r->store) && !r->failed && (file = readdir(files)) != NULL)
        if (file->d_name[0] != '.')
            check_copy(r, site_id, dirfd(files), file->d_name);
    find_replaced(r, site_id, fd);
    closedir(files);
    child_store_lock_places(r->store);
    unlinkat(folder, name, AT_REMOVEDIR); /* works only if it is empty */
    child_store_unlock_places(r->store);
}

/* Opens the folder for each round: reading moves the position of a descriptor. */
static void look_at_all(struct round *r)
{
    int fd = open(r->store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *sites = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *site;
    r->copies = r->bytes = r->count = 0;
    if (sites == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while (!stops(r->store) && !r->failed && (site = readdir(sites)) != NULL)
        if (site->d_name[0] != '.')
            look_at_site(r, fd, site->d_name);
    closedir(sites);
}

static int by_site_kind_and_age(const void *x, const void *y)
{
    const struct stored *a = x, *b = y;
    if (a->site_id != b->site_id)
        return a->site_id < b->site_id ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->written_ns > b->written_ns) - (a->written_ns < b->written_ns);
}

static bool evict(struct round *r, const struct stored *at)
{
    char name[CHILD_PATH_SIZE];
    bool replaced = at->kind == REPLACED;
    child_store_path(at->site_id, replaced ? CHILD_CHANGED : "", at->name, "", name);
    if (!remove_file(r->store, atomic_load(&r->store->folder_fd), name, at->inode))
        return false;
    r->unsent += replaced && strlen(at->name) == HASH_CHARS;
    r->copies -= !replaced;
    r->bytes -= at->bytes;
    return true;
}

struct site_share {
    size_t at, end;
    uint64_t bytes;
};

static struct site_share *shares_of(const struct round *r, size_t *count)
{
    struct site_share *shares = calloc(r->count + 1, sizeof *shares);
    *count = 0;
    for (size_t i = 0; shares != NULL && i < r->count; i++) {
        if (i == 0 || r->all[i].site_id != r->all[i - 1].site_id)
            shares[(*count)++].at = i;
        shares[*count - 1].end = i + 1;
        shares[*count - 1].bytes += r->all[i].bytes;
    }
    return shares;
}

static void report_full(struct child_store *s)
{
    if (!atomic_exchange(&s->full, true))
        s->options.event(
            s->options.context, 1, "child-store-full",
            "the copies of sitemaps exceed [fetch] store_bytes; the oldest are removed, and these "
            "sitemaps are not served while their origin is down; raise store_bytes");
}

/* Removes the oldest files of the site that uses the most space, so that no site takes the room of
 * others, not even with copies that cannot be fetched again. Frees a tenth of the limit, so that
 * not every new copy needs this. */
static void make_room(struct round *r)
{
    struct child_store *s = r->store;
    uint64_t max = atomic_load(&s->max_bytes), enough = max - max / 10;
    size_t count;
    if (r->count > 0)
        qsort(r->all, r->count, sizeof *r->all, by_site_kind_and_age);
    struct site_share *shares = shares_of(r, &count);
    while (shares != NULL && r->bytes > enough && !stops(s)) {
        struct site_share *most = shares;
        for (size_t i = 1; i < count; i++)
            if (shares[i].bytes > most->bytes)
                most = &shares[i];
        if (most->at == most->end) /* the rest was written meanwhile and is for the next round */
            break;
        const struct stored *at = &r->all[most->at++];
        if (evict(r, at))
            most->bytes -= at->bytes;
    }
    free(shares);
}

/* Checks all files, and makes room if the limit is exceeded. */
static void check_copies(struct round *r)
{
    struct child_store *s = r->store;
    look_at_all(r);
    if (r->bytes > atomic_load(&s->max_bytes) && !stops(s)) {
        r->gathers = true;
        report_full(s);
        look_at_all(r);
        if (!r->failed && !stops(s))
            make_room(r);
    }
    if (r->unsent > 0) {
        char detail[128];
        snprintf(detail, sizeof detail,
                 "IndexNow is not notified of the changes in %" PRIu64
                 " sitemaps: they waited for two days, or the store is full",
                 r->unsent);
        s->options.event(s->options.context, 1, "child-changes-dropped", detail);
    }
}

/* ---- missing copies */

static void find_missing(void *context, const struct check_record *record)
{
    struct round *r = context;
    struct child_store *s = r->store;
    if (record->list || record->state != CHECK_GOOD ||
        record->marks & (CHECK_DROPPED | CHECK_SPLIT) || record->site_id == 0 ||
        child_store_has(s, record->site_id, record->loc, record->hash))
        return;
    r->missing++;
    char *loc = strdup(record->loc);
    if (loc != NULL)
        r->wants[r->wanted++] = (struct missing){record->site_id, loc};
}

static void on_fetched(void *context)
{
    struct child_store *s = context;
    pthread_mutex_lock(&s->lock);
    s->fetching = false;
    pthread_cond_signal(&s->fetched);
    pthread_mutex_unlock(&s->lock);
}

/* Requests a copy and waits. False: there is still none. */
static bool fetch(struct child_store *s, const struct missing *wanted)
{
    struct head head;
    s->fetching = true; /* no other thread reads it yet */
    s->options.fetch(s->options.context, wanted->site_id, wanted->loc, on_fetched, s);
    pthread_mutex_lock(&s->lock);
    while (s->fetching)
        pthread_cond_wait(&s->fetched, &s->lock);
    pthread_mutex_unlock(&s->lock);
    int fd = open_copy(s, wanted->site_id, wanted->loc, &head);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Whether more may be fetched in this round. */
static bool may_fetch(struct round *r)
{
    struct child_store *s = r->store;
    return !stops(s) && !atomic_load(&s->full) && r->failed_fetches < FAILED_MOST &&
           atomic_load(&s->bytes) < atomic_load(&s->max_bytes) && clock_now_ms() < r->until_ms;
}

/* Fetches one at a time: requests and polls go first. */
static void fetch_missing(struct round *r)
{
    for (size_t i = 0; i < r->wanted; i++) {
        if (may_fetch(r)) {
            bool fetched = fetch(r->store, &r->wants[i]);
            r->fetched += fetched;
            r->failed_fetches = fetched ? 0 : r->failed_fetches + 1;
        }
        free(r->wants[i].loc);
    }
    r->wanted = 0;
}

static bool check_copies_of_source(void *context, const char *source)
{
    struct round *r = context;
    r->after = 0;
    r->failed_fetches = 0;
    do {
        const struct check_filter filter = {
            .state = -1, .source = source, .after = r->after, .limit = ROWS_A_VIEW};
        struct catalogue_view *view;
        if (catalogue_view_begin(r->store->options.catalogue, &view) != CATALOGUE_OK)
            return true;
        catalogue_view_checks(view, &filter, find_missing, r, &r->after);
        catalogue_view_end(view);
        fetch_missing(r);
    } while (r->after != 0 && !stops(r->store));
    return !stops(r->store);
}

/* Finds and fetches missing copies. A full store fetches nothing until all missing copies have
 * room, estimated by the mean size of the others. */
static void collect_missing(struct round *r)
{
    struct child_store *s = r->store;
    s->options.each_source(s->options.context, check_copies_of_source, r);
    uint64_t missing = r->missing - r->fetched;
    uint64_t each = r->copies > 0 ? r->bytes / r->copies : 0;
    atomic_store(&s->missing, missing);
    if (!r->gathers && r->bytes + missing * each <= atomic_load(&s->max_bytes))
        atomic_store(&s->full, false);
}

/* One round of maintenance. True: there is more to fetch soon. */
static bool look(struct child_store *s, struct round *r)
{
    bool was_full = atomic_load(&s->full);
    *r = (struct round){.store = s, .until_ms = clock_now_ms() + LOOK_MS};
    check_copies(r);
    if (!r->failed && !stops(s)) {
        atomic_store(&s->bytes, r->bytes);
        atomic_store(&s->copies, r->copies);
        collect_missing(r);
    }
    free(r->all);
    bool ended = clock_now_ms() < r->until_ms;
    return (!ended && r->fetched > 0) || (was_full && !atomic_load(&s->full));
}

static void store_run(void *context)
{
    struct child_store *s = context;
    struct round r;
    int64_t next_ms = 0, wait_ms = FIRST_MS;
    uint64_t trimmed_at = 0; /* the number of copies then */
    while (thread_wait(&s->thread, wait_ms)) {
        wait_ms = next_ms - clock_now_ms();
        if (wait_ms > 0)
            continue; /* woken too soon */
        bool again = look(s, &r);
        next_ms = clock_now_ms() + AGAIN_MS;
        wait_ms = again ? AGAIN_MS : LOOK_MS;
        /* Many polls fragment the heap. */
        if (r.copies > trimmed_at + trimmed_at / 10 + TRIM_COPIES) {
            trimmed_at = r.copies;
            malloc_trim(0);
        }
    }
}

void child_store_want_changes(struct child_store *s, int64_t site_id)
{
    char name[CHILD_PATH_SIZE];
    int folder = open_folder(s);
    pthread_mutex_lock(&s->lock);
    size_t i = 0;
    while (i < s->wish_count && s->wishes[i].site_id != site_id)
        i++;
    struct wish *wishes =
        i < s->wish_count ? s->wishes : reallocarray(s->wishes, s->wish_count + 1, sizeof *wishes);
    if (wishes != NULL) {
        s->wishes = wishes;
        s->wish_count += i == s->wish_count;
        wishes[i] = (struct wish){site_id, clock_now_ms()};
    }
    pthread_mutex_unlock(&s->lock);
    child_store_path(site_id, CHILD_CHANGED, "", "", name);
    if (folder >= 0)
        mkdirat(folder, name, 0700);
}

void child_store_stats_get(struct child_store *s, struct child_store_stats *out)
{
    *out = (struct child_store_stats){.copies = atomic_load(&s->copies),
                                      .bytes = atomic_load(&s->bytes),
                                      .missing = atomic_load(&s->missing),
                                      .failing = atomic_load(&s->failing),
                                      .full = atomic_load(&s->full)};
}

/* ---- beginning and end */

struct child_store *child_store_new(const struct child_store_options *options)
{
    struct child_store *s = calloc(1, sizeof *s);
    char *folder = strdup(options->folder);
    if (s == NULL || folder == NULL) {
        free(s);
        free(folder);
        return NULL;
    }
    s->options = *options;
    s->folder = folder;
    atomic_store(&s->folder_fd, -1);
    s->started_ms = clock_now_ms();
    atomic_store(&s->max_bytes, options->max_bytes);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->places, NULL);
    pthread_cond_init(&s->fetched, NULL);
    return s;
}

bool child_store_start(struct child_store *s)
{
    return thread_start(&s->thread, "child store", store_run, s);
}

void child_store_retune(struct child_store *s, uint64_t max_bytes)
{
    atomic_store(&s->max_bytes, max_bytes);
    thread_wake(&s->thread);
}

void child_store_stop(struct child_store *s)
{
    if (s != NULL)
        thread_stop(&s->thread);
}

void child_store_free(struct child_store *s)
{
    if (s == NULL)
        return;
    child_store_stop(s);
    if (atomic_load(&s->folder_fd) >= 0)
        close(atomic_load(&s->folder_fd));
    pthread_cond_destroy(&s->fetched);
    pthread_mutex_destroy(&s->places);
    pthread_mutex_destroy(&s->lock);
    free(s->wishes);
    free(s->folder);
    free(s);
}
