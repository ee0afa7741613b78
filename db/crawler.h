/* What is kept of crawlers between two runs of the server: the node's own, in no revision. Part of
 * db/catalogue.h. Plain values. */
#ifndef SITEMAPD_DB_CRAWLER_H
#define SITEMAPD_DB_CRAWLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRAWLER_KEPT_NAME 33u /* with its NUL */
#define CRAWLER_KEPT_LAGS 48u

/* What a crawler holds of a page; see struct crawler_row of server/crawlers. */
struct crawler_page_kept {
    char crawler[CRAWLER_KEPT_NAME];
    bool held;
    uint16_t status;
    uint32_t page, ok, not_modified, other;
    int64_t index_id;
    uint64_t held_stamp;
    int64_t held_changed_at, stale_since, fetched_at;
};

/* The sum of a day. */
struct crawler_day_kept {
    char crawler[CRAWLER_KEPT_NAME];
    int32_t day; /* since 1970-01-01 */
    int64_t site_id;
    uint32_t ok, not_modified, other, impostors;
    uint64_t bytes;
    int64_t last_fetch_at;
    uint32_t lag_max_s;
    uint32_t lags[CRAWLER_KEPT_LAGS];
};

/* Visits of a day that a log tells, which the ledger is to take in: of a page, or (index_id 0) of
 * the site. */
struct crawler_visits {
    char crawler[CRAWLER_KEPT_NAME];
    int64_t site_id, index_id;
    int32_t day;
    uint32_t page;
    /* The page as it was when the log was read, and the first fetch that surely brought just that;
     * held_at 0: none did. */
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

/* A part of it, for CHANGE_CRAWLERS: rows that replace those of the same key. */
struct crawlers_kept {
    const char *epoch; /* of the catalogue that they are of: in another nothing is written */
    int64_t since;     /* when counting began */
    /* Drops what is of pages that are gone, and days before this one; 0: not now. */
    int32_t tidy_before_day;
    size_t page_count, day_count;
    const struct crawler_page_kept *pages;
    const struct crawler_day_kept *days;
    int64_t visits_taken; /* up to this id visits are in the ledger, and go; 0: none */
    /* What is added to them, with the log that it is of (NULL: none). */
    size_t visit_count;
    const struct crawler_visits *visits;
    const struct crawler_log *log;
};

#endif
