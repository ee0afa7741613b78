/* What is kept of crawlers, in the writer's transaction.
 *
 * Rows are good in the epoch that local_crawler names, and in no other: index ids and stamps are of
 * it. Whoever finds another one there drops them all first. */
#include "db/write/apply/apply.h"

#include <endian.h>
#include <string.h>

static enum catalogue_status is_same_epoch(struct tx *tx, bool *same)
{
    bool found = false;
    sqlite3_stmt *row = tx_statement(tx, ST_CRAWLERS_EPOCH);
    if (row == NULL)
        return tx_failure(tx);
    enum catalogue_status status = statement_first(row, &found);
    const char *epoch = found ? (const char *)sqlite3_column_text(row, 0) : NULL;
    *same = epoch != NULL && strcmp(epoch, tx->epoch) == 0;
    sqlite3_reset(row);
    return status;
}

static enum catalogue_status begin_anew(struct tx *tx, int64_t since)
{
    enum catalogue_status status = tx_run_with(tx, ST_CRAWLER_PAGES_DROP, NULL, 0);
    if (status == CATALOGUE_OK)
        status = tx_run_with(tx, ST_CRAWLER_DAYS_DROP, NULL, 0);
    sqlite3_stmt *row = status == CATALOGUE_OK ? tx_statement(tx, ST_CRAWLERS_BEGIN) : NULL;
    if (row == NULL)
        return status != CATALOGUE_OK ? status : tx_failure(tx);
    statement_bind_text(row, 1, tx->epoch);
    sqlite3_bind_int64(row, 2, since);
    return statement_run(row);
}

static enum catalogue_status put_page(struct tx *tx, const struct crawler_page_kept *p)
{
    const int64_t numbers[] = {p->index_id,
                               p->page,
                               p->held,
                               (int64_t)p->held_stamp,
                               p->held_changed_at,
                               p->stale_since,
                               p->fetched_at,
                               p->status,
                               p->ok,
                               p->not_modified,
                               p->other};
    sqlite3_stmt *row = tx_statement(tx, ST_CRAWLER_PAGE_PUT);
    if (row == NULL)
        return tx_failure(tx);
    statement_bind_text(row, 1, p->crawler);
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        sqlite3_bind_int64(row, 2 + i, numbers[i]);
    return statement_run(row);
}

static enum catalogue_status put_day(struct tx *tx, const struct crawler_day_kept *d)
{
    const int64_t numbers[] = {d->site_id,        d->day,           d->ok,
                               d->not_modified,   d->other,         d->impostors,
                               (int64_t)d->bytes, d->last_fetch_at, d->lag_max_s};
    const int count = (int)(sizeof numbers / sizeof *numbers);
    uint32_t lags[CRAWLER_KEPT_LAGS];
    sqlite3_stmt *row = tx_statement(tx, ST_CRAWLER_DAY_PUT);
    if (row == NULL)
        return tx_failure(tx);
    for (size_t i = 0; i < CRAWLER_KEPT_LAGS; i++)
        lags[i] = htole32(d->lags[i]);
    statement_bind_text(row, 1, d->crawler);
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(row, 2 + i, numbers[i]);
    sqlite3_bind_blob(row, 2 + count, lags, sizeof lags, SQLITE_TRANSIENT);
    return statement_run(row);
}

static enum catalogue_status put_visits(struct tx *tx, const struct crawler_visits *v)
{
    const int64_t numbers[] = {v->site_id,
                               v->day,
                               v->index_id,
                               v->page,
                               (int64_t)v->revision,
                               (int64_t)v->stamp,
                               v->changed_at,
                               v->held_at,
                               v->fetched_at,
                               v->status,
                               v->ok,
                               v->not_modified,
                               v->other,
                               v->impostors,
                               (int64_t)v->bytes};
    sqlite3_stmt *row = tx_statement(tx, ST_CRAWLER_VISITS_PUT);
    if (row == NULL)
        return tx_failure(tx);
    statement_bind_text(row, 1, tx->epoch);
    statement_bind_text(row, 2, v->crawler);
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        sqlite3_bind_int64(row, 3 + i, numbers[i]);
    return statement_run(row);
}

static enum catalogue_status put_log(struct tx *tx, const struct crawler_log *log)
{
    sqlite3_stmt *row = tx_statement(tx, ST_CRAWLER_LOG_PUT);
    if (row == NULL)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, (int64_t)log->bytes);
    sqlite3_bind_blob(row, 2, log->hash, sizeof log->hash, SQLITE_STATIC);
    sqlite3_bind_int64(row, 3, log->at);
    enum catalogue_status status = statement_run(row);
    return status == CATALOGUE_OK ? tx_run(tx, ST_CRAWLER_LOGS_TIDY, CRAWLER_LOGS_MAX) : status;
}

enum catalogue_status apply_crawlers(struct tx *tx, const struct change *change)
{
    const struct crawlers_kept *kept = &change->crawlers;
    bool same = false;
    enum catalogue_status status = CATALOGUE_OK;

    if (kept->epoch == NULL || strcmp(kept->epoch, tx->epoch) != 0)
        return CATALOGUE_OK;
    status = is_same_epoch(tx, &same);
    if (status == CATALOGUE_OK && !same)
        status = begin_anew(tx, kept->since);
    if (status == CATALOGUE_OK && kept->tidy_before_day != 0)
        status = tx_run_with(tx, ST_CRAWLER_PAGES_TIDY, NULL, 0);
    if (status == CATALOGUE_OK && kept->tidy_before_day != 0)
        status = tx_run(tx, ST_CRAWLER_DAYS_TIDY, kept->tidy_before_day);
    for (size_t i = 0; i < kept->page_count && status == CATALOGUE_OK; i++)
        status = put_page(tx, &kept->pages[i]);
    for (size_t i = 0; i < kept->day_count && status == CATALOGUE_OK; i++)
        status = put_day(tx, &kept->days[i]);
    if (status == CATALOGUE_OK && kept->visits_taken != 0)
        status = tx_run(tx, ST_CRAWLER_VISITS_TAKEN, kept->visits_taken);
    for (size_t i = 0; i < kept->visit_count && status == CATALOGUE_OK; i++)
        status = put_visits(tx, &kept->visits[i]);
    if (status == CATALOGUE_OK && kept->log != NULL)
        status = put_log(tx, kept->log);
    return status;
}
