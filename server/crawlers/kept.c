#include "server/crawlers/kept.h"

#include <string.h>
#include <time.h>

static void put_page(void *context, const struct crawler_page_kept *from)
{
    struct crawlers *crawlers = context;
    const struct crawler_held held = {
        .row = {.held = from->held,
                .status = from->status,
                .fetched_at = from->fetched_at,
                .held_changed_at = from->held_changed_at,
                .stale_since = from->stale_since,
                .ok = from->ok,
                .not_modified = from->not_modified,
                .other = from->other},
        .index_id = from->index_id,
        .page = from->page,
        .held_stamp = from->held_stamp,
    };
    crawlers_put_page(crawlers, from->crawler, &held);
}

static void put_day(void *context, const struct crawler_day_kept *from)
{
    struct crawlers *crawlers = context;
    struct crawler_day day = {
        .day = from->day,
        .site_id = from->site_id,
        .ok = from->ok,
        .not_modified = from->not_modified,
        .other = from->other,
        .impostors = from->impostors,
        .bytes = from->bytes,
        .last_fetch_at = from->last_fetch_at,
        .lags.max_s = from->lag_max_s,
    };
    memcpy(day.lags.cells, from->lags, sizeof day.lags.cells);
    crawlers_put_day(crawlers, from->crawler, &day, (int64_t)time(NULL));
}

enum catalogue_status crawlers_put_kept(struct crawlers *c, struct catalogue_view *view)
{
    int64_t since = 0;
    enum catalogue_status status = catalogue_view_crawlers(view, &since, put_page, put_day, c);

    if (since != 0)
        crawlers_put_since(c, since);
    return status;
}

static void take_in(void *context, const struct crawler_visits *visits)
{
    crawlers_import(context, visits, (int64_t)time(NULL));
}

enum catalogue_status crawlers_take_in(struct crawlers *c, struct catalogue_view *view,
                                       int64_t *last)
{
    return catalogue_view_crawler_visits(view, last, take_in, c);
}
