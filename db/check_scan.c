/* The recount: entries, segments and pages are each in the order of index and number, so that one
 * walk over all three at once is enough. */
#include <string.h>

#include "db/check.h"
#include "db/id.h"
#include "server/rules/lastmod.h"
#include "server/rules/plural.h"
#include "server/rules/render.h"
#include "server/rules/url.h"

/* A time that nothing is ahead of: what was in the future once is no damage. */
#define SCAN_NOW ((int64_t)1 << 40)

/* Rows of `page` or `segment`, read alongside the entries. */
struct companion {
    const char *name;   /* "page", "segment" */
    sqlite3_stmt *row;  /* index_id, number, entries, revision, changed_at, bytes */
    bool has_row;       /* it stands on a row */
    uint32_t positions; /* of one page or segment */
    uint32_t first_number;
    /* What the entries met so far amount to. */
    int64_t index; /* 0: none yet */
    int64_t number;
    uint64_t entries, bytes;
};

struct scan {
    struct check *check;
    struct companion page, segment;
    sqlite3_stmt *find_index;
    /* The index last asked for. */
    int64_t index;
    bool known, removed, purged;
    int64_t site;
};

/* Looks an index up, unless it is the last one. */
static void look_up(struct scan *s, int64_t index)
{
    int rc;

    if (s->index == index)
        return;
    s->index = index;
    s->known = false;
    sqlite3_reset(s->find_index);
    rc = sqlite3_bind_int64(s->find_index, 1, index);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s->find_index);
    if (rc != SQLITE_ROW) {
        check_result(s->check, rc, "indexes");
        return;
    }
    s->known = true;
    s->site = sqlite3_column_int64(s->find_index, 0);
    s->removed = sqlite3_column_int(s->find_index, 1) != 0;
    s->purged = sqlite3_column_int(s->find_index, 2) != 0;
}

static void step(struct scan *s, struct companion *c)
{
    int rc = sqlite3_step(c->row);

    c->has_row = rc == SQLITE_ROW;
    if (!c->has_row)
        check_result(s->check, rc, c->name);
}

/* ---- pages and segments ---------------------------------------------------------------- */

/* The row that `c` stands on, where the entries say `entries` and `bytes`. */
static void judge_row(struct scan *s, struct companion *c, uint64_t entries, uint64_t bytes)
{
    long long index = sqlite3_column_int64(c->row, 0), number = sqlite3_column_int64(c->row, 1);
    long long said = sqlite3_column_int64(c->row, 2);

    look_up(s, index);
    if (!s->known || s->removed)
        return; /* a tombstone, or found by foreign_key_check */
    if (number < c->first_number)
        check_report(s->check, "%s %lld of index %lld: there is no such number", c->name, number,
                     index);
    if (said != (long long)entries)
        check_report(s->check, "%s %lld of index %lld: says %lld %s, has %llu", c->name, number,
                     index, said, plural((uint64_t)said, "entry", "entries"),
                     (unsigned long long)entries);
    if (sqlite3_column_int64(c->row, 3) > s->check->revision)
        check_report(s->check, "%s %lld of index %lld: has a revision that is still to come",
                     c->name, number, index);
    if (c == &s->segment)
        return;
    bytes += render_frame_bytes();
    if (sqlite3_column_int64(c->row, 5) != (int64_t)bytes)
        check_report(s->check, "page %lld of index %lld: says %lld bytes, has %llu", number, index,
                     (long long)sqlite3_column_int64(c->row, 5), (unsigned long long)bytes);
    if (bytes > LIMIT_PAGE_BYTES)
        check_report(s->check, "page %lld of index %lld: has more than %u bytes", number, index,
                     LIMIT_PAGE_BYTES);
    if (sqlite3_column_int64(c->row, 4) > s->check->changed_at)
        check_report(s->check, "page %lld of index %lld: was changed after the catalogue was",
                     number, index);
}

/* Where the row that `c` stands on lies: before (-1), at (0) or behind (1) a page or segment. */
static int compare(const struct companion *c, int64_t index, int64_t number)
{
    int64_t row_index = sqlite3_column_int64(c->row, 0);
    int64_t row_number = sqlite3_column_int64(c->row, 1);

    if (row_index != index)
        return row_index < index ? -1 : 1;
    return (row_number > number) - (row_number < number);
}

