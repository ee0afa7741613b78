/* SITE/news/HASH is the copy that was told of last, SITE/news/HASH.now one that is being told of.
 * The difference of the two is found by the hashes of each page's loc and of what is said of it. */
#include "server/sources/child_news.h"

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

#include "server/input/reader.h"
#include "server/input/sitemap_file.h"

#define READ_BYTES 65536u
#define MAX_RATIO  500u

struct page {
    uint64_t loc, say; /* hashes */
    bool met;          /* in the other copy */
};

/* The pages of the copy before, by their locs' hashes. */
struct pages {
    struct page *at; /* owned */
    size_t count, room;
};

struct child_news {
    struct child_store *store;
    int64_t site_id;
    char name[33];
    struct pages before;
};

/* What is done with the page URLs that are news, in their order: those of the copy now, then those
 * that are gone. */
struct telling {
    struct child_news *news;
    uint64_t pages, found, from;
    size_t given;
    bool (*take)(void *context, const char *loc); /* NULL: they are counted */
    void *context;
    bool gathers, looks_for_gone, full, failed;
};

static void name_of(const struct child_news *news, const char *end, char out[80])
{
    snprintf(out, 80, "%" PRId64 "/news/%s%s", news->site_id, news->name, end);
}

static int by_loc(const void *a, const void *b)
{
    const struct page *x = a, *y = b;
    return (x->loc > y->loc) - (x->loc < y->loc);
}

static struct page page_of(const struct entry *entry)
{
    const char *lastmod = entry->lastmod ? entry->lastmod : "";
    const char *extensions = entry->extensions ? entry->extensions : "";
    return (struct page){.loc = XXH3_64bits(entry->loc, strlen(entry->loc)),
                         .say = XXH3_64bits_withSeed(extensions, strlen(extensions),
                                                     XXH3_64bits(lastmod, strlen(lastmod)))};
}

static bool gather(struct telling *t, const struct page *page)
{
    struct pages *p = &t->news->before;
    if (p->count == p->room) {
        size_t room = p->room == 0 ? 1024 : p->room * 2;
        struct page *grown = reallocarray(p->at, room, sizeof *grown);
        t->failed = grown == NULL;
        if (t->failed)
            return false;
        p->at = grown;
        p->room = room;
    }
    p->at[p->count++] = *page;
    return true;
}

static void tell(struct telling *t, const char *loc)
{
    if (t->found++ < t->from || t->take == NULL || t->full)
        return;
    t->full = !t->take(t->context, loc);
    t->given += !t->full;
}

static bool take_page(void *context, const struct entry *entry)
{
    struct telling *t = context;
    struct page page = page_of(entry);
    t->pages++;
    if (t->gathers)
        return gather(t, &page);
    struct pages *p = &t->news->before;
    struct page *before = bsearch(&page, p->at, p->count, sizeof page, by_loc);
    if (t->looks_for_gone ? before && !before->met : !before || before->say != page.say)
        tell(t, entry->loc);
    if (before)
        before->met = true;
    return true;
}

static bool pass_over(void *context, const struct rejection *rejection)
{
    (void)context;
    (void)rejection;
    return true;
}

/* Reads one of the two copies. False: it cannot be read as page URLs. */
static bool read_copy(struct telling *t, const char *end)
{
    const struct reader_options options = {.format = READER_AUTO,
                                           .pages = true,
                                           .lenient = true,
                                           .allow_gzip = true,
                                           .max_bytes = SITEMAP_FILE_MAX_BYTES,
                                           .max_entries = SITEMAP_FILE_MAX_URLS,
                                           .max_ratio = MAX_RATIO,
                                           .now = time(NULL)};
    const struct reader_sink sink = {.context = t, .entry = take_page, .reject = pass_over};
    char name[80], loc[LOC_MAX_CHARS + 1];
    uint64_t from;
    name_of(t->news, end, name);
    int fd = child_store_open_file(t->news->store, name, &from, loc);
    if (fd < 0)
        return false;
    struct reader *reader = reader_new(&options, &sink);
    char *bytes = malloc(READ_BYTES);
    ssize_t got = 0;
    while (reader && bytes && (got = pread(fd, bytes, READ_BYTES, (off_t)from)) > 0 &&
           reader_feed(reader, bytes, (size_t)got) == READER_OK)
        from += (uint64_t)got;
    t->failed = t->failed || reader == NULL || bytes == NULL || got < 0;
    bool read = !t->failed && got == 0 && reader_finish(reader) == READER_OK && !t->failed;
    reader_free(reader);
    free(bytes);
    close(fd);
    return read;
}

/* Both copies, once the one before is known. */
static bool read_both(struct telling *t)
{
    struct pages *p = &t->news->before;
    for (size_t i = 0; i < p->count; i++)
        p->at[i].met = false;
    if (!read_copy(t, ".now"))
        return false;
    t->looks_for_gone = true;
    return read_copy(t, "");
}

/* ---- on disk ---- */

