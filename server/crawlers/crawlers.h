/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What crawlers fetch: for each crawler and page the version that it has, and since when it lacks a
 * newer one; sums for each day and site; counts for metrics.
 *
 * A crawler has a version after a complete GET with 200 or 304 from one of its own addresses (if
 * these are configured). A HEAD, an error or a reply that was cut off only counts as a visit. No
 * address, user agent or URL is stored.
 *
 * All is in memory of a fixed size, which the sites share; what has no room is only counted
 * (untracked). Thread safe; nothing that a request calls allocates, waits for anything but short
 * locks, or reads the disk or the clock. Times are Unix seconds, passed in. */
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
#define CRAWLERS_MAX_CHILDREN 65536u /* sitemaps, each times its crawlers */
#define CRAWLERS_SHARES       4096u  /* sites share room by their ids modulo this */
#define CRAWLERS_CODINGS      5u

/* ---- names ---------------------------------------------------------------------------------- */

/* What the configuration says of one: a name of its own, or another meaning of one that is built
 * in. Without `match` a built-in keeps its tokens. */
struct crawler_rule {
    const char *name;
    size_t match_count;
    const char *const *match; /* product tokens */
    size_t range_file_count;
    const char *const *range_files;
};

struct crawler_names;
/* Reads the files. NULL, with a sentence in `why`, and in *which the name that it is about
 * (borrowed; NULL: none). */
struct crawler_names *crawler_names_new(const struct crawler_rule *rules, size_t count,
                                        const char **which, char *why, size_t why_size);
void crawler_names_free(struct crawler_names *names); /* takes NULL */

/* ---- the whole ------------------------------------------------------------------------------ */

struct crawlers;
/* Takes `names` over. NULL when out of memory; then `names` stays the caller's. */
struct crawlers *crawlers_new(struct crawler_names *names, int64_t now);
/* Takes other names over, and keeps all that is counted; a crawler that lost its name keeps what it
 * has. False, and `names` stays the caller's: more names than CRAWLERS_MAX since crawlers_new. */
bool crawlers_use(struct crawlers *c, struct crawler_names *names);
void crawlers_free(struct crawlers *c); /* takes NULL; nobody may call anything else */

/* A request that has ended. */
struct crawler_fetch {
    const char *user_agent, *address; /* may be NULL */
    unsigned status;
    bool whole;      /* a GET, and the last byte has left */
    uint8_t offered; /* the best coding that it would take, a number below CRAWLERS_CODINGS; 0: not
                        looked at */
    uint64_t bytes;
    int64_t site_id; /* 0: none */
    /* The page whose snapshot was sent, or stood for by a 304; index_id 0: none. */
    int64_t index_id;
    uint32_t page;
    uint64_t revision, stamp; /* of the page's record in that snapshot */
    int64_t changed_at;
    /* crawlers_child_of what was sent beside the pages: a file of a folder, a copy of a remote
     * sitemap; 0: it was none of these. */
    uint64_t child;
};
/* Names a sitemap of a site that is served beside the pages: by its path and query apart, or (query
 * NULL) by both in one text, "/a.xml?p=1". Never 0. */
uint64_t crawlers_child_of(const char *path, const char *query);
/* Whose fetch it is; *real false: it says that it is that crawler, and comes from elsewhere. */
size_t crawlers_who(struct crawlers *c, const char *user_agent, const char *address, bool *real);
void crawlers_fetched(struct crawlers *c, const struct crawler_fetch *fetch, int64_t now);

/* A page is now so; reported before it is served. `catalogue_is` comes before the pages of another
 * catalogue: where the epoch is another one all that is known of pages and days is dropped. */
void crawlers_catalogue_is(struct crawlers *c, const char *epoch);
void crawlers_page_is(struct crawlers *c, int64_t site_id, int64_t index_id, uint32_t page,
                      uint64_t revision, uint64_t stamp, int64_t changed_at);
/* It has no entries any more. */
void crawlers_page_removed(struct crawlers *c, int64_t index_id, uint32_t page);