/* The entries of a page or segment are all met: compares them with its row. */
static void close_unit(struct scan *s, struct companion *c)
{
    if (c->index == 0)
        return;
    while (c->has_row && compare(c, c->index, c->number) < 0) {
        judge_row(s, c, 0, 0);
        step(s, c);
    }
    if (c->has_row && compare(c, c->index, c->number) == 0) {
        judge_row(s, c, c->entries, c->bytes);
        step(s, c);
    } else {
        check_report(s->check, "%s %lld of index %lld: has %llu %s, but no row", c->name,
                     (long long)c->number, (long long)c->index, (unsigned long long)c->entries,
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

/* Rows behind the last entry. */
static void close_rest(struct scan *s, struct companion *c)
{
    close_unit(s, c);
    while (c->has_row && s->check->failure == CATALOGUE_OK) {
        judge_row(s, c, 0, 0);
        step(s, c);
    }
}

/* ---- entries --------------------------------------------------------------------------- */

static void judge_loc(struct scan *s, const char *where, const char *loc, size_t len)
{
    struct url url;

    if (url_parse(loc, len, &url, NULL) != RULE_OK || url.len != len ||
        memcmp(url.text, loc, len) != 0)
        check_report(s->check, "%s: \"%.300s\" is no normal loc", where, loc);
}

static void judge_lastmod(struct scan *s, const char *where, const char *text, size_t len)
{
    struct lastmod lastmod;

    if (lastmod_parse(text, len, SCAN_NOW, &lastmod, NULL) != RULE_OK ||
        strcmp(lastmod.text, text) != 0)
        check_report(s->check, "%s: \"%.100s\" is no normal lastmod", where, text);
}

/* Columns: address, site, loc, lastmod, serial, changed_at, whether its source exists. */
static void judge_entry(struct scan *s, sqlite3_stmt *row)
{
    int64_t index = id_address_index(sqlite3_column_int64(row, 0));
    uint32_t position = id_address_position(sqlite3_column_int64(row, 0));
    const char *loc = (const char *)sqlite3_column_text(row, 2);
    size_t loc_len = (size_t)sqlite3_column_bytes(row, 2);
    const char *lastmod = (const char *)sqlite3_column_text(row, 3);
    int64_t serial = sqlite3_column_int64(row, 4);
    bool first_of_index = s->index != index;
    char where[80];

    look_up(s, index);
    if (!s->known || s->purged) {
        if (first_of_index)
            check_report(s->check, "index %lld: does not exist, but has entries", (long long)index);
        return;
    }
    if (s->removed || loc == NULL)
        return; /* its purge is under way; no loc: integrity_check told */
    sqlite3_snprintf(sizeof where, where, "entry at %lld:%u", (long long)index, position);
    if (sqlite3_column_int64(row, 1) != s->site)
        check_report(s->check, "%s: is of site %lld, its index of %lld", where,
                     (long long)sqlite3_column_int64(row, 1), (long long)s->site);
    if (serial < 1 || serial > s->check->serial)
        check_report(s->check, "%s: its serial %lld was never given", where, (long long)serial);
    if (sqlite3_column_int64(row, 5) > s->check->changed_at)
        check_report(s->check, "%s: was changed after the catalogue was", where);
    if (sqlite3_column_int(row, 6) == 0)
        check_report(s->check, "%s: its source does not exist", where);
    judge_loc(s, where, loc, loc_len);
    if (lastmod != NULL)
        judge_lastmod(s, where, lastmod, (size_t)sqlite3_column_bytes(row, 3));
    count_in(s, &s->page, index, position, render_entry_bytes(loc, loc_len));
    count_in(s, &s->segment, index, position, 0);
}

void check_scan(struct check *check)
{
    struct scan s = {
        .check = check,
        .page = {.name = "page", .positions = LIMIT_PAGE_ENTRIES, .first_number = 1},
        .segment = {.name = "segment", .positions = SEGMENT_POSITIONS},
        .index = INT64_MIN, /* no address has it */
    };
    sqlite3_stmt *row = check_prepare(
        check,
        "SELECT address, site, loc, lastmod, serial, changed_at,"
        " EXISTS (SELECT 1 FROM source WHERE id = source) FROM sitemap ORDER BY address",
        "entries");
    int rc = SQLITE_DONE;

    s.page.row = check_prepare(check,
                               "SELECT index_id, number, entries, revision, changed_at, bytes"
                               " FROM page ORDER BY index_id, number",
                               "pages");
    s.segment.row = check_prepare(check,
                                  "SELECT index_id, number, entries, revision FROM segment"
                                  " ORDER BY index_id, number",
                                  "segments");
    s.find_index = check_prepare(check,
                                 "SELECT i.site, i.removed OR s.removed, i.purged"
                                 " FROM sitemap_index AS i JOIN site AS s ON s.id = i.site"
                                 " WHERE i.id = ?1",
                                 "indexes");
    if (row != NULL && s.page.row != NULL && s.segment.row != NULL && s.find_index != NULL) {
        step(&s, &s.page);
        step(&s, &s.segment);
        while (check->failure == CATALOGUE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
            judge_entry(&s, row);
        if (check->failure == CATALOGUE_OK)
            check_result(check, rc, "entries");
        close_rest(&s, &s.page);
        close_rest(&s, &s.segment);
    }
    sqlite3_finalize(row);
    sqlite3_finalize(s.page.row);
    sqlite3_finalize(s.segment.row);
    sqlite3_finalize(s.find_index);
}
