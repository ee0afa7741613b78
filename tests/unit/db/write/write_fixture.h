/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue opened for writing in a folder of its own, and short names for what tests do to it.
 * Every close holds the file to its invariants with plain SQL, whatever the test did. */
#pragma once

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* cmocka.h needs the first four. */
#include <cmocka.h>
#include <sqlite3.h>

#include "db/catalogue.h"
#include "db/read/row.h"
#include "server/rules/page/render.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/lib/scratch.h"

#define ORIGIN "https://www.example.com"
#define INDEX  "/sitemap_index.xml"

/* 0: the system's. The writer reads it while it idles, too. */
static _Atomic int64_t fixture_clock;
static inline int64_t fixture_now(void)
{
    int64_t set = fixture_clock;
    return set ? set : (int64_t)time(NULL);
}

struct write_fixture {
    char folder[64];
    char path[96];
    struct catalogue_options options;
    struct catalogue *c;
    sqlite3 *db; /* a reader beside it, for what the header does not show */
    int64_t site, index;
};

static inline struct change_result apply(struct write_fixture *f, const struct change *change)
{
    struct change_result result;
    catalogue_apply(f->c, change, &result);
    spool_free(result.rows);
    result.rows = NULL;
    return result;
}

/* For those who do not look at the entry. */
static inline struct change_result apply_plain(struct write_fixture *f, const struct change *change)
{
    struct change_result result = apply(f, change);
    change_result_done(&result);
    return result;
}

/* Writes behind the catalogue's back, as a foreign process would. */
#define run_sql(f, ...) fixture_sql((f)->db, __VA_ARGS__)

#define number_of(f, ...) fixture_number((f)->db, __VA_ARGS__)

static inline int64_t add_site(struct write_fixture *f, const char *origin, uint32_t max_pages)
{
    struct change change = {
        .kind = CHANGE_SITE_ADD,
        .site_add = {.fields = {.set = SITE_SET_MAX_PAGES, .max_pages = max_pages},
                     .origin = origin}};
    struct change_result result = apply(f, &change);
    assert_int_equal(result.status, CATALOGUE_OK);
    return result.id;
}

static inline int64_t add_index(struct write_fixture *f, const char *url)
{
    struct change change = {.kind = CHANGE_INDEX_ADD, .index_add = {.url = url}};
    struct change_result result = apply(f, &change);
    if (result.status != CATALOGUE_OK)
        fail_msg("%s: %s: %s", url, catalogue_status_word(result.status), result.detail);
    return result.id;
}

static inline struct change put_change(const char *loc, const char *lastmod)
{
    struct change change = {.kind = CHANGE_ENTRY_PUT,
                            .source = "tests",
                            .entry = {.loc = loc,
                                      .lastmod = lastmod,
                                      .lastmod_state = lastmod ? FIELD_SET : FIELD_ABSENT,
                                      .position = POSITION_NONE}};
    return change;
}

static inline struct change_result put(struct write_fixture *f, const char *loc,
                                       const char *lastmod)
{
    struct change change = put_change(loc, lastmod);
    return apply(f, &change);
}

static inline struct change_result put_plain(struct write_fixture *f, const char *loc,
                                             const char *lastmod)
{
    struct change change = put_change(loc, lastmod);
    return apply_plain(f, &change);
}

static inline struct change_result drop(struct write_fixture *f, const char *loc)
{
    struct change change = {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = loc}};
    return apply_plain(f, &change);
}

static inline int64_t revision_of(struct write_fixture *f)
{
    return number_of(f, "SELECT revision FROM catalogue");
}

/* The position of a loc, or -1. */
static inline int64_t position_of(struct write_fixture *f, const char *loc)
{
    return number_of(f,
                     "SELECT coalesce((SELECT address & 4294967295 FROM sitemap AS e"
                     " JOIN sitemap_index AS i ON i.id = e.address >> 32 AND i.removed = 0"
                     " WHERE loc = %Q), -1)",
                     loc);
}

static inline void fixture_reopen(struct write_fixture *f)
{
    if (f->c)
        catalogue_close(f->c);
    f->c = fixture_catalogue(&f->options);
}

static inline void fixture_open_bare(struct write_fixture *f)
{
    memset(f, 0, sizeof *f);
    fixture_clock = 0;
    scratch_make(f->folder, "sitemapd-write");
    snprintf(f->path, sizeof f->path, "%s/c.db", f->folder);
    f->options = fixture_options(f->path);
    f->options.clock = fixture_now;
    fixture_reopen(f);
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    sqlite3_busy_timeout(f->db, 10000);
}

static inline void fixture_open(struct write_fixture *f)
{
    fixture_open_bare(f);
    f->site = add_site(f, ORIGIN, LIMIT_SITE_PAGES);
    f->index = add_index(f, ORIGIN INDEX);
}

static inline void assert_none(struct write_fixture *f, const char *what, const char *sql)
{
    int64_t count = number_of(f, "SELECT count(*) FROM (%s)", sql);
    if (count != 0)
        fail_msg("%s: %" PRId64 " rows", what, count);
}

/* weigh(kind, loc, extensions), frame(kind, with). */
static void weigh(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *loc = (const char *)sqlite3_value_text(values[1]);
    size_t len = (size_t)sqlite3_value_bytes(values[1]);
    (void)count;
    sqlite3_result_int64(context,
                         sqlite3_value_int(values[0]) == LIST_URLSET
                             ? render_url_bytes(loc, len, (size_t)sqlite3_value_bytes(values[2]))
                             : render_entry_bytes(loc, len));
}

