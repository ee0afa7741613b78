/* Lists a folder and what is below it, in the byte order of paths (what is
 * behind a symlink comes where its name does). Symlinks to folders are followed
 * as long as they stay below the top and lead into no folder that is being listed already. */
#ifndef SITEMAPD_SOURCES_WALK_H
#define SITEMAPD_SOURCES_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "server/sources/match.h"

/* Folders reached through symlinks in one walk: links to each other would multiply. */
#define WALK_MAX_LINKED_FOLDERS 4096u

enum walk_status {
    WALK_DONE,
    WALK_STOPPED,
    WALK_UNREADABLE, /* the top, or `start`, cannot be listed */
    WALK_FAILED,     /* no memory or descriptors: says nothing of the folder */
};

/* Each returns false to stop. Any but `folder` may be NULL. Paths are relative and borrowed. */
struct walk_visit {
    /* A folder is about to be listed; "" is the top. `fd` is open on it. */
    bool (*folder)(void *context, int fd, const char *path);
    /* A regular file that matches; `st` as it was a moment ago. */
    bool (*file)(void *context, const char *path, const struct stat *st);
    /* Something that matches or is listed, and cannot be had. `code` is a problem word. A folder's
     * problem leaves all that is below it unknown. */
    bool (*problem)(void *context, const char *path, const char *code, const char *detail,
                    bool folder);
    void *context;
};

struct walk_result {
    uint64_t links;        /* symlinks that led to a file or folder of the source */
    uint64_t outside;      /* symlinks, not to be told from folders, that lead out: left aside */
    char outside_path[64]; /* the first of these, cut */
    int error;             /* errno of WALK_UNREADABLE and WALK_FAILED */
};

/* `start`: the folder to begin with, "" for the top. */
enum walk_status walk_folder(int top, const char *start, const struct match *match,
                             const struct walk_visit *visit, struct walk_result *result);

#endif
