/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* SITE/changed/HASH is the copy that was sent last; SITE/changed/HASH.now is the newer copy that is
 * compared with it. Two copies are compared by the hash of each page's loc and the hash of its
 * lastmod and extensions. */
#include "server/sources/child_changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "server/base/clock.h"
#include "server/input/reader.h"
#include "server/input/sitemap_file.h"

#define READ_BYTES 65536u
#define MAX_RATIO  500u

struct page {
    uint64_t loc, content; /* hashes */
    bool found;            /* in the other copy */
};

/* The pages of the older copy, sorted by the hash of the loc. */
struct pages {
    struct page *at; /* owned */
    size_t count, room;
};

struct child_changes {
    struct child_store *store;
    int64_t site_id;
    char name[CHILD_HASH_CHARS + 1];
    struct pages before;
};

/* Reads both copies. Reports changed page URLs in this order: those of the newer copy, then those
 * that were removed. */
struct reading {
    struct child_changes *changes;
    uint64_t pages, changed, from;
    size_t taken;
    bool (*take)(void *context, const char *loc); /* NULL: only count them */
    void *context;
    enum { GATHER, FIND_CHANGED, FIND_REMOVED } step;
    bool full, failed;
};

static void name_of(const struct child_changes *changes, const char *end, char out[CHILD_PATH_SIZE])
{
    child_store_path(changes->site_id, CHILD_CHANGED, changes->name, end, out);
}

static int by_loc(const void *a, const void *b)
{
    const struct page *x = a, *y = b;
    return (x->loc > y->loc) - (x->loc < y->loc);
}

static struct page page_of(const struct entry *entry)
{
    const char *lastmod = entry->lastmod != NULL ? entry->lastmod : "";
    const char *extensions = entry->extensions != NULL ? entry->extensions : "";
    return (struct page){.loc = XXH3_64bits(entry->loc, strlen(entry->loc)),
                         .content = XXH3_64bits_withSeed(extensions, strlen(extensions),
                                                         XXH3_64bits(lastmod, strlen(lastmod)))};
}

static bool gather(struct reading *r, const struct page *page)
{
    struct pages *p = &r->changes->before;
    if (p->count == p->room) {
        size_t room = p->room == 0 ? 1024 : p->room * 2;
        struct page *grown = reallocarray(p->at, room, sizeof *grown);
        r->failed = grown == NULL;
        if (r->failed)
            return false;
        p->at = grown;
        p->room = room;
    }
    p->at[p->count++] = *page;
    return true;
}

static void give(struct reading *r, const char *loc)
{
    if (r->changed++ < r->from || r->take == NULL || r->full)
        return;
    r->full = !r->take(r->context, loc);
    r->taken += !r->full;
}

static bool add_page(void *context, const struct entry *entry)
{
    struct reading *r = context;
    struct page page = page_of(entry);
    r->pages++;
    if (r->step == GATHER)
        return gather(r, &page);
    struct pages *p = &r->changes->before;
    struct page *before = bsearch(&page, p->at, p->count, sizeof page, by_loc);
    if (r->step == FIND_REMOVED ? before != NULL && !before->found
                                : before == NULL || before->content != page.content)
        give(r, entry->loc);
    if (before != NULL)
        before->found = true;
    return true;
}

static bool pass_over(void *context, const struct rejection *rejection)
{
    (void)context;
    (void)rejection;
    return true;
}

/* Reads one of the two copies. False: it has no readable page URLs, or (`failed`) memory or the
 * disk failed. */
static bool read_copy(struct reading *r, const char *end)
{
    const struct reader_options options = {.format = READER_AUTO,
                                           .pages = true,
                                           .lenient = true,
                                           .allow_gzip = true,
                                           .max_bytes = SITEMAP_FILE_MAX_BYTES,
                                           .max_entries = SITEMAP_FILE_MAX_URLS,
                                           .max_ratio = MAX_RATIO,
                                           .now = time(NULL)};
    const struct reader_sink sink = {.context = r, .entry = add_page, .reject = pass_over};
    char name[CHILD_PATH_SIZE], loc[LOC_MAX_CHARS + 1];
    uint64_t from;
    name_of(r->changes, end, name);
    int fd = child_store_open_file(r->changes->store, name, &from, loc);
    if (fd < 0) {
        r->failed = r->failed || errno != ENOENT;
        return false;
    }
    struct reader *reader = reader_new(&options, &sink);
    char *bytes = malloc(READ_BYTES);
    ssize_t got = 0;
    enum reader_status status = READER_OK;
    while (reader != NULL && bytes != NULL &&
           (got = pread(fd, bytes, READ_BYTES, (off_t)from)) > 0 &&
           (status = reader_feed(reader, bytes, (size_t)got)) == READER_OK)
        from += (uint64_t)got;
    if (reader != NULL && got == 0)
        status = reader_finish(reader);
    r->failed =
        r->failed || reader == NULL || bytes == NULL || got < 0 || status == READER_NO_MEMORY;
    bool read = !r->failed && status == READER_OK;
    reader_free(reader);
    free(bytes);
    close(fd);
    return read;
}

/* Reads both copies, once the pages of the older one are known. */
static bool read_both(struct reading *r)
{
    struct pages *p = &r->changes->before;
    for (size_t i = 0; i < p->count; i++)
        p->at[i].found = false;
    r->step = FIND_CHANGED;
    if (!read_copy(r, ".now"))
        return false;
    r->step = FIND_REMOVED;
    return read_copy(r, "");
}

