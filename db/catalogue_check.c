/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* sitemapd check: SQLite's own integrity check, then the counts, positions and references that no
 * constraint of the schema covers. Each finding is a sentence. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/catalogue.h"
#include "db/check.h"
#include "db/file/bind.h"
#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/read/registry_store.h"
#include "db/read/row.h"
#include "db/read/view_pool.h"
#include "db/source.h"
#include "server/base/text.h"
#include "server/rules/entry.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/fragment.h"
#include "server/rules/page/render.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* Findings name sites and lists by their URL, or by their id if the rows with the URL are missing.
 */

struct check {
    sqlite3 *db; /* inside one read transaction */
    void (*problem)(void *context, const char *sentence);
    void *context;
    uint64_t count;
    enum catalogue_status failure; /* not OK: the check itself failed */
    /* From the row of `catalogue`. */
    int64_t revision, serial;
};

static void check_report(struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void check_result(struct check *check, int sqlite_result, const char *what);
static sqlite3_stmt *check_prepare(struct check *check, const char *sql, const char *what);
static void check_for_rows(struct check *check, const char *sql, const char *what,
                           void (*each)(struct check *check, sqlite3_stmt *row));

/* The files of sources. A listed file without its entry is not a finding: the entry or its index
 * was removed, and the next scan restores it. */

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text != NULL ? text : "";
}

/* Columns: path, source's name, site, loc, state, hash's length or 16, problem, refused. */
static void on_file(struct check *check, sqlite3_stmt *row)
{
    const char *path = text_of(row, 0), *source = text_of(row, 1), *loc = text_of(row, 3);
    int state = sqlite3_column_int(row, 4);
    bool in_trouble = sqlite3_column_type(row, 6) != SQLITE_NULL;
    struct url url;

    if (path[0] == '\0' || path[0] == '/')
        check_report(check, "source %s: \"%.300s\" is not the path of a file", source, path);
    if (state < SOURCE_FILE_LISTED || state > SOURCE_FILE_QUARANTINED) {
        check_report(check, "source %s: file %.300s has an unknown state", source, path);
        return;
    }
    if (in_trouble != (state == SOURCE_FILE_QUARANTINED))
        check_report(check, "source %s: file %.300s %s", source, path,
                     in_trouble ? "has a problem, but is not quarantined"
                                : "is quarantined without a problem");
    if (sqlite3_column_int(row, 7) != 0 && state != SOURCE_FILE_QUARANTINED)
        check_report(check, "source %s: file %.300s is rejected, but not quarantined", source,
                     path);
    if (sqlite3_column_int(row, 5) != 16)
        check_report(check, "source %s: file %.300s has a hash of %d bytes instead of 16", source,
                     path, sqlite3_column_int(row, 5));
    if (state == SOURCE_FILE_LISTED && sqlite3_column_type(row, 2) == SQLITE_NULL)
        check_report(check, "source %s: file %.300s is listed, but belongs to no site", source,
                     path);
    if (state == SOURCE_FILE_LISTED &&
        (url_parse(loc, strlen(loc), &url, NULL) != RULE_OK || strcmp(url.text, loc) != 0))
        check_report(
            check, "source %s: file %.300s is listed as \"%.300s\", which is not a normalised loc",
            source, path, loc);
}

static void on_count(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "source %s: counts %lld %s, but has %lld", text_of(row, 0),
                 (long long)sqlite3_column_int64(row, 2), text_of(row, 1),
                 (long long)sqlite3_column_int64(row, 3));
}

static void on_stranger(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "source %s: has files, but was never scanned", text_of(row, 0));
}

static void check_sources(struct check *check)
{
    check_for_rows(check,
                   "SELECT f.path, s.name, f.site, f.loc, f.state, coalesce(length(f.hash), 16),"
                   " f.problem, f.refused FROM source_file AS f LEFT JOIN source AS s"
                   " ON s.id = f.source",
                   "files of sources", on_file);
    check_for_rows(
        check,
        "WITH counted AS (SELECT t.source, t.files, t.listed, t.quarantined, count(f.path) AS n,"
        "  count(iif(f.state = 0, 1, NULL)) AS n_listed,"
        "  count(iif(f.state = 3, 1, NULL)) AS n_quarantined"
        "  FROM source_state AS t LEFT JOIN source_file AS f ON f.source = t.source"
        "  GROUP BY t.source),"
        " said(source, what, says, has) AS (SELECT source, 'files', files, n FROM counted"
        "  UNION ALL SELECT source, 'listed files', listed, n_listed FROM counted"
        "  UNION ALL SELECT source, 'quarantined files', quarantined, n_quarantined FROM counted)"
        " SELECT (SELECT name FROM source WHERE id = source), what, says, has FROM said"
        " WHERE says <> has",
        "sources", on_count);
    check_for_rows(check,
                   "SELECT DISTINCT (SELECT name FROM source WHERE id = f.source) FROM"
                   " source_file AS f WHERE f.source NOT IN (SELECT source FROM source_state)",
                   "sources", on_stranger);
}