void child_news_want(struct child_store *s, int64_t site_id)
{
    char name[80];
    int folder = child_store_folder(s);
    snprintf(name, sizeof name, "%" PRId64 "/news", site_id);
    if (folder >= 0)
        mkdirat(folder, name, 0700);
}

/* The names in the site's folder of news, which is closed by closedir; NULL: there is none. */
static DIR *open_news(struct child_store *s, int64_t site_id)
{
    char name[80];
    int folder = child_store_folder(s);
    snprintf(name, sizeof name, "%" PRId64 "/news", site_id);
    int fd =
        folder >= 0 ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    if (files == NULL && fd >= 0)
        close(fd);
    return files;
}

void child_news_forget(struct child_store *s, int64_t site_id)
{
    const struct dirent *file;
    DIR *files = open_news(s, site_id);
    while (files && (file = readdir(files)) != NULL)
        if (file->d_name[0] != '.')
            unlinkat(dirfd(files), file->d_name, 0);
    if (files)
        closedir(files);
}

static bool find_name(struct child_store *s, int64_t site_id, char out[33])
{
    const struct dirent *file;
    bool found = false;
    DIR *files = open_news(s, site_id);
    while (files && !found && (file = readdir(files)) != NULL) {
        found = strlen(file->d_name) == 32;
        if (found)
            memcpy(out, file->d_name, 33);
    }
    if (files)
        closedir(files);
    return found;
}

/* Takes hold of the copy now. False with errno; ENOENT where there is none. */
static bool link_now(struct child_news *news, char loc[LOC_MAX_CHARS + 1])
{
    int folder = child_store_folder(news->store);
    char copy[80], now[80];
    uint64_t from;
    snprintf(copy, sizeof copy, "%" PRId64 "/%s", news->site_id, news->name);
    name_of(news, ".now", now);
    unlinkat(folder, now, 0);
    if (linkat(folder, copy, folder, now, 0) != 0)
        return false;
    errno = ENOENT; /* a file of another kind counts as missing */
    int fd = child_store_open_file(news->store, now, &from, loc);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Whether there is a newer copy than the one that was told of. */
static bool is_newer(const struct child_news *news, const char *now)
{
    struct stat copy, told;
    char name[80];
    int folder = child_store_folder(news->store);
    snprintf(name, sizeof name, "%" PRId64 "/%s", news->site_id, news->name);
    return fstatat(folder, name, &copy, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(folder, now, &told, AT_SYMLINK_NOFOLLOW) == 0 && copy.st_ino != told.st_ino;
}

/* Lets go of the two copies. `told`: the one now takes the place of the one before, or, where no
 * newer one came meanwhile, there are no news any more. */
static void settle(const struct child_news *news, bool told)
{
    char before[80], now[80];
    int folder = child_store_folder(news->store);
    name_of(news, "", before);
    name_of(news, ".now", now);
    if (told && is_newer(news, now))
        renameat(folder, now, folder, before);
    else if (told)
        unlinkat(folder, before, 0);
    unlinkat(folder, now, 0);
}

static void free_news(struct child_news *news)
{
    if (news)
        free(news->before.at);
    free(news);
}

void child_news_done(struct child_news *news, bool told)
{
    settle(news, told);
    free_news(news);
}

/* Finds what is news of the sitemap. False: nothing, or it cannot be read as page URLs; `*failed`:
 * not now (memory, the disk). */
static bool compare(struct child_news *news, struct child_news_counts *counts, bool *failed)
{
    struct telling before = {.news = news, .gathers = true};
    struct telling both = {.news = news};
    struct pages *p = &news->before;
    p->count = 0;
    bool linked = link_now(news, counts->loc);
    *failed = !linked && errno != ENOENT;
    bool whole = linked && read_copy(&before, "");
    if (whole && p->count > 0)
        qsort(p->at, p->count, sizeof *p->at, by_loc);
    whole = whole && read_both(&both);
    *failed = *failed || before.failed || both.failed;
    counts->before = before.pages;
    counts->now = both.pages - before.pages;
    counts->news = both.found;
    return whole && both.found > 0;
}

struct child_news *child_news_next(struct child_store *s, int64_t site_id,
                                   struct child_news_counts *counts)
{
    struct child_news *news = calloc(1, sizeof *news);
    char last[sizeof news->name] = ""; /* one that cannot be removed ends it */
    bool failed = false;
    *counts = (struct child_news_counts){.news = 0};
    if (news)
        *news = (struct child_news){.store = s, .site_id = site_id};
    while (news && !failed && find_name(s, site_id, news->name) && strcmp(news->name, last) != 0) {
        memcpy(last, news->name, sizeof last);
        if (compare(news, counts, &failed))
            return news;
        if (!failed)
            settle(news, true);
    }
    free_news(news);
    return NULL;
}

size_t child_news_read(struct child_news *news, uint64_t from,
                       bool (*take)(void *context, const char *loc), void *context)
{
    struct telling t = {.news = news, .from = from, .take = take, .context = context};
    read_both(&t);
    return t.given;
}
