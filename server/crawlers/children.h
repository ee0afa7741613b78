/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* When each crawler last fetched the sitemaps that this server serves beside its pages: files of
 * folders and copies of remote sitemaps. Internal to server/crawlers/. */
#pragma once

#include "server/crawlers/crawlers.h"
#include "server/crawlers/ledger.h"

struct children;
struct children *children_new(void); /* NULL when out of memory */
void children_free(struct children *c);
void children_clear(struct children *c);

/* A visit. False: there is no room for another row of that site. */
bool children_visit(struct children *c, int64_t site_id, uint64_t child, uint8_t crawler,
                    enum ledger_visit kind, uint16_t status, int64_t now);
/* Imports visits that a log reports. */
bool children_import(struct children *c, const struct crawler_visits *visits, uint8_t crawler);
size_t children_rows_of(struct children *c, int64_t site_id, uint64_t child,
                        struct crawler_child rows[CRAWLERS_MAX]);
/* As crawlers_collect_pages and the like. */
size_t children_collect(struct children *c, size_t *at, struct crawler_child out[], size_t max);
void children_retry(struct children *c);
/* At the start, the longest ago first: back to its place. Nothing where another row has that. */
void children_restore(struct children *c, const struct crawler_child *row);
