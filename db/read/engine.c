/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads the stored reports of search engines (db/engine.h). */
#include "db/read/row.h"
#include "db/read/view_pool.h"

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = row_text(row, column);
    return text != NULL ? text : "";
}

enum catalogue_status catalogue_view_engine_sites(struct catalogue_view *v, const char *engine,
                                                  engine_site_each *each, void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT e.site, e.state, e.why, e.asked_at, e.next_at, e.good_at,"
                          " e.failures FROM local_engine_site AS e JOIN site AS s"
                          " ON s.id = e.site WHERE e.engine = ?1 AND s.removed = 0"
                          " ORDER BY e.site");
    int rc = sql_bind(row, engine);
    while (sql_next(row, &rc)) {
        const struct engine_site site = {
            .site_id = sqlite3_column_int64(row, 0),
            .state = (enum engine_state)sqlite3_column_int(row, 1),
            .why = text_of(row, 2),
            .asked_at = sqlite3_column_int64(row, 3),
            .next_at = sqlite3_column_int64(row, 4),
            .good_at = sqlite3_column_int64(row, 5),
            .failures = (uint32_t)sqlite3_column_int64(row, 6),
        };
        each(context, &site);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_engine_sitemaps(struct catalogue_view *v, const char *engine,
                                                     int64_t site_id, engine_sitemap_each *each,
                                                     void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT loc, parent, listed, pending, sent_at, submitted_at, read_at,"
                          " errors, warnings, urls FROM local_engine_sitemap"
                          " WHERE engine = ?1 AND site = ?2"
                          " ORDER BY iif(parent = '', loc, parent), parent <> '', loc");
    int rc = sql_bind(row, engine, site_id);
    while (sql_next(row, &rc)) {
        const struct engine_sitemap sitemap = {
            .loc = text_of(row, 0),
            .parent = text_of(row, 1),
            .listed = sqlite3_column_int(row, 2) != 0,
            .pending = sqlite3_column_int(row, 3) != 0,
            .sent_at = sqlite3_column_int64(row, 4),
            .submitted_at = sqlite3_column_int64(row, 5),
            .read_at = sqlite3_column_int64(row, 6),
            .errors = row_number(row, 7),
            .warnings = row_number(row, 8),
            .urls = row_number(row, 9),
        };
        each(context, &sitemap);
    }
    return view_end_statement(v, row, rc);
}

#define ENGINE_SUM                                                                                 \
    "SELECT count(*), sum(e.errors), sum(e.warnings), sum(e.urls), min(nullif(e.read_at, 0))"      \
    " FROM local_engine_sitemap AS e JOIN site AS s ON s.id = e.site AND s.removed = 0"            \
    " WHERE e.engine = ?1 AND e.parent = '' AND e.listed = 1"

enum catalogue_status catalogue_view_engine_sum(struct catalogue_view *v, const char *engine,
                                                int64_t site_id, struct engine_day *out)
{
    sqlite3_stmt *row =
        view_statement(v, site_id != 0 ? ENGINE_SUM " AND e.site = ?2" : ENGINE_SUM);
    int rc = site_id != 0 ? sql_bind(row, engine, site_id) : sql_bind(row, engine);
    *out = (struct engine_day){.day = 0};
    if (sql_next(row, &rc))
        *out = (struct engine_day){
            .sitemaps = row_number(row, 0),
            .errors = row_number(row, 1),
            .warnings = row_number(row, 2),
            .urls = row_number(row, 3),
            .read_at = sqlite3_column_int64(row, 4),
        };
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_engine_removed(struct catalogue_view *v, const char *engine,
                                                    int64_t *out)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT site FROM local_engine_site WHERE engine = ?1 AND site NOT IN"
                          " (SELECT id FROM site WHERE removed = 0) LIMIT 1");
    return view_number(v, row, sql_bind(row, engine), out);
}

enum catalogue_status catalogue_view_engine_days(struct catalogue_view *v, const char *engine,
                                                 int64_t site_id, engine_day_each *each,
                                                 void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT day, sitemaps, errors, warnings, urls, read_at"
                          " FROM local_engine_day WHERE engine = ?1 AND site = ?2 ORDER BY day");
    int rc = sql_bind(row, engine, site_id);
    while (sql_next(row, &rc)) {
        const struct engine_day day = {
            .day = sqlite3_column_int(row, 0),
            .sitemaps = row_number(row, 1),
            .errors = row_number(row, 2),
            .warnings = row_number(row, 3),
            .urls = row_number(row, 4),
            .read_at = sqlite3_column_int64(row, 5),
        };
        each(context, &day);
    }
    return view_end_statement(v, row, rc);
}