/* Columns: loc, source, whether that source exists, site, list, state, lengths of both hashes,
 * whether a number is invalid, whether a validator has a line break. */
static void on_fetch(struct check *check, sqlite3_stmt *row)
{
    const char *loc = text_of(row, 0);
    int64_t source = sqlite3_column_int64(row, 1), site = sqlite3_column_int64(row, 3);
    int list = sqlite3_column_int(row, 4), state = sqlite3_column_int(row, 5);
    struct url url;

    if (list < 0 || list > 1 || (list == 1) != (site == 0) || (list == 1 && source == 0))
        check_report(
            check, "poll of %.300s: belongs to neither an upstream's index nor a sitemap of a site",
            loc);
    if (source != 0 && sqlite3_column_int(row, 2) == 0)
        check_report(check, "poll of %.300s: its source does not exist", loc);
    if (state < CHECK_NEW || state >= CHECK_STATES)
        check_report(check, "poll of %.300s: has an unknown state", loc);
    if (sqlite3_column_int(row, 6) != 16 || sqlite3_column_int(row, 7) != 16)
        check_report(check, "poll of %.300s: has an invalid hash", loc);
    if (sqlite3_column_int(row, 8) != 0)
        check_report(check, "poll of %.300s: has a time or a count below 0", loc);
    if (sqlite3_column_int(row, 9) != 0)
        check_report(check, "poll of %.300s: its ETag or Last-Modified has a line break", loc);
    if (list == 0 &&
        (url_parse(loc, strlen(loc), &url, NULL) != RULE_OK || strcmp(url.text, loc) != 0))
        check_report(check, "poll of %.300s: is not a normalised loc", loc);
}

/* Results of polls. A row that nothing names any more is not a finding: the server removes it. */
static void check_fetches(struct check *check)
{
    check_for_rows(check,
                   "SELECT " CHECK_LOC(
                       "f") ", f.source, s.id IS NOT NULL, f.site, f.list, f.state,"
                            " coalesce(length(f.hash), 16), coalesce(length(f.dateless), 16),"
                            " min(f.next_at, f.interval_s, f.failures, f.checked_at, f.changed_at,"
                            "  f.checked_at - max(f.good_ago, f.full_ago, f.since_ago),"
                            "  f.urls, f.bytes, f.line) < 0,"
                            /* they are sent as headers */
                            " coalesce(f.etag, '') || coalesce(f.last_modified, '') GLOB"
                            "  '*[' || char(10) || char(13) || ']*'"
                            " FROM fetch AS f LEFT JOIN source AS s ON s.id = f.source",
                   "polls", on_fetch);
}

/* The recount: entries, segments and pages are each in the order of index and number, so that one
 * walk over all three at once is enough. */

/* A time after all others, since a date in the future is not damage. */
#define SCAN_NOW ((int64_t)1 << 40)

/* Rows of `page` or `segment`, read alongside the entries. */
struct companion {
    const char *name;   /* "page", "segment" */
    sqlite3_stmt *row;  /* index_id, number, entries, revision, bytes */
    bool has_row;       /* `row` is on a row */
    uint32_t positions; /* of one page or segment */
    uint32_t first_number;
    /* Counted from the entries so far. */
    int64_t index; /* 0: none yet */
    int64_t number;
    uint64_t entries, bytes;
};

struct scan {
    struct check *check;
    struct companion page, segment;
    sqlite3_stmt *find_index, *find_page, *find_entry, *find_rows;
    /* The index looked up last. */
    int64_t index;
    char url[LOC_MAX_CHARS + 1]; /* if it is known */
    bool known, removed, purged;
    int64_t site;
    enum list_kind kind;
    unsigned with; /* of a urlset */
};

/* Looks an index up, unless it was looked up last. */
static void look_up(struct scan *s, int64_t index)
{
    int rc;

    if (s->index == index)
        return;
    s->index = index;
    s->known = false;
    sqlite3_reset(s->find_index);
    rc = sql_bind(s->find_index, index);
    if (!sql_next(s->find_index, &rc)) {
        check_result(s->check, rc, "indexes");
        return;
    }
    s->known = true;
    s->site = sqlite3_column_int64(s->find_index, 0);
    s->removed = sqlite3_column_int(s->find_index, 1) != 0;
    s->purged = sqlite3_column_int(s->find_index, 2) != 0;
    s->kind = (enum list_kind)sqlite3_column_int(s->find_index, 3);
    s->with = (unsigned)sqlite3_column_int64(s->find_index, 4);
    snprintf(s->url, sizeof s->url, "%s%s", text_of(s->find_index, 5), text_of(s->find_index, 6));
}

static void step(struct scan *s, struct companion *c)
{
    int rc = sqlite3_step(c->row);

    c->has_row = rc == SQLITE_ROW;
    if (!c->has_row)
        check_result(s->check, rc, c->name);
}

