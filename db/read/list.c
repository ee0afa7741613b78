/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lists entries: by index and position, or, with a prefix, by site and loc. Each index or site is
 * one range of a b-tree; the next one is looked up at the end of the last. */
#include <stdio.h>
#include <string.h>

#include "db/read/row.h"

/* One listing under way. */
struct listing {
    struct catalogue_view *v;
    const struct entry_list *list;
    int64_t source_id; /* 0: any */
    size_t listed;
    bool ended; /* the limit is reached, or `each` said so */
    entry_each *each;
    void *context;
};

/* Steps through a bound statement. */
static enum catalogue_status emit_rows(struct listing *l, sqlite3_stmt *row, int rc)
{
    while (!l->ended && sql_next(row, &rc)) {
        struct entry_record record;
        if (!entry_row_borrow(row, &record)) {
            rc = sqlite3_errcode(l->v->db) == SQLITE_NOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
            break;
        }
        rc = SQLITE_OK;
        l->listed++;
        l->ended = !l->each(l->context, &record) || l->listed == l->list->limit;
    }
    return view_end_statement(l->v, row, rc);
}

enum catalogue_status entry_list_next(struct catalogue_view *v, const struct entry_list *list,
                                      int64_t from, int64_t *out)
{
    sqlite3_stmt *row = view_statement(
        v, list->prefix != NULL
               ? "SELECT s.id FROM site AS s WHERE s.id >= ?1 AND s.removed = 0"
                 " AND (?2 = 0 OR s.id = ?2)"
                 " AND (?3 = 0 OR s.id = (SELECT site FROM sitemap_index WHERE id = ?3))"
                 " ORDER BY s.id LIMIT 1"
               : "SELECT i.id FROM sitemap_index AS i JOIN site AS s ON s.id = i.site"
                 " WHERE i.id >= ?1 AND i.removed = 0 AND s.removed = 0"
                 " AND (?2 = 0 OR i.site = ?2) AND iif(?3 = 0, i.kind = 0, i.id = ?3)"
                 " ORDER BY i.id LIMIT 1");
    int64_t first = list->prefix != NULL ? list->site_id : list->index_id;

    return view_number(
        v, row, sql_bind(row, first > from ? first : from, list->site_id, list->index_id), out);
}

/* ---- by position ----------------------------------------------------------------------- */

/* A filter by source reads every entry of the index. An SQL index on the source would avoid that,
 * but make a bulk load a quarter more expensive (26 % more instructions for 100,000 entries). */
static enum catalogue_status list_index(struct listing *l, int64_t index_id, int64_t first)
{
    sqlite3_stmt *row = view_statement(l->v, "SELECT " ENTRY_ROW_COLUMNS
                                             " FROM sitemap AS e WHERE e.address BETWEEN ?1 AND ?2"
                                             " AND (?3 = 0 OR e.source = ?3) ORDER BY e.address");

    int rc = sql_bind(row, first, id_address(index_id, UINT32_MAX), l->source_id);
    return emit_rows(l, row, rc);
}

static enum catalogue_status list_by_position(struct listing *l, const struct cursor *after)
{
    int64_t from = after != NULL ? after->owner : 1;

    while (!l->ended) {
        int64_t index_id, first;
        enum catalogue_status status;
        status = entry_list_next(l->v, l->list, from, &index_id);
        if (status != CATALOGUE_OK || index_id == 0)
            return status;
        first = id_address(index_id, 0);
        if (after != NULL && index_id == after->owner)
            first = id_address(index_id, after->position) + 1;
        status = list_index(l, index_id, first);
        if (status != CATALOGUE_OK)
            return status;
        from = index_id + 1;
    }
    return CATALOGUE_OK;
}

/* ---- by loc ---------------------------------------------------------------------------- */

void entry_prefix_end(const char *prefix, char out[LOC_MAX_CHARS + 1])
{
    size_t len = strlen(prefix);

    if (len == 0 || len > LOC_MAX_CHARS) {
        strcpy(out, "\x7f");
        return;
    }
    memcpy(out, prefix, len + 1);
    out[len - 1]++;
}

static enum catalogue_status list_site(struct listing *l, int64_t site_id, const char *after_loc)
{
    sqlite3_stmt *row =
        view_statement(l->v, "SELECT " ENTRY_ROW_COLUMNS " FROM sitemap AS e WHERE e.site = ?1"
                             " AND e.loc >= ?2 AND e.loc < ?3 AND +e.loc > ?4"
                             " AND (?5 = 0 OR e.address >> 32 = ?5) AND (?6 = 0 OR e.source = ?6)"
                             " AND " ENTRY_ROW_LIVE " ORDER BY e.loc");
    char end[LOC_MAX_CHARS + 1];
    const char *begin = l->list->prefix;

    entry_prefix_end(begin, end);
    /* SQLite uses only one lower bound for its range: the greater one (the plus in the SQL
     * keeps it from using the other). */
    if (strcmp(after_loc, begin) > 0)
        begin = after_loc;
    int rc = sql_bind(row, site_id, begin, end, after_loc, l->list->index_id, l->source_id);
    return emit_rows(l, row, rc);
}