static void frame(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_int64(context,
                         sqlite3_value_int(values[0]) == LIST_URLSET
                             ? render_urlset_frame_bytes((unsigned)sqlite3_value_int(values[1]))
                             : render_frame_bytes());
}

/* What must hold of every file at rest. */
static inline void assert_consistent(struct write_fixture *f)
{
    sqlite3_create_function(f->db, "weigh", 3, SQLITE_UTF8, NULL, weigh, NULL, NULL);
    sqlite3_create_function(f->db, "frame", 2, SQLITE_UTF8, NULL, frame, NULL, NULL);
    run_sql(f, "CREATE TEMP VIEW IF NOT EXISTS live AS SELECT e.*, e.address >> 32 AS index_id,"
               " (e.address & 4294967295) AS position FROM sitemap AS e JOIN sitemap_index AS i"
               " ON i.id = e.address >> 32 AND i.removed = 0 JOIN site AS s ON s.id = i.site"
               " AND s.removed = 0");
    assert_none(f, "pages miscount",
                "SELECT 1 FROM page AS p JOIN sitemap_index AS i ON i.id = p.index_id"
                " AND i.removed = 0 WHERE p.entries <> (SELECT count(*) FROM live AS l"
                " WHERE l.address BETWEEN (p.index_id << 32) + (p.number - 1) * 50000"
                "  AND (p.index_id << 32) + (p.number - 1) * 50000 + 49999)");
    assert_none(f, "entries without a page",
                "SELECT 1 FROM live AS l LEFT JOIN page AS p ON p.index_id = l.index_id"
                " AND p.number = l.position / 50000 + 1 WHERE p.number IS NULL");
    assert_none(f, "segments miscount",
                "SELECT 1 FROM segment AS p JOIN sitemap_index AS i ON i.id = p.index_id"
                " AND i.removed = 0 WHERE p.entries <> (SELECT count(*) FROM live AS l"
                " WHERE l.address BETWEEN (p.index_id << 32) + p.number * 250"
                "  AND (p.index_id << 32) + p.number * 250 + 249)");
    assert_none(f, "entries without a segment",
                "SELECT 1 FROM live AS l LEFT JOIN segment AS p ON p.index_id = l.index_id"
                " AND p.number = l.position / 250 WHERE p.number IS NULL");
    assert_none(f, "bytes miscounted",
                "SELECT 1 FROM page AS p JOIN sitemap_index AS i ON i.id = p.index_id"
                " AND i.removed = 0 WHERE p.bytes <> frame(i.kind, i.extensions)"
                " + (SELECT coalesce(sum(weigh(i.kind, loc, l.extensions)), 0)"
                " FROM live AS l WHERE l.address"
                " BETWEEN (p.index_id << 32) + (p.number - 1) * 50000"
                " AND (p.index_id << 32) + (p.number - 1) * 50000 + 49999)");
    assert_none(f, "pages too full",
                "SELECT 1 FROM page WHERE entries > 50000 OR bytes > 52428800");
    assert_none(f, "parked entries", "SELECT 1 FROM sitemap WHERE address < 0");
    assert_none(f, "sites differ",
                "SELECT 1 FROM live AS l JOIN sitemap_index AS i ON i.id = l.index_id"
                " WHERE iif(i.kind, -i.id, i.site) <> l.site");
    /* The names of these tests' pages: the usual pattern. */
    assert_none(f, "pages of urlsets that are no entries, or have another date",
                "SELECT 1 FROM page AS p JOIN sitemap_index AS i ON i.id = p.index_id"
                " AND i.kind = 1 AND i.removed = 0 JOIN site AS s ON s.id = i.site"
                " AND s.removed = 0 WHERE p.entries > 0 AND NOT EXISTS (SELECT 1 FROM live AS l"
                " WHERE l.site = i.site AND l.index_id = i.of_index AND l.source = -i.id"
                " AND l.loc = s.origin || iif(p.number = 1, i.path,"
                " substr(i.path, 1, length(i.path) - 4) || '-' || p.number || '.xml')"
                " AND l.lastmod = strftime('%Y-%m-%dT%H:%M:%SZ', p.changed_at, 'unixepoch'))");
    assert_none(f, "entries of urlsets that are of no page of theirs",
                "SELECT -source FROM live WHERE source < 0 GROUP BY source HAVING count(*) <>"
                " (SELECT count(*) FROM page WHERE index_id = -live.source AND entries > 0)");
    assert_none(f, "stamps from the future",
                "SELECT 1 FROM page, catalogue AS c WHERE page.revision > c.revision"
                " OR page.changed_at > c.changed_at");
    assert_none(f, "serials",
                "SELECT 1 FROM sitemap, catalogue AS c WHERE sitemap.serial >"
                " c.serial");
}

static inline void fixture_close(struct write_fixture *f)
{
    assert_consistent(f);
    fixture_assert_sound(f->c);
    catalogue_close(f->c);
    sqlite3_close(f->db);
    scratch_remove(f->folder);
}

static inline int fixture_setup(void **state)
{
    struct write_fixture *f = calloc(1, sizeof *f);
    fixture_open(f);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}
