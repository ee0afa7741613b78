/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The settings of a source of any kind, as the configuration, the API and the command line set them
 * and as server/sources takes them. Each member has its one row here; config/settings.c reads those
 * of the configuration in place, and copies, comparisons and the conversion from db/source.h's form
 * follow from the rows. Absent: NULL, 0 or false. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* T: a text. L: a NULL-terminated list. V: a value. */
#define SOURCE_SETTINGS_MEMBERS(T, L, V)                                                           \
    T(name)                                                                                        \
    T(index)                 /* URL or path of the index; NULL: the deepest that fits */           \
    V(bool, serve)           /* its files, or copies of what its list names, are served */         \
    L(split)                 /* of a folder yes or no; of an upstream URLs of sitemaps to split */ \
    V(uint64_t, split_bytes) /* that a split may take of the disk; 0: no bound */                  \
    V(bool, managed)         /* the configuration's; else API or command line made it */           \
    V(int64_t, site_id)      /* it lists in this site alone; 0: in any */                          \
    /* Of a folder. */                                                                             \
    T(directory) /* absolute or relative to the working directory */                               \
    T(url)       /* what the folder's top is, ends in '/' */                                       \
    L(patterns)  /* NULL: *.xml *.xml.gz *.txt *.txt.gz */                                         \
    L(excludes)                                                                                    \
    V(bool, watch) /* inotify; false: rescans alone */                                             \
    V(uint32_t, rescan_ms)                                                                         \
    V(uint32_t, settle_ms)                                                                         \
    V(bool, splits) /* `split` says yes: a file past the limits becomes a urlset */                \
    T(root)         /* what it reads lies beneath this folder, also by symlinks; NULL */           \
    V(bool, closed) /* no folder is opened to it: it reads nothing and says so */                  \
    /* Of an upstream. */                                                                          \
    T(upstream)           /* URL of a sitemap index; exactly one of it and directory is there */   \
    T(connect)            /* "host:port" to connect to for its origin; NULL: its name's */         \
    T(ca_file)            /* PEM; NULL: the system's trust */                                      \
    T(credentials)        /* "basic USER:PASS" or "bearer TOKEN", for its origin alone */          \
    T(map)                /* pairs of origins (host_map.h) */                                      \
    V(uint32_t, poll_ms)  /* the list */                                                           \
    V(bool, check)        /* poll what the list names, too */                                      \
    V(bool, public_check) /* and look at some past `connect`, as crawlers get them */              \
    V(uint32_t, drop_after_ms) /* how long a child may be invalid before it is dropped; 0: ever */

#define SOURCE_TEXT(name)        const char *name;
#define SOURCE_LIST(name)        const char *const *name;
#define SOURCE_VALUE(type, name) type name;

struct host_map;
struct source_settings {
    SOURCE_SETTINGS_MEMBERS(SOURCE_TEXT, SOURCE_LIST, SOURCE_VALUE)
    struct host_map *host_map; /* `map`, read; of copies alone, which own it */
};
#undef SOURCE_TEXT
#undef SOURCE_LIST
#undef SOURCE_VALUE

/* A copy with texts of its own, URLs of `split` in their normal form; false when out of memory.
 * Whole or not, it is freed by source_settings_done. */
bool source_settings_copy(const struct source_settings *from, struct source_settings *to);
void source_settings_done(struct source_settings *settings);
bool source_settings_equal(const struct source_settings *a, const struct source_settings *b);
