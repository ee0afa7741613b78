/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Keeps inotify watches for the folders that a walk found. */
#include "server/sources/folder/folder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/site_table.h"
#include "server/sources/sources.h"

/* IN_CREATE: for folders, and for complete files made by link(2). IN_ATTRIB: a file may have become
 * readable. */
#define EVENTS                                                                                     \
    (IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_CREATE | IN_ATTRIB |            \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

/* The kernel counts the watches of all folders together. */
static struct site_uses watches;
static _Atomic uint64_t watches_most = UINT64_MAX;

void tree_watch_share(uint64_t most)
{
    atomic_store(&watches_most, most);
}

static bool take_watch(int64_t site_id)
{
    return site_uses_take(&watches, site_id, 1, site_id == 0 ? UINT64_MAX : watches_most);
}

struct watched {
    int wd;
    unsigned walk; /* the last walk that added it */
    char *path;
};

struct tree_watch {
    int fd;
    int64_t site_id;
    const char *directory;
    struct watched *folders; /* by wd ascending */
    size_t count, capacity;
    unsigned walk;
};

struct tree_watch *tree_watch_new(const char *directory, int64_t site_id)
{
    struct tree_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->directory = directory;
    w->site_id = site_id;
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd < 0) {
        int error = errno;
        free(w);
        errno = error;
        return NULL;
    }
    return w;
}

void tree_watch_free(struct tree_watch *w)
{
    if (w == NULL)
        return;
    close(w->fd);
    site_uses_give(&watches, w->site_id, w->count);
    for (size_t i = 0; i < w->count; i++)
        free(w->folders[i].path);
    free(w->folders);
    free(w);
}

int tree_watch_fd(const struct tree_watch *w)
{
    return w->fd;
}

static size_t place_of(const struct tree_watch *w, int wd)
{
    size_t low = 0, high = w->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->folders[middle].wd < wd)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct watched *folder_of(const struct tree_watch *w, int wd)
{
    size_t at = place_of(w, wd);
    return at < w->count && w->folders[at].wd == wd ? &w->folders[at] : NULL;
}

static bool remember(struct tree_watch *w, int wd, const char *path)
{
    struct watched *known = folder_of(w, wd);
    if (known != NULL && strcmp(known->path, path) == 0) {
        known->walk = w->walk;
        return true;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        errno = ENOMEM;
        return false;
    }
    if (known != NULL) {
        free(known->path);
        known->path = copy;
        known->walk = w->walk;
        return true;
    }
    if (w->count == w->capacity) {
        size_t capacity = w->capacity ? w->capacity * 2 : 16;
        struct watched *folders = realloc(w->folders, capacity * sizeof folders[0]);
        if (folders == NULL) {
            free(copy);
            errno = ENOMEM;
            return false;
        }
        w->folders = folders;
        w->capacity = capacity;
    }
    if (!take_watch(w->site_id)) {
        free(copy);
        errno = ENOSPC;
        return false;
    }
    size_t at = place_of(w, wd); /* descriptors ascend, so this is mostly the end */
    memmove(&w->folders[at + 1], &w->folders[at], (w->count - at) * sizeof w->folders[0]);
    w->folders[at] = (struct watched){wd, w->walk, copy};
    w->count++;
    return true;
}

static void forget(struct tree_watch *w, int wd)
{
    struct watched *known = folder_of(w, wd);
    if (known == NULL)
        return;
    free(known->path);
    site_uses_give(&watches, w->site_id, 1);
    w->count--;
    memmove(known, known + 1, (size_t)(w->folders + w->count - known) * sizeof *known);
}

bool tree_watch_folder(struct tree_watch *w, int fd, const char *path)
{
    char name[4096];
    /* By descriptor: exactly this folder, whatever its path means now. */
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int wd = inotify_add_watch(w->fd, name, EVENTS);
    if (wd < 0 && errno == ENOENT) {
        int len = snprintf(name, sizeof name, "%s/%s", w->directory, path);
        if (len < 0 || (size_t)len >= sizeof name)
            return true;
        wd = inotify_add_watch(w->fd, name, EVENTS);
    }
    if (wd >= 0 && !remember(w, wd, path)) {
        int error = errno;
        inotify_rm_watch(w->fd, wd);
        errno = error;
        return false;
    }
    /* Any other failure means that it is gone or unreadable, which the walk reports. */
    return wd >= 0 || (errno != ENOSPC && errno != ENOMEM);
}

void tree_watch_walk_begins(struct tree_watch *w)
{
    w->walk++;
}

void tree_watch_walk_ends(struct tree_watch *w)
{
    size_t left = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (w->folders[i].walk == w->walk) {
            w->folders[left++] = w->folders[i];
            continue;
        }
        inotify_rm_watch(w->fd, w->folders[i].wd);
        free(w->folders[i].path);
    }
    site_uses_give(&watches, w->site_id, w->count - left);
    w->count = left;
}

static bool join(char out[], size_t size, const char *folder, const char *name)
{
    int len = snprintf(out, size, "%s%s%s", folder, *folder == '\0' ? "" : "/", name);
    return len >= 0 && (size_t)len < size;
}

struct reading {
    struct tree_watch *watch;
    const struct match *match;
    void (*appeared)(void *context, const char *path);
    void *context;
    struct tree_watch_news *news;
};

/* A new symlink may lead to a folder, whatever its name is. */
static bool is_link(const struct tree_watch *w, const char *path)
{
    char name[4096];
    struct stat st;
    int len = snprintf(name, sizeof name, "%s/%s", w->directory, path);
    return len >= 0 && (size_t)len < sizeof name && lstat(name, &st) == 0 && S_ISLNK(st.st_mode);
}

static void handle(const struct reading *r, const struct inotify_event *event)
{
    char path[SOURCE_MAX_PATH_BYTES + 1];
    if (event->mask & IN_Q_OVERFLOW) {
        r->news->changed = r->news->overflow = true;
        return;
    }
    const struct watched *folder = folder_of(r->watch, event->wd);
    if (folder == NULL)
        return; /* a late event of a released watch */
    if (event->mask & IN_IGNORED) {
        forget(r->watch, event->wd);
        return;
    }
    if (event->len == 0) {
        /* An event of the folder itself: it may have become readable. */
        r->news->changed = true;
        return;
    }
    if (!join(path, sizeof path, folder->path, event->name)) {
        r->news->changed = true;
        return;
    }
    bool came = event->mask & (IN_CREATE | IN_MOVED_TO);
    if (event->mask & IN_ISDIR) {
        if (r->match != NULL && !match_folder(r->match, path))
            return;
        r->news->changed = true;
        if (came)
            r->appeared(r->context, path);
        return;
    }
    if (r->match == NULL || match_file(r->match, path) || (came && is_link(r->watch, path)))
        r->news->changed = true;
}

/* At most about a full queue: a folder that changes all the time must not keep its thread from
 * scans and from its end. */
#define READS 32

void tree_watch_read(struct tree_watch *w, const struct match *match,
                     void (*appeared)(void *context, const char *path), void *context,
                     struct tree_watch_news *out)
{
    _Alignas(struct inotify_event) char bytes[32768];
    *out = (struct tree_watch_news){0};
    struct reading reading = {w, match, appeared, context, out};
    for (int i = 0; i < READS; i++) {
        ssize_t len = read(w->fd, bytes, sizeof bytes);
        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return;
        for (ssize_t at = 0; at < len;) {
            const struct inotify_event *event = (const struct inotify_event *)(bytes + at);
            handle(&reading, event);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
}
