/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Searches an index, or all of a list, a bounded part in each call. Only few columns of each row
 * are read (by position the first ones of the record, by loc those of the SQL index on locs); only
 * rows that match the filter are read whole. So 200,000 rows of 60 characters take 20 ms instead of
 * 100 to 300. */
#include <string.h>

#include "db/read/row.h"

/* The cost of a row in `effort`: a long loc is copied and searched, and a column that is not in the
 * SQL index on locs needs a lookup. */
#define EFFORT_CHARS  256u
#define EFFORT_LOOKUP 9u

struct searching {
    struct catalogue_view *v;
    const struct entry_search *search;
    struct entry_searched *out;
    int64_t source_id; /* 0: any */
    int64_t scope;     /* the column `site` of its rows; 0: that of each site in turn */
    int64_t owner;     /* of the range that is read: an index, or, with a prefix, a site */
    bool looks_up, ended;
    uint64_t effort, found;
    entry_each *each;
    void *context;
};

#define LIVE_COLUMN 10 /* after ENTRY_ROW_COLUMNS */

/* Reads a found row whole and reports it, unless its index was removed. */
static int report_entry(struct searching *s, int64_t address)
{
    sqlite3_stmt *row = view_statement(s->v, "SELECT " ENTRY_ROW_COLUMNS ", " ENTRY_ROW_LIVE
                                             " FROM sitemap AS e WHERE e.address = ?1");
    struct entry_record record;

    int rc = sql_bind(row, address);
    if (sql_next(row, &rc) && !entry_row_borrow(row, &record))
        rc = sqlite3_errcode(s->v->db) == SQLITE_NOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
    if (rc == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (sqlite3_column_int(row, LIVE_COLUMN)) {
            s->found++;
            s->ended = !s->each(s->context, &record) || s->found == s->search->list.limit;
        } else { /* unlike what is found, these have no limit */
            s->effort += EFFORT_LOOKUP;
        }
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT; /* in the SQL index on locs, but not in the table */
    }
    sqlite3_reset(row);
    return rc;
}

static void set_place(struct searching *s, int64_t address, const char *loc)
{
    const struct entry_record place = {
        .loc = (char *)(uintptr_t)loc,
        .site_id = s->owner,
        .index_id = id_address_index(address),
        .position = id_address_position(address),
    };

    catalogue_entry_cursor(&s->search->list, &place, s->out->next);
}

/* One row: address, loc, lastmod, source. */
static int search_row(struct searching *s, sqlite3_stmt *row)
{
    const struct entry_search *search = s->search;
    int64_t address = sqlite3_column_int64(row, 0);
    const char *loc = (const char *)sqlite3_column_text(row, 1);
    const char *lastmod = (const char *)sqlite3_column_text(row, 2);
    int rc = loc != NULL ? SQLITE_OK : SQLITE_NOMEM;

    if (loc == NULL)
        return rc;
    s->out->looked_at++;
    s->effort += 1 + (uint64_t)sqlite3_column_bytes(row, 1) / EFFORT_CHARS +
                 (s->looks_up ? EFFORT_LOOKUP : 0);
    if ((search->list.index_id == 0 || id_address_index(address) == search->list.index_id) &&
        (s->source_id == 0 || sqlite3_column_int64(row, 3) == s->source_id) &&
        entry_filter_holds(&search->filter, loc, lastmod, search->origin))
        rc = report_entry(s, address);
    s->ended = s->ended || s->effort >= search->effort;
    if (rc == SQLITE_OK && s->ended)
        set_place(s, address, loc);
    return rc;
}

static sqlite3_stmt *by_position(struct searching *s, const struct cursor *after, int *rc)
{
    sqlite3_stmt *row = view_statement(s->v, "SELECT e.address, e.loc, e.lastmod, e.source"
                                             " FROM sitemap AS e WHERE e.address BETWEEN ?1 AND ?2"
                                             " ORDER BY e.address");
    int64_t first = id_address(s->owner, 0);

    if (after != NULL)
        first = id_address(s->owner, after->position) + 1;
    *rc = sql_bind(row, first, id_address(s->owner, UINT32_MAX));
    return row;
}

/* SQLite reads the row itself only if one of its columns is selected. */
static sqlite3_stmt *by_loc(struct searching *s, const struct cursor *after,
                            char end[LOC_MAX_CHARS + 1], int *rc)
{
    sqlite3_stmt *row = view_statement(s->v, "SELECT e.address, e.loc,"
                                             " CASE WHEN ?5 THEN e.lastmod END,"
                                             " CASE WHEN ?6 THEN e.source END"
                                             " FROM sitemap AS e WHERE e.site = ?1"
                                             " AND e.loc >= ?2 AND e.loc < ?3 AND +e.loc > ?4"
                                             " ORDER BY e.loc");
    const char *begin = s->search->list.prefix, *after_loc = after != NULL ? after->loc : "";

    entry_prefix_end(begin, end);
    if (strcmp(after_loc, begin) > 0)
        begin = after_loc;
    s->looks_up = s->search->filter.warned || s->source_id != 0;
    *rc = sql_bind(row, s->scope < 0 ? s->scope : s->owner, begin, end, after_loc,
                   s->search->filter.warned, s->source_id);
    return row;
}

/* Searches the range of the owner; once the search has ended, only whether it has a row. */
static enum catalogue_status search_range(struct searching *s, const struct cursor *after)
{
    char end[LOC_MAX_CHARS + 1];
    int rc;
    sqlite3_stmt *row =
        s->search->list.prefix != NULL ? by_loc(s, after, end, &rc) : by_position(s, after, &rc);

    while (!s->ended && sql_next(row, &rc))
        rc = search_row(s, row);
    if (rc == SQLITE_OK && s->ended)
        s->out->more = (rc = sqlite3_step(row)) == SQLITE_ROW;
    return view_end_statement(s->v, row, rc);
}

static enum catalogue_status run_search(struct searching *s, const struct cursor *after)
{
    enum catalogue_status status;
    int64_t from = after != NULL ? after->owner : 1;

    do {
        status = entry_list_next(s->v, &s->search->list, from, &s->owner);
        if (status != CATALOGUE_OK || s->owner == 0)
            return status;
        status = search_range(s, after != NULL && after->owner == s->owner ? after : NULL);
        from = s->owner + 1;
    } while (status == CATALOGUE_OK && !s->out->more);
    return status;
}

enum catalogue_status catalogue_view_search(struct catalogue_view *v,
                                            const struct entry_search *search, entry_each *each,
                                            void *context, struct entry_searched *out)
{
    struct searching s = {.v = v, .search = search, .out = out, .each = each, .context = context};
    struct cursor cursor;
    bool by_prefix = search->list.prefix != NULL;

    *out = (struct entry_searched){0};
    if (search->list.after != NULL &&
        !(cursor_parse(search->list.after, &cursor) &&
          cursor.kind == (by_prefix ? CURSOR_LOC : CURSOR_POSITION) &&
          (search->list.index_id == 0 ||
           cursor.owner == (by_prefix ? search->list.site_id : search->list.index_id))))
        return CATALOGUE_CONFLICT;
    if (by_prefix && strlen(search->list.prefix) > LOC_MAX_CHARS)
        return CATALOGUE_OK;
    enum catalogue_status found = entry_find_scope(v, &search->list, &s.scope);
    if (found != CATALOGUE_OK)
        return found;
    if (search->list.source != NULL) {
        enum catalogue_status status = entry_find_source(v, &search->list, &s.source_id);
        if (status != CATALOGUE_OK || s.source_id == 0)
            return status;
    }
    return run_search(&s, search->list.after != NULL ? &cursor : NULL);
}
