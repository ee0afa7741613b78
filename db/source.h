/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources: each file as it was last read, and the outcome of the last scan. A scan is one change
 * (in steps if other writes wait: db/change.h); entries and their files always change together. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/source_settings.h"

/* The state of a file. */
enum source_file_state {
    SOURCE_FILE_LISTED,      /* a good sitemap: it has an entry */
    SOURCE_FILE_EMPTY,       /* a sitemap without URLs: no entry, no fault */
    SOURCE_FILE_IGNORED,     /* not a sitemap (stored so that it is not read again) or, with `urls`,
                                split into the rows of a urlset: no entry */
    SOURCE_FILE_QUARANTINED, /* rejected, see `problem`; its last good entry, if any, stays */
    SOURCE_FILE_GONE,        /* in a scan only: the file was removed */
};

/* One file of a source. Strings are borrowed in a scan, and valid for the call in a view; they are
 * the first members (spool.h). A scan sends the files that differ from the stored ones (new,
 * changed, gone), each path once. It also sends unchanged LISTED files without `has_entry` (the
 * entry or its index was removed), and `refused` files. */
struct source_file {
    const char *path;           /* relative to the folder, UTF-8, '/' between names */
    const char *loc;            /* its URL, normalised; NULL: none */
    const char *lastmod;        /* LISTED: the date of its entry; NULL: none */
    const char *newest_lastmod; /* of its page URLs; NULL: none */
    const char *remarks; /* LISTED: remarks on its page URLs, in the sender's format; NULL: none */
    const char *problem; /* QUARANTINED: a stable word; NULL otherwise */
    const char *detail;  /* a sentence for people; NULL */
    const char *claim;   /* its lastmod in the upstream's index; NULL: none, or no list */
    enum source_file_state state;
    uint64_t device, inode, size;
    int64_t mtime_ns, ctime_ns; /* by the file system */
    uint64_t hash[2];           /* of the parsed content; 0, 0: never valid yet */
    uint64_t urls, bytes;       /* of the last good content; bytes decoded */
    bool one_lastmod;           /* remark: all page URLs have the same lastmod */
    bool future;                /* remark: the file's date is in the future; clamped */
    uint64_t line, column;      /* of the problem; 0: unknown */
    int64_t problem_since;      /* Unix seconds; in a scan: set by the catalogue */
    bool has_entry;             /* in a view: an entry of this source has its loc */
    bool
        refused; /* in a view: QUARANTINED by a rule about its place (another source owns the loc,
                    no index contains it, the site is full), not for its content, which is stored. A
                    scan sends it again as LISTED, without reading it, to have it checked again. */
};

/* The state of a source. */
struct source_state {
    int64_t scanned_at; /* of the last scan that was applied, Unix seconds; 0: never */
    int64_t good_at;    /* of the last scan that held nothing back */
    uint64_t files;     /* stored rows */
    uint64_t listed, quarantined;
    uint64_t remarked; /* listed files with remarks */
    uint64_t held;     /* removals that the shrink guard holds back; 0: none */
    int64_t hosts;     /* digest of the hosts allowed for page URLs at the last scan; 0: unknown */
    uint64_t touched;  /* revision of the last change, other than a scan, that may have changed its
                          entries: the source scans soon */
};

/* A source that the API or the command line creates is stored in the catalogue and belongs to one
 * site. Only a configuration may use the settings SOURCE_SETTINGS_CONFIGURED, except name, site
 * and `by_site`. */
#define SOURCE_COLUMN(bit, kind, c, member, option, column, ...) ", " column

/* Bounded: each folder has a thread, and each registry contains all sources. */
#define SOURCES_MADE_MAX             200u
#define SOURCES_MADE_MAX_ONE_SITE    20u      /* that a token for one site can make there */
#define SOURCES_REMOVED_MAX_ONE_SITE 1000u    /* names of removed ones; for the same */
#define SOURCE_MADE_LIST_BYTES       4096u    /* of patterns, and of excludes */
#define SOURCE_MADE_MAX_FILES        100000u  /* that match; each takes about 1 KiB during a scan */
#define SOURCE_MADE_MAX_NAMES        1000000u /* of a folder and the folders above it */