/* ---- pages and segments ---------------------------------------------------------------- */

/* Writes the URL of a page of the urlset at the current row of find_page. */
static bool write_page_url(struct scan *s, int64_t urlset, uint32_t number, char *out, size_t size)
{
    char path[PAGE_PATH_SIZE];
    sqlite3_reset(s->find_page);
    int rc = sql_bind(s->find_page, urlset);
    if (!sql_next(s->find_page, &rc)) {
        check_result(s->check, rc, "urlsets");
        return false;
    }
    const char *of = text_of(s->find_page, 1), *pattern = text_of(s->find_page, 2);
    if (scope_check_index_path(of) != RULE_OK || scope_check_pattern(pattern) != RULE_OK)
        return false; /* reported by another check */
    scope_page_path(of, pattern, number, false, path);
    return snprintf(out, size, "%s%s", text_of(s->find_page, 0), path) < (int)size;
}

/* A page of a urlset that has rows is an entry of its index. */
static void check_listed(struct scan *s, long long urlset, uint32_t number)
{
    char url[LOC_MAX_CHARS + 1];
    if (!write_page_url(s, urlset, number, url, sizeof url))
        return;
    sqlite3_reset(s->find_entry);
    int rc = sql_bind(s->find_entry, sqlite3_column_int64(s->find_page, 4), url);
    if (!sql_next(s->find_entry, &rc) && rc != SQLITE_DONE)
        check_result(s->check, rc, "entries of urlsets");
    else if (rc == SQLITE_DONE || sqlite3_column_int64(s->find_entry, 0) != -urlset ||
             sqlite3_column_int64(s->find_entry, 1) != sqlite3_column_int64(s->find_page, 3))
        check_report(s->check, "page %u of %.300s: is not an entry of its index", number, s->url);
}

/* An entry that has a urlset as its owner is one of its pages, and the page has rows. */
static void check_of_urlset(struct scan *s, const char *where, int64_t urlset, const char *loc)
{
    char url[LOC_MAX_CHARS + 1];
    if (!write_page_url(s, urlset, 1, url, sizeof url)) {
        check_report(s->check, "%s: its urlset %lld does not exist", where, (long long)urlset);
        return;
    }
    size_t origin = strlen(text_of(s->find_page, 0));
    uint32_t number =
        strlen(loc) > origin
            ? scope_page_number(text_of(s->find_page, 1), text_of(s->find_page, 2),
                                LIMIT_URLSET_PAGES_MAX, loc + origin, strlen(loc + origin))
            : 0;
    sqlite3_stmt *row = s->find_rows;
    sqlite3_reset(row);
    int rc = sql_bind(row, urlset, number);
    sql_next(row, &rc);
    if (rc == SQLITE_DONE)
        check_report(s->check, "%s: belongs to urlset %s%.300s, which does not have this page",
                     where, text_of(s->find_page, 0), text_of(s->find_page, 1));
    else if (rc != SQLITE_ROW)
        check_result(s->check, rc, "pages of urlsets");
}

/* Compares the current row of `c` with `entries` and `bytes`, counted from the entries. */
static void evaluate_row(struct scan *s, struct companion *c, uint64_t entries, uint64_t bytes)
{
    long long index = sqlite3_column_int64(c->row, 0), number = sqlite3_column_int64(c->row, 1);
    long long said = sqlite3_column_int64(c->row, 2);

    look_up(s, index);
    if (!s->known || s->removed)
        return; /* a tombstone, or found by foreign_key_check */
    if (number < c->first_number)
        check_report(s->check, "%s %lld of %.300s: the number is out of range", c->name, number,
                     s->url);
    if (said != (long long)entries)
        check_report(s->check, "%s %lld of %.300s: counts %lld %s, but has %llu", c->name, number,
                     s->url, said, plural((uint64_t)said, "entry", "entries"),
                     (unsigned long long)entries);
    if (sqlite3_column_int64(c->row, 3) > s->check->revision)
        check_report(s->check, "%s %lld of %.300s: has a later revision than the catalogue",
                     c->name, number, s->url);
    if (c == &s->segment)
        return;
    bytes += s->kind == LIST_URLSET ? render_urlset_frame_bytes(s->with) : render_frame_bytes();
    if (sqlite3_column_int64(c->row, 4) != (int64_t)bytes)
        check_report(s->check, "page %lld of %.300s: counts %lld bytes, but has %llu", number,
                     s->url, (long long)sqlite3_column_int64(c->row, 4), (unsigned long long)bytes);
    if ((s->with & EXTENSION_NEWS) != 0 && entries > LIMIT_NEWS_ROWS)
        check_report(s->check,
                     "page %lld of %.300s: has more than %u page URLs, the limit with news", number,
                     s->url, LIMIT_NEWS_ROWS);
    if (s->kind == LIST_URLSET && entries > 0)
        check_listed(s, index, (uint32_t)number);
    if (bytes > LIMIT_PAGE_BYTES)
        check_report(s->check, "page %lld of %.300s: has more than %u bytes, the limit of a page",
                     number, s->url, LIMIT_PAGE_BYTES);
}

