#include "db/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "db/connection.h"
#include "db/handle.h"
#include "db/registry_load.h"
#include "db/schema.h"
#include "db/view_pool.h"
#include "server/rules/scope.h"

/* The engine's own messages; more of them say no more. */
#define CHECK_MAX_MESSAGES "100"

void check_report(struct check *check, const char *format, ...)
{
    char sentence[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    for (char *at = sentence; (at = strchr(at, '\n')) != NULL;)
        *at = ' '; /* the engine's messages have lines */
    check->count++;
    if (check->problem != NULL)
        check->problem(check->context, sentence);
}

void check_result(struct check *check, int sqlite_result, const char *what)
{
    enum catalogue_status status = connection_status(sqlite_result);

    if (status == CATALOGUE_CORRUPT || (sqlite_result & 0xff) == SQLITE_ERROR)
        check_report(check, "%s: cannot be read: %s", what, sqlite3_errmsg(check->db));
    else if (status != CATALOGUE_OK)
        check->failure = status;
}

sqlite3_stmt *check_prepare(struct check *check, const char *sql, const char *what)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(check->db, sql, -1, &statement, NULL);

    if (rc != SQLITE_OK)
        check_result(check, rc, what);
    return statement;
}

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text != NULL ? text : "";
}

void check_for_rows(struct check *check, const char *sql, const char *what,
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

/* ---- the file as the engine sees it ---------------------------------------------------- */

static void on_integrity(struct check *check, sqlite3_stmt *row)
{
    if (strcmp(text_of(row, 0), "ok") != 0)
        check_report(check, "the file: %s", text_of(row, 0));
}

static void on_foreign_key(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "table %s: a row refers to a %s that does not exist", text_of(row, 0),
                 text_of(row, 2));
}

static void on_schema(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "the schema: %s is %s", text_of(row, 0), text_of(row, 1));
}

/* Compares with a catalogue made this moment: a dropped index would let a loc stand twice. */
static void check_schema(struct check *check)
{
    char why[256];
    sqlite3 *fresh = NULL;
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_open_v2(":memory:", &fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK || schema_prepare(fresh, ":memory:", why, sizeof why) != CATALOGUE_OK ||
        sqlite3_prepare_v2(fresh, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL", -1,
                           &row, NULL) != SQLITE_OK) {
        check->failure = CATALOGUE_NO_MEMORY;
        goto done;
    }
    while (sqlite3_step(row) == SQLITE_ROW) {
        char *sql = sqlite3_mprintf(
            "SELECT %Q, CASE WHEN count(*) = 0 THEN 'missing' ELSE 'not as it was made' END"
            " FROM sqlite_schema WHERE name = %Q HAVING coalesce(max(sql), '') <> %Q",
            text_of(row, 0), text_of(row, 0), text_of(row, 1));
        if (sql == NULL) {
            check->failure = CATALOGUE_NO_MEMORY;
            break;
        }
        check_for_rows(check, sql, "the schema", on_schema);
        sqlite3_free(sql);
    }
done:
    sqlite3_finalize(row);
    sqlite3_close(fresh);
}

/* ---- the small tables ------------------------------------------------------------------ */

static void on_catalogue(struct check *check, sqlite3_stmt *row)
{
    int64_t registry_revision = sqlite3_column_int64(row, 2);

    check->revision = sqlite3_column_int64(row, 1);
    check->serial = sqlite3_column_int64(row, 3);
    check->changed_at = sqlite3_column_int64(row, 4);
    if (strlen(text_of(row, 0)) != 32)
        check_report(check, "the catalogue: its epoch has not 32 digits");
    if (registry_revision < 0 || registry_revision > check->revision)
        check_report(check, "the catalogue: registry revision %lld is past revision %lld",
                     (long long)registry_revision, (long long)check->revision);
}

static void on_site(struct check *check, sqlite3_stmt *row)
{
    const char *origin = text_of(row, 1);
    struct url url;

    if (url_parse_origin(origin, strlen(origin), &url) != RULE_OK || strcmp(url.text, origin) != 0)
        check_report(check, "site %lld: \"%s\" is no normal origin",
                     (long long)sqlite3_column_int64(row, 0), origin);
    if (sqlite3_column_int64(row, 2) < 1)
        check_report(check, "site %lld: may have no page at all",
                     (long long)sqlite3_column_int64(row, 0));
}