/* ---- reading -------------------------------------------------------------------------------- */

/* Names have places, from 1 up; 0 is a client without a name. */
size_t crawlers_count(const struct crawlers *c);
const char *crawlers_name(const struct crawlers *c, size_t at);   /* borrowed for c's life */
size_t crawlers_find(const struct crawlers *c, const char *name); /* 0: none */
/* Whether only fetches from its own addresses count: some are configured. */
bool crawlers_is_verified(struct crawlers *c, size_t at);
int64_t crawlers_since(const struct crawlers *c); /* when counting began */

/* The rows of a page, at most CRAWLERS_MAX; how many. *changed_at: of the present version. */
size_t crawlers_page(struct crawlers *c, int64_t index_id, uint32_t page, int64_t *changed_at,
                     struct crawler_row rows[CRAWLERS_MAX]);

/* What is known of a sitemap beside the pages, at most CRAWLERS_MAX rows; how many. Where a site
 * has more of them than there is room for, those that were fetched longest ago are forgotten. */
size_t crawlers_child(struct crawlers *c, int64_t site_id, uint64_t child,
                      struct crawler_child rows[CRAWLERS_MAX]);

void crawler_lags_add(struct crawler_lags *to, const struct crawler_lags *from);
/* How many; and the upper end of the range in which the one lies that `percent` do not exceed, 0
 * where there is none. */
uint64_t crawler_lags_count(const struct crawler_lags *lags);
uint32_t crawler_lags_percentile(const struct crawler_lags *lags, unsigned percent);

/* Calls `each` for every day's sum, in no order; one of other nodes comes apart. Under a lock that
 * crawlers_others_end and this alone take. */
void crawlers_each_day(struct crawlers *c,
                       void (*each)(void *context, const struct crawler_day *day), void *context);

/* ---- keeping ------------------------------------------------------------------------------- */

#define CRAWLERS_EPOCH_SIZE 40
/* The epoch that crawlers_catalogue_is reported last, "" before. */
void crawlers_epoch(struct crawlers *c, char out[CRAWLERS_EPOCH_SIZE]);

/* What has changed since it was taken, at most `max` (1 at least), from *at (0 at first) on; how
 * many. Fewer than `max`: that was all. For one thread. */
size_t crawlers_collect_pages(struct crawlers *c, size_t *at, struct crawler_held out[],
                              size_t max);
size_t crawlers_collect_days(struct crawlers *c, size_t *at, struct crawler_day out[], size_t max);
size_t crawlers_collect_children(struct crawlers *c, size_t *at, struct crawler_child out[],
                                 size_t max);
/* What was taken could not be kept: all is to be taken again. */
void crawlers_retry(struct crawlers *c);
/* What was kept, here or by another node: of a page what is newer is taken over, of a day's sum all
 * where it counts more. Once the pages are known. Who has no name any more, pages that are gone and
 * days that are too old are passed over. */
void crawlers_restore_page(struct crawlers *c, const char *name, const struct crawler_held *held);
void crawlers_restore_day(struct crawlers *c, const char *name, const struct crawler_day *day,
                          int64_t now);
/* What this node kept, the longest ago first, before anything is served. */
void crawlers_restore_child(struct crawlers *c, const char *name,
                            const struct crawler_child *child);
/* Counting began then, if not before. */
void crawlers_restore_since(struct crawlers *c, int64_t since);
/* What other nodes counted, to be reported with one's own from crawlers_others_end on: all of it,
 * each time. Between the two no other thread is in here. False: that of so many `times` (0: it is
 * not asked) is known already, or memory is out; then `end` is not called. */
bool crawlers_others_begin(struct crawlers *c, int64_t times);
void crawlers_others_day(struct crawlers *c, const char *name, const struct crawler_day *day,
                         int64_t now);
/* `times` 0: it is not to be reported, and what was reported before is. */
void crawlers_others_end(struct crawlers *c, int64_t times);

/* Imports what a log reports (its page as it was then); as crawlers_restore_day where it is too
 * old. In no metric: these are of what the server itself answered. */
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
