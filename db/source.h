/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the catalogue keeps of directory sources: each file as it was last read, and how the last
 * scan went. A scan is one change (in steps if other writes wait: db/change.h); entries and their
 * files always change together. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/source_settings.h"

/* The state of a file. */
enum source_file_state {
    SOURCE_FILE_LISTED,      /* a good sitemap: it has an entry */
    SOURCE_FILE_EMPTY,       /* a sitemap without URLs: no entry, no fault */
    SOURCE_FILE_IGNORED,     /* no sitemap at all (kept so that it is not read again), or, with
                                `urls`, split: they are the rows of a urlset. No entry */
    SOURCE_FILE_QUARANTINED, /* refused, see `problem`; its last good entry, if any, stays */
    SOURCE_FILE_GONE,        /* in a scan only: it is not in the folder any more */
};

/* One file of a source. Strings are borrowed in a scan, and valid for the call in a view; they
 * stand first (spool.h). A scan sends the files that differ from the stored ones (new, changed,
 * gone), each path once. It also sends unchanged LISTED files without `has_entry` (the entry or its
 * index was removed), and `refused` ones. */
struct source_file {
    const char *path;           /* relative to the folder, UTF-8, '/' between names */
    const char *loc;            /* its URL, normalised; NULL where it has none */
    const char *lastmod;        /* LISTED: what its entry shows; NULL: none */
    const char *newest_lastmod; /* of its pages; NULL: none */
    const char *remarks; /* LISTED: what is wrong with some page URLs, in the sender's format;
                            NULL: nothing */
    const char *problem; /* QUARANTINED: a stable word; NULL otherwise */
    const char *detail;  /* a sentence for people; NULL */
    const char *claim;   /* the lastmod that a list gives it; NULL: none, or no list */
    enum source_file_state state;
    uint64_t device, inode, size;
    int64_t mtime_ns;      /* as the file system has it */
    uint64_t hash[2];      /* of the parsed content; 0, 0: never read well */
    uint64_t urls, bytes;  /* of the last good content; bytes decoded */
    bool one_lastmod;      /* remark: all pages bear the same lastmod */
    bool future;           /* remark: the file is dated in the future; clamped */
    uint64_t line, column; /* of the problem; 0: unknown */
    int64_t problem_since; /* Unix seconds; in a scan: set by the catalogue */
    bool has_entry;        /* in a view: an entry of this source bears its loc */
    bool refused; /* in a view: QUARANTINED by a rule about its place (another owns the loc, no
                     index holds it, the site is full), not for what it holds, which is kept as it
                     was sent. Sent again as LISTED it is checked again, without being read. */
};

/* The state of a source. */
struct source_state {
    int64_t scanned_at; /* of the last scan that was applied, Unix seconds; 0: never */
    int64_t good_at;    /* of the last one that held nothing back */
    uint64_t files;     /* kept rows */
    uint64_t listed, quarantined;
    uint64_t remarked; /* of the listed ones those with remarks */
    uint64_t held;     /* removals that the shrink guard holds back since; 0: none */
    int64_t hosts;     /* a digest of the hosts that the last scan checked pages by; 0: unknown */
};

/* A source that API or command line create is stored in the catalogue and belongs to one site. Only
 * a configuration may say what a source may read, so such a source has none of
 * SOURCE_SETTINGS_CONFIGURED but its name and site. */
#define SOURCE_COLUMN(bit, kind, c, member, option, column, ...) ", " column

/* A folder is a thread, and the registry holds them all. */
#define SOURCES_MADE_MAX          200u
#define SOURCES_MADE_MAX_ONE_SITE 20u   /* that a token for one site can make there */
#define SOURCE_MADE_LIST_BYTES    4096u /* of patterns, and of excludes */
