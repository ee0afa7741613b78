/* Directory sources: their files, how they stand, and what the file of an entry holds. */
#include <string.h>

#include "db/entry_row.h"
#include "db/source.h"

#define FILE_COLUMNS                                                                               \
    "f.path, f.loc, f.state, f.refused, f.device, f.inode, f.size, f.mtime_ns, f.hash, f.lastmod," \
    " f.urls, f.bytes, f.newest_lastmod, f.one_lastmod, f.future, f.problem, f.detail, f.line,"    \
    " f.\"column\", f.problem_since, EXISTS (SELECT 1 FROM sitemap AS e WHERE e.site = f.site"     \
    " AND e.loc = f.loc AND e.source = f.source AND " ENTRY_ROW_LIVE ")"
#define FILE_OF_SOURCE                                                                             \
    "SELECT " FILE_COLUMNS " FROM source_file AS f"                                                \
    " WHERE f.source = (SELECT id FROM source WHERE name = ?1)"

static const char *text_of(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static uint64_t number_of(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

static void read_hash(sqlite3_stmt *row, int column, uint64_t hash[2])
{
    const unsigned char *bytes = sqlite3_column_blob(row, column);

    hash[0] = hash[1] = 0;
    if (bytes == NULL || sqlite3_column_bytes(row, column) != 16)
        return;
    for (size_t i = 0; i < 16; i++)
        hash[i / 8] = hash[i / 8] << 8 | bytes[i];
}

static void read_file(sqlite3_stmt *row, struct source_file *out)
{
    out->path = text_of(row, 0);
    out->loc = text_of(row, 1);
    out->state = (enum source_file_state)sqlite3_column_int(row, 2);
    out->refused = sqlite3_column_int(row, 3) != 0;
    out->device = number_of(row, 4);
    out->inode = number_of(row, 5);
    out->size = number_of(row, 6);
    out->mtime_ns = sqlite3_column_int64(row, 7);
    read_hash(row, 8, out->hash);
    out->lastmod = text_of(row, 9);
    out->urls = number_of(row, 10);
    out->bytes = number_of(row, 11);
    out->newest_lastmod = text_of(row, 12);
    out->one_lastmod = sqlite3_column_int(row, 13) != 0;
    out->future = sqlite3_column_int(row, 14) != 0;
    out->problem = text_of(row, 15);
    out->detail = text_of(row, 16);
    out->line = number_of(row, 17);
    out->column = number_of(row, 18);
    out->problem_since = sqlite3_column_int64(row, 19);
    out->has_entry = sqlite3_column_int(row, 20) != 0;
}

enum catalogue_status catalogue_view_source_files(struct catalogue_view *v, const char *source,
                                                  bool (*each)(void *context,
                                                               const struct source_file *file),
                                                  void *context)
{
    sqlite3_stmt *row = view_statement(v, VIEW_SOURCE_FILES, FILE_OF_SOURCE " ORDER BY f.path");
    bool ended = false;
    int rc = row != NULL ? SQLITE_OK : SQLITE_ERROR;

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 1, source, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && !ended && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct source_file file;
        read_file(row, &file);
        rc = file.path != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            ended = !each(context, &file);
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_source_file(struct catalogue_view *v, const char *source,
                                                 const char *path, struct source_file *out,
                                                 bool *found)
{
    sqlite3_stmt *row = view_statement(v, VIEW_SOURCE_FILE, FILE_OF_SOURCE " AND f.path = ?2");
    int rc = row != NULL ? SQLITE_OK : SQLITE_ERROR;

    *found = false;
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 1, source, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 2, path, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    /* It stays on its row, which holds the strings, until it is used again or the view ends. */
    if (rc == SQLITE_ROW) {
        *found = true;
        read_file(row, out);
        if (out->path == NULL)
            rc = SQLITE_NOMEM;
    } else {
        sqlite3_reset(row);
    }
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_source_state(struct catalogue_view *v, const char *source,
                                                  struct source_state *out)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_SOURCE_STATE,
        "SELECT scanned_at, good_at, files, listed, quarantined, held FROM source_state"
        " WHERE source = (SELECT id FROM source WHERE name = ?1)");
    int rc = row != NULL ? SQLITE_OK : SQLITE_ERROR;

    memset(out, 0, sizeof *out);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 1, source, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        out->scanned_at = sqlite3_column_int64(row, 0);
        out->good_at = sqlite3_column_int64(row, 1);
        out->files = number_of(row, 2);
        out->listed = number_of(row, 3);
        out->quarantined = number_of(row, 4);
        out->held = number_of(row, 5);
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

/* ---- the file of an entry -------------------------------------------------------------- */

/* Whether a source has files at all; remembered, since neighbours mostly have the same owner. */
static int owner_has_files(struct catalogue_view *v, int64_t source, bool *has)
{
    sqlite3_stmt *row;
    int rc;

    *has = v->file_owner_has;
    if (v->file_owner == source)
        return SQLITE_OK;
    row = view_statement(v, VIEW_OWNER_HAS_FILES, "SELECT 1 FROM source_state WHERE source = ?1");
    rc = row != NULL ? sqlite3_bind_int64(row, 1, source) : SQLITE_ERROR;
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    sqlite3_reset(row);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    v->file_owner = source;
    *has = v->file_owner_has = rc == SQLITE_ROW;
    return SQLITE_OK;
}

int entry_row_borrow_file(struct catalogue_view *v, enum view_statement which, int64_t source,
                          struct entry_record *record)
{
    sqlite3_stmt *row;
    bool has;
    int rc = owner_has_files(v, source, &has);

    if (rc != SQLITE_OK || !has)
        return rc;
    /* The plus keeps the engine from reading all files of the source instead. */
    row = view_statement(v, which,
                         "SELECT urls, bytes, newest_lastmod FROM source_file"
                         " WHERE +source = ?1 AND site = ?2 AND loc = ?3");
    rc = row != NULL ? sqlite3_bind_int64(row, 1, source) : SQLITE_ERROR;
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(row, 2, record->site_id);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 3, record->loc, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_DONE)
        return SQLITE_OK;
    if (rc != SQLITE_ROW)
        return rc;
    record->has_file = true;
    record->file_urls = number_of(row, 0);
    record->file_bytes = number_of(row, 1);
    record->file_newest_lastmod = (char *)(uintptr_t)sqlite3_column_text(row, 2);
    return SQLITE_OK;
}
