/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A folder of sitemap files as a source: what a scan asks of it (scan.h), and how it says that
 * something has changed. Internal to server/sources/; one thread. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "server/sources/folder/walk.h"
#include "server/sources/scan.h"

struct folder {
    const struct source_settings *settings; /* borrowed */
    struct location location;
    struct match match;
    /* From scan to scan. */
    struct tree_watch *watch;     /* NULL: it is not watched. A scan names the folders to it, and
                                     frees it where the system's limit is reached */
    struct record_list unsettled; /* what was being written; sorted */
    bool must_split_again;        /* no scan since folder_init has split what is to be */
    bool links;                   /* symlinks were followed: any name may matter */
    dev_t top_device;             /* as folder_watch found it */
    ino_t top_inode;
    /* Of the scan under way. */
    struct scan_pass *pass;
    int top;
    struct record_list changing; /* paths to be read again */
    struct record_list leaving;  /* paths left for the next scan */
    bool split_waits;            /* one that is to be split is left, too */
};

/* The place of this kind is a struct folder. */
extern const struct source_kind folder_kind;

/* Of one that is all zero, or to give it other settings: what it remembers stays. `why` gets a
 * sentence where the URL is invalid. */
bool folder_init(struct folder *f, const struct source_settings *settings, char *why,
                 size_t why_size);
/* Forgets all, also where it never was begun. */
void folder_done(struct folder *f);

/* Before a scan: watches from now on, where the settings want it; what has happened until now the
 * scan sees for itself. Tries again each time, since the system's limit may have been raised. True
 * where that is reached. */
bool folder_watch(struct folder *f);
/* Opens what the settings name, beneath their root; -1 with errno. EXDEV: a symlink leads out of
 * it. */
int folder_open_top(const struct source_settings *settings);
/* To wait on until folder_read_news has something; -1: it is not watched. */
int folder_fd(const struct folder *f);
struct tree_watch_news;
void folder_read_news(struct folder *f, struct tree_watch_news *out);
/* Another folder is at its path than folder_watch found, or none. */
bool folder_is_replaced(const struct folder *f);

enum read_status {
    READ_DONE,       /* `*out` has the verdict, `*st` what was read */
    READ_CHANGING,   /* it was written to while it was read; `*st` as it is now */
    READ_GONE,       /* there is no such file any more */
    READ_UNREADABLE, /* errno */
    READ_STOPPED,
    READ_SHORTAGE, /* no memory or descriptors: says nothing of the file */
};

/* Verifies the file at a path below the top, and sees to it that it held still meanwhile. `stop`
 * may be NULL. */
enum read_status folder_read_file(int top, const char *path, const struct sitemap_expect *expect,
                                  const atomic_bool *stop, struct stat *st,
                                  struct sitemap_file *out);

/* inotify over a folder and all below it. Folders are named by the walk, before each is
 * listed, so that nothing falls between listing and watching; what a walk did not name any more
 * (moved away, excluded) is released. One thread. */

struct tree_watch;

/* NULL with errno: EMFILE or ENOSPC where the system's limit is reached. `directory` (borrowed) is
 * where the top is, for systems without /proc. */
struct tree_watch *tree_watch_new(const char *directory);
void tree_watch_free(struct tree_watch *w);
/* To wait on until there is something to read. */
int tree_watch_fd(const struct tree_watch *w);

/* A walk of the whole begins, and has come to its end without leaving anything out. */
void tree_watch_walk_begins(struct tree_watch *w);
void tree_watch_walk_ends(struct tree_watch *w);
/* Watches the folder that `fd` is open on. False with errno (ENOSPC): the limit is reached. */
bool tree_watch_folder(struct tree_watch *w, int fd, const char *path);

struct tree_watch_news {
    bool changed;  /* something that concerns the source */
    bool overflow; /* events were lost */
};
/* Reads what has happened. `match` says which names concern the source; NULL: all do. `appeared`
 * is called for a folder that came to be, or was moved to, below the top. */
void tree_watch_read(struct tree_watch *w, const struct match *match,
                     void (*appeared)(void *context, const char *path), void *context,
                     struct tree_watch_news *out);
