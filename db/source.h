/* What the catalogue keeps of directory sources: each file as it was last read, and how the last
 * scan went. A scan is one change: entries and files move in one transaction, or not at all. */
#ifndef SITEMAPD_DB_SOURCE_H
#define SITEMAPD_DB_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/limits.h"

/* What a file is to the index. */
enum source_file_state {
    SOURCE_FILE_LISTED,      /* a good sitemap: it has an entry */
    SOURCE_FILE_EMPTY,       /* a sitemap without URLs: no entry, no fault */
    SOURCE_FILE_IGNORED,     /* no sitemap at all (kept so that it is not read again): no entry */
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
                     was sent. Sent again as LISTED it is judged again, without being read. */
};

/* How a source stands. */
struct source_state {
    int64_t scanned_at; /* of the last scan that was applied, Unix seconds; 0: never */
    int64_t good_at;    /* of the last one that held nothing back */
    uint64_t files;     /* kept rows */
    uint64_t listed, quarantined;
    uint64_t remarked; /* of the listed ones those with remarks */
    uint64_t held;     /* removals that the shrink guard holds back since; 0: none */
    int64_t hosts;     /* a digest of the hosts that the last scan judged pages by; 0: unknown */
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
    bool watch, serve, check;
    uint32_t rescan_ms, settle_ms, poll_ms, drop_after_ms;
};

/* Which of them a change names. */
#define SOURCE_SET_UPSTREAM   1u
#define SOURCE_SET_DIRECTORY  2u
#define SOURCE_SET_URL        4u
#define SOURCE_SET_INDEX      8u
#define SOURCE_SET_PATTERNS   16u
#define SOURCE_SET_EXCLUDES   32u
#define SOURCE_SET_WATCH      64u
#define SOURCE_SET_SERVE      128u
#define SOURCE_SET_CHECK      256u
#define SOURCE_SET_RESCAN     512u
#define SOURCE_SET_SETTLE     1024u
#define SOURCE_SET_POLL       2048u
#define SOURCE_SET_DROP_AFTER 4096u
#define SOURCE_SET_OF_FOLDER                                                                       \
    (SOURCE_SET_DIRECTORY | SOURCE_SET_URL | SOURCE_SET_PATTERNS | SOURCE_SET_EXCLUDES |           \
     SOURCE_SET_WATCH | SOURCE_SET_SERVE | SOURCE_SET_RESCAN | SOURCE_SET_SETTLE)
#define SOURCE_SET_OF_UPSTREAM                                                                     \
    (SOURCE_SET_UPSTREAM | SOURCE_SET_CHECK | SOURCE_SET_POLL | SOURCE_SET_DROP_AFTER)

/* A folder is a thread, and the registry holds them all. */
#define SOURCES_MADE_MAX          200u
#define SOURCES_MADE_MAX_ONE_SITE 20u   /* that a token for one site can make there */
#define SOURCE_MADE_LIST_BYTES    4096u /* of patterns, and of excludes */

#endif