static void on_host(struct check *check, sqlite3_stmt *row)
{
    const char *host = text_of(row, 1);
    char normal[HOST_MAX_CHARS + 7];

    if (url_parse_host(host, strlen(host), normal) != RULE_OK || strcmp(normal, host) != 0)
        check_report(check, "site %lld: \"%s\" is no normal host",
                     (long long)sqlite3_column_int64(row, 0), host);
}

static void on_index(struct check *check, sqlite3_stmt *row)
{
    long long id = sqlite3_column_int64(row, 0);
    const char *path = text_of(row, 1), *pattern = text_of(row, 2);

    if (scope_check_index_path(path) != RULE_OK)
        check_report(check, "index %lld: \"%s\" is no path of an index", id, path);
    if (scope_check_pattern(pattern) != RULE_OK)
        check_report(check, "index %lld: \"%s\" is no page pattern", id, pattern);
    if (sqlite3_column_int(row, 3) != 0)
        check_report(check, "index %lld: its site was removed, it was not", id);
    if (sqlite3_column_int(row, 4) != 0)
        check_report(check, "index %lld: was purged, but not removed", id);
}

static void on_token(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "token %lld: its hash has %d bytes",
                 (long long)sqlite3_column_int64(row, 0), sqlite3_column_int(row, 1));
}

static void on_double(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "site %lld: %s stands %d times", (long long)sqlite3_column_int64(row, 0),
                 text_of(row, 1), sqlite3_column_int(row, 2));
}

static void on_segment_newer(struct check *check, sqlite3_stmt *row)
{
    check_report(check, "segment %d of index %lld: has a later revision than its page",
                 sqlite3_column_int(row, 1), (long long)sqlite3_column_int64(row, 0));
}

static void check_tables(struct check *check)
{
    uint64_t before = check->count;
    struct registry *registry;
    enum catalogue_status status;

    check_for_rows(check, "SELECT id, origin, max_pages FROM site WHERE removed = 0", "sites",
                   on_site);
    check_for_rows(check,
                   "SELECT site, host FROM site_host WHERE site IN"
                   " (SELECT id FROM site WHERE removed = 0)",
                   "hosts", on_host);
    check_for_rows(
        check,
        "SELECT i.id, i.path, i.page_pattern, s.removed, i.purged FROM sitemap_index AS i"
        " JOIN site AS s ON s.id = i.site WHERE i.removed = 0",
        "indexes", on_index);
    check_for_rows(check, "SELECT id, length(sha256) FROM token WHERE length(sha256) <> 32",
                   "tokens", on_token);
    check_for_rows(check,
                   "SELECT site, loc, count(*) FROM sitemap GROUP BY site, loc HAVING count(*) > 1",
                   "entries by loc", on_double);
    check_for_rows(check,
                   "SELECT g.index_id, g.number FROM segment AS g JOIN sitemap_index AS i"
                   " ON i.id = g.index_id AND i.removed = 0 LEFT JOIN page AS p"
                   " ON p.index_id = g.index_id AND p.number = g.number / 200 + 1"
                   " WHERE coalesce(p.revision, -1) < g.revision",
                   "segments", on_segment_newer);
    if (check->failure != CATALOGUE_OK)
        return;
    /* What nobody can serve is a problem even where the checks above know no reason. */
    status = registry_load(check->db, &registry);
    if (status == CATALOGUE_OK)
        registry_unref(registry);
    else if (status != CATALOGUE_CORRUPT)
        check->failure = status;
    else if (check->count == before)
        check_report(check, "the registry: cannot be read");
}
_Static_assert(PAGE_SEGMENTS == 200, "as the statement above says");

/* ---- all of it ------------------------------------------------------------------------- */

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
    if (rc == SQLITE_OK) {
        check_for_rows(&check, "PRAGMA integrity_check(" CHECK_MAX_MESSAGES ")", "the file",
                       on_integrity);
        check_for_rows(&check, "PRAGMA foreign_key_check", "references", on_foreign_key);
        check_for_rows(
            &check,
            "SELECT epoch, revision, registry_revision, serial, changed_at FROM catalogue"
            " WHERE one = 1",
            "the catalogue", on_catalogue);
        if (check.revision < 0 && check.failure == CATALOGUE_OK)
            check_report(&check, "the catalogue: its row is missing");
    }
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_schema(&check);
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_tables(&check);
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_scan(&check);
    if (rc == SQLITE_OK && check.failure == CATALOGUE_OK)
        check_sources(&check);
    connection_close(check.db);
    *count = check.count;
    return check.failure;
}
