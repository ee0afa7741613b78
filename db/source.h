/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the catalogue keeps of directory sources: each file as it was last read, and how the last
 * scan went. A scan is one change: entries and files move in one transaction, or not at all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a file is to the index. */
enum source_file_state {
    SOURCE_FILE_LISTED,      /* a good sitemap: it has an entry */
    SOURCE_FILE_EMPTY,       /* a sitemap without URLs: no entry, no fault */
    SOURCE_FILE_IGNORED,     /* no sitemap at all (kept so that it is not read again), or, with
                                `urls`, split: they are the rows of a urlset. No entry */
    SOURCE_FILE_QUARANTINED, /* refused, see `problem`; its last good entry, if any, stays */
    SOURCE_FILE_GONE,        /* in a scan only: it is not in the folder any more */
};

/* One file of a source. Strings are borrowed in a scan, and valid for the call in a view; they
 * stand first (spool.h). Sent by a scan is what differs from what the catalogue keeps (new,
 * changed, gone), each path once; and though the file itself is as it was, a LISTED one without
 * `has_entry` (somebody removed the entry, or its index went and is back), and a `refused` one. */
struct source_file {
    const char *path;           /* relative to the folder, UTF-8, '/' between names */
    const char *loc;            /* its URL, normalised; NULL where it has none */
    const char *lastmod;        /* LISTED: what its entry shows; NULL: none */
    const char *newest_lastmod; /* of its pages; NULL: none */
    const char *remarks;        /* LISTED: what is wrong with some of its pages, in the words of who
                                   sends it; NULL: nothing */
    const char *problem;        /* QUARANTINED: a stable word; NULL otherwise */
    const char *detail;         /* a sentence for people; NULL */
    const char *claim;          /* the lastmod that a list gives it; NULL: none, or no list */
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

/* How a source stands. */
struct source_state {
    int64_t scanned_at; /* of the last scan that was applied, Unix seconds; 0: never */
    int64_t good_at;    /* of the last one that held nothing back */
    uint64_t files;     /* kept rows */
    uint64_t listed, quarantined;
    uint64_t remarked; /* of the listed ones those with remarks */
    uint64_t held;     /* removals that the shrink guard holds back since; 0: none */
    int64_t hosts;     /* a digest of the hosts that the last scan checked pages by; 0: unknown */
};

/* A source as API or command line made it: kept in the catalogue, of one site. Strings are the
 * registry's or whose it is that asks. What a source may read only a configuration opens, so this
 * has no address to connect to, no certificate and no credentials. */
struct source_made {
    const char *name;
    int64_t site_id;
    const char *upstream;            /* of a remote one, normalised; else NULL */
    const char *directory;           /* of a folder, absolute and without dot segments; else NULL */
    const char *url;                 /* of the folder, ends in '/' */
    const char *index;               /* the URL of the index; NULL: the deepest that fits */
    const char *patterns, *excludes; /* one a line; NULL: the usual ones, none */
    const char *map;                 /* of a remote one: host map, a pair a line; NULL: none */
    bool watch, serve, check;
    uint32_t rescan_ms, settle_ms, poll_ms, drop_after_ms;
};

/* The settings above but name and site: the bit of SOURCE_SET_… that says that a change names it,
 * its kind (text; option: may be null; lines; yes_no; span), its member, its name in JSON, its
 * option on the command line, its column, and what it is where nobody says. Change, statements, API
 * and command line take their lists from here. */
#define SOURCE_SETTINGS_OF_FOLDER(X)                                                               \
    X(DIRECTORY, text, directory, "directory", "directory", "directory", NULL)                     \
    X(URL, text, url, "url", "url", "url", NULL)                                                   \
    X(PATTERNS, lines, patterns, "patterns", "pattern", "patterns", NULL)                          \
    X(EXCLUDES, lines, excludes, "excludes", "exclude", "excludes", NULL)                          \
    X(WATCH, yes_no, watch, "watch", "watch", "watch", true)                                       \
    X(RESCAN, span, rescan_ms, "rescan", "rescan", "rescan_ms", 60u * 60000)                       \
    X(SETTLE, span, settle_ms, "settle", "settle", "settle_ms", 10000)
#define SOURCE_SETTINGS_OF_UPSTREAM(X)                                                             \
    X(UPSTREAM, text, upstream, "upstream", "upstream", "upstream", NULL)                          \
    X(MAP, lines, map, "map", "map", "host_map", NULL)                                             \
    X(POLL, span, poll_ms, "poll", "poll", "poll_ms", 15u * 60000)                                 \
    X(CHECK, yes_no, check, "check", "check", "checked", true)                                     \
    X(DROP_AFTER, span, drop_after_ms, "drop_after", "drop-after", "drop_after_ms", 72u * 3600000)
#define SOURCE_SETTINGS(X)                                                                         \
    X(INDEX, option, index, "index", "index", "index_url", NULL)                                   \
    X(SERVE, yes_no, serve, "serve", "serve", "serve", false)                                      \
    SOURCE_SETTINGS_OF_FOLDER(X) SOURCE_SETTINGS_OF_UPSTREAM(X)

#define SOURCE_SETTING_NUMBER(bit, ...) SOURCE_IS_##bit,
#define SOURCE_SETTING_BIT(bit, ...)    SOURCE_SET_##bit = 1u << SOURCE_IS_##bit,
#define SOURCE_SETTING_OR(bit, ...)     | SOURCE_SET_##bit
enum { SOURCE_SETTINGS(SOURCE_SETTING_NUMBER) SOURCE_SETTINGS_COUNT };
enum { SOURCE_SETTINGS(SOURCE_SETTING_BIT) };
#define SOURCE_SET_OF_FOLDER   (0u SOURCE_SETTINGS_OF_FOLDER(SOURCE_SETTING_OR))
#define SOURCE_SET_OF_UPSTREAM (0u SOURCE_SETTINGS_OF_UPSTREAM(SOURCE_SETTING_OR))

/* A folder is a thread, and the registry holds them all. */
#define SOURCES_MADE_MAX          200u
#define SOURCES_MADE_MAX_ONE_SITE 20u   /* that a token for one site can make there */
#define SOURCE_MADE_LIST_BYTES    4096u /* of patterns, and of excludes */
