/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads the sums of days (db/day.h). */
#include "db/read/view_pool.h"

#define SITES_A_LOOK (SITE_DAYS_WRITE_MAX / 2)
#define GONE_A_LOOK  (SITE_DAYS_WRITE_MAX / 4)

/* Passes the row on if the stored row differs or is missing. */
static void pass_if_other(sqlite3_stmt *row, int kept, const struct site_day *now,
                          site_day_each *each, void *context)
{
    if (sqlite3_column_type(row, kept) == SQLITE_NULL ||
        (uint64_t)sqlite3_column_int64(row, kept) != now->entries ||
        (uint64_t)sqlite3_column_int64(row, kept + 1) != now->urls)
        each(context, now);
}

static enum catalogue_status find_sites(struct catalogue_view *v, int32_t day, int64_t *after,
                                        site_day_each *each, void *context)
{
    sqlite3_stmt *row = view_statement(
        v, "SELECT s.id,"
           " (SELECT ifnull(sum(p.entries), 0) FROM sitemap_index AS i JOIN page AS p"
           "   ON p.index_id = i.id WHERE i.site = s.id AND i.removed = 0 AND i.kind = 0),"
           " (SELECT ifnull(sum(p.entries), 0) FROM sitemap_index AS i JOIN page AS p"
           "   ON p.index_id = i.id WHERE i.site = s.id AND i.removed = 0 AND i.kind <> 0),"
           " d.entries, d.urls"
           " FROM site AS s LEFT JOIN local_site_day AS d ON d.site = s.id AND d.day = ?1"
           " WHERE s.id > ?2 AND s.removed = 0 ORDER BY s.id LIMIT ?3");
    int rc = sql_bind(row, day, *after, SITES_A_LOOK);
    uint64_t looked_at = 0;
    while (sql_next(row, &rc)) {
        const struct site_day now = {
            .site_id = sqlite3_column_int64(row, 0),
            .day = day,
            .entries = (uint64_t)sqlite3_column_int64(row, 1),
            .urls = (uint64_t)sqlite3_column_int64(row, 2),
        };
        *after = now.site_id;
        looked_at++;
        pass_if_other(row, 3, &now, each, context);
    }
    if (looked_at < SITES_A_LOOK)
        *after = 0;
    return view_end_statement(v, row, rc);
}

static enum catalogue_status find_total(struct catalogue_view *v, int32_t day, site_day_each *each,
                                        void *context)
{
    struct catalogue_revisions now;
    enum catalogue_status status = catalogue_view_revisions(v, &now);
    if (status != CATALOGUE_OK)
        return status;
    sqlite3_stmt *row = view_statement(v, "SELECT max(entries), max(urls) FROM local_site_day"
                                          " WHERE site = 0 AND day = ?1");
    int rc = sql_bind(row, day);
    if (sql_next(row, &rc))
        pass_if_other(row, 0,
                      &(struct site_day){.day = day, .entries = now.entries, .urls = now.urls},
                      each, context);
    return view_end_statement(v, row, rc);
}

/* Finds each site by one step in the key, whatever the number of its days. */
static enum catalogue_status find_removed(struct catalogue_view *v, site_day_each *each,
                                          void *context)
{
    sqlite3_stmt *row = view_statement(
        v, "WITH RECURSIVE kept(site) AS (SELECT min(site) FROM local_site_day WHERE site > 0"
           " UNION ALL SELECT (SELECT min(d.site) FROM local_site_day AS d"
           "   WHERE d.site > kept.site) FROM kept WHERE kept.site IS NOT NULL)"
           " SELECT site FROM kept WHERE site IS NOT NULL"
           " AND site NOT IN (SELECT id FROM site WHERE removed = 0) LIMIT ?1");
    int rc = sql_bind(row, GONE_A_LOOK);
    while (sql_next(row, &rc))
        each(context, &(struct site_day){.site_id = sqlite3_column_int64(row, 0), .day = -1});
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_site_days_due(struct catalogue_view *v, int32_t day,
                                                   int64_t *after, site_day_each *each,
                                                   void *context)
{
    enum catalogue_status status = CATALOGUE_OK;
    if (*after == 0)
        status = find_total(v, day, each, context);
    if (*after == 0 && status == CATALOGUE_OK)
        status = find_removed(v, each, context);
    return status == CATALOGUE_OK ? find_sites(v, day, after, each, context) : status;
}

enum catalogue_status catalogue_view_site_days(struct catalogue_view *v, int64_t site_id,
                                               int32_t from, int32_t to, site_day_each *each,
                                               void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT day, entries, urls FROM local_site_day"
                          " WHERE site = ?1 AND day BETWEEN ?2 AND ?3 ORDER BY day");
    int rc = sql_bind(row, site_id, from, to);
    while (sql_next(row, &rc))
        each(context, &(struct site_day){
                          .site_id = site_id,
                          .day = sqlite3_column_int(row, 0),
                          .entries = (uint64_t)sqlite3_column_int64(row, 1),
                          .urls = (uint64_t)sqlite3_column_int64(row, 2),
                      });
    return view_end_statement(v, row, rc);
}