/* Compares the position of the current row of `c` with a page or segment: before (-1), at (0) or
 * after (1) it. */
static int compare(const struct companion *c, int64_t index, int64_t number)
{
    int64_t row_index = sqlite3_column_int64(c->row, 0);
    int64_t row_number = sqlite3_column_int64(c->row, 1);

    if (row_index != index)
        return row_index < index ? -1 : 1;
    return (row_number > number) - (row_number < number);
}

/* All entries of a page or segment were read: compares them with its row. */
static void close_unit(struct scan *s, struct companion *c)
{
    if (c->index == 0)
        return;
    while (c->has_row && compare(c, c->index, c->number) < 0) {
        evaluate_row(s, c, 0, 0);
        step(s, c);
    }
    if (c->has_row && compare(c, c->index, c->number) == 0) {
        evaluate_row(s, c, c->entries, c->bytes);
        step(s, c);
    } else {
        look_up(s, c->index);
        check_report(s->check, "%s %lld of %.300s: has %llu %s, but its own row is missing",
                     c->name, (long long)c->number, s->url, (unsigned long long)c->entries,
                     plural(c->entries, "entry", "entries"));
    }
    c->index = 0;
}

static void count_in(struct scan *s, struct companion *c, int64_t index, uint32_t position,
                     uint32_t bytes)
{
    int64_t number = (int64_t)(position / c->positions) + c->first_number;

    if (c->index != index || c->number != number) {
        close_unit(s, c);
        c->index = index;
        c->number = number;
        c->entries = c->bytes = 0;
    }
    c->entries++;
    c->bytes += bytes;
}

/* Rows after the last entry. */
static void close_rest(struct scan *s, struct companion *c)
{
    close_unit(s, c);
    while (c->has_row && s->check->failure == CATALOGUE_OK) {
        evaluate_row(s, c, 0, 0);
        step(s, c);
    }
}

/* ---- entries --------------------------------------------------------------------------- */

static void check_loc(struct scan *s, const char *where, const char *loc, size_t len)
{
    struct url url;

    if (url_parse(loc, len, &url, NULL) != RULE_OK || url.len != len ||
        memcmp(url.text, loc, len) != 0)
        check_report(s->check, "%s: \"%.300s\" is not a normalised loc", where, loc);
}

static void check_lastmod(struct scan *s, const char *where, const char *text, size_t len)
{
    struct lastmod lastmod;

    if (lastmod_parse(text, len, SCAN_NOW, &lastmod, NULL) != RULE_OK ||
        strcmp(lastmod.text, text) != 0)
        check_report(s->check, "%s: \"%.100s\" is not a normalised lastmod", where, text);
}

/* The last second of the year 9999: the last one with a date. */
#define TIME_MAX INT64_C(253402300799)

static void check_extensions(struct check *check, const char *where, const char *fragment)
{
    bool no_memory;

    if (fragment_is_whole(fragment, &no_memory))
        return;
    if (no_memory && check->failure == CATALOGUE_OK)
        check->failure = CATALOGUE_NO_MEMORY;
    else if (!no_memory)
        check_report(check, "%s: its extensions are malformed", where);
}

static void check_entry_fields(struct scan *s, const char *where, sqlite3_stmt *row)
{
    const char *digest = (const char *)sqlite3_column_text(row, 8);
    int64_t registered = sqlite3_column_int64(row, 9), changed = sqlite3_column_int64(row, 10);

    if (digest != NULL &&
        entry_check_digest(digest, (size_t)sqlite3_column_bytes(row, 8)) != RULE_OK)
        check_report(s->check, "%s: its digest of %d bytes is malformed", where,
                     sqlite3_column_bytes(row, 8));
    if (registered < 0 || registered > TIME_MAX || changed < 0 || changed > TIME_MAX)
        check_report(s->check, "%s: was registered at %lld and changed at %lld, out of range",
                     where, (long long)registered, (long long)changed);
    if (sqlite3_column_int64(row, 7) > EXTENSIONS_MAX_BYTES)
        check_report(s->check, "%s: has %lld bytes of extensions, more than the limit of %d", where,
                     (long long)sqlite3_column_int64(row, 7), EXTENSIONS_MAX_BYTES);
    else if (sqlite3_column_type(row, 11) != SQLITE_NULL)
        check_extensions(s->check, where, text_of(row, 11));
}

/* Columns: address, site, loc, lastmod, serial, whether its source exists, its source, the bytes of
 * its extensions, digest, registered_at, changed_at, extensions. */
