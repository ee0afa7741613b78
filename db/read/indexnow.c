#include "db/indexnow.h"

#include "db/read/view_pool.h"

static int64_t first_of(sqlite3_stmt *row, int *rc, int64_t *second)
{
    int64_t first = 0;

    if (*rc == SQLITE_OK)
        *rc = sqlite3_step(row);
    if (*rc == SQLITE_ROW) {
        first = sqlite3_column_int64(row, 0);
        *second = sqlite3_column_int64(row, 1);
    }
    sqlite3_reset(row);
    return first;
}

enum catalogue_status catalogue_view_indexnow(struct catalogue_view *v, int64_t site_id,
                                              struct indexnow_position *out)
{
    sqlite3_stmt *row =
        view_statement(v, VIEW_INDEXNOW, "SELECT revision, parts FROM indexnow WHERE site = ?1");
    int rc = view_bind(row, "i", site_id);
    int64_t parts = 0;

    out->revision = (uint64_t)first_of(row, &rc, &parts);
    out->parts = (uint64_t)parts;
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_indexnow_next(struct catalogue_view *v, int64_t site_id,
                                                   uint64_t revision, uint64_t *next, int64_t *at)
{
    /* A list is looked up by each change of the site, and a change by its number. */
    sqlite3_stmt *row = view_statement(
        v, VIEW_INDEXNOW_NEXT,
        "SELECT h.revision, h.at FROM history_index AS i CROSS JOIN sitemap_index AS l"
        " ON l.id = i.index_id CROSS JOIN history AS h ON h.revision = i.revision"
        " WHERE i.site = ?1 AND i.revision >= ?2 AND l.kind = 1 AND h.kind <> 'expiry'"
        " ORDER BY i.revision LIMIT 1");
    int rc = view_bind(row, "ii", site_id, (int64_t)revision);

    *at = 0;
    *next = (uint64_t)first_of(row, &rc, at);
    return view_status(v, rc);
}
