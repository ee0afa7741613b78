/* On disk: FOLDER/SITE/HASH, where HASH is that of the loc. A file begins with a head of three
 * lines, a mark, the hash of the content and the loc, and the sitemap follows. The loc in it shows
 * what the file is a copy of, whatever two locs hash to; the hash shows whether the copy is of what
 * the catalogue knows, which another node may have read.
 *
 * A copy is written beside its place, synchronised, and renamed: a crash leaves the one before. */
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
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/thread.h"
#include "server/rules/limits.h"

#define MARK          "sitemapd child 1\n"
#define HASH_CHARS    32
#define HEAD_BYTES    (sizeof MARK + HASH_CHARS + LOC_MAX_CHARS + 2)
#define NAME_SIZE     (20 + 1 + HASH_CHARS + 1) /* "SITE/HASH" */
#define BESIDE_SIZE   (NAME_SIZE + 4)           /* "SITE/HASH.new" */
#define REPLACED_SIZE (NAME_SIZE + 8)           /* "SITE/changed/HASH" */

/* How often all of it is looked after, and how soon again where something is missing. */
#define TRIM_COPIES 10000u /* and a tenth, of more copies than before */
#define LOOK_MS     (10 * 60 * 1000)
#define MISSING_MS  2000
/* Missing copies that are asked for between two looks. */
#define FETCH_MOST 500u
/* How long replaced copies wait for their changes to be sent. */
#define REPLACED_KEPT_S (2 * 86400)

struct child_store {
    struct child_store_options options;
    char *folder; /* owned */
    struct thread thread;
    atomic_uint_fast64_t max_bytes, copies, bytes, missing;
    atomic_bool failing;        /* the last write failed: told once */
    atomic_bool full;           /* the same of the bound */
    atomic_bool keeping_failed; /* reported once */
    int folder_fd;              /* -1: not there yet; `lock` */
    pthread_mutex_t lock;
    /* Whom the thread waits for; `lock`. */
    pthread_cond_t fetched;
    bool fetching;
};

struct child_copy {
    struct child_store *store;
    int fd;
    bool failed;
    gzFile packed; /* NULL: it is not */
    int64_t site_id;
    char name[NAME_SIZE], beside[BESIDE_SIZE];
    char loc[LOC_MAX_CHARS + 1];
};

/* What a file begins with. */
struct head {
    uint64_t hash[2];
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

static void name_of(int64_t site_id, const char *loc, char out[NAME_SIZE])
{
    XXH128_hash_t hash = XXH3_128bits(loc, strlen(loc));
    snprintf(out, NAME_SIZE, "%" PRId64 "/%016" PRIx64 "%016" PRIx64, site_id,
             (uint64_t)hash.high64, (uint64_t)hash.low64);
}

/* Somebody removed it, as may be done at any time. */
static bool is_removed(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* The folder, opened once; -1 with errno. Made where `makes`. One that was removed is made anew
 * under the same number, which others may be using. */
static int open_folder(struct child_store *s, bool makes)
{
    pthread_mutex_lock(&s->lock);
    bool removed = makes && is_removed(s->folder_fd);
    if ((s->folder_fd < 0 || removed) && makes)
        mkdir(s->folder, 0700);
    if (s->folder_fd < 0 || removed) {
        int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (s->folder_fd < 0)
            s->folder_fd = fd;
        else if (fd >= 0 && dup3(fd, s->folder_fd, O_CLOEXEC) >= 0)
            close(fd);
    }
    int fd = s->folder_fd;
    pthread_mutex_unlock(&s->lock);
    return fd;
}

/* ---- the head of a file */

static size_t write_head(char *out, size_t size, const uint64_t hash[2], const char *loc)
{
    return (size_t)snprintf(out, size, MARK "%016" PRIx64 "%016" PRIx64 "\n%s\n", hash[0], hash[1],
                            loc);
}

static bool read_head(int fd, struct head *out)
{
    char text[HEAD_BYTES];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    const size_t loc_at = sizeof MARK - 1 + HASH_CHARS + 1;
    if (got < (ssize_t)loc_at || memcmp(text, MARK, sizeof MARK - 1) != 0)
        return false;
    text[got] = '\0';
    const char *end = memchr(text + loc_at, '\n', (size_t)got - loc_at);
    size_t loc_len = end != NULL ? (size_t)(end - text) - loc_at : SIZE_MAX;
    if (loc_len > LOC_MAX_CHARS || sscanf(text + sizeof MARK - 1, "%16" SCNx64 "%16" SCNx64,
                                          &out->hash[0], &out->hash[1]) != 2)
        return false;
    memcpy(out->loc, text + loc_at, loc_len);
    out->loc[loc_len] = '\0';
    out->len = loc_at + loc_len + 1;
    return true;
}

/* Opens a copy; -1 with errno, ENOENT also where the file is a copy of something else. */
static int open_copy(struct child_store *s, int64_t site_id, const char *loc, struct head *head)
{
    char name[NAME_SIZE];
    int folder = open_folder(s, false);
    if (folder < 0)
        return -1;
    name_of(site_id, loc, name);
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
    struct head head;
    int fd = open_copy(s, site_id, loc, &head);
    if (fd >= 0)
        close(fd);
    return fd >= 0 && same_hash(head.hash, hash);
}

/* ---- writing */

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, bytes, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        bytes += put;
        len -= (size_t)put;
    }
    return true;
}

