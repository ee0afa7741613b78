/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The opaque text id of an entry: index, position and serial. Index and position are its address,
 * so a lookup needs no SQL index; an id is never valid for another entry, since a serial is used
 * once. Internal to db/. Pure functions, thread safe. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/read/view_pool.h"
#include "server/rules/limits.h"

/* Addresses are signed 64 bit numbers of SQLite, so an index id has 31 bits. */
#define ID_MAX_INDEX INT32_MAX

/* The address (rowid) of a position of an index. */
static inline int64_t id_address(int64_t index, uint32_t position)
{
    return (int64_t)((uint64_t)index << 32 | position);
}
static inline int64_t id_address_index(int64_t address)
{
    return address >> 32;
}
static inline uint32_t id_address_position(int64_t address)
{
    return (uint32_t)(address & UINT32_MAX);
}

/* The value of column `site` in rows of the list: a loc is unique in a site, and in each urlset. */
static inline int64_t list_scope(const struct registry_index *list)
{
    return list->kind == LIST_URLSET ? -list->id : list->site_id;
}

/* Read a column: a text, or NULL; a number that is not negative. */
static inline const char *row_text(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}
static inline uint64_t row_number(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

/* Reads a hash as sql_hash stores it; NULL is read as 0, 0. */
void row_hash(sqlite3_stmt *row, int column, uint64_t hash[2]);

/* A row of `sitemap`, copied out of the statement. */
struct put_row {
    bool found;
    int64_t address;
    int64_t source, serial, registered_at, changed_at;
    bool has_lastmod, has_digest;
    char lastmod[LASTMOD_MAX_CHARS + 1];
    char digest[DIGEST_MAX_BYTES + 1];
    /* NULL: none. After put_row_read borrowed from the transaction, until the next row is read. */
    const char *extensions;
    size_t extensions_len;
};

void id_format(int64_t index, uint32_t position, int64_t serial, char out[ENTRY_ID_SIZE]);
/* Parses an id in exactly the form that id_format writes. Otherwise false, with nothing written. */
bool id_parse(const char *id, int64_t *index, uint32_t *position, int64_t *serial);

/* The cursor of a list: where the next page of the list begins. Internal to db/.
 *
 * A cursor names a place, not a row: the last listed address or loc. So it stays valid when that
 * entry is removed, and entries added meanwhile are before or after it. */

enum cursor_kind {
    CURSOR_POSITION = 'p', /* lists by index and position */
    CURSOR_LOC = 'l',      /* lists by site and loc */
};

struct cursor {
    enum cursor_kind kind;
    int64_t owner;               /* CURSOR_POSITION: index id; CURSOR_LOC: site id */
    uint32_t position;           /* CURSOR_POSITION */
    char loc[LOC_MAX_CHARS + 1]; /* CURSOR_LOC */
};

void cursor_format(const struct cursor *cursor, char out[ENTRY_CURSOR_SIZE]);
/* Parses exactly the form that cursor_format writes. Otherwise false, with `*out` undefined. */
bool cursor_parse(const char *text, struct cursor *out);

/* The columns of an entry record, and functions that read them. Internal to db/, the read side. */

/* For a row `k` of `fetch`, which stores its loc without the origin of its site, if it begins with
 * it: its loc, a condition that it has a loc, and the stored form of a loc. */
#define CHECK_LOC(k)                                                                               \
    "(iif(substr(" k ".loc, 1, 1) = '/', (SELECT origin FROM site WHERE id = " k ".site), '')"     \
    " || " k ".loc)"
#define CHECK_AT(k, text)                                                                          \
    "(" k ".loc IN (" text ", substr(" text ", 8 + instr(substr(" text ", 9), '/')))"              \
    " AND " CHECK_LOC(k) " = " text ")"
#define CHECK_KEPT_LOC(site_id, text)                                                              \
    "coalesce((SELECT substr(" text ", length(origin) + 1) FROM site WHERE id = " site_id          \
    " AND substr(" text ", 1, length(origin) + 1) = origin || '/'), " text ")"

/* The files of sources. For a sitemap that a remote source lists and polls, its row of `fetch`
 * (listed) has all data; other files have a row of source_file_row. The view source_file has both,
 * but no SQL index finds a path in it: use FILE_AT. A claim is stored as '' if it equals lastmod:
 * FILE_CLAIM_TEXT is the claim itself. */
#define FILE_CLAIM_TEXT "iif(claim = '', lastmod, claim)"
#define FILE_KEPT_COLUMNS                                                                          \
    "source, path, site, loc, state, refused, device, inode, size, mtime_ns, ctime_ns, hash,"      \
    " lastmod, urls, bytes, newest_lastmod, one_lastmod, future, problem, detail, line,"           \
    " \"column\", problem_since, remarks, claim"
/* The stored form of a date in `fetch`, and that form as text. A UTC date with seconds is stored as
 * Unix seconds, negative if it was written with +00:00 instead of Z; other dates are stored as
 * text. */
#define DATE_KEPT(text)                                                                            \
    "iif(" text " > '1971', CASE " text " WHEN strftime('%Y-%m-%dT%H:%M:%SZ', " text               \
    ", '+0 seconds')"                                                                              \
    " THEN CAST(strftime('%s', " text ") AS INTEGER)"                                              \
    " WHEN strftime('%Y-%m-%dT%H:%M:%S+00:00', " text ", '+0 seconds')"                            \
    " THEN -CAST(strftime('%s', " text ") AS INTEGER) ELSE " text " END, " text ")"
#define DATE_TEXT(kept)                                                                            \
    "iif(typeof(" kept ") <> 'integer', " kept ", strftime(iif(" kept                              \
    " > 0, '%Y-%m-%dT%H:%M:%SZ', '%Y-%m-%dT%H:%M:%S+00:00'), abs(" kept "), 'unixepoch'))"
/* For a row `k` of `fetch`: the claim of its source, and the date. */
#define CHECK_CLAIM   DATE_TEXT("k.claim")
#define CHECK_LASTMOD "iif(k.lastmod = '', " CHECK_CLAIM ", " DATE_TEXT("k.lastmod") ")"

#define FILE_OF_CHECK FILE_OF_CHECK_BY("")
#define FILE_OF_CHECK_BY(index)                                                                    \
    "SELECT k.source, " CHECK_LOC("k") ", k.site, " CHECK_LOC(                                     \
        "k") ", 0, 0, 0, 0, 0, 0, 0, k.hash, "                                                     \
             " " CHECK_LASTMOD ", k.urls, k.bytes, k.newest_lastmod, k.one_lastmod,"               \
             " 0, NULL, NULL, 0, 0, 0, k.remarks, " CHECK_CLAIM " FROM fetch AS k" index           \
             " WHERE k.list = 0 AND k.listed = 1"
#define FILE_AT(source_id, text)                                                                   \
    "(SELECT " FILE_KEPT_COLUMNS " FROM source_file_row WHERE source = " source_id                 \
    " AND path = " text " UNION ALL " FILE_OF_CHECK " AND k.source = " source_id                   \
    " AND " CHECK_AT("k", text) ")"

/* The rows of the files of a source that belong to an entry. A remote sitemap is found by its path.
 */
#define FILE_ROWS_OF(columns, source_id, site_id, text)                                            \
    "SELECT " columns " FROM source_file_row WHERE +source = " source_id " AND site = " site_id    \
    " AND loc = " text " AND loc <> path UNION ALL SELECT " columns " FROM source_file_row"        \
    " WHERE source = " source_id " AND path = " text " AND site = " site_id " AND loc = path"

/* The name of an entry's owner: a source, or, for a page of a urlset, the urlset. */
#define OWNER_NAME(source)                                                                         \
    "iif(" source " >= 0, (SELECT name FROM source WHERE id = " source "),"                        \
    " '" URLSET_OWNER "' || (SELECT path FROM sitemap_index WHERE id = -(" source ")))"

/* Columns of `sitemap AS e`. */
#define ENTRY_ROW_COLUMNS                                                                          \
    "e.address, iif(e.site > 0, e.site, (SELECT site FROM sitemap_index WHERE id = -e.site)),"     \
    " e.loc, e.lastmod, e.digest, " OWNER_NAME("e.source") ", e.serial, e.registered_at,"          \
                                                           " e.changed_at, e.extensions"
/* True for rows of an index and a site that were not removed. */
#define ENTRY_ROW_LIVE                                                                             \
    "(SELECT i.removed = 0 AND s.removed = 0 FROM sitemap_index AS i"                              \
    " JOIN site AS s ON s.id = i.site WHERE i.id = e.address >> 32)"

/* Fills `*out` with strings borrowed from the row, valid until its next step or reset. False: the
 * row is damaged, or out of memory (see sqlite3_errcode). */
bool entry_row_borrow(sqlite3_stmt *row, struct entry_record *out);

/* The smallest text that sorts after all texts with this prefix: the last byte plus one, at most
 * 0x80 since locs are ASCII. */
void entry_prefix_end(const char *prefix, char out[LOC_MAX_CHARS + 1]);
/* Finds the list's source by name; `*out` is 0 if it is unknown, so that no entry has it. */
enum catalogue_status entry_find_source(struct catalogue_view *v, const struct entry_list *list,
                                        int64_t *out);
/* The first index of the list with id >= `from`, or, with a prefix, the first site; `*out` is 0
 * after the last one. */
enum catalogue_status entry_list_next(struct catalogue_view *v, const struct entry_list *list,
                                      int64_t from, int64_t *out);
/* The value of column `site` in rows of the list (list_scope); 0: any. */
enum catalogue_status entry_find_scope(struct catalogue_view *v, const struct entry_list *list,
                                       int64_t *out);

/* The last revision at which an entry of index ?1 changed, and its stamp, see INDEX_STATE_SIZE. */
#define INDEX_STATE_SQL                                                                            \
    "SELECT touched, touched_stamp FROM sitemap_index WHERE id = ?1 UNION ALL"                     \
    " SELECT revision, stamp FROM page WHERE index_id = ?1 ORDER BY 1 DESC LIMIT 1"
void index_state_format(const char *epoch, uint64_t revision, int64_t stamp,
                        char out[INDEX_STATE_SIZE]);
