/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A folder of sitemap files as a kind of source (scan.h), and the watch that reports its changes.
 * Internal to server/sources/; one thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "server/sources/folder/walk.h"
#include "server/sources/scan.h"

struct folder {
    const struct source_settings *settings; /* borrowed */
    struct location location;
    struct match match;
    /* Kept from scan to scan. */
    /* NULL: not watched. A scan adds the folders to it, as many as the limits allow */
    struct tree_watch *watch;
    struct record_list unsettled; /* files that were being written; sorted */
    bool must_split_again;        /* no scan since folder_init has split all that must be split */
    bool links;                   /* symlinks were followed, so an event with any name may matter */
    dev_t top_device;             /* as folder_watch found it */
    ino_t top_inode;
    const atomic_bool *stop; /* of the last scan; ends the walk of a new folder, too. NULL */
    /* Of the current scan. */
    struct scan_pass *pass;
    int top;
    uint64_t files;              /* and problems, so far */
    struct record_list changing; /* paths to read again */
    struct record_list leaving;  /* paths left for the next scan */
    bool split_waits;            /* a file to split is left for the next scan */
};

/* Its `place` is a struct folder. */
extern const struct source_kind folder_kind;

/* Initialises a zeroed folder, or gives one other settings and keeps its memory of former scans.
 * False: the URL is invalid, and `why` gets a sentence; `location.base_len` is 0, and each scan
 * fails. */
bool folder_init(struct folder *f, const struct source_settings *settings, char *why,
                 size_t why_size);
/* Frees everything; also if it was never initialised. */
void folder_done(struct folder *f);

/* Begins to watch, before a scan, if the settings want that; the scan itself finds earlier changes.
 * Tries again each time, since the system's limit may have been raised. True: the limit is reached.
 */
bool folder_watch(struct folder *f);
/* Opens the folder of the settings, beneath their root; -1 with errno. EXDEV: the path from the
 * root to the folder has a symlink: who can write there could make it lead to a folder of others
 * below the root. */
int folder_open_top(const struct source_settings *settings);
/* A descriptor to poll for folder_read_news; -1: not watched. */
int folder_fd(const struct folder *f);
struct tree_watch_news;
void folder_read_news(struct folder *f, struct tree_watch_news *out);
/* Whether the folder at the path is missing, or is not the one that folder_watch found. */
bool folder_is_replaced(const struct folder *f);

enum read_status {
    READ_DONE,       /* `*out` has the verdict, `*st` is of the file that was read */
    READ_CHANGING,   /* it was written to while it was read; `*st` is its current state */
    READ_GONE,       /* the file no longer exists */
    READ_UNREADABLE, /* errno */
    READ_STOPPED,
    READ_SHORTAGE, /* no memory or descriptors; says nothing about the file */
};

/* Verifies the file at a path below the top, and checks that it did not change meanwhile. `stop`
 * may be NULL. */
enum read_status folder_read_file(int top, const char *path, const struct sitemap_expect *expect,
                                  const atomic_bool *stop, struct stat *st,
                                  struct sitemap_file *out);

/* Watches a folder and all folders below it by inotify. A walk adds each folder before it lists it,
 * so that no change is missed between listing and watching. Folders that a walk did not add again
 * (moved away, excluded) are released. One thread. */

struct tree_watch;

/* How many watches all folders may have together. Before: no bound. Thread safe. */
void tree_watch_share(uint64_t most);
/* NULL with errno; EMFILE or ENOSPC: the system's limit is reached. `directory` (borrowed) is the
 * path of the top, for systems without /proc. `site_id`: of the only site of the source, which has
 * a share of the watches (server/base/site_table.h); 0: the source has no bound. */
struct tree_watch *tree_watch_new(const char *directory, int64_t site_id);
void tree_watch_free(struct tree_watch *w);
/* A descriptor to poll for tree_watch_read. */
int tree_watch_fd(const struct tree_watch *w);

/* A walk of the whole tree begins, and has ended without leaving anything out. */
void tree_watch_walk_begins(struct tree_watch *w);
void tree_watch_walk_ends(struct tree_watch *w);
/* Watches the folder that `fd` refers to. False with errno (ENOSPC): a limit is reached. */
bool tree_watch_folder(struct tree_watch *w, int fd, const char *path);

struct tree_watch_news {
    bool changed;  /* a change that concerns the source */
    bool overflow; /* events were lost */
};
/* Reads pending events, a bounded number: the descriptor stays ready for the others. `match`
 * decides which names concern the source; NULL: all do. Calls `appeared` for a folder that was
 * created or moved below the top. */
void tree_watch_read(struct tree_watch *w, const struct match *match,
                     void (*appeared)(void *context, const char *path), void *context,
                     struct tree_watch_news *out);