static void unlink_new(const struct child_copy *copy)
{
    unlinkat(copy->store->folder_fd, copy->beside, 0);
}

/* Told once until a copy is kept again. */
static void fail(struct child_copy *copy, const char *what)
{
    if (!atomic_exchange(&copy->store->failing, true))
        report(copy->store, 1, "child-store-failed", what, errno);
    copy->failed = true;
}

/* Packs behind what is there. It has a descriptor of its own. */
static gzFile open_packed(int fd)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    gzFile packed = own >= 0 ? gzdopen(own, "wb") : NULL;
    if (packed == NULL && own >= 0)
        close(own);
    return packed;
}

/* Ends the packing. False: what was packed is not whole. */
static bool close_packed(struct child_copy *copy)
{
    gzFile packed = copy->packed;
    copy->packed = NULL;
    return packed == NULL || gzclose(packed) == Z_OK;
}

struct child_copy *child_copy_begin(struct child_store *s, int64_t site_id, const char *loc,
                                    bool packed)
{
    /* The place of the hash, which is known only at the end. */
    static const uint64_t none[2];
    char head[HEAD_BYTES], site[24];
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
    name_of(site_id, loc, copy->name);
    int folder = open_folder(s, true);
    snprintf(site, sizeof site, "%" PRId64, site_id);
    if (folder >= 0)
        mkdirat(folder, site, 0700);
    snprintf(copy->beside, sizeof copy->beside, "%s.new", copy->name);
    copy->fd = folder < 0 ? -1
                          : openat(folder, copy->beside,
                                   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (copy->fd < 0) {
        fail(copy, "a copy of a sitemap cannot be made");
        free(copy);
        return NULL;
    }
    if (!write_all(copy->fd, head, write_head(head, sizeof head, none, loc)))
        fail(copy, "a copy of a sitemap cannot be written");
    if (packed && !copy->failed && !(copy->packed = open_packed(copy->fd)))
        fail(copy, "a copy of a sitemap cannot be packed");
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
                                     : write_all(copy->fd, bytes, len));
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

/* Where changes are wanted, the copy before is kept: that of the first change that was not sent
 * yet.
 */
static void keep_replaced(const struct child_copy *copy, const uint64_t hash[2])
{
    int folder = copy->store->folder_fd;
    char replaced[REPLACED_SIZE];
    const char *file = strchr(copy->name, '/');
    snprintf(replaced, sizeof replaced, "%" PRId64 "/changed%s", copy->site_id, file);
    if (child_store_has(copy->store, copy->site_id, copy->loc, hash) ||
        linkat(folder, copy->name, folder, replaced, 0) == 0)
        return;
    /* None is wanted, or there is no copy before; one is kept already. */
    if (errno != ENOENT && errno != EEXIST && !atomic_exchange(&copy->store->keeping_failed, true))
        report(copy->store, 1, "child-changes-failed",
               "what changed in a sitemap cannot be kept for IndexNow, which is not notified of it",
               errno);
}

/* Makes the file whole and gives it its date, then its place. */
static bool settle_copy(struct child_copy *copy, const uint64_t hash[2], int64_t date)
{
    char head[HEAD_BYTES];
    size_t len = write_head(head, sizeof head, hash, copy->loc);
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = date}};
    int folder = copy->store->folder_fd;
    keep_replaced(copy, hash);
    return pwrite(copy->fd, head, len, 0) == (ssize_t)len && futimens(copy->fd, times) == 0 &&
           fsync(copy->fd) == 0 && renameat(folder, copy->beside, folder, copy->name) == 0;
}

