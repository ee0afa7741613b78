/* What directory sources keep of their files. An entry that its file lost is no finding: somebody
 * removed it, or its index, and the next scan brings it back. */
#include <string.h>

#include "db/check.h"
#include "db/source.h"
#include "server/rules/url.h"

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
        check_report(check, "source %s: \"%.300s\" is no path of a file", source, path);
    if (state < SOURCE_FILE_LISTED || state > SOURCE_FILE_QUARANTINED) {
        check_report(check, "source %s: file %.300s has no state that there is", source, path);
        return;
    }
    if (in_trouble != (state == SOURCE_FILE_QUARANTINED))
        check_report(check, "source %s: file %.300s %s", source, path,
                     in_trouble ? "has a problem, but is not quarantined"
                                : "is quarantined without a problem");
    if (sqlite3_column_int(row, 7) != 0 && state != SOURCE_FILE_QUARANTINED)
        check_report(check, "source %s: file %.300s is refused, but not quarantined", source, path);
    if (sqlite3_column_int(row, 5) != 16)
        check_report(check, "source %s: file %.300s has a hash of %d bytes", source, path,
                     sqlite3_column_int(row, 5));
    if (state == SOURCE_FILE_LISTED && sqlite3_column_type(row, 2) == SQLITE_NULL)
        check_report(check, "source %s: file %.300s is listed in no site", source, path);
    if (state == SOURCE_FILE_LISTED &&
        (url_parse(loc, strlen(loc), &url, NULL) != RULE_OK || strcmp(url.text, loc) != 0))
        check_report(check, "source %s: file %.300s is listed as \"%.300s\", no normal loc", source,
                     path, loc);
}

static void on_count(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "source %s: says %lld %s, has %lld", text_of(row, 0),
                 (long long)sqlite3_column_int64(row, 2), text_of(row, 1),
                 (long long)sqlite3_column_int64(row, 3));
}

static void on_stranger(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "source %s: has files, but was never scanned", text_of(row, 0));
}

void check_sources(struct check *check)
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
