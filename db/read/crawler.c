/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads counts of crawlers (db/crawler.h): this node's own, those that the nodes of a shared
 * catalogue reported, and visits in logs that the ledger is to import. */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "db/read/view_pool.h"

static void read_crawler(sqlite3_stmt *row, char out[CRAWLER_KEPT_NAME])
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    snprintf(out, CRAWLER_KEPT_NAME, "%s", name != NULL ? name : "");
}

static void read_crawler_page(sqlite3_stmt *row, struct crawler_page_kept *out)
{
    memset(out, 0, sizeof *out);
    read_crawler(row, out->crawler);
    out->is.index_id = sqlite3_column_int64(row, 1);
    out->is.page = (uint32_t)sqlite3_column_int64(row, 2);
    out->is.row.held = sqlite3_column_int(row, 3) != 0;
    out->is.held_stamp = (uint64_t)sqlite3_column_int64(row, 4);
    out->is.row.held_changed_at = sqlite3_column_int64(row, 5);
    out->is.row.stale_since = sqlite3_column_int64(row, 6);
    out->is.row.fetched_at = sqlite3_column_int64(row, 7);
    out->is.row.status = (uint16_t)sqlite3_column_int(row, 8);
    out->is.row.ok = (uint32_t)sqlite3_column_int64(row, 9);
    out->is.row.not_modified = (uint32_t)sqlite3_column_int64(row, 10);
    out->is.row.other = (uint32_t)sqlite3_column_int64(row, 11);
}

static void read_crawler_day(sqlite3_stmt *row, struct crawler_day_kept *out)
{
    struct crawler_day *is = &out->is;
    memset(out, 0, sizeof *out);
    read_crawler(row, out->crawler);
    is->site_id = sqlite3_column_int64(row, 1);
    is->day = sqlite3_column_int(row, 2);
    is->ok = (uint32_t)sqlite3_column_int64(row, 3);
    is->not_modified = (uint32_t)sqlite3_column_int64(row, 4);
    is->other = (uint32_t)sqlite3_column_int64(row, 5);
    is->impostors = (uint32_t)sqlite3_column_int64(row, 6);
    is->bytes = (uint64_t)sqlite3_column_int64(row, 7);
    is->last_fetch_at = sqlite3_column_int64(row, 8);
    is->lags.max_s = (uint32_t)sqlite3_column_int64(row, 9);
    const void *lags = sqlite3_column_blob(row, 10);
    if (lags != NULL && sqlite3_column_bytes(row, 10) == sizeof is->lags.cells)
        memcpy(is->lags.cells, lags, sizeof is->lags.cells);
    for (size_t i = 0; i < CRAWLER_LAG_CELLS; i++)
        is->lags.cells[i] = le32toh(is->lags.cells[i]);
    const char *node = (const char *)sqlite3_column_text(row, 11);
    snprintf(out->node, sizeof out->node, "%s", node != NULL ? node : "");
}

