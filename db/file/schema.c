/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds the schema version of a file and migrates it to this program's.
 *
 * Version 1 is schema.sql. Each later version is a step from the one before it, in `steps` below. A
 * released step is never changed, and no step reads a whole table of entries, so that a catalogue
 * of millions opens as fast as a small one. A migration is one transaction, so a file is never
 * between two versions. */
#include "db/file/schema.h"

#include <stdio.h>
#include <string.h>

#include "db/file/bind.h"
#include "db/file/connection.h"

/* steps[N] brings a file of version N to N + 1. */
static const char *const steps[] = {
    NULL, /* an empty file: schema.sql */
#ifdef SCHEMA_OF_NEXT
    "ALTER TABLE site ADD COLUMN next INTEGER NOT NULL DEFAULT 7;"
    "CREATE TABLE next(one INTEGER PRIMARY KEY, chance INTEGER NOT NULL) STRICT;"
    "INSERT INTO next VALUES (1, random());",
#endif
};
_Static_assert(sizeof steps / sizeof *steps == SCHEMA_VERSION, "one step for each later version");

const char *schema_step(int version)
{
    return steps[version];
}

static enum catalogue_status fail_schema(sqlite3 *db, const char *path, int rc, char *why,
                                         size_t why_size)
{
    connection_explain(path, db, why, why_size);
    enum catalogue_status status = connection_status(rc);
    return status == CATALOGUE_OK ? CATALOGUE_UNAVAILABLE : status;
}

/* Reads the first column of the first row of `sql`. Returns SQLite's result code. */
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

