/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Counts of crawlers that are kept between two runs of the server and that the nodes of a shared
 * catalogue send each other; they make no revision. Part of db/catalogue.h. Plain values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/shared.h"

#define CRAWLER_KEPT_NAME 33u /* with its NUL */
/* The version of a page that a crawler has. */
struct crawler_row {
    uint8_t crawler; /* its place among the names of server/crawlers; not stored */
    bool held;       /* the crawler has fetched the whole page once */
    uint16_t status;
    int64_t fetched_at;
    int64_t held_changed_at; /* of the crawler's version */
    int64_t stale_since;     /* the first change since then; 0: it has the present version */
    uint32_t ok, not_modified, other;
};
struct crawler_held {
    struct crawler_row row;
    int64_t index_id;
    uint32_t page;
    uint64_t held_stamp;
};

/* A histogram of the time until crawlers fetched a change, in ranges of seconds that grow by a
 * third or a half. */
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

/* A crawler's fetches of a sitemap that is served beside the pages: a file of a folder, a copy of a
 * remote sitemap. The node's own. */
struct crawler_child {
    uint32_t
        place; /* in the table of server/crawlers, from 1; a row replaces the one of its place */
    uint8_t crawler; /* as above */
    uint16_t status; /* of the last fetch */
    int64_t site_id;
    uint64_t child; /* a hash of the path and query */
    int64_t fetched_at;
    int64_t good_at; /* the last complete fetch or 304; 0: none */
    uint32_t ok, not_modified, other;
};
struct crawler_child_kept {
    char crawler[CRAWLER_KEPT_NAME];
    struct crawler_child is;
};

/* Both as stored, with the crawler's name. */
struct crawler_page_kept {
    char crawler[CRAWLER_KEPT_NAME];
    struct crawler_held is;
};
struct crawler_day_kept {
    char crawler[CRAWLER_KEPT_NAME];
    char node[SHARED_NODE_NAME_SIZE]; /* that reported the row; else "" */
    struct crawler_day is;
};

/* The owner of a file's rows. */
struct crawlers_begun {
    int64_t since;                    /* when counting began; 0: no rows */
    char node[SHARED_NODE_NAME_SIZE]; /* "": the catalogue was not shared */
};

/* The visits of a day that a log contains, for the ledger to import: to a page, to a sitemap beside
 * the pages (`child`, as in struct crawler_child), or (both 0) to the site. */
struct crawler_visits {
    char crawler[CRAWLER_KEPT_NAME];
    int64_t site_id, index_id;
    int32_t day;
    uint32_t page;
    uint64_t child;
    /* The page as it was when the log was read; held_at: the first fetch that surely returned that
     * version, 0: none. For a child held_at is a time: every change before it was surely fetched.
     */
    uint64_t revision, stamp;
    int64_t changed_at, held_at;
    int64_t fetched_at; /* the last one */
    uint16_t status;
    uint32_t ok, not_modified, other, impostors;
    uint64_t bytes;
};

/* How far a log was read: the number of bytes, and their hash. */
#define CRAWLER_LOG_HASH 16u
#define CRAWLER_LOGS_MAX 1000u /* the last logs that are remembered */
struct crawler_log {
    uint64_t bytes;
    uint8_t hash[CRAWLER_LOG_HASH];
    int64_t at;
};
