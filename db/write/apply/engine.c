/* CHANGE_ENGINE: what a search engine said of a site's sitemaps. */
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

static enum catalogue_status put_site(struct tx *tx, const struct engine_write *w)
{
    const struct engine_site *s = &w->site;
    const char *const texts[] = {w->engine, s->why};
    const int64_t numbers[] = {s->site_id, s->state,   s->asked_at,
                               s->next_at, s->good_at, s->failures};
    sqlite3_stmt *row = tx_statement(tx, ST_ENGINE_SITE_PUT);
    return row == NULL ? tx_failure(tx)
                       : bind_and_run(row, texts, 2, numbers, sizeof numbers / sizeof *numbers);
}

static enum catalogue_status put_sitemap(struct tx *tx, const struct engine_write *w,
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

static enum catalogue_status put_day(struct tx *tx, const struct engine_write *w)
{
    const struct engine_day *d = &w->day;
    const char *const texts[] = {w->engine};
    const int64_t numbers[] = {
        w->site.site_id,  d->day,    (int64_t)d->sitemaps, (int64_t)d->errors, (int64_t)d->warnings,
        (int64_t)d->urls, d->read_at};
    sqlite3_stmt *row = tx_statement(tx, ST_ENGINE_DAY_PUT);
    return row == NULL ? tx_failure(tx)
                       : bind_and_run(row, texts, 1, numbers, sizeof numbers / sizeof *numbers);
}

/* What is kept of an engine and a site goes; a bounded number of rows. */
static enum catalogue_status drop_sitemaps(struct tx *tx, const struct engine_write *w)
{
    const char *const texts[] = {w->engine};
    const int64_t numbers[] = {w->site.site_id};
    sqlite3_stmt *row = tx_statement(tx, ST_ENGINE_SITEMAPS_DROP);
    return row == NULL ? tx_failure(tx) : bind_and_run(row, texts, 1, numbers, 1);
}

/* Of sites that are removed, and of days that are too old. */
static enum catalogue_status tidy(struct tx *tx, const struct engine_write *w)
{
    enum catalogue_status status = tx_run_with(tx, ST_ENGINE_SITES_TIDY, NULL, 0);
    if (status == CATALOGUE_OK)
        status = tx_run_with(tx, ST_ENGINE_SITEMAPS_TIDY, NULL, 0);
    return status == CATALOGUE_OK ? tx_run(tx, ST_ENGINE_DAYS_TIDY, w->day.day - ENGINE_KEEP_DAYS)
                                  : status;
}

enum catalogue_status apply_engine(struct tx *tx, const struct change *change,
                                   struct change_result *result)
{
    const struct engine_write *w = &change->engine;
    (void)result;
    enum catalogue_status status = put_site(tx, w);
    if (!w->replaces || status != CATALOGUE_OK)
        return status;
    status = drop_sitemaps(tx, w);
    for (size_t i = 0; i < w->count && status == CATALOGUE_OK; i++)
        status = put_sitemap(tx, w, &w->sitemaps[i]);
    if (status == CATALOGUE_OK)
        status = put_day(tx, w);
    return status == CATALOGUE_OK ? tidy(tx, w) : status;
}
