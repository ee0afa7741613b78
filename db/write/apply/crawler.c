/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Stores counts of crawlers, in the writer's transaction.
 *
 * A file has the rows of one ledger: local_crawler names the epoch in which they are valid (index
 * ids and stamps are of it), and the node that owns them, '' where the catalogue is not shared. A
 * node that finds another epoch or node there drops them all first.
 *
 * Other nodes get whole rows, never increments, so that rows that are sent twice are not counted
 * twice. The column `sent` marks the rows that were sent, in the transaction that sends them. */
#include <endian.h>
#include <string.h>

#include "db/write/apply/apply.h"

#define SEND_PAGES 500
#define SEND_DAYS  100

static enum catalogue_status run_all(struct tx *tx, const enum statement steps[], size_t count)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < count && status == CATALOGUE_OK; i++)
        status = tx_run(tx, steps[i]);
    return status;
}

/* `node`: NULL if the statement reads none. */
static enum catalogue_status compare_epoch(struct tx *tx, enum statement read, const char *node,
                                           bool *same, bool *named)
{
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, read, &row);
    const char *epoch = row != NULL ? (const char *)sqlite3_column_text(row, 0) : NULL;
    const char *name =
        row != NULL && node != NULL ? (const char *)sqlite3_column_text(row, 1) : NULL;
    *named = name == NULL || strcmp(name, node) == 0;
    *same = epoch != NULL && strcmp(epoch, tx->epoch) == 0 &&
            (*named || *name == '\0' || *node == '\0');
    sqlite3_reset(row);
    return status;
}

static enum catalogue_status restart_counting(struct tx *tx, const char *node, int64_t since)
{
    static const enum statement drops[] = {ST_CRAWLERS_DROP, ST_CRAWLER_PAGES_DROP,
                                           ST_CRAWLER_DAYS_DROP, ST_CRAWLER_CHILDREN_DROP};
    enum catalogue_status status = run_all(tx, drops, sizeof drops / sizeof *drops);
    return status == CATALOGUE_OK ? tx_run(tx, ST_CRAWLERS_BEGIN, tx->epoch, node, since) : status;
}

/* Gives all rows another node's name, after the server has joined or left a shared catalogue. */
static enum catalogue_status rename_all(struct tx *tx, const char *node)
{
    static const enum statement steps[] = {ST_CRAWLERS_RENAME, ST_CRAWLER_PAGES_RENAME,
                                           ST_CRAWLER_DAYS_RENAME};
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == CATALOGUE_OK; i++)
        status = tx_run(tx, steps[i], node);
    return status;
}

static enum catalogue_status make_ready(struct tx *tx, const struct change_crawlers *kept)
{
    const char *node = kept->node != NULL ? kept->node : "";
    bool same, named;
    enum catalogue_status status = compare_epoch(tx, ST_CRAWLERS_BEGUN, kept->node, &same, &named);
    if (status == CATALOGUE_OK && !same)
        return restart_counting(tx, node, kept->since);
    return status == CATALOGUE_OK && !named ? rename_all(tx, node) : status;
}

static enum catalogue_status put_page(struct tx *tx, const char *node,
                                      const struct crawler_page_kept *p)
{
    const struct crawler_row *is = &p->is.row;
    return tx_run(tx, ST_CRAWLER_PAGE_PUT, node, p->crawler, p->is.index_id, p->is.page, is->held,
                  p->is.held_stamp, is->held_changed_at, is->stale_since, is->fetched_at,
                  is->status, is->ok, is->not_modified, is->other);
}

static enum catalogue_status put_day(struct tx *tx, const char *node,
                                     const struct crawler_day_kept *kept)
{
    const struct crawler_day *d = &kept->is;
    uint32_t lags[CRAWLER_LAG_CELLS];
    for (size_t i = 0; i < CRAWLER_LAG_CELLS; i++)
        lags[i] = htole32(d->lags.cells[i]);
    return tx_run(tx, ST_CRAWLER_DAY_PUT, node, kept->crawler, d->site_id, d->day, d->ok,
                  d->not_modified, d->other, d->impostors, d->bytes, d->last_fetch_at,
                  d->lags.max_s, sql_bytes(lags, sizeof lags));
}

static enum catalogue_status put_child(struct tx *tx, const struct crawler_child_kept *kept)
{
    const struct crawler_child *is = &kept->is;
    return tx_run(tx, ST_CRAWLER_CHILD_PUT, kept->crawler, is->place, is->site_id, is->child,
                  is->fetched_at, is->good_at, is->status, is->ok, is->not_modified, is->other);
}

static enum catalogue_status put_visits(struct tx *tx, const struct crawler_visits *v)
{
    return tx_run(tx, ST_CRAWLER_VISITS_PUT, tx->epoch, v->crawler, v->site_id, v->day, v->index_id,
                  v->page, v->child, v->revision, v->stamp, v->changed_at, v->held_at,
                  v->fetched_at, v->status, v->ok, v->not_modified, v->other, v->impostors,
                  v->bytes);
}

