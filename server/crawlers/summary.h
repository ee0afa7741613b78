/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sums for each crawler over many pages of the ledger: for the API and the command line. */
#pragma once

#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

struct crawler_day_sum {
    uint64_t ok, not_modified, other, impostors;
};

struct crawler_summary {
    uint64_t pages, current, stale, never;
    int64_t last_fetch_at, stale_since;     /* 0: never, none */
    bool met;                               /* the crawler made a request */
    struct crawler_lags lags;               /* of the last 30 days */
    struct crawler_day_sum days[DAYS_KEPT]; /* the last is today */
};

/* Indexed by the numbers of crawlers. Hundreds of kB: not for the stack. */
struct crawlers_summary {
    struct crawler_summary of[CRAWLERS_MAX];
};

/* Of the site's pages, or (`only` NULL) of all sites' of the registry. */
void crawlers_sum_up(struct crawlers *c, const struct registry *registry,
                     const struct registry_site *only, int64_t now, struct crawlers_summary *out);
/* The time up to which the crawler has seen all changes; 0: it has no page. */
int64_t crawler_seen_up_to(const struct crawler_summary *summary, int64_t now);

/* Whether the crawler has requested a page of this index or urlset. */
bool crawlers_reads(struct crawlers *c, const struct registry_index *list, size_t crawler);
/* The row of the crawler among the rows of a page; NULL: it has none. */
const struct crawler_row *crawler_row_of(const struct crawler_row *rows, size_t count,
                                         size_t crawler);