static void entry_validate(struct scan *s, sqlite3_stmt *row)
{
    int64_t index = id_address_index(sqlite3_column_int64(row, 0));
    uint32_t position = id_address_position(sqlite3_column_int64(row, 0));
    const char *loc = (const char *)sqlite3_column_text(row, 2);
    size_t loc_len = (size_t)sqlite3_column_bytes(row, 2);
    const char *lastmod = (const char *)sqlite3_column_text(row, 3);
    int64_t serial = sqlite3_column_int64(row, 4);
    bool first_of_index = s->index != index;
    char where[400];

    look_up(s, index);
    if (!s->known || s->purged) {
        if (first_of_index)
            check_report(s->check, "index %lld: does not exist, but has entries", (long long)index);
        return;
    }
    if (s->removed || loc == NULL)
        return; /* being purged; without a loc: integrity_check reported it */
    snprintf(where, sizeof where, "entry at position %u of %.300s", position, s->url);
    int64_t scope = s->kind == LIST_URLSET ? -index : s->site;
    if (sqlite3_column_int64(row, 1) != scope)
        check_report(s->check, "%s: belongs to site %lld, but its index belongs to site %lld",
                     where, (long long)sqlite3_column_int64(row, 1), (long long)scope);
    if (serial < 1 || serial > s->check->serial)
        check_report(s->check, "%s: its serial %lld was never assigned", where, (long long)serial);
    int64_t source = sqlite3_column_int64(row, 6);
    if (source < 0)
        check_of_urlset(s, where, -source, loc);
    else if (sqlite3_column_int(row, 5) == 0)
        check_report(s->check, "%s: its source does not exist", where);
    check_loc(s, where, loc, loc_len);
    if (lastmod != NULL)
        check_lastmod(s, where, lastmod, (size_t)sqlite3_column_bytes(row, 3));
    check_entry_fields(s, where, row);
    uint32_t bytes = s->kind == LIST_URLSET
                         ? render_url_bytes(loc, loc_len, (size_t)sqlite3_column_int64(row, 7))
                         : render_entry_bytes(loc, loc_len);
    count_in(s, &s->page, index, position, bytes);
    count_in(s, &s->segment, index, position, 0);
}

/* Checks each entry and compares the counts of pages and segments, in one pass by address. The
 * memory that it needs does not depend on the number of entries. */
static void check_scan(struct check *check)
{
    struct scan s = {
        .check = check,
        .page = {.name = "page", .positions = LIMIT_PAGE_ENTRIES, .first_number = 1},
        .segment = {.name = "segment", .positions = SEGMENT_POSITIONS},
        .index = INT64_MIN, /* no index has this id */
    };
    sqlite3_stmt *row =
        check_prepare(check,
                      "SELECT address, site, loc, lastmod, serial,"
                      " EXISTS (SELECT 1 FROM source WHERE id = source), source,"
                      " length(CAST(extensions AS BLOB)), digest, registered_at, changed_at,"
                      " extensions"
                      " FROM sitemap ORDER BY address",
                      "entries");
    int rc = SQLITE_DONE;

    s.page.row = check_prepare(check,
                               "SELECT index_id, number, entries, revision, bytes"
                               " FROM page ORDER BY index_id, number",
                               "pages");
    s.segment.row = check_prepare(check,
                                  "SELECT index_id, number, entries, revision FROM segment"
                                  " ORDER BY index_id, number",
                                  "segments");
    s.find_index = check_prepare(check,
                                 "SELECT i.site, i.removed OR s.removed, i.purged, i.kind,"
                                 " i.extensions, s.origin, i.path"
                                 " FROM sitemap_index AS i JOIN site AS s ON s.id = i.site"
                                 " WHERE i.id = ?1",
                                 "indexes");
    s.find_page = check_prepare(check,
                                "SELECT s.origin, i.path, i.page_pattern, i.of_index, i.site"
                                " FROM sitemap_index AS i JOIN site AS s ON s.id = i.site"
                                " WHERE i.id = ?1 AND i.kind = 1 AND i.removed = 0",
                                "urlsets");
    s.find_entry = check_prepare(
        check, "SELECT source, address >> 32 FROM sitemap WHERE site = ?1 AND loc = ?2", "entries");
    s.find_rows = check_prepare(
        check, "SELECT 1 FROM page WHERE index_id = ?1 AND number = ?2 AND entries > 0", "pages");
    if (row != NULL && s.page.row != NULL && s.segment.row != NULL && s.find_index != NULL &&
        s.find_page != NULL && s.find_entry != NULL && s.find_rows != NULL) {
        step(&s, &s.page);
        step(&s, &s.segment);
        while (check->failure == CATALOGUE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
            entry_validate(&s, row);
        if (check->failure == CATALOGUE_OK)
            check_result(check, rc, "entries");
        close_rest(&s, &s.page);
        close_rest(&s, &s.segment);
    }
    sqlite3_finalize(row);
    sqlite3_finalize(s.page.row);
    sqlite3_finalize(s.segment.row);
    sqlite3_finalize(s.find_index);
    sqlite3_finalize(s.find_page);
    sqlite3_finalize(s.find_entry);
    sqlite3_finalize(s.find_rows);
}

/* Maximum number of messages of integrity_check. */
#define CHECK_MAX_MESSAGES "100"

/* After a failed read nothing is reported: findings would be wrong. */
static void check_report(struct check *check, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;

    if (check->failure == CATALOGUE_OK && sqlite3_errcode(check->db) == SQLITE_NOMEM)
        check->failure = CATALOGUE_NO_MEMORY; /* a column's text */
    if (check->failure != CATALOGUE_OK)
        return;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (char *at = sentence; (at = strchr(at, '\n')) != NULL;)
        *at = ' '; /* SQLite's messages have line breaks */
    check->count++;
    if (check->problem != NULL)
        check->problem(check->context, sentence);
}

/* Checks the result that ended a statement (anything but ROW): damage is a finding, other errors
 * are failures of the check. `what` names the data that was read. */
static void check_result(struct check *check, int sqlite_result, const char *what)
{
    enum catalogue_status status = connection_status(sqlite_result);

    if (status == CATALOGUE_CORRUPT || (sqlite_result & 0xff) == SQLITE_ERROR)
        check_report(check, "%s: cannot be read: %s", what, sqlite3_errmsg(check->db));
    else if (status != CATALOGUE_OK)
        check->failure = status;
}

/* Prepares a statement; reports a failure and returns NULL. */
static sqlite3_stmt *check_prepare(struct check *check, const char *sql, const char *what)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(check->db, sql, -1, &statement, NULL);

    if (rc != SQLITE_OK)
        check_result(check, rc, what);
    return statement;
}

