/* What is kept of crawlers between two runs of the server, and what the nodes of a shared catalogue
 * tell each other of it; in no revision. Part of db/catalogue.h. Plain values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/shared.h"

#define CRAWLER_KEPT_NAME 33u /* with its NUL */
/* What a crawler knows of a page. */
struct crawler_row {
    uint8_t crawler; /* its place among the names of server/crawlers; not kept */
    bool held;       /* it has fetched it whole once */
    uint16_t status;
    int64_t fetched_at;
    int64_t held_changed_at; /* of the version that it holds */
    int64_t stale_since;     /* the first change since then; 0: it holds the present version */
    uint32_t ok, not_modified, other;
};
struct crawler_held {
    struct crawler_row row;
    int64_t index_id;
    uint32_t page;
    uint64_t held_stamp;
};

/* How long changes were not seen, in ranges of seconds that grow by a third or a half. */
#define CRAWLER_LAG_CELLS 48u
struct crawler_lags {
    uint32_t cells[CRAWLER_LAG_CELLS];
    uint32_t max_s;
};
/* The sum of a day. */
struct crawler_day {
    uint8_t crawler; /* as above */
    int32_t day;     /* since 1970-01-01, UTC */
    int64_t site_id;
    uint32_t ok, not_modified, other, impostors;
    uint64_t bytes;
    int64_t last_fetch_at;
    struct crawler_lags lags;
};

/* What a crawler fetched of a sitemap that is served beside the pages: a file of a folder, a copy
 * of a remote sitemap. The node's own. */
struct crawler_child {
    uint32_t
        place; /* in the table of server/crawlers, from 1; a row replaces the one of its place */
    uint8_t crawler; /* as above */
    uint16_t status; /* of the last fetch */
    int64_t site_id;
    uint64_t child; /* a hash of the path and query */
    int64_t fetched_at;
    int64_t good_at; /* the last fetch of all of it, or 304; 0: there was none */
    uint32_t ok, not_modified, other;
};
struct crawler_child_kept {
    char crawler[CRAWLER_KEPT_NAME];
    struct crawler_child is;
};

/* Both as they are kept, by the crawler's name. */
struct crawler_page_kept {
    char crawler[CRAWLER_KEPT_NAME];
    struct crawler_held is;
};
struct crawler_day_kept {
    char crawler[CRAWLER_KEPT_NAME];
    char node[SHARED_NODE_NAME_SIZE]; /* of what was reported; else "" */
    struct crawler_day is;
};

/* Whose rows a file has. */
struct crawlers_begun {
    int64_t since;                    /* 0: it has none */
    char node[SHARED_NODE_NAME_SIZE]; /* "": they were counted alone */
};

/* Visits of a day that a log reports, which the ledger is to import: of a page, of a sitemap beside
 * the pages (`child`, as in struct crawler_child), or (both 0) of the site. */
struct crawler_visits {
    char crawler[CRAWLER_KEPT_NAME];
    int64_t site_id, index_id;
    int32_t day;
    uint32_t page;
    uint64_t child;
    /* The page as it was when the log was read, and the first fetch that surely brought just that;
     * held_at 0: none did. Of a child alone: the time from which on all that was changed before was
     * surely fetched. */
    uint64_t revision, stamp;
    int64_t changed_at, held_at;
    int64_t fetched_at; /* the last one */
    uint16_t status;
    uint32_t ok, not_modified, other, impostors;
    uint64_t bytes;
};

/* How far a log was read: so many bytes, with this hash. */
#define CRAWLER_LOG_HASH 16u
#define CRAWLER_LOGS_MAX 1000u /* the last ones are known */
struct crawler_log {
    uint64_t bytes;
    uint8_t hash[CRAWLER_LOG_HASH];
    int64_t at;
};

/* A part of it, for CHANGE_CRAWLERS: rows that replace those of the same key. Only the node's own
 * is written: a shared catalogue need not be reached for it. For CHANGE_CRAWLERS_TELL, of one that
 * is shared, the first four say all: what is kept here and was not sent yet is sent to the other
 * nodes, a bounded part of it; nothing is written where they know it all. */
struct crawlers_kept {
    const char *epoch; /* of the catalogue that they are of: in another nothing is written */
    const char *node;  /* whose rows they are, and no other's in this file; NULL: the one server's
                          or, of what logs tell, whosever are there */
    int64_t since;     /* when counting began */
    /* Drops what is of pages that are gone, and days before this one; 0: not now. */
    int32_t tidy_before_day;
    size_t page_count, day_count, child_count;
    const struct crawler_child_kept *children;
    const struct crawler_page_kept *pages;
    const struct crawler_day_kept *days;
    int64_t visits_taken; /* up to this id visits are in the ledger, and go; 0: none */
    /* What is added to them, with the log that it is of (NULL: none). */
    size_t visit_count;
    const struct crawler_visits *visits;
    const struct crawler_log *log;
};
