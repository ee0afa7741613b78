/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_ENGINE: stores a search engine's report on a site's sitemaps. */
#include "db/write/apply/apply.h"

static enum catalogue_status bind_and_run(sqlite3_stmt *row, const char *const *texts,
                                          size_t text_count, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < text_count; i++)
        statement_bind_text(row, (int)i + 1, texts[i]);
    for (size_t i = 0; i < count; i++)
        sqlite3_bind_int64(row, (int)(text_count + i) + 1, numbers[i]);
    return statement_run(row);
}

/* Runs a statement with an engine and numbers as parameters. */
static enum catalogue_status run_of(struct tx *tx, enum statement which, const char *engine,
                                    const int64_t *numbers, size_t count)
{
    sqlite3_stmt *row = tx_statement(tx, which);
    return row == NULL ? tx_failure(tx) : bind_and_run(row, &engine, 1, numbers, count);
}

static enum catalogue_status put_site(struct tx *tx, const struct change_engine *w)
{
    const struct engine_site *s = &w->site;
    const char *const texts[] = {w->engine, s->why};
    const int64_t numbers[] = {s->site_id, s->state,   s->asked_at,
                               s->next_at, s->good_at, s->failures};
    sqlite3_stmt *row = tx_statement(tx, ST_ENGINE_SITE_PUT);
    return row == NULL ? tx_failure(tx)
                       : bind_and_run(row, texts, 2, numbers, sizeof numbers / sizeof *numbers);
}

static enum catalogue_status put_sitemap(struct tx *tx, const struct change_engine *w,
                                         const struct engine_sitemap *s)
{
    const char *const texts[] = {w->engine, s->loc, s->parent};
    const int64_t numbers[] = {
        w->site.site_id, s->listed,          s->pending,           s->sent_at,      s->submitted_at,
        s->read_at,      (int64_t)s->errors, (int64_t)s->warnings, (int64_t)s->urls};
    sqlite3_stmt *row = tx_statement(tx, ST_ENGINE_SITEMAP_PUT);
    return row == NULL ? tx_failure(tx)
                       : bind_and_run(row, texts, 3, numbers, sizeof numbers / sizeof *numbers);
}

/* site_id 0: all sites together. Removes days older than DAYS_KEPT. */
static enum catalogue_status put_day(struct tx *tx, const struct change_engine *w, int64_t site_id,
                                     const struct engine_day *d)
{
    const char *const texts[] = {w->engine};
    const int64_t numbers[] = {
        site_id,          d->day,    (int64_t)d->sitemaps, (int64_t)d->errors, (int64_t)d->warnings,
        (int64_t)d->urls, d->read_at};
    const int64_t old[] = {site_id, d->day - DAYS_KEPT};
    enum catalogue_status status = run_of(tx, ST_ENGINE_DAYS_TIDY, w->engine, old, 2);
    sqlite3_stmt *row = status == CATALOGUE_OK ? tx_statement(tx, ST_ENGINE_DAY_PUT) : NULL;
    if (row == NULL)
        return status != CATALOGUE_OK ? status : tx_failure(tx);
    return bind_and_run(row, texts, 1, numbers, sizeof numbers / sizeof *numbers);
}

/* Removes all rows of a removed site; their number is bounded. */
static enum catalogue_status drop_gone(struct tx *tx, const struct change_engine *w)
{
    const int64_t numbers[] = {w->gone, INT32_MAX};
    enum catalogue_status status = run_of(tx, ST_ENGINE_SITE_DROP, w->engine, numbers, 1);
    if (status == CATALOGUE_OK)
        status = run_of(tx, ST_ENGINE_SITEMAPS_DROP, w->engine, numbers, 1);
    return status == CATALOGUE_OK ? run_of(tx, ST_ENGINE_DAYS_TIDY, w->engine, numbers, 2) : status;
}

enum catalogue_status apply_engine(struct tx *tx, const struct change_engine *w)
{
    enum catalogue_status status = put_site(tx, w);
    if (!w->replaces || status != CATALOGUE_OK)
        return status;
    status = run_of(tx, ST_ENGINE_SITEMAPS_DROP, w->engine, &w->site.site_id, 1);
    for (size_t i = 0; i < w->count && status == CATALOGUE_OK; i++)
        status = put_sitemap(tx, w, &w->sitemaps[i]);
    if (status == CATALOGUE_OK)
        status = put_day(tx, w, w->site.site_id, &w->day);
    if (status == CATALOGUE_OK && w->all.day != 0)
        status = put_day(tx, w, 0, &w->all);
    return status == CATALOGUE_OK && w->gone != 0 ? drop_gone(tx, w) : status;
}
