/* Which paths of a folder are a source's files, by name alone. Pure, thread safe.
 *
 * A pattern without a slash is compared with a file's name, at any depth; one with a slash with
 * its path, where stars match no slash. An exclude is compared with a file and with each folder
 * above it, so that a folder's name, with or without slash or star behind it, leaves out all that
 * is below. Names that begin with a dot match only a pattern that spells the dot; folders of such
 * a name are left out. */
#ifndef SITEMAPD_SOURCES_MATCH_H
#define SITEMAPD_SOURCES_MATCH_H

#include <stdbool.h>

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

#endif
