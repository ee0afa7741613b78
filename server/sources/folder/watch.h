/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* inotify over a folder and all below it. Folders are named by the walk, before each is
 * listed, so that nothing falls between listing and watching; what a walk did not name any more
 * (moved away, excluded) is released. One thread. */
#pragma once

#include <stdbool.h>

#include "server/sources/folder/walk.h"

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