bool child_copy_keep(struct child_copy *copy, const uint64_t hash[2], int64_t date)
{
    struct child_store *s = copy->store;
    struct stat st = {.st_size = 0};
    uint64_t before = size_of(s->folder_fd, copy->name);
    bool kept = close_packed(copy) && !copy->failed && fstat(copy->fd, &st) == 0 &&
                settle_copy(copy, hash, date);
    if (!kept) {
        if (!copy->failed)
            fail(copy, "a copy of a sitemap cannot be written");
        child_copy_drop(copy);
        return false;
    }
    if (atomic_exchange(&s->failing, false))
        s->options.event(s->options.context, 2, "child-store-recovered", s->folder);
    atomic_fetch_add(&s->bytes, (uint64_t)st.st_size);
    atomic_fetch_sub(&s->bytes, before);
    if (before == 0)
        atomic_fetch_add(&s->copies, 1);
    if (atomic_load(&s->bytes) > atomic_load(&s->max_bytes))
        thread_wake(&s->thread);
    s->options.changed(s->options.context, copy->site_id);
    close(copy->fd);
    free(copy);
    return true;
}

/* ---- reading */

/* What the catalogue says of a sitemap. */
struct known {
    bool served; /* a source with `serve` lists it */
    bool good;
    uint64_t hash[2];
    int64_t checked_at;
};

static enum catalogue_status look_up(struct child_store *s, struct catalogue_view *view,
                                     int64_t site_id, const char *loc, struct known *out)
{
    struct check_record record;
    enum catalogue_status status = catalogue_view_check_by_loc(view, site_id, loc, &record);
    *out = (struct known){.served = false};
    if (status != CATALOGUE_OK)
        return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
    *out = (struct known){
        .served = *record.source != '\0' && !(record.marks & (CHECK_DROPPED | CHECK_SPLIT)) &&
                  s->options.serves(s->options.context, record.source),
        .good = record.state == CHECK_GOOD,
        .hash = {record.hash[0], record.hash[1]},
        .checked_at = record.checked_at,
    };
    return CATALOGUE_OK;
}

/* Another node read another content since the copy was made here. */
static bool is_old(int fd, const struct head *head, const struct known *known)
{
    struct stat st;
    return known->good && !same_hash(head->hash, known->hash) && fstat(fd, &st) == 0 &&
           st.st_ctim.tv_sec <= known->checked_at;
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
            errno = ENODATA; /* whatever is in its place or its folder's */
        return -1;
    }
    if (is_old(fd, &head, &known))
        s->options.fetch(s->options.context, site_id, loc, NULL, NULL);
    *from = head.len;
    return fd;
}

int child_store_folder(struct child_store *s)
{
    return open_folder(s, false);
}

int child_store_open_file(struct child_store *s, const char *name, uint64_t *from,
                          char loc[LOC_MAX_CHARS + 1])
{
    struct head head;
    int folder = open_folder(s, false);
    int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && !read_head(fd, &head)) {
        close(fd);
        return -1;
    }
    if (fd >= 0) {
        *from = head.len;
        memcpy(loc, head.loc, sizeof head.loc);
    }
    return fd;
}

/* ---- looking after it */

struct stored {
    int64_t site_id, written_ns;
    uint64_t bytes;
    char hash[HASH_CHARS + 1];
};

struct round {
    struct child_store *store;
    uint64_t copies, bytes;
    /* Each of them, where some are to go. */
    bool gathers;
    struct stored *all; /* owned */
    size_t count, room;
    bool failed, drops_replaced;
    /* Of what is missing. */
    uint64_t missing;
    unsigned asked;
    const char *source;
    int64_t after;
    size_t listed;
    char **locs; /* owned */
    int64_t *sites;
    size_t wanted;
};

static bool stops(struct child_store *s)
{
    return thread_stops(&s->thread);
}

static void remove_file(int site_fd, const char *name)
{
    unlinkat(site_fd, name, 0);
}

/* Whether the file is a copy of what is served. What cannot be known stays. */
static bool is_wanted(struct child_store *s, int64_t site_id, int fd)
{
    struct catalogue_view *view;
    struct known known;
    struct head head;
    if (!read_head(fd, &head))
        return false;
    if (catalogue_view_begin(s->options.catalogue, &view) != CATALOGUE_OK)
        return true;
    enum catalogue_status status = look_up(s, view, site_id, head.loc, &known);
    catalogue_view_end(view);
    return status != CATALOGUE_OK || known.served;
}