static enum catalogue_status list_by_loc(struct listing *l, const struct cursor *after)
{
    int64_t from = after != NULL ? after->owner : 1;

    /* No loc has a prefix that is longer than the longest loc. */
    if (strlen(l->list->prefix) > LOC_MAX_CHARS)
        return CATALOGUE_OK;
    int64_t scope;
    enum catalogue_status found = entry_find_scope(l->v, l->list, &scope);
    if (found != CATALOGUE_OK)
        return found;
    if (scope < 0)
        return list_site(l, scope, after != NULL ? after->loc : "");
    while (!l->ended) {
        int64_t site_id;
        enum catalogue_status status;
        status = entry_list_next(l->v, l->list, from, &site_id);
        if (status != CATALOGUE_OK || site_id == 0)
            return status;
        status = list_site(l, site_id, after != NULL && site_id == after->owner ? after->loc : "");
        if (status != CATALOGUE_OK)
            return status;
        from = site_id + 1;
    }
    return CATALOGUE_OK;
}

/* ---- both ------------------------------------------------------------------------------ */

enum catalogue_status entry_find_source(struct catalogue_view *v, const struct entry_list *list,
                                        int64_t *out)
{
    sqlite3_stmt *row = view_statement(
        v, "SELECT id FROM source WHERE name = ?1 UNION ALL SELECT -id FROM sitemap_index"
           " WHERE ?1 = '" URLSET_OWNER "' || path AND kind = 1 AND removed = 0"
           " AND (?2 = 0 OR site = ?2) AND (?3 = 0 OR of_index = ?3) LIMIT 1");

    return view_number(v, row, sql_bind(row, list->source, list->site_id, list->index_id), out);
}

enum catalogue_status entry_find_scope(struct catalogue_view *v, const struct entry_list *list,
                                       int64_t *out)
{
    *out = list->site_id;
    if (list->index_id == 0)
        return CATALOGUE_OK;
    sqlite3_stmt *row =
        view_statement(v, "SELECT iif(kind = 1, -id, site) FROM sitemap_index WHERE id = ?1");
    return view_number(v, row, sql_bind(row, list->index_id), out);
}

enum catalogue_status catalogue_view_list(struct catalogue_view *v, const struct entry_list *list,
                                          entry_each *each, void *context)
{
    struct listing l = {.v = v, .list = list, .each = each, .context = context};
    enum cursor_kind kind = list->prefix != NULL ? CURSOR_LOC : CURSOR_POSITION;
    struct cursor cursor;

    if (list->after != NULL && (!cursor_parse(list->after, &cursor) || cursor.kind != kind))
        return CATALOGUE_CONFLICT;
    if (list->source != NULL) {
        enum catalogue_status status = entry_find_source(v, list, &l.source_id);
        if (status != CATALOGUE_OK || l.source_id == 0)
            return status;
    }
    if (kind == CURSOR_LOC)
        return list_by_loc(&l, list->after != NULL ? &cursor : NULL);
    return list_by_position(&l, list->after != NULL ? &cursor : NULL);
}

enum catalogue_status catalogue_view_positions_of(struct catalogue_view *v, int64_t index_id,
                                                  const char *source, uint32_t first, size_t limit,
                                                  bool (*each)(void *context, uint32_t position,
                                                               const char *loc, const char *lastmod,
                                                               const char *extensions),
                                                  void *context)
{
    struct entry_list list = {.index_id = index_id, .source = source};
    int64_t source_id;
    enum catalogue_status status = entry_find_source(v, &list, &source_id);
    if (status != CATALOGUE_OK || source_id == 0)
        return status;
    sqlite3_stmt *row = view_statement(v, "SELECT address, loc, lastmod, extensions FROM sitemap"
                                          " WHERE address BETWEEN ?1 AND ?2 AND source = ?3"
                                          " ORDER BY address");
    int rc =
        sql_bind(row, id_address(index_id, first), id_address(index_id, UINT32_MAX), source_id);
    bool ended = limit == 0;
    for (size_t i = 0; !ended && sql_next(row, &rc); i++) {
        const char *loc = (const char *)sqlite3_column_text(row, 1);
        rc = loc != NULL ? SQLITE_OK : SQLITE_NOMEM;
        ended = loc == NULL ||
                !each(context, id_address_position(sqlite3_column_int64(row, 0)), loc,
                      (const char *)sqlite3_column_text(row, 2),
                      (const char *)sqlite3_column_text(row, 3)) ||
                i + 1 == limit;
    }
    return view_end_statement(v, row, rc);
}

void catalogue_entry_cursor(const struct entry_list *list, const struct entry_record *record,
                            char out[ENTRY_CURSOR_SIZE])
{
    struct cursor cursor = {.kind = list->prefix != NULL ? CURSOR_LOC : CURSOR_POSITION};

    if (cursor.kind == CURSOR_LOC) {
        cursor.owner = record->site_id;
        snprintf(cursor.loc, sizeof cursor.loc, "%s", record->loc);
    } else {
        cursor.owner = record->index_id;
        cursor.position = record->position;
    }
    cursor_format(&cursor, out);
}
