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

/* A part of it, for CHANGE_CRAWLERS: rows that replace those of the same key. */
struct crawlers_kept {
    const char *epoch; /* of the catalogue that they are of: in another nothing is written */
    int64_t since;     /* when counting began */
    /* Drops what is of pages that are gone, and days before this one; 0: not now. */
    int32_t tidy_before_day;
    size_t page_count, day_count;
    const struct crawler_page_kept *pages;
    const struct crawler_day_kept *days;
};

#endif
