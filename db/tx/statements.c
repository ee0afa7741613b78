/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Prepares each statement of the writer once and keeps it. */
#include "db/tx/statements.h"

#include <string.h>

#include "db/file/connection.h"
#include "db/read/row.h"
#include "db/urlset.h"

/* For a change `h`: the history of its site is still complete from this change on. */
#define HISTORY_IS_KEPT                                                                            \
    "h.revision >= coalesce((SELECT since FROM history_site WHERE site = h.site), 0)"

/* Keeps the state of files, for the revision ?1. */
#define HISTORY_FILE_KEEP                                                                          \
    "INSERT OR IGNORE INTO history_file(revision, site, loc, source, path, hash, lastmod, urls,"   \
    " bytes, newest_lastmod, one_lastmod, future, claim) SELECT ?1, site, loc, source, path, "     \
    "hash,"                                                                                        \
    " lastmod, urls, bytes, newest_lastmod, one_lastmod, future, " FILE_CLAIM_TEXT " FROM "

#define CHECK_IS_2 CHECK_AT("k", "?2")

/* Dates as stored in `fetch`: of a parameter, and of source_file_row AS f. */
#define KEPT_2       DATE_KEPT("?2")
#define KEPT_CLAIM   DATE_KEPT("f.claim")
#define KEPT_LASTMOD DATE_KEPT("f.lastmod")

/* Whether a scan, or a poll of its list, has stored anything about a source. */
#define SOURCE_HAS_STATE(source_id)                                                                \
    "(EXISTS (SELECT 1 FROM source_state WHERE source = " source_id ") OR EXISTS (SELECT 1"        \
    " FROM fetch WHERE source = " source_id " AND list = 1))"

#define SOURCE_HAS_FILES(source_id)                                                                \
    "(EXISTS (SELECT 1 FROM source_file_row WHERE source = " source_id ") OR EXISTS (SELECT 1"     \
    " FROM fetch WHERE source = " source_id " AND list = 0 AND listed = 1))"

/* The rows `k` of `fetch` that describe the file ?2 of the source ?1, or files that the history has
 * at the revision ?3 in the site ?4. */
#define CHECK_DESCRIBES                                                                            \
    "k.list = 0 AND k.listed = 1 AND k.source IN (SELECT ?1 UNION SELECT source FROM history_file" \
    " WHERE revision = ?3 AND site = ?4 AND loc = ?2) AND " CHECK_IS_2

#define SOURCE_VALUE(...) ", ?"

static const char *const texts[ST_COUNT] = {
#define X(name, sql) [ST_##name] = sql,
#include "db/tx/statements.def"
#undef X
};

void statements_init(struct statements *s, sqlite3 *db)
{
    memset(s, 0, sizeof *s);
    s->db = db;
}

void statements_done(struct statements *s)
{
    for (int i = 0; i < ST_COUNT; i++)
        sqlite3_finalize(s->prepared[i]);
    memset(s, 0, sizeof *s);
}

sqlite3_stmt *statements_get(struct statements *s, enum statement which)
{
    sqlite3_stmt **slot = &s->prepared[which];
    if (*slot == NULL) {
        *slot = connection_prepare(s->db, texts[which]);
    } else {
        sqlite3_reset(*slot);
        sqlite3_clear_bindings(*slot); /* they borrow memory that may be freed */
    }
    return *slot;
}

enum catalogue_status statement_run(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    int reset = sqlite3_reset(statement);
    if (rc == SQLITE_DONE || rc == SQLITE_ROW)
        rc = SQLITE_OK;
    return connection_status(rc == SQLITE_OK ? reset : rc);
}

enum catalogue_status statement_first(sqlite3_stmt *statement, bool *found)
{
    int rc = sqlite3_step(statement);
    *found = rc == SQLITE_ROW;
    return connection_status(rc);
}
