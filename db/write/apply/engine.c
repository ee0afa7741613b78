/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_ENGINE: stores a search engine's report on a site's sitemaps. */
#include "db/write/apply/apply.h"

static enum catalogue_status put_site(struct tx *tx, const struct change_engine *w)
{
    const struct engine_site *s = &w->site;
    return tx_run(tx, ST_ENGINE_SITE_PUT, w->engine, s->why, s->site_id, s->state, s->asked_at,
                  s->next_at, s->good_at, s->failures);
}

static enum catalogue_status put_sitemap(struct tx *tx, const struct change_engine *w,
                                         const struct engine_sitemap *s)
{
    return tx_run(tx, ST_ENGINE_SITEMAP_PUT, w->engine, s->loc, s->parent, w->site.site_id,
                  s->listed, s->pending, s->sent_at, s->submitted_at, s->read_at, s->errors,
                  s->warnings, s->urls);
}

/* site_id 0: all sites together. Removes days older than DAYS_KEPT. */
static enum catalogue_status put_day(struct tx *tx, const struct change_engine *w, int64_t site_id,
                                     const struct engine_day *d)
{
    enum catalogue_status status =
        tx_run(tx, ST_ENGINE_DAYS_TIDY, w->engine, site_id, d->day - DAYS_KEPT);
    return status == CATALOGUE_OK ? tx_run(tx, ST_ENGINE_DAY_PUT, w->engine, site_id, d->day,
                                           d->sitemaps, d->errors, d->warnings, d->urls, d->read_at)
                                  : status;
}

/* Removes all rows of a removed site; their number is bounded. */
static enum catalogue_status drop_gone(struct tx *tx, const struct change_engine *w)
{
    enum catalogue_status status = tx_run(tx, ST_ENGINE_SITE_DROP, w->engine, w->gone);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_ENGINE_SITEMAPS_DROP, w->engine, w->gone);
    return status == CATALOGUE_OK ? tx_run(tx, ST_ENGINE_DAYS_TIDY, w->engine, w->gone, INT32_MAX)
                                  : status;
}

enum catalogue_status apply_engine(struct tx *tx, const struct change_engine *w)
{
    enum catalogue_status status = put_site(tx, w);
    if (!w->replaces || status != CATALOGUE_OK)
        return status;
    status = tx_run(tx, ST_ENGINE_SITEMAPS_DROP, w->engine, w->site.site_id);
    for (size_t i = 0; i < w->count && status == CATALOGUE_OK; i++)
        status = put_sitemap(tx, w, &w->sitemaps[i]);
    if (status == CATALOGUE_OK)
        status = put_day(tx, w, w->site.site_id, &w->day);
    if (status == CATALOGUE_OK && w->all.day != 0)
        status = put_day(tx, w, 0, &w->all);
    return status == CATALOGUE_OK && w->gone != 0 ? drop_gone(tx, w) : status;
}
