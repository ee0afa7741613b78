/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A table of tables: the rows of a site, and the kind of each column. One loop copies them in
 * either direction: out of a catalogue unchanged, or into another one with new ids. */
#include "db/file/site_rows.h"

#include <sqlite3.h>
#include <stddef.h>
#include <string.h>

#include "db/entry.h"
#include "db/file/bind.h"
#include "db/source.h"
#include "db/urlset.h"

/* ?1 is the site. Kinds of columns: '.' copied unchanged; the letters of `map` (site_rows.h); 'O',
 * 'W': an id as in the tables of entries, a site's or source's, or minus a list's; 'A': an address;
 * 'Z', 'T', 'D': a list, site or source, or 0; 'Q': a site or NULL. For the letters of MAY_BE_ZERO
 * `map` may return 0. */
#define MAY_BE_ZERO "RXFHP"
#define LISTS       "(SELECT id FROM sitemap_index WHERE site = ?1 AND removed = 0)"
#define MADE                                                                                       \
    "(SELECT id FROM source WHERE name IN (SELECT name FROM source_made WHERE site = ?1 AND"       \
    " removed = 0))"

#define AS_IT_IS(...) "."

static const struct site_table {
    const char *name, *columns, *kinds, *where;
} tables[] = {
    {"site",
     "id, origin, managed, max_pages, removed, robots_off, robots_revision, robots_changed_at,"
     " frozen, checked, robots",
     "S...H.R.F..", "id = ?1"},
    /* Before urlsets, which name their index. */
    {"sitemap_index",
     "id, site, path, page_pattern, removed, purged, frozen, touched, touched_stamp, removed_at,"
     " removed_by, kind, of_index, extensions" URLSET_SETTINGS(URLSET_COLUMN),
     "LS..H..RXP..Z." URLSET_SETTINGS(AS_IT_IS), "site = ?1 AND removed = 0 ORDER BY id"},
    {"index_peak", "index_id, day, entries", "L..", "index_id IN " LISTS},
    {"sitemap",
     "address, site, loc, lastmod, digest, source, serial, registered_at, changed_at, extensions",
     "AO...WN...", NULL},
    {"segment", "index_id, number, entries, revision", "L..R", "index_id IN " LISTS},
    {"urlset_age", "address, list, at", "AL.", "list IN " LISTS},
/* Tables from here on take effect even while the site is hidden: pages appear in /v1/changes,
 * tokens are valid, names are in use, polls are due. */
#define FIRST_SHOWN "page"
    {"page", "index_id, number, entries, bytes, changed_at, same_second, revision, stamp",
     "L.....RX", "index_id IN " LISTS},
    {"site_host", "site, host, kind", "S..", "site = ?1"},
    {"token", "name, sha256, site, created_at, role, own, prefix, expires_at", "..S.....",
     "site = ?1 AND managed = 0"},
    {"source_made", "name, site" SOURCE_SETTINGS(SOURCE_COLUMN) ", by_site, removed",
     ".S" SOURCE_SETTINGS(AS_IT_IS) "..", "site = ?1 AND removed = 0"},
    {"source_state",
     "source, scanned_at, good_at, held, files, listed, quarantined, hosts, touched", "C........",
     "source IN " MADE},
    {"source_file_row",
     "source, path, site, loc, state, refused, device, inode, size, mtime_ns, ctime_ns, hash,"
     " lastmod, urls, bytes, newest_lastmod, one_lastmod, future, problem, detail, line,"
     " \"column\", problem_since, remarks, claim",
     "C.Q......................", "source IN " MADE},
    {"fetch",
     "site, source, list, loc, state, status, marks, next_at, interval_s, failures, checked_at,"
     " good_ago, changed_at, full_ago, since_ago, etag, last_modified, hash, dateless, urls, bytes,"
     " newest_lastmod, one_lastmod, remarks, problem, detail, line, listed, claim, lastmod",
     "TD............................", "source IN " MADE " OR (site = ?1 AND source = 0)"},
};

/* The entries of a list are neighbours. */
static const char entries_of_site[] =
    " FROM sitemap_index AS i CROSS JOIN sitemap ON address >= (i.id << 32) AND"
    " address < ((i.id + 1) << 32) WHERE i.site = ?1 AND i.removed = 0 ORDER BY i.id, address";

