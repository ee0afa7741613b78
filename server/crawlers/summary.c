/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sums up the rows of the ledger and the days for each crawler. */
#include "server/crawlers/summary.h"

#include <string.h>

#define LAG_DAYS 30

struct summing {
    const struct registry *registry;
    const struct registry_site *only; /* NULL: every site */
    int32_t today;
    struct crawlers_summary *to;
};

static void add_day(void *context, const struct crawler_day *day)
{
    struct summing *s = context;
    struct crawler_summary *to = &s->to->of[day->crawler];
    int32_t ago = s->today - day->day;

    if (ago < 0 || ago >= DAYS_KEPT ||
        (s->only != NULL ? s->only->id != day->site_id
                         : registry_site_by_id(s->registry, day->site_id) == NULL))
        return;
    struct crawler_day_sum *sum = &to->days[DAYS_KEPT - 1 - ago];
    sum->ok += day->ok;
    sum->not_modified += day->not_modified;
    sum->other += day->other;
    sum->impostors += day->impostors;
    to->met = true;
    if (day->last_fetch_at > to->last_fetch_at)
        to->last_fetch_at = day->last_fetch_at;
    if (ago < LAG_DAYS)
        crawler_lags_add(&to->lags, &day->lags);
}

static void add_row(struct crawler_summary *to, const struct crawler_row *row)
{
    to->met = true;
    if (row->fetched_at > to->last_fetch_at)
        to->last_fetch_at = row->fetched_at;
    if (!row->held)
        return;
    to->pages++;
    if (row->stale_since == 0) {
        to->current++;
        return;
    }
    to->stale++;
    if (to->stale_since == 0 || row->stale_since < to->stale_since)
        to->stale_since = row->stale_since;
}

/* Adds, for each crawler, the state of the pages of the list. If it has requested any of them, the
 * others count as `never`. Pages that are not in the ledger are not counted. */
static void add_list(struct crawlers_summary *to, struct crawlers *c,
                     const struct registry_index *list)
{
    uint64_t held[CRAWLERS_MAX] = {0};
    bool reads[CRAWLERS_MAX] = {false};
    struct crawler_row rows[CRAWLERS_MAX];
    int64_t changed_at;
    uint64_t known = 0;

    for (size_t i = 0; i < list->page_count; i++) {
        size_t count = crawlers_page(c, list->id, list->pages[i], &changed_at, rows);
        known += changed_at != 0;
        for (size_t k = 0; k < count; k++) {
            add_row(&to->of[rows[k].crawler], &rows[k]);
            reads[rows[k].crawler] = true;
            held[rows[k].crawler] += rows[k].held;
        }
    }
    for (size_t i = 0; i < CRAWLERS_MAX; i++)
        if (reads[i])
            to->of[i].never += known - held[i];
}

void crawlers_sum_up(struct crawlers *c, const struct registry *registry,
                     const struct registry_site *only, int64_t now, struct crawlers_summary *out)
{
    struct summing s = {registry, only, (int32_t)(now / DAY_SECONDS), out};

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];
        const struct registry_index *list;
        for (size_t k = 0;
             (only == NULL || site == only) && (list = registry_site_list(site, k)) != NULL; k++)
            add_list(out, c, list);
    }
    crawlers_each_day(c, add_day, &s);
}

int64_t crawler_seen_up_to(const struct crawler_summary *summary, int64_t now)
{
    if (summary->pages == 0)
        return 0;
    return summary->stale_since != 0 ? summary->stale_since - 1 : now;
}

const struct crawler_row *crawler_row_of(const struct crawler_row *rows, size_t count,
                                         size_t crawler)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].crawler == crawler)
            return &rows[i];
    return NULL;
}

bool crawlers_reads(struct crawlers *c, const struct registry_index *list, size_t crawler)
{
    struct crawler_row rows[CRAWLERS_MAX];
    int64_t changed_at;

    for (size_t i = 0; i < list->page_count; i++) {
        size_t count = crawlers_page(c, list->id, list->pages[i], &changed_at, rows);
        if (crawler_row_of(rows, count, crawler) != NULL)
            return true;
    }
    return false;
}