static void keep_in_mind(struct round *r, int64_t site_id, const struct stat *st, const char *hash)
{
    r->copies++;
    r->bytes += (uint64_t)st->st_size;
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
    struct stored *at = &r->all[r->count++];
    *at = (struct stored){.site_id = site_id,
                          .written_ns =
                              (int64_t)st->st_ctim.tv_sec * CLOCK_SECOND_NS + st->st_ctim.tv_nsec,
                          .bytes = (uint64_t)st->st_size};
    snprintf(at->hash, sizeof at->hash, "%s", hash);
}

/* A file beside its place is somebody's at this moment, or was left by a crash. */
static bool is_left_over(const char *name, const struct stat *st)
{
    return strlen(name) != HASH_CHARS && time(NULL) - st->st_ctim.tv_sec > LOOK_MS / 1000;
}

static void look_at_file(struct round *r, int64_t site_id, int site_fd, const char *name)
{
    struct stat st;
    int fd = openat(site_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return;
    }
    bool whole = strlen(name) == HASH_CHARS;
    if (whole ? !is_wanted(r->store, site_id, fd) : is_left_over(name, &st))
        remove_file(site_fd, name);
    else if (whole)
        keep_in_mind(r, site_id, &st, name);
    close(fd);
}

/* Drops replaced copies of what is no longer served, and those whose changes nobody sent for long.
 */
