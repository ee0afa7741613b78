/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which paths of a folder are a source's files, by name alone. Pure, thread safe.
 *
 * A pattern without a slash is compared with a file's name, at any depth; one with a slash with
 * its path, where stars match no slash. An exclude is compared with a file and with each folder
 * above it, so that a folder's name, with or without slash or star behind it, leaves out all that
 * is below. Names that begin with a dot match only a pattern that spells the dot; folders of such
 * a name are left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "server/rules/url.h"

struct match {
    const char *const *patterns; /* NULL-terminated; NULL: sitemaps by their usual names */
    const char *const *excludes; /* NULL-terminated; NULL: none */
};

/* The file at `path` is one of the source's, given that the folders above it are. */
bool match_file(const struct match *m, const char *path);
/* The folder at `path` is listed, given that those above it are. */
bool match_folder(const struct match *m, const char *path);
/* The file at `path` is one of the source's, and so are all folders above it. */
bool match_whole(const struct match *m, const char *path);

/* Where a source's files are on the web: a path below its folder to a URL and back.
 * Pure, thread safe. */

struct location {
    char base[LOC_MAX_CHARS + 1]; /* normalised; ends in '/' */
    size_t base_len, origin_len;
};

/* Reads the URL that the folder's top is. `why` gets a sentence where it is invalid. */
bool location_init(struct location *l, const char *url, char *why, size_t why_size);
/* The normalised URL of a file. RULE_LOC_… where it has none. */
enum rule_code location_loc(const struct location *l, const char *path, struct url *out);
/* The path (SOURCE_MAX_PATH_BYTES + 1 bytes) that location_loc makes this URL of; false where
 * there is none. `url_path` is percent-encoded, without query. */
bool location_path(const struct location *l, const char *origin, const char *url_path, char *out);

/* Lists a folder and what is below it, in the byte order of paths (what is
 * behind a symlink comes where its name does). Symlinks to folders are followed
 * as long as they stay below the top and lead into no folder that is being listed already. */

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
    uint64_t links;   /* symlinks that led to a file or folder of the source */
    uint64_t outside; /* symlinks, not distinguishable from folders, that lead out: left aside */
    char outside_path[64]; /* the first of these, cut */
    int error;             /* errno of WALK_UNREADABLE and WALK_FAILED */
};

/* `start`: the folder to begin with, "" for the top. */
enum walk_status walk_folder(int top, const char *start, const struct match *match,
                             const struct walk_visit *visit, struct walk_result *result);