/* Runs `sql` and calls `each` for every row. */
static void check_for_rows(struct check *check, const char *sql, const char *what,
                           void (*each)(struct check *check, sqlite3_stmt *row))
{
    sqlite3_stmt *row = check_prepare(check, sql, what);
    int rc = SQLITE_DONE;

    while (row != NULL && check->failure == CATALOGUE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        each(check, row);
    if (row != NULL && check->failure == CATALOGUE_OK)
        check_result(check, rc, what);
    sqlite3_finalize(row);
}

/* ---- the file as SQLite sees it -------------------------------------------------------- */

/* integrity_check reports a page that it had no memory for as a damaged page. */
static void on_integrity(struct check *check, sqlite3_stmt *row)
{
    static const char unread[] = "unable to get the page. error code=";
    const char *sentence = text_of(row, 0), *code = strstr(sentence, unread);

    if (sentence[0] == '\0' || (code != NULL && atoi(code + strlen(unread)) == SQLITE_NOMEM))
        check->failure = CATALOGUE_NO_MEMORY;
    else if (strcmp(sentence, "ok") != 0)
        check_report(check, "the file: %s", sentence);
}

static void on_missing_parent(struct check *check, sqlite3_stmt *row)
{
    uint64_t rows = (uint64_t)sqlite3_column_int64(row, 4);

    check_report(check, "table %s: %" PRIu64 " %s %s %lld, which does not exist in table %s",
                 text_of(row, 0), rows, plural(rows, "row has", "rows have"), text_of(row, 1),
                 (long long)sqlite3_column_int64(row, 3), text_of(row, 2));
}

/* Columns: table, column, parent. One finding for each missing id, with the number of its rows: the
 * engine reports each row, without the id. */
static void on_foreign_key(struct check *check, sqlite3_stmt *row)
{
    const char *table = text_of(row, 0), *column = text_of(row, 1), *parent = text_of(row, 2);
    char sql[512];

    sqlite3_snprintf(sizeof sql, sql,
                     "SELECT %Q, %Q, %Q, \"%w\", count(*) FROM \"%w\""
                     " WHERE \"%w\" NOT IN (SELECT id FROM \"%w\") GROUP BY 4",
                     table, column, parent, column, table, column, parent);
    check_for_rows(check, sql, "references", on_missing_parent);
}

struct schema_check {
    struct check *check;
    bool foreign;
};

static void on_schema(void *context, const char *type, const char *name, const char *how,
                      bool foreign)
{
    struct schema_check *s = context;

    (void)type;
    s->foreign = s->foreign || foreign;
    check_report(s->check, "the schema: %.300s is %s", name, how);
}

/* Compares the schema with that of a new catalogue: without a unique index a loc could occur twice,
 * and a foreign trigger or view could do anything. False: the file must not be queried further. */
static bool check_schema(struct check *check)
{
    struct schema_check s = {.check = check};

    check_result(check, schema_compare(check->db, on_schema, &s), "the schema");
    return !s.foreign && check->failure == CATALOGUE_OK;
}

static void on_catalogue(struct check *check, sqlite3_stmt *row)
{
    int64_t registry_revision = sqlite3_column_int64(row, 2);

    check->revision = sqlite3_column_int64(row, 1);
    check->serial = sqlite3_column_int64(row, 3);
    if (strlen(text_of(row, 0)) != 32)
        check_report(check, "the catalogue: its epoch does not have 32 digits");
    if (registry_revision < 0 || registry_revision > check->revision)
        check_report(check, "the catalogue: registry revision %lld is later than revision %lld",
                     (long long)registry_revision, (long long)check->revision);
}

static void on_site(struct check *check, sqlite3_stmt *row)
{
    const char *origin = text_of(row, 1);
    struct url url;

    if (url_parse_origin(origin, strlen(origin), &url) != RULE_OK || strcmp(url.text, origin) != 0)
        check_report(check, "site %lld: \"%.300s\" is not a normalised origin",
                     (long long)sqlite3_column_int64(row, 0), origin);
    if (sqlite3_column_int64(row, 2) < 1)
        check_report(check, "site %.300s: its limit of index files is below 1", origin);
}

static void on_host(struct check *check, sqlite3_stmt *row)
{
    const char *host = text_of(row, 1);
    char normal[HOST_MAX_CHARS + 7];

    if (url_parse_host(host, strlen(host), normal) != RULE_OK || strcmp(normal, host) != 0)
        check_report(check, "site %.300s: \"%.300s\" is not a normalised host", text_of(row, 0),
                     host);
}

static void on_index(struct check *check, sqlite3_stmt *row)
{
    const char *url = text_of(row, 0), *path = text_of(row, 1), *pattern = text_of(row, 2);

    if (scope_check_index_path(path) != RULE_OK)
        check_report(check, "index %.300s: \"%.300s\" is not the path of an index", url, path);
    if (scope_check_pattern(pattern) != RULE_OK)
        check_report(check, "index %.300s: \"%.300s\" is not a page pattern", url, pattern);
    if (sqlite3_column_int(row, 3) != 0)
        check_report(check, "index %.300s: its site was removed, but the index was not", url);
    if (sqlite3_column_int(row, 4) != 0)
        check_report(check, "index %.300s: was purged, but not removed", url);
    if (sqlite3_column_int(row, 5) > LIST_URLSET)
        check_report(check, "index %.300s: has the unknown kind %d", url,
                     sqlite3_column_int(row, 5));
    if (sqlite3_column_int(row, 5) == LIST_URLSET && sqlite3_column_int(row, 6) == 0)
        check_report(check, "urlset %.300s: its index does not exist", url);
}

static void on_token(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "token %.300s: its hash has %d bytes instead of 32", text_of(row, 0),
                 sqlite3_column_int(row, 1));
}

