/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which paths of a folder are a source's files, by name alone. Pure, thread safe.
 *
 * A pattern without a slash is compared with the file's name at any depth; a pattern with a slash
 * is compared with its path, and a star matches no slash. An exclude is compared with a file and
 * with each folder above it, so that the name of a folder, with or without a slash or star at its
 * end, excludes everything below. A name that begins with a dot matches only a pattern with that
 * dot; folders with such a name are skipped. */
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

/* Whether the file at `path` belongs to the source if the folders above it are listed. */
bool match_file(const struct match *m, const char *path);
/* Whether the folder at `path` is listed if the folders above it are. */
bool match_folder(const struct match *m, const char *path);
/* Whether the file at `path` belongs to the source and all folders above it are listed. */
bool match_whole(const struct match *m, const char *path);

/* Maps a path below a source's folder to its URL, and back. Pure, thread safe. */

struct location {
    char base[LOC_MAX_CHARS + 1]; /* normalised; ends in '/' */
    size_t base_len, origin_len;
};

/* Parses the URL of the top folder. False: it is invalid, and `why` gets a sentence. */
bool location_init(struct location *l, const char *url, char *why, size_t why_size);
/* The normalised URL of a file; RULE_LOC_… if it has none. */
enum rule_code location_loc(const struct location *l, const char *path, struct url *out);
/* The inverse of location_loc: writes the path (SOURCE_MAX_PATH_BYTES + 1 bytes) of a URL; false:
 * none exists. `url_path` is percent-encoded, without query. */
bool location_path(const struct location *l, const char *origin, const char *url_path, char *out);

/* Lists a folder and everything below it, in the byte order of paths (a symlink's target at the
 * place of its name). Symlinks to folders are followed as long as they stay below the top and lead
 * into no folder that is being listed already. */

/* Folders reached through symlinks in one walk: links to each other would multiply. */
#define WALK_MAX_LINKED_FOLDERS 4096u

#define WALK_LOOK_NAMES 64u

enum walk_status {
    WALK_DONE,
    WALK_STOPPED,
    WALK_UNREADABLE, /* the top, or `start`, cannot be listed */
    WALK_FAILED,     /* no memory or descriptors (says nothing about the folder), or `max_names` */
};

/* Callbacks; each returns false to stop. All except `folder` may be NULL. Paths are relative and
 * borrowed. */
struct walk_visit {
    /* A folder is about to be listed; "" is the top. `fd` refers to it. */
    bool (*folder)(void *context, int fd, const char *path);
    /* A regular file that matches; `st` is recent. */
    bool (*file)(void *context, const char *path, const struct stat *st);
    /* A file that matches, or a folder to list, that cannot be read. `code` is a problem word. If
     * it is a folder, the files below it are unknown. */
    bool (*problem)(void *context, const char *path, const char *code, const char *detail,
                    bool folder);
    /* Whether to go on: called every WALK_LOOK_NAMES names, also where none matches. */
    bool (*go_on)(void *context);
    void *context;
    /* Names of a folder and of the folders above it, which are all in memory; 0: no bound. Beyond
     * it the walk fails with E2BIG. */
    size_t max_names;
};

struct walk_result {
    uint64_t links;        /* symlinks that led to a file or folder of the source */
    uint64_t outside;      /* symlinks that lead out and may be folders: skipped */
    char outside_path[64]; /* the first of them, cut */
    int error;             /* errno of WALK_UNREADABLE and WALK_FAILED */
};

/* `start`: the folder to begin with, "" for the top. */
enum walk_status walk_folder(int top, const char *start, const struct match *match,
                             const struct walk_visit *visit, struct walk_result *result);
