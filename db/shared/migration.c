#include "db/shared/migration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"
#include "db/file/schema.h"

const char *(*migration_step)(int version) = schema_step;

static bool is_everyones(const char *sql)
{
    static const char *const makes[] = {"CREATE", "ALTER", "DROP", "PRAGMA"};
    sql += strspn(sql, " \n;");
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        if (strncmp(sql, makes[i], strlen(makes[i])) == 0)
            return true;
    return strstr(sql, " local_") != NULL;
}

static enum catalogue_status run_all(sqlite3 *db, struct effects *effects, const char *sql)
{
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK && sql[strspn(sql, " \n;")] != '\0') {
        sqlite3_stmt *statement = NULL;
        const char *rest = sql;
        int rc = sqlite3_prepare_v2(db, sql, -1, &statement, &rest);
        if (rc == SQLITE_OK && statement)
            rc = sqlite3_step(statement);
        sqlite3_finalize(statement);
        if (rc != SQLITE_DONE && rc != SQLITE_ROW && rc != SQLITE_OK)
            return connection_status(rc);
        char *text = strndup(sql, (size_t)(rest - sql));
        if (!text)
            return CATALOGUE_NO_MEMORY;
        if (is_everyones(text))
            status = effects_add_sql(effects, text);
        free(text);
        sql = rest;
    }
    return status;
}

enum catalogue_status migration_run(sqlite3 *db, struct effects *effects, int from)
{
    char version[64];
    enum catalogue_status status = effects_add_schema(effects, SCHEMA_VERSION);
    for (int step = from; status == CATALOGUE_OK && step < SCHEMA_VERSION; step++)
        status = run_all(db, effects, migration_step(step));
    snprintf(version, sizeof version, "PRAGMA user_version=%d", SCHEMA_SHARED + SCHEMA_VERSION);
    return status == CATALOGUE_OK ? run_all(db, effects, version) : status;
}