static void on_double(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "entry %.300s: occurs %d times in its %s", text_of(row, 1),
                 sqlite3_column_int(row, 2), sqlite3_column_int64(row, 0) < 0 ? "urlset" : "site");
}

static void on_segment_newer(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "segment %d of %.300s: has a later revision than its page",
                 sqlite3_column_int(row, 1), text_of(row, 0));
}

/* Times and numbers that no constraint bounds: the table, an expression that names the row, and the
 * condition of a finding. ?1 is the last second that has a date, ?2 the most entries of a list. A
 * row of urlset_age that outlived its page URL is not a finding. */
#define PLACE_OF_AGE "(address >> 32) || ':' || (address & 4294967295)"
#define IS_NO_TIME   " NOT BETWEEN 0 AND ?1"
static const struct bounded_number {
    const char *table, *row, *name, *fault;
} bounded_numbers[] = {
    {"site", "origin", "robots_changed_at", IS_NO_TIME},
    {"sitemap_index", "path", "removed_at", IS_NO_TIME},
    {"sitemap_index", "path", "max_pages", " NOT BETWEEN 0 AND 50000"},
    {"sitemap_index", "path", "max_page_urls", " NOT BETWEEN 0 AND 50000"},
    {"sitemap_index", "path", "max_page_bytes", " NOT BETWEEN 0 AND 52428800"},
    {"sitemap_index", "path", "expires_s", " NOT BETWEEN 0 AND 604799395200"}, /* 999999w */
    {"page", "index_id || ':' || number", "changed_at", IS_NO_TIME},
    {"token", "name", "created_at", IS_NO_TIME},
    {"token", "name", "expires_at", IS_NO_TIME},
    {"urlset_age", PLACE_OF_AGE, "at", IS_NO_TIME},
    {"urlset_age", PLACE_OF_AGE, "list", " <> address >> 32"},
    {"index_peak", "index_id || ':' || day", "day", " NOT BETWEEN 0 AND ?1 / 86400"},
    {"index_peak", "index_id || ':' || day", "entries", " NOT BETWEEN 0 AND ?2"},
};

_Static_assert(LIMIT_URLSET_PAGES_MAX == 50000 && LIMIT_PAGE_ENTRIES == 50000 &&
                   LIMIT_PAGE_BYTES == 52428800,
               "as the rows above say");