/* ---- on disk ---- */

/* Opens the site's folder of replaced copies; close it with closedir. NULL: none exists. */
static DIR *open_folder(struct child_store *s, int64_t site_id)
{
    char name[CHILD_PATH_SIZE];
    int folder = child_store_folder(s);
    child_store_path(site_id, CHILD_CHANGED, "", "", name);
    int fd =
        folder >= 0 ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    if (files == NULL && fd >= 0)
        close(fd);
    return files;
}

/* Links the current copy to the name HASH.now. False with errno; ENOENT: none exists. */
static bool link_now(struct child_changes *changes, char loc[LOC_MAX_CHARS + 1])
{
    int folder = child_store_folder(changes->store);
    char copy[CHILD_PATH_SIZE], now[CHILD_PATH_SIZE];
    uint64_t from;
    child_store_path(changes->site_id, "", changes->name, "", copy);
    name_of(changes, ".now", now);
    unlinkat(folder, now, 0);
    child_store_lock_places(changes->store); /* not while another thread renames the copy */
    bool linked = linkat(folder, copy, folder, now, 0) == 0;
    child_store_unlock_places(changes->store);
    int fd = linked ? child_store_open_file(changes->store, now, &from, loc) : -1;
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Whether there is a newer copy than the one that was sent. */
static bool is_newer(const struct child_changes *changes, const char *now)
{
    struct stat copy, sent;
    char name[CHILD_PATH_SIZE];
    int folder = child_store_folder(changes->store);
    child_store_path(changes->site_id, "", changes->name, "", name);
    return fstatat(folder, name, &copy, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(folder, now, &sent, AT_SYMLINK_NOFOLLOW) == 0 && copy.st_ino != sent.st_ino;
}

/* Drops both copies. `sent`: if a still newer copy came meanwhile, HASH.now becomes the older copy.
 * False: they cannot be dropped. */
static bool drop_copies(const struct child_changes *changes, bool sent)
{
    char before[CHILD_PATH_SIZE], now[CHILD_PATH_SIZE];
    int folder = child_store_folder(changes->store);
    name_of(changes, "", before);
    name_of(changes, ".now", now);
    child_store_lock_places(changes->store);
    int dropped = 0;
    if (sent && is_newer(changes, now))
        dropped = renameat(folder, now, folder, before);
    else if (sent)
        dropped = unlinkat(folder, before, 0);
    child_store_unlock_places(changes->store);
    unlinkat(folder, now, 0);
    return dropped == 0;
}

static void free_changes(struct child_changes *changes)
{
    if (changes != NULL)
        free(changes->before.at);
    free(changes);
}

bool child_changes_close(struct child_changes *changes, bool sent)
{
    bool dropped = drop_copies(changes, sent);
    free_changes(changes);
    return dropped;
}

/* Counts the changes. False: none exist, a copy has no readable page URLs, or (`*failed`)
 * memory or the disk failed. */
static bool compare(struct child_changes *changes, struct child_changes_counts *counts,
                    bool *failed)
{
    struct reading before = {.changes = changes, .step = GATHER};
    struct reading both = {.changes = changes};
    struct pages *p = &changes->before;
    p->count = 0;
    bool linked = link_now(changes, counts->loc);
    *failed = !linked && errno != ENOENT;
    bool whole = linked && read_copy(&before, "");
    if (whole && p->count > 0)
        qsort(p->at, p->count, sizeof *p->at, by_loc);
    whole = whole && read_both(&both);
    *failed = *failed || before.failed || both.failed;
    counts->before = before.pages;
    counts->now = both.pages - before.pages;
    counts->changed = both.changed;
    return whole && both.changed > 0;
}

/* Reads the name of the next replaced copy. */
static bool next_name(DIR *files, char out[CHILD_HASH_CHARS + 1])
{
    const struct dirent *file;
    while ((file = readdir(files)) != NULL)
        if (strlen(file->d_name) == CHILD_HASH_CHARS) {
            memcpy(out, file->d_name, CHILD_HASH_CHARS + 1);
            return true;
        }
    return false;
}

struct child_changes *child_changes_open(struct child_store *s, int64_t site_id, int64_t until_ms,
                                         struct child_changes_counts *counts)
{
    struct child_changes *changes = calloc(1, sizeof *changes);
    DIR *files = open_folder(s, site_id);
    bool found = false, failed;
    *counts = (struct child_changes_counts){.changed = 0};
    if (changes != NULL)
        *changes = (struct child_changes){.store = s, .site_id = site_id};
    /* If a copy cannot be compared now, try the next one. */
    for (unsigned tried = 0;
         changes != NULL && files != NULL && !found && (tried < 2 || clock_now_ms() < until_ms) &&
         next_name(files, changes->name);
         tried++) {
        found = compare(changes, counts, &failed);
        if (!found)
            drop_copies(changes, !failed);
    }
    if (files != NULL)
        closedir(files);
    if (found)
        return changes;
    free_changes(changes);
    return NULL;
}

size_t child_changes_read(struct child_changes *changes, uint64_t from,
                          bool (*take)(void *context, const char *loc), void *context)
{
    struct reading r = {.changes = changes, .from = from, .take = take, .context = context};
    read_both(&r);
    return r.taken;
}
