/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads sources: their files and their state. */
#include <string.h>

#include "db/read/row.h"
#include "db/read/view_pool.h"

#define FILE_HAS_ENTRY                                                                             \
    "EXISTS (SELECT 1 FROM sitemap AS e WHERE e.site = f.site AND e.loc = f.loc"                   \
    " AND e.source = f.source AND " ENTRY_ROW_LIVE ")"
#define FILE_COLUMNS                                                                               \
    "f.path, f.loc, f.state, f.refused, f.device, f.inode, f.size, f.mtime_ns, f.ctime_ns,"        \
    " f.hash, f.lastmod, f.urls, f.bytes, f.newest_lastmod, f.one_lastmod, f.future, f.problem,"   \
    " f.detail, f.line, f.\"column\", f.problem_since, f.remarks, " FILE_CLAIM_TEXT                \
    ", " FILE_HAS_ENTRY
#define NAMED "(SELECT id FROM source WHERE name = ?1)"
#define FILE_OF_SOURCE_BY(index)                                                                   \
    "SELECT " FILE_COLUMNS " FROM source_file_row AS f" index " WHERE f.source = " NAMED
/* The SQL index must be named, or SQLite reads all rows of the source by their key. */
#define BY_REMARKED       " INDEXED BY source_file_remarked"
#define BY_REFUSED        " INDEXED BY source_file_refused"
#define CHECK_BY_REMARKED " INDEXED BY fetch_remarked"
/* Not the view source_file: SQLite would read the files of all sources. Nor in an order: it would
 * read all files of the source before the first one. */
#define FILES_OF_SOURCE(index, and_file, check_index, and_check)                                   \
    "(SELECT " FILE_KEPT_COLUMNS " FROM source_file_row" index " WHERE source = " NAMED and_file   \
    " UNION ALL " FILE_OF_CHECK_BY(check_index) " AND k.source = " NAMED and_check ") AS f"

static void read_file(sqlite3_stmt *row, struct source_file *out)
{
    out->path = row_text(row, 0);
    out->loc = row_text(row, 1);
    out->state = (enum source_file_state)sqlite3_column_int(row, 2);
    out->refused = sqlite3_column_int(row, 3) != 0;
    out->device = row_number(row, 4);
    out->inode = row_number(row, 5);
    out->size = row_number(row, 6);
    out->mtime_ns = sqlite3_column_int64(row, 7);
    out->ctime_ns = sqlite3_column_int64(row, 8);
    row_hash(row, 9, out->hash);
    out->lastmod = row_text(row, 10);
    out->urls = row_number(row, 11);
    out->bytes = row_number(row, 12);
    out->newest_lastmod = row_text(row, 13);
    out->one_lastmod = sqlite3_column_int(row, 14) != 0;
    out->future = sqlite3_column_int(row, 15) != 0;
    out->problem = row_text(row, 16);
    out->detail = row_text(row, 17);
    out->line = row_number(row, 18);
    out->column = row_number(row, 19);
    out->problem_since = sqlite3_column_int64(row, 20);
    out->remarks = row_text(row, 21);
    out->claim = row_text(row, 22);
    out->has_entry = sqlite3_column_int(row, 23) != 0;
}