static void check_number(struct check *check, const struct bounded_number *n)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT %s, %s FROM %s WHERE %s%s", n->row, n->name, n->table,
             n->name, n->fault);
    sqlite3_stmt *row = check_prepare(check, sql, n->table);
    int rc = SQLITE_OK;

    if (row == NULL)
        return;
    if (sqlite3_bind_parameter_count(row) > 0)
        rc = sqlite3_bind_int64(row, 1, TIME_MAX);
    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(row) > 1)
        rc = sqlite3_bind_int64(row, 2, (int64_t)LIMIT_SITE_PAGES_MAX * LIMIT_PAGE_ENTRIES);
    while (sql_next(row, &rc)) {
        check_report(check, "%s %s: %s %lld is out of range", n->table, text_of(row, 0), n->name,
                     (long long)sqlite3_column_int64(row, 1));
        rc = SQLITE_OK;
    }
    check_result(check, rc, n->table);
    sqlite3_finalize(row);
}

static void check_numbers(struct check *check)
{
    for (size_t i = 0; i < sizeof bounded_numbers / sizeof *bounded_numbers; i++)
        if (check->failure == CATALOGUE_OK)
            check_number(check, &bounded_numbers[i]);
}

static void check_tables(struct check *check)
{
    uint64_t before = check->count;
    struct registry *registry;
    enum catalogue_status status;

    check_for_rows(check, "SELECT id, origin, max_pages FROM site WHERE removed = 0", "sites",
                   on_site);
    check_for_rows(check,
                   "SELECT s.origin, h.host FROM site_host AS h JOIN site AS s"
                   " ON s.id = h.site AND s.removed = 0",
                   "hosts", on_host);
    check_for_rows(check,
                   "SELECT s.origin || i.path, i.path, i.page_pattern, s.removed, i.purged, i.kind,"
                   " EXISTS (SELECT 1 FROM sitemap_index AS o WHERE o.id = i.of_index"
                   " AND o.kind = 0 AND o.removed = 0 AND o.site = i.site)"
                   " FROM sitemap_index AS i JOIN site AS s ON s.id = i.site WHERE i.removed = 0",
                   "indexes", on_index);
    check_for_rows(check, "SELECT name, length(sha256) FROM token WHERE length(sha256) <> 32",
                   "tokens", on_token);
    check_for_rows(check,
                   "SELECT site, loc, count(*) FROM sitemap GROUP BY site, loc HAVING count(*) > 1",
                   "entries by loc", on_double);
    check_for_rows(check,
                   "SELECT s.origin || i.path, g.number FROM segment AS g JOIN sitemap_index AS i"
                   " ON i.id = g.index_id AND i.removed = 0 JOIN site AS s ON s.id = i.site"
                   " LEFT JOIN page AS p ON p.index_id = g.index_id"
                   " AND p.number = g.number / 200 + 1 WHERE coalesce(p.revision, -1) < g.revision",
                   "segments", on_segment_newer);
    check_numbers(check);
    if (check->failure != CATALOGUE_OK)
        return;
    /* A catalogue that cannot be loaded is a finding even if all checks above passed. */
    status = registry_load(check->db, NULL, &registry);
    if (status == CATALOGUE_OK)
        registry_unref(registry);
    else if (status != CATALOGUE_CORRUPT)
        check->failure = status;
    else if (check->count == before)
        check_report(check, "the registry: cannot be read");
}
_Static_assert(PAGE_SEGMENTS == 200, "as the statement above says");

/* ---- the whole check ------------------------------------------------------------------- */

enum catalogue_status catalogue_check(struct catalogue *c,
                                      void (*problem)(void *context, const char *sentence),
                                      void *context, uint64_t *count)
{
    struct check check = {.problem = problem, .context = context, .revision = -1};
    char why[256];
    int rc;

    *count = 0;
    check.failure = view_pool_connect(c->views, &check.db, why, sizeof why);
    if (check.failure != CATALOGUE_OK)
        return check.failure;
    rc = sqlite3_exec(check.db, "BEGIN; SELECT 1 FROM catalogue", NULL, NULL, NULL);
    check_result(&check, rc, "the catalogue");
    if (rc == SQLITE_OK && !check_schema(&check))
        rc = SQLITE_CORRUPT;
    if (rc == SQLITE_OK) {
        check_for_rows(&check, "PRAGMA integrity_check(" CHECK_MAX_MESSAGES ")", "the file",
                       on_integrity);
        check_for_rows(&check,
                       "SELECT DISTINCT c.\"table\", l.\"from\", c.parent"
                       " FROM pragma_foreign_key_check AS c,"
                       " pragma_foreign_key_list(c.\"table\") AS l WHERE l.id = c.fkid",
                       "references", on_foreign_key);
        check_for_rows(&check,
                       "SELECT epoch, revision, registry_revision, serial FROM catalogue"
                       " WHERE one = 1",
                       "the catalogue", on_catalogue);
        if (check.revision < 0 && check.failure == CATALOGUE_OK)
            check_report(&check, "the catalogue: its row is missing");
    }
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_tables(&check);
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_scan(&check);
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_sources(&check);
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_fetches(&check);
    connection_close(check.db);
    *count = check.count;
    return check.failure;
}
