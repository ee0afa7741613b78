/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Records what crawlers fetch: for each crawler and page the version that it has, and since when it
 * lacks a newer one; sums for each day and site; counts for metrics.
 *
 * A crawler has a version after a complete GET with 200 or 304 from one of its own addresses (if
 * these are configured). A HEAD, an error or a reply that was cut off only counts as a visit. No
 * address, user agent or URL is stored.
 *
 * All of it is in memory of fixed size, which the sites share; a fetch for which there is no room
 * is only counted (untracked). Thread safe; nothing that a request calls allocates, waits for
 * anything but short locks, or reads the disk or the clock. Times are Unix seconds, passed in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/crawler.h"
#include "db/day.h"
#include "server/base/histogram.h"

#define CRAWLERS_MAX          72u /* names: "other", the built-in ones, 40 of the configuration */
#define CRAWLER_NAME_MAX      32u
#define CRAWLERS_MAX_ROWS     32768u
#define CRAWLERS_MAX_PAGES    32768u
#define CRAWLERS_MAX_DAY_ROWS 16384u
#define CRAWLERS_MAX_CHILDREN 65536u /* rows: one for each sitemap and crawler */
#define CRAWLERS_SHARES       4096u  /* sites share room by their ids modulo this */
#define CRAWLERS_CODINGS      5u

/* ---- names ---------------------------------------------------------------------------------- */

/* A [crawler] section: a new crawler, or changes to a built-in one, which keeps its tokens if
 * `match` is absent. */
struct crawler_rule {
    const char *name;
    size_t match_count;
    const char *const *match; /* product tokens */
    size_t range_file_count;
    const char *const *range_files;
};

struct crawler_names;
/* Makes the table, and reads the files of address ranges. On failure NULL, with a sentence in
 * `why`, and in *which the name that it is about (borrowed; NULL: none). */
struct crawler_names *crawler_names_new(const struct crawler_rule *rules, size_t count,
                                        const char **which, char *why, size_t why_size);
void crawler_names_free(struct crawler_names *names); /* accepts NULL */

/* ---- the counts as a whole
 * ------------------------------------------------------------------------------ */

struct crawlers;
/* Takes `names` over. NULL when out of memory; then `names` stays the caller's. */
struct crawlers *crawlers_new(struct crawler_names *names, int64_t now);
/* Replaces the names and takes `names` over. All counts are kept, also those of crawlers that are
 * no longer configured. False, and `names` stays the caller's, if there were more names than
 * CRAWLERS_MAX since crawlers_new. */
bool crawlers_use(struct crawlers *c, struct crawler_names *names);
void crawlers_free(struct crawlers *c); /* accepts NULL; no other function may be called any more */

/* A request that has ended. */
struct crawler_fetch {
    const char *user_agent, *address; /* may be NULL */
    unsigned status;
    bool whole;      /* a GET whose last byte was sent */
    uint8_t offered; /* the best coding that the client accepts, a number below CRAWLERS_CODINGS; 0:
                      * not read */
    uint64_t bytes;
    int64_t site_id; /* 0: none */
    /* The page whose snapshot was sent, or confirmed by a 304; index_id 0: none. */
    int64_t index_id;
    uint32_t page;
    uint64_t revision, stamp; /* of the page's record in that snapshot */
    int64_t changed_at;
    /* crawlers_child_of the file of a folder, or copy of a remote sitemap, that was sent; 0:
     * neither was. */
    uint64_t child;
};
/* Identifies a sitemap that is served beside the pages of a site. With `query` NULL, `path` may
 * contain the query: "/a.xml?p=1". Never 0. */
uint64_t crawlers_child_of(const char *path, const char *query);
/* The crawler that the User-Agent names. *real false: the address is not one of that crawler's. */
size_t crawlers_who(struct crawlers *c, const char *user_agent, const char *address, bool *real);
void crawlers_fetched(struct crawlers *c, const struct crawler_fetch *fetch, int64_t now);

/* Reports the state of a page, before it is served. Call crawlers_catalogue_is before reporting
 * pages of another catalogue: a new epoch drops the records of all pages, other sitemaps and
 * days. */
void crawlers_catalogue_is(struct crawlers *c, const char *epoch);
void crawlers_page_is(struct crawlers *c, int64_t site_id, int64_t index_id, uint32_t page,
                      uint64_t revision, uint64_t stamp, int64_t changed_at);
/* The page no longer has entries. */
void crawlers_page_removed(struct crawlers *c, int64_t index_id, uint32_t page);

/* ---- reading -------------------------------------------------------------------------------- */