enum catalogue_status catalogue_view_source_files(struct catalogue_view *v, const char *source,
                                                  enum source_files which, source_file_each *each,
                                                  void *context)
{
    static const char *const texts[] = {
        [SOURCE_FILES_ALL] = "SELECT " FILE_COLUMNS " FROM " FILES_OF_SOURCE("", "", "", ""),
        [SOURCE_FILES_REMARKED] = "SELECT " FILE_COLUMNS " FROM " FILES_OF_SOURCE(
            BY_REMARKED, " AND remarks IS NOT NULL AND state = 0", CHECK_BY_REMARKED,
            " AND k.remarks IS NOT NULL"),
        [SOURCE_FILES_REFUSED] = FILE_OF_SOURCE_BY(BY_REFUSED) " AND f.state = 3 ORDER BY f.path",
        [SOURCE_FILES_SPLIT] = FILE_OF_SOURCE_BY("") " AND f.state = 2 AND f.urls > 0"
                                                     " ORDER BY f.path",
    };
    sqlite3_stmt *row = view_statement(v, texts[which]);
    bool ended = false;

    int rc = sql_bind(row, source);
    while (!ended && sql_next(row, &rc)) {
        struct source_file file;
        read_file(row, &file);
        rc = file.path != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            ended = !each(context, &file);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_source_file(struct catalogue_view *v, const char *source,
                                                 const char *path, struct source_file *out,
                                                 bool *found)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT " FILE_COLUMNS " FROM " FILE_AT(NAMED, "?2") " AS f");

    int rc = sql_bind(row, source, path);
    *found = sql_next(row, &rc);
    /* The statement stays on its row, which owns the strings, until it is used again or the view
     * ends. */
    if (*found) {
        read_file(row, out);
        if (out->path == NULL)
            rc = SQLITE_NOMEM;
    } else {
        sqlite3_reset(row);
    }
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_sources_scanned(struct catalogue_view *v,
                                                     source_name_each *each, void *context)
{
    sqlite3_stmt *row = view_statement(
        v,
        "SELECT name, (SELECT loc FROM fetch WHERE list = 1 AND source = s.id) AS listed,"
        /* Of a remote source that was removed only rows of files are left, which have URLs. */
        " coalesce((SELECT path FROM source_file_row WHERE source = s.id LIMIT 1) GLOB '*://*', 0)"
        /* Many names of owners are of no source. */
        " FROM source AS s WHERE id IN (SELECT source FROM source_state UNION ALL"
        " SELECT source FROM fetch WHERE list = 1)"
        " AND name NOT IN (SELECT name FROM source_made WHERE removed <> 0) ORDER BY name");
    bool ended = false;

    int rc = sql_bind(row);
    while (!ended && sql_next(row, &rc)) {
        const char *name = row_text(row, 0);
        rc = name != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            ended =
                !each(context, name,
                      sqlite3_column_type(row, 1) != SQLITE_NULL || sqlite3_column_int(row, 2) != 0,
                      row_text(row, 1));
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_source_owns(struct catalogue_view *v, const char *source,
                                                 bool *owns)
{
    sqlite3_stmt *row = view_statement(v, "SELECT EXISTS (SELECT 1 FROM " FILES_OF_SOURCE(
                                              "", "", "", "") " WHERE " FILE_HAS_ENTRY ")");
    *owns = false;
    int rc = sql_bind(row, source);
    if (sql_next(row, &rc))
        *owns = sqlite3_column_int(row, 0) != 0;
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_source_state(struct catalogue_view *v, const char *source,
                                                  struct source_state *out)
{
    sqlite3_stmt *row = view_statement(
        v, "SELECT scanned_at, good_at, files, listed, quarantined, held, hosts, touched,"
           " (SELECT count(*) FROM source_file_row AS f" BY_REMARKED "  WHERE f.source = s.source"
           "  AND f.remarks IS NOT NULL AND f.state = 0)"
           " + (SELECT count(*) FROM fetch AS k" CHECK_BY_REMARKED "  WHERE k.source = s.source"
           "  AND k.list = 0 AND k.listed = 1 AND k.remarks IS NOT NULL) FROM source_state AS s"
           " WHERE s.source = " NAMED);

    memset(out, 0, sizeof *out);
    int rc = sql_bind(row, source);
    if (sql_next(row, &rc)) {
        out->scanned_at = sqlite3_column_int64(row, 0);
        out->good_at = sqlite3_column_int64(row, 1);
        out->files = row_number(row, 2);
        out->listed = row_number(row, 3);
        out->quarantined = row_number(row, 4);
        out->held = row_number(row, 5);
        out->hosts = sqlite3_column_int64(row, 6);
        out->touched = row_number(row, 7);
        out->remarked = row_number(row, 8);
    }
    return view_end_statement(v, row, rc);
}
