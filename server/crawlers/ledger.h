/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The ledger (ledger.c): for each page its present version, and for each crawler that fetched it
 * the version that it has. Below: sums of days (days.c), other sitemaps (children.c). Internal to
 * server/crawlers/. */
#pragma once

#include "server/crawlers/crawlers.h"

struct ledger;
struct ledger *ledger_new(void); /* NULL when out of memory */
void ledger_free(struct ledger *l);

struct ledger_page {
    int64_t index_id;
    uint32_t number;
    uint64_t revision, stamp;
    int64_t changed_at;
};
void ledger_clear(struct ledger *l);
/* False: no room for another page of that site. */
bool ledger_page_is(struct ledger *l, int64_t site_id, const struct ledger_page *page);
void ledger_page_removed(struct ledger *l, int64_t index_id, uint32_t number);

enum ledger_visit { VISIT_OK, VISIT_NOT_MODIFIED, VISIT_OTHER };
/* Counts a visit that was sent `page`; with VISIT_OTHER nothing else. *lag_s: how long the crawler
 * had lacked the present version that it has now; -1: it had it before, or still lacks it. False:
 * no room. */
bool ledger_visit(struct ledger *l, const struct ledger_page *page, uint8_t crawler,
                  enum ledger_visit kind, uint16_t status, int64_t now, int64_t *lag_s);
/* Imports visits from a log: `page` as it was then, which the crawler has had since held_at (0: it
 * has not). */
bool ledger_import(struct ledger *l, const struct ledger_page *page, uint8_t crawler,
                   const struct crawler_visits *visits, int64_t *lag_s);
size_t ledger_rows_of(struct ledger *l, int64_t index_id, uint32_t number, int64_t *changed_at,
                      struct crawler_row rows[CRAWLERS_MAX]);
/* Like crawlers_collect_pages and the functions beside it. ledger_restore stores a newer version;
 * false: it was skipped. */
size_t ledger_collect(struct ledger *l, size_t *at, struct crawler_held out[], size_t max);
void ledger_retry(struct ledger *l);
bool ledger_restore(struct ledger *l, const struct crawler_held *held);
uint64_t ledger_row_count(struct ledger *l);
/* Adds stale_pages and oldest_stale of each crawler. */
void ledger_count_stale(struct ledger *l, struct crawler_counts of[CRAWLERS_MAX]);

/* Sums of each day (UTC) for each crawler and site. */

struct days;
struct days *days_new(void); /* NULL when out of memory */
void days_free(struct days *d);

enum day_kind { DAY_OK, DAY_NOT_MODIFIED, DAY_OTHER, DAY_IMPOSTOR };
/* `lag_s`: the lag that the fetch ended, -1: none. False: no room. */
bool days_count(struct days *d, uint8_t crawler, int64_t site_id, enum day_kind kind,
                uint64_t bytes, int64_t lag_s, int64_t now);
/* Imports visits that a log reports. */
bool days_import(struct days *d, uint8_t crawler, const struct crawler_visits *visits,
                 int64_t lag_s, int64_t now);
/* Like crawlers_collect_days and the functions beside it. */
size_t days_collect(struct days *d, size_t *at, struct crawler_day out[], size_t max);
void days_retry(struct days *d);
/* Replaces a smaller sum. */
void days_restore(struct days *d, const struct crawler_day *day, int64_t now);
/* Adds to the sum. False: no room. */
bool days_add(struct days *d, const struct crawler_day *day, int64_t now);
void days_clear(struct days *d);
void days_each(struct days *d, void (*each)(void *context, const struct crawler_day *day),
               void *context);

/* When each crawler last fetched the sitemaps that this server serves beside its pages (children):
 * files of folders and copies of remote sitemaps. */

struct children;
struct children *children_new(void); /* NULL when out of memory */
void children_free(struct children *c);
void children_clear(struct children *c);

/* Counts a visit. False: no room for another row of that site. */
bool children_visit(struct children *c, int64_t site_id, uint64_t child, uint8_t crawler,
                    enum ledger_visit kind, uint16_t status, int64_t now);
/* Imports visits that a log reports. */
bool children_import(struct children *c, const struct crawler_visits *visits, uint8_t crawler);
size_t children_rows_of(struct children *c, int64_t site_id, uint64_t child,
                        struct crawler_child rows[CRAWLERS_MAX]);
/* Like crawlers_collect_pages and the functions beside it. */
size_t children_collect(struct children *c, size_t *at, struct crawler_child out[], size_t max);
void children_retry(struct children *c);
/* At the start, oldest row first: puts a row at its place, unless another row has it. */
void children_restore(struct children *c, const struct crawler_child *row);