static enum catalogue_status put_log(struct tx *tx, const struct crawler_log *log)
{
    enum catalogue_status status =
        tx_run(tx, ST_CRAWLER_LOG_PUT, log->bytes, sql_bytes(log->hash, sizeof log->hash), log->at);
    return status == CATALOGUE_OK ? tx_run(tx, ST_CRAWLER_LOGS_TIDY, CRAWLER_LOGS_MAX) : status;
}

enum catalogue_status apply_crawlers(struct tx *tx, const struct change_crawlers *kept)
{
    const char *node = kept->node != NULL ? kept->node : "";

    if (kept->epoch == NULL || strcmp(kept->epoch, tx->epoch) != 0)
        return CATALOGUE_OK;
    enum catalogue_status status = make_ready(tx, kept);
    if (status == CATALOGUE_OK && kept->tidy_before_day != 0)
        status = tx_run(tx, ST_CRAWLER_PAGES_TIDY);
    if (status == CATALOGUE_OK && kept->tidy_before_day != 0)
        status = tx_run(tx, ST_CRAWLER_DAYS_TIDY, kept->tidy_before_day);
    for (size_t i = 0; i < kept->page_count && status == CATALOGUE_OK; i++)
        status = put_page(tx, node, &kept->pages[i]);
    for (size_t i = 0; i < kept->day_count && status == CATALOGUE_OK; i++)
        status = put_day(tx, node, &kept->days[i]);
    for (size_t i = 0; i < kept->child_count && status == CATALOGUE_OK; i++)
        status = put_child(tx, &kept->children[i]);
    if (status == CATALOGUE_OK && kept->visits_taken != 0)
        status = tx_run(tx, ST_CRAWLER_VISITS_TAKEN, kept->visits_taken);
    for (size_t i = 0; i < kept->visit_count && status == CATALOGUE_OK; i++)
        status = put_visits(tx, &kept->visits[i]);
    for (size_t i = 0; i < kept->log_count && status == CATALOGUE_OK; i++)
        status = put_log(tx, &kept->log[i]);
    return status;
}

/* ---- reports to other nodes ---------------------------------------------------------------- */

static enum catalogue_status begin_sending(struct tx *tx, int64_t since)
{
    static const enum statement drops[] = {ST_SHARED_DROP, ST_SHARED_PAGES_DROP,
                                           ST_SHARED_DAYS_DROP};
    bool same, named;
    enum catalogue_status status = compare_epoch(tx, ST_SHARED_EPOCH, NULL, &same, &named);
    if (status != CATALOGUE_OK || same)
        return status;
    status = run_all(tx, drops, sizeof drops / sizeof *drops);
    return status == CATALOGUE_OK ? tx_run(tx, ST_SHARED_BEGIN, tx->epoch, since) : status;
}

/* Sends rows and marks them as sent; `*changed`: some of them were new. */
static enum catalogue_status send_rows(struct tx *tx, enum statement rows, enum statement done,
                                       int64_t most, bool *changed)
{
    enum catalogue_status status = tx_run(tx, rows, most);
    if (status != CATALOGUE_OK)
        return status;
    *changed |= sqlite3_changes64(tx->db) > 0;
    return tx_run(tx, done, most);
}

enum catalogue_status apply_crawlers_report(struct tx *tx, const struct change_crawlers *kept)
{
    bool changed = false;

    if (kept->epoch == NULL || kept->node == NULL || strcmp(kept->epoch, tx->epoch) != 0)
        return CATALOGUE_OK;
    enum catalogue_status status = make_ready(tx, kept);
    if (status == CATALOGUE_OK)
        status = begin_sending(tx, kept->since);
    if (status == CATALOGUE_OK && kept->tidy_before_day != 0)
        status = tx_run(tx, ST_SHARED_PAGES_TIDY);
    if (status == CATALOGUE_OK && kept->tidy_before_day != 0)
        status = tx_run(tx, ST_SHARED_DAYS_TIDY, kept->tidy_before_day);
    if (status == CATALOGUE_OK)
        status = send_rows(tx, ST_SEND_PAGES, ST_SEND_PAGES_DONE, SEND_PAGES, &changed);
    if (status == CATALOGUE_OK)
        status = send_rows(tx, ST_SEND_DAYS, ST_SEND_DAYS_DONE, SEND_DAYS, &changed);
    return status == CATALOGUE_OK && changed ? tx_run(tx, ST_SHARED_STEP, kept->since) : status;
}

/* CHANGE_SITE_DAYS: how large sites were on a day. */

static enum catalogue_status put_row(struct tx *tx, const struct site_day *row)
{
    bool gone = row->day < 0;
    enum catalogue_status status =
        tx_run(tx, ST_SITE_DAYS_TIDY, row->site_id, gone ? INT32_MAX : row->day - DAYS_KEPT);
    return status == CATALOGUE_OK && !gone
               ? tx_run(tx, ST_SITE_DAY_PUT, row->site_id, row->day, row->entries, row->urls)
               : status;
}

enum catalogue_status apply_site_days(struct tx *tx, const struct change_site_days *w)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < w->count && status == CATALOGUE_OK; i++)
        status = put_row(tx, &w->rows[i]);
    return status;
}
