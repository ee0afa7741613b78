#include "db/file/schema.h"

#include <stdio.h>

#include "db/file/connection.h"
#include "db/file/schema_versions.h"

/* Step N brings a file of version N to N + 1. Released steps never change. */
static const char *const migrations[] = {schema_v1, schema_v2, schema_v3, schema_v4, schema_v5,
                                         schema_v6, schema_v7, schema_v8, schema_v9, schema_v10};
_Static_assert(sizeof migrations / sizeof *migrations == SCHEMA_VERSION,
               "one migration for each version");

static enum catalogue_status fail(sqlite3 *db, const char *path, int rc, char *why, size_t why_size)
{
    connection_explain(path, db, why, why_size);
    enum catalogue_status status = connection_status(rc);
    return status == CATALOGUE_OK ? CATALOGUE_UNAVAILABLE : status;
}

/* The first column of the first row of `sql`. A result code of SQLite. */
static int read_number(sqlite3 *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW) {
            *out = sqlite3_column_int64(statement, 0);
            rc = SQLITE_OK;
        } else if (rc == SQLITE_DONE) {
            rc = SQLITE_ERROR;
        }
    }
    sqlite3_finalize(statement);
    return rc;
}

/* As schema_identify; `*version` is 0 for an empty file. */
static enum catalogue_status identify(sqlite3 *db, const char *path, int64_t *version, char *why,
                                      size_t why_size)
{
    int64_t application = 0, tables = 0;
    int rc = read_number(db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = read_number(db, "PRAGMA user_version", version);
    if (rc == SQLITE_OK)
        rc = read_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
    if (rc != SQLITE_OK)
        return fail(db, path, rc, why, why_size);

    bool empty = application == 0 && *version == 0 && tables == 0;
    if (!empty && (application != SCHEMA_APPLICATION_ID || *version < 1)) {
        snprintf(why, why_size,
                 "%s: is a database of another program, not a catalogue; name another path", path);
        return CATALOGUE_UNAVAILABLE;
    }
    if (*version > SCHEMA_VERSION) {
        snprintf(
            why, why_size,
            "%s: was made by a newer version of sitemapd (schema %lld; this one knows %d): run "
            "that version, or restore a backup of before",
            path, (long long)*version, SCHEMA_VERSION);
        return CATALOGUE_NEWER;
    }
    return CATALOGUE_OK;
}

enum catalogue_status schema_identify(sqlite3 *db, const char *path, char *why, size_t why_size)
{
    int64_t version = 0;
    return identify(db, path, &version, why, why_size);
}

/* Inside the transaction: the steps from `version` on, and the row of a new catalogue. */
static int migrate(sqlite3 *db, int64_t version)
{
    int rc = SQLITE_OK;
    for (int64_t step = version; rc == SQLITE_OK && step < SCHEMA_VERSION; step++)
        rc = sqlite3_exec(db, migrations[step], NULL, NULL, NULL);
    if (rc == SQLITE_OK && version == 0)
        rc = sqlite3_exec(db,
                          "INSERT INTO catalogue(one, epoch, revision, registry_revision, serial,"
                          " changed_at) VALUES (1, lower(hex(randomblob(16))), 0, 0, 0, 0)",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        char pragmas[96];
        snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d",
                 SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
        rc = sqlite3_exec(db, pragmas, NULL, NULL, NULL);
    }
    return rc;
}

enum catalogue_status schema_prepare(sqlite3 *db, const char *path, char *why, size_t why_size)
{
    int64_t version = 0;
    enum catalogue_status status = identify(db, path, &version, why, why_size);
    if (status != CATALOGUE_OK || version == SCHEMA_VERSION)
        return status;

    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return fail(db, path, rc, why, why_size);
    /* Another process may have done it while we waited for the lock. */
    status = identify(db, path, &version, why, why_size);
    if (status == CATALOGUE_OK) {
        rc = migrate(db, version);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            status = fail(db, path, rc, why, why_size);
    }
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