/* Crawlers have numbers (`at`), from 1 up; 0 is a client without a name. */
size_t crawlers_count(const struct crawlers *c);
const char *crawlers_name(const struct crawlers *c, size_t at);   /* borrowed for c's life */
size_t crawlers_find(const struct crawlers *c, const char *name); /* 0: none */
/* Whether only fetches from the addresses configured for the crawler count. */
bool crawlers_is_verified(struct crawlers *c, size_t at);
int64_t crawlers_since(const struct crawlers *c); /* when counting began */

/* Fills in the rows of a page, at most CRAWLERS_MAX, and returns their number. *changed_at: when
 * the current version was made; 0: the page is unknown. */
size_t crawlers_page(struct crawlers *c, int64_t index_id, uint32_t page, int64_t *changed_at,
                     struct crawler_row rows[CRAWLERS_MAX]);

/* The same for a sitemap that is served beside the pages. If a site has more rows than there is
 * room for, those with the oldest fetch are forgotten. */
size_t crawlers_child(struct crawlers *c, int64_t site_id, uint64_t child,
                      struct crawler_child rows[CRAWLERS_MAX]);

void crawler_lags_add(struct crawler_lags *to, const struct crawler_lags *from);
/* The number of lags, and a percentile: the upper end of the cell that contains it, 0 if there is
 * no lag. */
uint64_t crawler_lags_count(const struct crawler_lags *lags);
uint32_t crawler_lags_percentile(const struct crawler_lags *lags, unsigned percent);

/* Calls `each` for every day's sum, in no order; sums of other nodes are passed separately. Holds a
 * lock that only this and crawlers_others_end take. */
void crawlers_each_day(struct crawlers *c,
                       void (*each)(void *context, const struct crawler_day *day), void *context);

/* ---- keeping ------------------------------------------------------------------------------- */

#define CRAWLERS_EPOCH_SIZE 40
/* The epoch of the last crawlers_catalogue_is; "" before the first. */
void crawlers_epoch(struct crawlers *c, char out[CRAWLERS_EPOCH_SIZE]);

/* Collects rows that have changed since they were last collected, from *at (0 at first) on, and
 * returns their number, at most `max` (at least 1). Fewer than `max`: there are no more. For one
 * thread. */
size_t crawlers_collect_pages(struct crawlers *c, size_t *at, struct crawler_held out[],
                              size_t max);
size_t crawlers_collect_days(struct crawlers *c, size_t *at, struct crawler_day out[], size_t max);
size_t crawlers_collect_children(struct crawlers *c, size_t *at, struct crawler_child out[],
                                 size_t max);
/* The collected rows could not be saved: all of them will be collected again. */
void crawlers_retry(struct crawlers *c);
/* Restores rows that this or another node saved: for a page the newer version, for a day the larger
 * sum. Call it once the pages are known. Skips crawlers that are not configured any more, removed
 * pages and old days. */
void crawlers_restore_page(struct crawlers *c, const char *name, const struct crawler_held *held);
void crawlers_restore_day(struct crawlers *c, const char *name, const struct crawler_day *day,
                          int64_t now);
/* Restores a row that this node saved. Oldest fetch first, before anything is served. */
void crawlers_restore_child(struct crawlers *c, const char *name,
                            const struct crawler_child *child);
/* Moves the beginning of counting back to `since`, if that is earlier. */
void crawlers_restore_since(struct crawlers *c, int64_t since);
/* Replaces the sums of other nodes, which are reported with this node's: call begin, then restore
 * all days, then end. A second thread waits in begin until the first one has called end. `times`:
 * number of reports in the catalogue; false if as many are known already (0: not compared), or out
 * of memory; then do not call end. */
bool crawlers_others_begin(struct crawlers *c, int64_t times);
void crawlers_others_day(struct crawlers *c, const char *name, const struct crawler_day *day,
                         int64_t now);
/* `times` 0: drops the new sums; the previous ones stay. */
void crawlers_others_end(struct crawlers *c, int64_t times);

/* Imports visits of a log, with the page as it was then. Skips old days. Counters do not include
 * them, since they count what this server answered. */
void crawlers_import(struct crawlers *c, const struct crawler_visits *visits, int64_t now);

/* For metrics. */
extern const struct histogram_bounds crawler_lag_bounds; /* seconds */
struct crawler_counts {
    uint64_t ok, not_modified, other, impostors;
    uint64_t offered[CRAWLERS_CODINGS];
    int64_t last_fetch_at; /* 0: never */
    uint64_t stale_pages;
    int64_t oldest_stale; /* 0: none is stale */
    struct histogram_values lag;
};
struct crawlers_totals {
    uint64_t rows, untracked;
    struct crawler_counts of[CRAWLERS_MAX];
};
void crawlers_totals(struct crawlers *c, struct crawlers_totals *out);
