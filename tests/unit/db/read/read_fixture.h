/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue file filled by plain SQL, for tests of the read side: what they find must not depend
 * on the writer. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* cmocka.h needs the first four. */
#include <cmocka.h>
#include <sqlite3.h>

#include "db/file/connection.h"
#include "db/file/schema.h"
#include "db/read/row.h"
#include "server/rules/page/render.h"
#include "server/rules/scope.h"
#include "tests/unit/lib/scratch.h"
#include "tests/unit/lib/sql_fixture.h"

/* Of an entry, in every version. */
#define FIXTURE_COLUMNS                                                                            \
    "address, site, loc, lastmod, digest, source, serial, registered_at, changed_at"

struct fixture {
    char folder[64];
    char path[96];
    sqlite3 *db; /* a writing connection */
};

static inline sqlite3 *fixture_make_file(const char *path)
{
    char why[256] = "";
    sqlite3 *db = NULL;

    if (connection_open(path, CONNECTION_CREATE, &db, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
    if (schema_prepare(db, path, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
    return db;
}

static inline void fixture_open(struct fixture *f)
{
    scratch_make(f->folder, "sitemapd-read");
    snprintf(f->path, sizeof f->path, "%s/c.db", f->folder);
    f->db = fixture_make_file(f->path);
}

static inline void fixture_close(struct fixture *f)
{
    connection_close(f->db);
    scratch_remove(f->folder);
}

static inline void fixture_site(sqlite3 *db, int id, const char *origin)
{
    fixture_sql(db, "INSERT INTO site(id, origin, managed, max_pages) VALUES(%d, %Q, 0, 500)", id,
                origin);
}

static inline void fixture_index(sqlite3 *db, int id, int site, const char *path)
{
    fixture_sql(db, "INSERT INTO sitemap_index(id, site, path, page_pattern) VALUES(%d,%d,%Q,%Q)",
                id, site, path, PAGE_PATTERN_DEFAULT);
}

static inline void fixture_host(sqlite3 *db, int site, const char *kind, const char *host)
{
    fixture_sql(db, "INSERT INTO site_host VALUES(%d, %Q, %Q)", site, host, kind);
}

/* One entry at a position, with all the counts that follow from it, as the next revision. */
static inline void fixture_entry(sqlite3 *db, int index, uint32_t position, const char *loc,
                                 const char *lastmod)
{
    uint32_t page = position / LIMIT_PAGE_ENTRIES + 1, segment = position / SEGMENT_POSITIONS;

    fixture_sql(
        db,
        "BEGIN IMMEDIATE;"
        "UPDATE catalogue SET revision = revision + 1, serial = serial + 1,"
        " changed_at = 1000 + revision;"
        "INSERT OR IGNORE INTO source(id, name) VALUES(1, 'tests');"
        "INSERT INTO sitemap(" FIXTURE_COLUMNS
        ") SELECT %lld, (SELECT site FROM sitemap_index WHERE id = %d),"
        " %Q, %Q, NULL, 1, serial, changed_at, changed_at FROM catalogue;"
        "INSERT INTO page(index_id, number, entries, bytes, changed_at, same_second, revision)"
        " SELECT %d, %u, 1, %u, changed_at, 0, revision FROM catalogue WHERE 1"
        " ON CONFLICT DO UPDATE SET entries = entries + 1, bytes = bytes + %u,"
        " changed_at = excluded.changed_at, revision = excluded.revision;"
        "INSERT INTO segment SELECT %d, %u, 1, revision FROM catalogue WHERE 1"
        " ON CONFLICT DO UPDATE SET entries = entries + 1, revision = excluded.revision;"
        "COMMIT",
        (long long)id_address(index, position), index, loc, lastmod, index, page,
        render_frame_bytes() + render_entry_bytes(loc, strlen(loc)),
        render_entry_bytes(loc, strlen(loc)), index, segment);
}