/* As schema_identify; `*version` is 0 for an empty file, and without SCHEMA_SHARED. */
static enum catalogue_status identify_file(sqlite3 *db, const char *path, int64_t *version,
                                           bool *shared, char *why, size_t why_size)
{
    int64_t application = 0, tables = 0;
    int rc = read_number(db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = read_number(db, "PRAGMA user_version", version);
    if (rc == SQLITE_OK)
        rc = read_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
    if (rc != SQLITE_OK)
        return fail_schema(db, path, rc, why, why_size);

    if (application == SCHEMA_DEVELOPMENT_ID) {
        snprintf(
            why, why_size,
            "%s: was made by a development build of sitemapd (schema %lld); run `sitemapd export` "
            "with that build, then `sitemapd import` to another path",
            path, (long long)(*version % SCHEMA_SHARED));
        return CATALOGUE_UNAVAILABLE;
    }
    bool empty = application == 0 && *version == 0 && tables == 0;
    if (!empty && (application != SCHEMA_APPLICATION_ID || *version < 1)) {
        snprintf(why, why_size,
                 "%s: is a database of another program, not a catalogue; name another path", path);
        return CATALOGUE_UNAVAILABLE;
    }
    *shared = *version >= SCHEMA_SHARED;
    if (*shared)
        *version -= SCHEMA_SHARED;
    if (*version > SCHEMA_VERSION) {
        snprintf(why, why_size,
                 "%s: was made by a newer version of sitemapd (schema %lld; this one knows %d): "
                 "run that version, or restore an earlier backup",
                 path, (long long)*version, SCHEMA_VERSION);
        return CATALOGUE_NEWER;
    }
    return CATALOGUE_OK;
}

enum catalogue_status schema_identify(sqlite3 *db, const char *path, char *why, size_t why_size)
{
    int64_t version = 0;
    bool shared;
    return identify_file(db, path, &version, &shared, why, why_size);
}

bool schema_version(sqlite3 *db, int *version, bool *shared)
{
    int64_t number = 0;
    if (read_number(db, "PRAGMA user_version", &number) != SQLITE_OK)
        return false;
    *shared = number >= SCHEMA_SHARED;
    *version = (int)(number % SCHEMA_SHARED);
    return true;
}

int schema_make(sqlite3 *db, int version)
{
    int rc = sqlite3_exec(db, schema_sql, NULL, NULL, NULL);
    for (int step = 1; rc == SQLITE_OK && step < version; step++)
        rc = sqlite3_exec(db, schema_step(step), NULL, NULL, NULL);
    return rc;
}

/* ---- objects that are not this program's */

/* Compares the objects of the file with those of a new catalogue. The tables of ANALYZE are the
 * engine's own; they are recognised by their text, since a trigger can have their names. */
static const char compare_objects[] =
    "SELECT f.type, f.name, CASE WHEN m.name IS NULL THEN 'not part of this version'"
    "  WHEN m.type <> f.type THEN 'not as sitemapd created it'"
    "  WHEN m.sql IS NOT f.sql THEN 'not as sitemapd created it' END AS how,"
    "  m.name IS NULL OR m.type <> f.type OR f.type IN ('view', 'trigger') AS foreign_one"
    " FROM file_objects AS f LEFT JOIN main.sqlite_schema AS m USING (name)"
    " WHERE how IS NOT NULL"
    " UNION ALL SELECT type, name, 'missing', 0 FROM main.sqlite_schema WHERE sql IS NOT NULL"
    "  AND name NOT IN (SELECT name FROM file_objects)"
    " ORDER BY 4 DESC, 2";

/* Copies the text of the file's objects into the new catalogue, for the comparison. */
static int copy_objects(sqlite3 *db, sqlite3 *fresh)
{
    sqlite3_stmt *from = NULL, *to = NULL;
    int rc = sqlite3_exec(fresh, "CREATE TEMP TABLE file_objects(type TEXT, name TEXT, sql TEXT)",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(fresh, "INSERT INTO file_objects VALUES (?1, ?2, ?3)", -1, &to,
                                NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db,
                                "SELECT type, name, sql FROM sqlite_schema WHERE (sql IS NOT NULL"
                                " OR type NOT IN ('table', 'index'))"
                                " AND sql IS NOT 'CREATE TABLE sqlite_stat1(tbl,idx,stat)'"
                                " AND sql IS NOT 'CREATE TABLE"
                                " sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)'",
                                -1, &from, NULL);
    while (sql_next(from, &rc)) {
        rc = SQLITE_OK;
        for (int column = 0; rc == SQLITE_OK && column < 3; column++) /* copies the text */
            rc = sqlite3_bind_value(to, column + 1, sqlite3_column_value(from, column));
        if (rc == SQLITE_OK && sqlite3_step(to) != SQLITE_DONE)
            rc = sqlite3_errcode(fresh);
        sqlite3_reset(to);
    }
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int schema_compare(sqlite3 *db, schema_differs *differs, void *context)
{
    sqlite3 *fresh = NULL;
    sqlite3_stmt *row = NULL;
    int version = 0;
    bool shared;
    /* Read version and objects in one transaction: another process may migrate the file now. */
    bool begins = sqlite3_get_autocommit(db) != 0;
    int rc = begins ? sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) : SQLITE_OK;

    if (rc == SQLITE_OK && !schema_version(db, &version, &shared))
        rc = sqlite3_errcode(db);
    if (rc == SQLITE_OK)
        rc = sqlite3_open_v2(":memory:", &fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = schema_make(fresh, version);
    if (rc == SQLITE_OK)
        rc = copy_objects(db, fresh);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(fresh, compare_objects, -1, &row, NULL);
    while (sql_next(row, &rc)) {
        const char *type = (const char *)sqlite3_column_text(row, 0);
        const char *name = (const char *)sqlite3_column_text(row, 1);
        const char *how = (const char *)sqlite3_column_text(row, 2);
        if (type != NULL && name != NULL && how != NULL)
            differs(context, type, name, how, sqlite3_column_int(row, 3) != 0);
        rc = type != NULL && name != NULL && how != NULL ? SQLITE_OK : SQLITE_NOMEM;
    }
    sqlite3_finalize(row);
    sqlite3_close(fresh);
    if (begins && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Whether every object has the text of a statement of schema.sql: then none is foreign. Spares the
 * start of a command the comparison, which takes longer than the rest of the start. */
static bool is_of_version_1(sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    bool own = sqlite3_prepare_v2(db,
                                  "SELECT sql FROM sqlite_schema WHERE (sql IS NOT NULL OR type"
                                  " NOT IN ('table', 'index'))"
                                  " AND sql IS NOT 'CREATE TABLE sqlite_sequence(name,seq)'",
                                  -1, &row, NULL) == SQLITE_OK;
    const char *next = schema_sql; /* objects mostly have this order */
    int rc = SQLITE_DONE;

    while (own && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const char *sql = (const char *)sqlite3_column_text(row, 0);
        const char *at = sql != NULL ? strstr(next, sql) : NULL;
        if (sql != NULL && at == NULL)
            at = strstr(schema_sql, sql);
        own = at != NULL && at[strlen(sql)] == ';' && strncmp(sql, "CREATE ", 7) == 0;
        next = own ? at + strlen(sql) : schema_sql;
    }
    sqlite3_finalize(row);
    return own && rc == SQLITE_DONE;
}

struct first_foreign {
    bool has;
    char words[160];
};

static void record_foreign(void *context, const char *type, const char *name, const char *how,
                           bool foreign)
{
    struct first_foreign *first = context;
    if (!foreign || first->has)
        return;
    snprintf(first->words, sizeof first->words, "%.10s \"%.80s\" is %s", type, name, how);
    first->has = true;
}

/* Rejects a file with foreign objects (schema_compare): this program's own writes would run a
 * foreign trigger. On failure `why` gets a sentence. */
static enum catalogue_status schema_refuse_foreign(sqlite3 *db, const char *path, char *why,
                                                   size_t why_size)
{
    struct first_foreign first = {.has = false};
    int rc = is_of_version_1(db) ? SQLITE_OK : schema_compare(db, record_foreign, &first);

    if (rc != SQLITE_OK)
        return fail_schema(db, path, rc, why, why_size);
    if (!first.has)
        return CATALOGUE_OK;
    snprintf(why, why_size,
             "%s: %s: another program changed this file; restore a backup, or remove it with the "
             "sqlite3 command if you know what it is",
             path, first.words);
    return CATALOGUE_CORRUPT;
}

/* ---- migrations */

/* In a transaction of the caller: runs the steps from `version` on; 0: makes a new catalogue. */
static int migrate(sqlite3 *db, int64_t version, bool shared)
{
    int rc = SQLITE_OK;
    if (version == 0)
        rc = schema_make(db, SCHEMA_VERSION);
    for (int step = (int)version; rc == SQLITE_OK && step > 0 && step < SCHEMA_VERSION; step++)
        rc = sqlite3_exec(db, schema_step(step), NULL, NULL, NULL);
    if (rc == SQLITE_OK && version == 0)
        rc = sqlite3_exec(db,
                          "INSERT INTO catalogue(one, epoch, revision, registry_revision, serial,"
                          " changed_at) VALUES (1, lower(hex(randomblob(16))), 0, 0, 0, 0)",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        char pragmas[96];
        snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d",
                 SCHEMA_APPLICATION_ID, SCHEMA_VERSION + (shared ? SCHEMA_SHARED : 0));
        rc = sqlite3_exec(db, pragmas, NULL, NULL, NULL);
    }
    return rc;
}

/* Checks whether the file may be migrated, and whether it is shared as expected. */
static enum catalogue_status check_version(sqlite3 *db, const char *path, bool shared,
                                           int64_t *version, char *why, size_t why_size)
{
    bool is_shared = false;
    enum catalogue_status status = identify_file(db, path, version, &is_shared, why, why_size);
    if (status != CATALOGUE_OK || *version == 0 || is_shared == shared)
        return status;
    snprintf(
        why, why_size, "%s: %s", path,
        is_shared
            ? "is a node's file of a shared catalogue: use --shared, or its server with --server. "
              "To use it alone, or to share it again, `sitemapd backup` it and `sitemapd restore "
              "--replace` that copy"
            : "is not shared; on the first node, `sitemapd share init` shares it; on another node, "
              "move it away, and the node copies the shared one");
    return CATALOGUE_UNAVAILABLE;
}

static enum catalogue_status prepare_schema(sqlite3 *db, const char *path, bool shared, char *why,
                                            size_t why_size)
{
    int64_t version = 0;
    enum catalogue_status status = check_version(db, path, shared, &version, why, why_size);
    if (status == CATALOGUE_OK && version > 0)
        status = schema_refuse_foreign(db, path, why, why_size);
    if (status != CATALOGUE_OK || version == SCHEMA_VERSION || (shared && version > 0))
        return status;

    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return fail_schema(db, path, rc, why, why_size);
    /* Another process may have migrated it while this one waited for the lock. */
    status = check_version(db, path, shared, &version, why, why_size);
    if (status == CATALOGUE_OK && !(shared && version > 0)) {
        rc = migrate(db, version, shared);
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            status = fail_schema(db, path, rc, why, why_size);
    }
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

enum catalogue_status schema_prepare(sqlite3 *db, const char *path, char *why, size_t why_size)
{
    return prepare_schema(db, path, false, why, why_size);
}

enum catalogue_status schema_prepare_shared(sqlite3 *db, const char *path, char *why,
                                            size_t why_size)
{
    return prepare_schema(db, path, true, why, why_size);
}