/* `pages` and `days` select the columns of read_crawler_page and read_crawler_day. */
static enum catalogue_status walk_crawlers(struct catalogue_view *v, const char *pages,
                                           const char *days, crawler_page_each *each_page,
                                           crawler_day_each *each_day, void *context)
{
    struct crawler_page_kept page;
    struct crawler_day_kept day;
    sqlite3_stmt *row = view_statement(v, pages);
    int rc = sql_bind(row);

    while (sql_next(row, &rc)) {
        read_crawler_page(row, &page);
        each_page(context, &page);
    }
    enum catalogue_status status = view_end_statement(v, row, rc);
    if (status != CATALOGUE_OK)
        return status;
    row = view_statement(v, days);
    rc = sql_bind(row);
    while (sql_next(row, &rc)) {
        read_crawler_day(row, &day);
        each_day(context, &day);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_crawlers_begun(struct catalogue_view *v,
                                                    struct crawlers_begun *out)
{
    sqlite3_stmt *row = view_statement(v, "SELECT c.since, c.node FROM local_crawler AS c JOIN "
                                          "catalogue AS k ON k.epoch = c.epoch WHERE k.one = 1");
    memset(out, 0, sizeof *out);
    int rc = sql_bind(row);
    if (sql_next(row, &rc)) {
        const char *node = (const char *)sqlite3_column_text(row, 1);
        out->since = sqlite3_column_int64(row, 0);
        snprintf(out->node, sizeof out->node, "%s", node != NULL ? node : "");
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_crawlers(struct catalogue_view *v, crawler_page_each *page,
                                              crawler_day_each *day, void *context)
{
    return walk_crawlers(v,
                         "SELECT crawler, index_id, page, held, held_stamp, held_changed_at,"
                         " stale_since, fetched_at, status, ok, not_modified, other"
                         " FROM local_crawler_page",
                         "SELECT crawler, site, day, ok, not_modified, other, impostors, bytes,"
                         " last_fetch_at, lag_max, lags, '' FROM local_crawler_day",
                         page, day, context);
}

enum catalogue_status catalogue_view_crawler_children(struct catalogue_view *v,
                                                      crawler_child_each *each, void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT crawler, place, site, child, fetched_at, good_at, status, ok,"
                          " not_modified, other FROM local_crawler_child ORDER BY fetched_at");
    int rc = sql_bind(row);
    while (sql_next(row, &rc)) {
        struct crawler_child_kept child = {
            .is = {.place = (uint32_t)sqlite3_column_int64(row, 1),
                   .site_id = sqlite3_column_int64(row, 2),
                   .child = (uint64_t)sqlite3_column_int64(row, 3),
                   .fetched_at = sqlite3_column_int64(row, 4),
                   .good_at = sqlite3_column_int64(row, 5),
                   .status = (uint16_t)sqlite3_column_int(row, 6),
                   .ok = (uint32_t)sqlite3_column_int64(row, 7),
                   .not_modified = (uint32_t)sqlite3_column_int64(row, 8),
                   .other = (uint32_t)sqlite3_column_int64(row, 9)}};
        read_crawler(row, child.crawler);
        each(context, &child);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_crawlers_times(struct catalogue_view *v, int64_t *times,
                                                    int64_t *since)
{
    *times = *since = 0;
    sqlite3_stmt *row = view_statement(v, "SELECT t.times, t.since FROM crawler_shared AS t"
                                          " JOIN catalogue AS k ON k.epoch = t.epoch"
                                          " WHERE k.one = 1");
    int rc = sql_bind(row);
    if (sql_next(row, &rc)) {
        *times = sqlite3_column_int64(row, 0);
        *since = sqlite3_column_int64(row, 1);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_crawlers_unreported(struct catalogue_view *v, bool *any)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT EXISTS (SELECT 1 FROM local_crawler_page WHERE sent = 0)"
                          " OR EXISTS (SELECT 1 FROM local_crawler_day WHERE sent = 0)");
    int rc = sql_bind(row);
    *any = sql_next(row, &rc) && sqlite3_column_int(row, 0) != 0;
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_crawlers_reported(struct catalogue_view *v,
                                                       crawler_page_each *page,
                                                       crawler_day_each *day, void *context)
{
    return walk_crawlers(v,
                         "SELECT crawler, index_id, page, held_changed_at > 0, held_stamp,"
                         " held_changed_at, stale_since, fetched_at, status, 0, 0, 0"
                         " FROM crawler_page",
                         "SELECT crawler, site, day, ok, not_modified, other, impostors, bytes,"
                         " last_fetch_at, lag_max, lags, node FROM crawler_day",
                         page, day, context);
}

static void read_crawler_visits(sqlite3_stmt *row, struct crawler_visits *out)
{
    memset(out, 0, sizeof *out);
    read_crawler(row, out->crawler);
    out->site_id = sqlite3_column_int64(row, 1);
    out->day = sqlite3_column_int(row, 2);
    out->index_id = sqlite3_column_int64(row, 3);
    out->page = (uint32_t)sqlite3_column_int64(row, 4);
    out->revision = (uint64_t)sqlite3_column_int64(row, 5);
    out->stamp = (uint64_t)sqlite3_column_int64(row, 6);
    out->changed_at = sqlite3_column_int64(row, 7);
    out->held_at = sqlite3_column_int64(row, 8);
    out->fetched_at = sqlite3_column_int64(row, 9);
    out->status = (uint16_t)sqlite3_column_int(row, 10);
    out->ok = (uint32_t)sqlite3_column_int64(row, 11);
    out->not_modified = (uint32_t)sqlite3_column_int64(row, 12);
    out->other = (uint32_t)sqlite3_column_int64(row, 13);
    out->impostors = (uint32_t)sqlite3_column_int64(row, 14);
    out->bytes = (uint64_t)sqlite3_column_int64(row, 15);
    out->child = (uint64_t)sqlite3_column_int64(row, 16);
}

enum catalogue_status
catalogue_view_crawler_visits(struct catalogue_view *v, int64_t *last,
                              void (*each)(void *context, const struct crawler_visits *visits),
                              void *context)
{
    sqlite3_stmt *row = view_statement(
        v,
        "SELECT v.crawler, v.site, v.day, v.index_id, v.page, v.revision, v.stamp, v.changed_at,"
        " v.held_at, v.fetched_at, v.status, v.ok, v.not_modified, v.other, v.impostors, v.bytes,"
        " v.child, v.id FROM local_crawler_visits AS v JOIN catalogue AS k ON k.epoch = v.epoch"
        " WHERE k.one = 1 ORDER BY v.id");
    struct crawler_visits visits;
    int rc = sql_bind(row);

    *last = 0;
    while (sql_next(row, &rc)) {
        read_crawler_visits(row, &visits);
        *last = sqlite3_column_int64(row, 17);
        each(context, &visits);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_crawler_logs(struct catalogue_view *v,
                                                  void (*each)(void *context,
                                                               const struct crawler_log *log),
                                                  void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT bytes, hash, at FROM local_crawler_log ORDER BY bytes");
    int rc = sql_bind(row);

    while (sql_next(row, &rc)) {
        struct crawler_log log = {.bytes = (uint64_t)sqlite3_column_int64(row, 0),
                                  .at = sqlite3_column_int64(row, 2)};
        const void *hash = sqlite3_column_blob(row, 1);

        if (hash == NULL || sqlite3_column_bytes(row, 1) != sizeof log.hash)
            continue;
        memcpy(log.hash, hash, sizeof log.hash);
        each(context, &log);
    }
    return view_end_statement(v, row, rc);
}
