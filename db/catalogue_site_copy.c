/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Copies a site into a file of its own, from a read transaction of the catalogue, and checks such a
 * file like a whole catalogue before it is imported. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db/catalogue.h"
#include "db/file/bind.h"
#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/file/site_rows.h"
#include "db/read/view_pool.h"
#include "db/registry.h"
#include "db/view.h"
#include "db/write/apply/apply.h"
#include "server/rules/entry.h"
#include "server/rules/limits.h"
#include "server/rules/robots.h"

static enum catalogue_status fail_engine(sqlite3 *db, int rc, char *why, size_t why_size)
{
    enum catalogue_status status = connection_status(rc);

    snprintf(why, why_size, "%s", db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
    return status != CATALOGUE_OK ? status : CATALOGUE_UNAVAILABLE;
}

/* No other process uses the new file yet: no journal. */
static int make_file(const char *path, sqlite3 **out)
{
    char header[128];
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return SQLITE_CANTOPEN;
    close(fd);
    int rc = sqlite3_open_v2(
        path, out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    snprintf(header, sizeof header,
             "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA application_id=%d;"
             "PRAGMA user_version=%d; BEGIN",
             SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*out, header, NULL, NULL, NULL);
    return rc == SQLITE_OK ? schema_make(*out, SCHEMA_VERSION) : rc;
}

/* Copies the catalogue's row, with another epoch and without lineage and history, and the names of
 * sources. */
static int copy_heads(sqlite3 *from, sqlite3 *to)
{
    static const char *const pairs[][2] = {
        {"SELECT revision, registry_revision, serial, changed_at FROM catalogue",
         "INSERT OR REPLACE INTO catalogue(one, epoch, revision, registry_revision, serial,"
         " changed_at, history_from) VALUES(1, lower(hex(randomblob(16))), ?1, ?2, ?3, ?4, ?1 + "
         "1)"},
        {"SELECT id, name, NULL, NULL FROM source", "INSERT INTO source(id, name) VALUES(?1, ?2)"},
    };
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && rc == SQLITE_OK; i++) {
        sqlite3_stmt *read = NULL, *write = NULL;

        rc = sqlite3_prepare_v2(from, pairs[i][0], -1, &read, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_prepare_v2(to, pairs[i][1], -1, &write, NULL);
        while (sql_next(read, &rc)) {
            for (int column = 0; column < sqlite3_bind_parameter_count(write); column++)
                sqlite3_bind_value(write, column + 1, sqlite3_column_value(read, column));
            rc = sqlite3_step(write);
            rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
            sqlite3_reset(write);
        }
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        sqlite3_finalize(read);
        sqlite3_finalize(write);
    }
    return rc;
}

enum catalogue_status catalogue_site_copy(struct catalogue *c, int64_t site_id, const char *path,
                                          bool (*goes_on)(void *context), void *context, char *why,
                                          size_t why_size)
{
    struct site_rows rows = {.site = site_id, .each = goes_on, .context = context};
    bool found = false;
    sqlite3_stmt *site = NULL;

    why[0] = '\0';
    enum catalogue_status status = view_pool_connect(c->views, &rows.from, why, why_size);
    if (status != CATALOGUE_OK)
        return status;
    int rc = sqlite3_exec(rows.from, "BEGIN; SELECT revision FROM catalogue", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(rows.from, "SELECT 1 FROM site WHERE id = ?1 AND removed = 0", -1,
                                &site, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(site, 1, site_id);
    if (rc == SQLITE_OK) {
        found = sqlite3_step(site) == SQLITE_ROW;
        rc = sqlite3_reset(site);
    }
    sqlite3_finalize(site);
    if (rc == SQLITE_OK && found)
        rc = make_file(path, &rows.to);
    if (rc == SQLITE_OK && found)
        rc = copy_heads(rows.from, rows.to);
    if (rc == SQLITE_OK && found)
        rc = site_rows_copy(&rows, SITE_ROWS_ALL);
    if (rc == SQLITE_OK && found)
        rc = sqlite3_exec(rows.to, "COMMIT", NULL, NULL, NULL);
    if (rc == SQLITE_ABORT)
        status = CATALOGUE_CANCELLED;
    else if (rc != SQLITE_OK)
        status = fail_engine(rows.to, rc, why, why_size);
    else if (!found)
        status = CATALOGUE_NOT_FOUND;
    site_rows_done(&rows);
    sqlite3_close(rows.to);
    connection_close(rows.from);
    if (status != CATALOGUE_OK)
        unlink(path);
    return status;
}

/* ---- checking one ----------------------------------------------------------------------- */

struct checking {
    char *why;
    size_t why_size;
    uint64_t problems;
};

/* Reports the first problem only. */
static void report_problem(void *context, const char *sentence)
{
    struct checking *j = context;

    if (j->problems++ == 0)
        snprintf(j->why, j->why_size, "%s", sentence);
}

static void report_foreign(void *context, const char *type, const char *name, const char *how,
                           bool foreign)
{
    char sentence[256];

    (void)foreign;
    snprintf(sentence, sizeof sentence, "the schema: %.10s \"%.120s\" is %s", type, name, how);
    report_problem(context, sentence);
}

/* Finds foreign objects before any query, so that they never run. */
static enum catalogue_status check_schema(const char *path, struct checking *j)
{
    sqlite3 *db;
    sqlite3_stmt *row = NULL;
    int sites = 0, version = 0;
    bool shared = false;

    if (connection_open(path, CONNECTION_READ, &db, j->why, j->why_size) != CATALOGUE_OK) {
        snprintf(j->why, j->why_size, "the file is not a catalogue");
        return CATALOGUE_CORRUPT;
    }
    int rc = schema_compare(db, report_foreign, j);
    if (rc == SQLITE_OK && j->problems == 0 &&
        (!schema_version(db, &version, &shared) || version != SCHEMA_VERSION || shared))
        report_problem(j, "the file was made by another release of sitemapd; move sites between "
                          "servers of the same release");
    if (rc == SQLITE_OK && j->problems == 0)
        rc = sqlite3_prepare_v2(db, "SELECT count(*) FROM site", -1, &row, NULL);
    if (rc == SQLITE_OK && row != NULL && sqlite3_step(row) == SQLITE_ROW)
        sites = sqlite3_column_int(row, 0);
    if (rc == SQLITE_OK && j->problems == 0 && sites != 1)
        report_problem(j, "the file is not a copy of exactly one site");
    sqlite3_finalize(row);
    connection_close(db);
    if (rc != SQLITE_OK)
        report_problem(j, sqlite3_errstr(rc));
    return j->problems == 0 ? CATALOGUE_OK : CATALOGUE_CORRUPT;
}

/* Checks values that catalogue_check leaves to the writer: the copy was not written by this one. */
static void check_settings(const struct registry *r, struct checking *j)
{
    const struct registry_site *site = r->site_count > 0 ? &r->sites[0] : NULL;
    char why[256], sentence[400];
    const char *fault =
        site == NULL || site->robots == NULL ? NULL : robots_fault(site->robots, site->robots_len);

    if (fault != NULL) {
        snprintf(sentence, sizeof sentence, "its robots.txt %s", fault);
        report_problem(j, sentence);
    }
    if (site != NULL &&
        (site->max_pages > LIMIT_SITE_PAGES_MAX || site->alias_host_count > SITE_HOSTS_MAX ||
         site->cross_host_count > SITE_HOSTS_MAX))
        report_problem(j, "the site has more index files or hosts than the limits allow");
    for (size_t i = 0; i < r->token_count; i++)
        if (entry_check_name(r->tokens[i].grant.name, strlen(r->tokens[i].grant.name)) != RULE_OK)
            report_problem(j, "the name of a token is malformed");
    for (size_t i = 0; i < r->source_count; i++)
        if (!source_settings_are_sound(&r->sources[i], why, sizeof why)) {
            snprintf(sentence, sizeof sentence, "source %.64s: %s", r->sources[i].name, why);
            report_problem(j, sentence);
        }
}

static enum catalogue_status check_registry(struct catalogue *c, struct checking *j)
{
    struct catalogue_view *view = NULL;
    struct registry *registry = NULL;
    enum catalogue_status status = catalogue_view_begin(c, &view);

    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_registry(view, &registry);
    catalogue_view_end(view);
    if (status == CATALOGUE_OK)
        check_settings(registry, j);
    registry_unref(registry);
    return status;
}

enum catalogue_status catalogue_site_copy_check(const char *path, char *why, size_t why_size)
{
    const struct catalogue_options options = {.path = path,
                                              .must_exist = true,
                                              .write_timeout_ms = 10000,
                                              .max_queued = 1,
                                              .default_max_pages = LIMIT_SITE_PAGES};
    struct checking j = {why, why_size, 0};
    struct catalogue *c;
    uint64_t count;

    why[0] = '\0';
    enum catalogue_status status = check_schema(path, &j);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_open(&options, &c, why, why_size);
    if (status == CATALOGUE_OK) {
        status = catalogue_check(c, report_problem, &j, &count);
        if (status == CATALOGUE_OK && j.problems == 0)
            status = check_registry(c, &j);
        catalogue_close(c);
    }
    if (status == CATALOGUE_NO_MEMORY || status == CATALOGUE_NO_SPACE)
        return status;
    if (status == CATALOGUE_OK && j.problems == 0)
        return CATALOGUE_OK;
    if (j.problems == 0)
        snprintf(why, why_size, "the file cannot be read as a catalogue");
    return CATALOGUE_CORRUPT;
}