static void look_at_replaced(struct round *r, int site_fd)
{
    struct stat st;
    int fd = openat(site_fd, "changed", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *file;
    if (files == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((file = readdir(files)) != NULL) {
        char copy[HASH_CHARS + 1];
        if (file->d_name[0] == '.' || fstatat(fd, file->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        snprintf(copy, sizeof copy, "%.32s", file->d_name);
        bool old = time(NULL) - st.st_ctim.tv_sec > REPLACED_KEPT_S;
        if (old || r->drops_replaced || faccessat(site_fd, copy, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            unlinkat(fd, file->d_name, 0);
        else if (st.st_nlink == 1)
            r->bytes += (uint64_t)st.st_size;
    }
    closedir(files);
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
            look_at_file(r, site_id, dirfd(files), file->d_name);
    look_at_replaced(r, fd);
    closedir(files);
}

/* Opened anew for each round: reading moves its place. */
static void look_at_all(struct round *r)
{
    int fd = open(r->store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *sites = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *site;
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

static int by_site_and_age(const void *x, const void *y)
{
    const struct stored *a = x, *b = y;
    if (a->site_id != b->site_id)
        return a->site_id < b->site_id ? -1 : 1;
    return (a->written_ns > b->written_ns) - (a->written_ns < b->written_ns);
}

/* What cannot be fetched again stays. */
static bool can_go(struct child_store *s, const struct stored *at)
{
    char name[NAME_SIZE];
    struct catalogue_view *view;
    struct known known = {.good = false};
    struct head head;
    snprintf(name, sizeof name, "%" PRId64 "/%s", at->site_id, at->hash);
    int fd = openat(s->folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool read = fd >= 0 && read_head(fd, &head);
    if (fd >= 0)
        close(fd);
    if (!read || catalogue_view_begin(s->options.catalogue, &view) != CATALOGUE_OK)
        return false;
    enum catalogue_status status = look_up(s, view, at->site_id, head.loc, &known);
    catalogue_view_end(view);
    if (status != CATALOGUE_OK || !known.good)
        return false;
    return unlinkat(s->folder_fd, name, 0) == 0;
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

/* Past the bound the site that has the most gives up what was written longest ago, so that no site
 * takes the room of others. */
static void make_room(struct round *r)
{
    struct child_store *s = r->store;
    uint64_t max = atomic_load(&s->max_bytes);
    size_t count;
    if (!atomic_exchange(&s->full, true))
        s->options.event(
            s->options.context, 1, "child-store-full",
            "the copies of sitemaps take more than store_bytes; the oldest are removed "
            "and are not served while their origin is down; raise [fetch] store_bytes");
    qsort(r->all, r->count, sizeof *r->all, by_site_and_age);
    struct site_share *shares = shares_of(r, &count);
    while (shares != NULL && r->bytes > max && !stops(s)) {
        struct site_share *most = NULL;
        for (size_t i = 0; i < count; i++)
            if (shares[i].at < shares[i].end && (most == NULL || shares[i].bytes > most->bytes))
                most = &shares[i];
        if (most == NULL)
            break;
        const struct stored *at = &r->all[most->at++];
        if (!can_go(s, at))
            continue;
        most->bytes -= at->bytes;
        r->bytes -= at->bytes;
        r->copies--;
    }
    free(shares);
}

/* ---- what is missing */

static bool find_missing(void *context, const struct check_record *record)
{
    struct round *r = context;
    struct child_store *s = r->store;
    r->after = record->id;
    r->listed++;
    if (record->list || record->state != CHECK_GOOD ||
        record->marks & (CHECK_DROPPED | CHECK_SPLIT) || record->site_id == 0 ||
        child_store_has(s, record->site_id, record->loc, record->hash))
        return !stops(s);
    r->missing++;
    if (r->asked + r->wanted >= FETCH_MOST)
        return !stops(s);
    char *loc = strdup(record->loc);
    if (loc == NULL)
        return false;
    r->locs[r->wanted] = loc;
    r->sites[r->wanted++] = record->site_id;
    return !stops(s);
}

static void on_fetched(void *context)
{
    struct child_store *s = context;
    pthread_mutex_lock(&s->lock);
    s->fetching = false;
    pthread_cond_signal(&s->fetched);
    pthread_mutex_unlock(&s->lock);
}

/* One at a time: requests and polls go first. */
static void fetch_missing(struct round *r)
{
    struct child_store *s = r->store;
    for (size_t i = 0; i < r->wanted; i++) {
        if (!stops(s) && atomic_load(&s->bytes) < atomic_load(&s->max_bytes)) {
            s->fetching = true;
            s->options.fetch(s->options.context, r->sites[i], r->locs[i], on_fetched, s);
            pthread_mutex_lock(&s->lock);
            while (s->fetching)
                pthread_cond_wait(&s->fetched, &s->lock);
            pthread_mutex_unlock(&s->lock);
            r->asked++;
        }
        free(r->locs[i]);
    }
    r->wanted = 0;
}

#define ROWS_A_VIEW 500u

static bool look_at_source(void *context, const char *source)
{
    struct round *r = context;
    r->after = 0;
    do {
        const struct check_filter filter = {
            .state = -1, .source = source, .after = r->after, .limit = ROWS_A_VIEW};
        struct catalogue_view *view;
        r->listed = 0;
        if (catalogue_view_begin(r->store->options.catalogue, &view) != CATALOGUE_OK)
            return true;
        catalogue_view_checks(view, &filter, find_missing, r);
        catalogue_view_end(view);
        fetch_missing(r);
    } while (r->listed == ROWS_A_VIEW && !stops(r->store));
    return !stops(r->store);
}

static void store_run(void *context)
{
    struct child_store *s = context;
    bool again = true;
    uint64_t trimmed_at = 0; /* how many copies there were */
    while (thread_wait(&s->thread, again ? MISSING_MS : LOOK_MS)) {
        struct round r = {.store = s,
                          .locs = calloc(FETCH_MOST, sizeof *r.locs),
                          .sites = calloc(FETCH_MOST, sizeof *r.sites)};
        r.drops_replaced = atomic_load(&s->full); /* the copies themselves come first */
        look_at_all(&r);
        if (r.bytes > atomic_load(&s->max_bytes) && !stops(s)) {
            r.copies = r.bytes = 0;
            r.gathers = true;
            look_at_all(&r);
        }
        if (!r.failed && !stops(s)) {
            if (r.gathers)
                make_room(&r);
            else
                atomic_store(&s->full, false);
            atomic_store(&s->bytes, r.bytes);
            atomic_store(&s->copies, r.copies);
            if (r.locs != NULL && r.sites != NULL)
                s->options.each_source(s->options.context, look_at_source, &r);
            atomic_store(&s->missing, r.missing > r.asked ? r.missing - r.asked : 0);
        }
        again = r.asked == FETCH_MOST;
        free(r.all);
        free(r.locs);
        free(r.sites);
        /* Many polls leave much memory behind, in pieces. */
        if (r.copies > trimmed_at + trimmed_at / 10 + TRIM_COPIES) {
            trimmed_at = r.copies;
            malloc_trim(0);
        }
    }
}

void child_store_stats_get(struct child_store *s, struct child_store_stats *out)
{
    *out = (struct child_store_stats){.copies = atomic_load(&s->copies),
                                      .bytes = atomic_load(&s->bytes),
                                      .missing = atomic_load(&s->missing),
                                      .failing = atomic_load(&s->failing),
                                      .full = atomic_load(&s->full)};
}

/* ---- life */

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
    s->folder_fd = -1;
    atomic_store(&s->max_bytes, options->max_bytes);
    pthread_mutex_init(&s->lock, NULL);
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
    if (s->folder_fd >= 0)
        close(s->folder_fd);
    pthread_cond_destroy(&s->fetched);
    pthread_mutex_destroy(&s->lock);
    free(s->folder);
    free(s);
}