static char *read_of(const struct site_table *t)
{
    /* Both tables of the join have a column `site`. */
    if (t->where == NULL)
        return sqlite3_mprintf("SELECT address, sitemap.site, loc, lastmod, digest, source, serial,"
                               " registered_at, changed_at, sitemap.extensions%s",
                               entries_of_site);
    return sqlite3_mprintf("SELECT %s FROM %s WHERE %s", t->columns, t->name, t->where);
}

static char *write_of(const struct site_table *t)
{
    char places[128] = "?";

    for (size_t i = 1; i < strlen(t->kinds); i++)
        strcat(places, ",?");
    return sqlite3_mprintf("INSERT INTO %s(%s) VALUES(%s)", t->name, t->columns, places);
}

static bool map_id(const struct site_rows *rows, char what, int64_t id, int64_t *out)
{
    *out = rows->map != NULL ? rows->map(rows->context, what, id) : id;
    return *out != 0 || strchr(MAY_BE_ZERO, what) != NULL;
}

/* False: `map` returned 0. */
static bool map_number(const struct site_rows *rows, char kind, int64_t value, int64_t *out)
{
    int64_t id = value;

    switch (kind) {
    case 'A':
        if (!map_id(rows, 'L', value >> 32, &id))
            return false;
        *out = id << 32 | (value & UINT32_MAX);
        return true;
    case 'O':
    case 'W':
        if (value >= 0)
            return map_id(rows, kind == 'O' ? 'S' : 'C', value, out);
        if (!map_id(rows, 'L', -value, &id))
            return false;
        *out = -id;
        return true;
    case 'Z':
    case 'T':
    case 'D':
        *out = 0;
        return value == 0 || map_id(rows,
                                    (char)(kind == 'Z'   ? 'L'
                                           : kind == 'T' ? 'S'
                                                         : 'C'),
                                    value, out);
    case 'Q':
        return map_id(rows, 'S', value, out);
    case 'R':
        *out = 0;
        return value == 0 || map_id(rows, 'R', value, out);
    default:
        return map_id(rows, kind, value, out);
    }
}

static int copy_row(const struct site_rows *rows, const char *kinds, sqlite3_stmt *read,
                    sqlite3_stmt *write)
{
    int rc = SQLITE_OK;

    for (int i = 0; kinds[i] != '\0' && rc == SQLITE_OK; i++) {
        int64_t number;

        if (kinds[i] == '.' || (kinds[i] == 'Q' && sqlite3_column_type(read, i) == SQLITE_NULL))
            rc = sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i));
        else if (map_number(rows, kinds[i], sqlite3_column_int64(read, i), &number))
            rc = sqlite3_bind_int64(write, i + 1, number);
        else
            rc = SQLITE_ABORT;
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_step(write);
    int reset = sqlite3_reset(write);
    sqlite3_clear_bindings(write);
    return rc == SQLITE_DONE ? SQLITE_OK : rc != SQLITE_OK ? rc : reset;
}

static int prepare(sqlite3 *db, char *sql, sqlite3_stmt **out)
{
    int rc = sql != NULL ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;

    sqlite3_free(sql);
    return rc;
}

/* Copies the rows of a table, from where the last call stopped. */
static int copy_table(struct site_rows *rows, const struct site_table *t)
{
    sqlite3_stmt *write = NULL;
    int rc = SQLITE_OK;

    if (rows->read == NULL) {
        rc = prepare(rows->from, read_of(t), &rows->read);
        if (rc == SQLITE_OK)
            rc = sqlite3_bind_int64(rows->read, 1, rows->site);
    }
    if (rc == SQLITE_OK)
        rc = prepare(rows->to, write_of(t), &write);
    while (sql_next(rows->read, &rc)) {
        rc = copy_row(rows, t->kinds, rows->read, write);
        rows->entries += t->where == NULL;
        if (rc == SQLITE_OK && rows->each != NULL && !rows->each(rows->context))
            rc = SQLITE_ABORT;
    }
    sqlite3_finalize(write);
    if (rc == SQLITE_DONE) {
        site_rows_done(rows);
        rows->table++;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int site_rows_copy(struct site_rows *rows, enum site_part upto)
{
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK && rows->table < sizeof tables / sizeof *tables &&
           (upto == SITE_ROWS_ALL || strcmp(tables[rows->table].name, FIRST_SHOWN) != 0))
        rc = copy_table(rows, &tables[rows->table]);
    return rc;
}

void site_rows_done(struct site_rows *rows)
{
    sqlite3_finalize(rows->read);
    rows->read = NULL;
}
