/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Compares a path with shell patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`, and a backslash
 * before a byte that is taken literally. Of these only a literal slash matches a slash. The time is
 * proportional to the length of the pattern, whatever it says: clients choose patterns and paths.
 * Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLOB_MAX_PATH_BYTES 1535u
#define GLOB_WORDS          (GLOB_MAX_PATH_BYTES / 64 + 1)

/* A path, prepared for comparisons. Each set of places has a bit for each byte of the path, and one
 * for its end. */
struct glob_path {
    size_t words;                     /* used words of each set */
    uint64_t named[GLOB_WORDS];       /* bytes other than a slash */
    uint64_t dotted[GLOB_WORDS];      /* dots that begin a name */
    uint64_t first[GLOB_WORDS];       /* where names begin */
    uint64_t last[GLOB_WORDS];        /* where names end */
    uint64_t below[257 * GLOB_WORDS]; /* `words` for each value: bytes less than it */
    size_t len, name_at;              /* of the path; where its last name begins */
};

enum {
    GLOB_ANY_CASE = 1, /* glob_init alone: capital letters of the path count as small ones */
    GLOB_ABOVE = 2,    /* the path, or a folder above it, must match */
    GLOB_NAME = 4,     /* the pattern is compared with names, at any depth, not with the path */
    GLOB_DOTS = 8,     /* a dot that begins a name matches only a dot of the pattern */
};

/* False: the path is longer than GLOB_MAX_PATH_BYTES. */
bool glob_init(struct glob_path *path, const char *text, unsigned flags);
bool glob_match(const struct glob_path *path, const char *pattern, size_t len, unsigned flags);
