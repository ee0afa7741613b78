/* The files of a source in memory, compactly: what the catalogue keeps of them, and what a scan
 * found. Strings live in the list that holds the record. One thread. */
#ifndef SITEMAPD_SOURCES_RECORD_H
#define SITEMAPD_SOURCES_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/source.h"

struct record {
    const char *path;
    const char *lastmod, *newest_lastmod, *problem, *detail; /* NULL: none */
    uint64_t device, inode, size;
    int64_t mtime_ns;
    uint64_t hash[2];
    uint64_t urls, bytes;
    uint64_t line, column;
    enum source_file_state state;
    bool one_lastmod, future, has_entry, refused;
    bool moved;        /* kept: its URL is another by now. found: its content is, or its URL */
    bool seen;         /* kept: it is still in the folder */
    bool nowhere;      /* it has no URL: a folder, a name that is none */
    const char *named; /* found: what it is told as ("new", …), static; NULL: it is not told */
};

struct record_block;

struct record_list {
    struct record *at;
    size_t count, capacity;
    struct record_block *blocks; /* of strings */
};

/* Appends a copy; NULL when out of memory. Valid until the next append. */
struct record *record_add(struct record_list *list, const struct record *record);
/* Copies a string into the list; NULL for NULL, and `*failed` is set when out of memory. */
const char *record_keep(struct record_list *list, const char *text, bool *failed);
/* By path, bytes ascending. */
void record_sort(struct record_list *list);
/* In a sorted list: leaves one of those with the same path. (Names that are no text, and what is
 * too long, are shown in a form that two may share.) */
void record_unique(struct record_list *list);
/* In a sorted list; NULL where there is none. */
struct record *record_find(const struct record_list *list, const char *path);
/* In a sorted list: sets `seen` of all that is below a folder. */
void record_see_below(struct record_list *list, const char *folder);
/* A row of the catalogue as a record, and a record as what the catalogue takes. `loc` is borrowed;
 * NULL: none. */
bool record_from_file(struct record_list *list, const struct source_file *file);
void record_to_file(const struct record *record, const char *loc, struct source_file *out);
/* All that the catalogue would keep is equal. */
bool record_equal(const struct record *a, const struct record *b);
void record_list_done(struct record_list *list);

#endif
