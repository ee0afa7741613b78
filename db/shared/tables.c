/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lists the tables of the schema that are shared, with their columns, from the schema itself. */
#include "db/shared/tables.h"

#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"

bool table_is_common(const char *name)
{
    return strncmp(name, "local_", 6) != 0 && strncmp(name, "sqlite_", 7) != 0;
}

static void table_done(struct table *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->columns[i]);
    free(t->columns);
    free(t->name);
}

void tables_done(struct tables *t)
{
    for (size_t i = 0; i < t->count; i++)
        table_done(&t->list[i]);
    free(t->list);
    *t = (struct tables){0};
}

static bool add_column(struct table *t, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    bool is_integer = sqlite3_column_int(row, 2);
    int in_key = sqlite3_column_int(row, 1);
    t->columns[t->count] = name != NULL ? strdup(name) : NULL;
    if (t->columns[t->count] == NULL)
        return false;
    if (in_key)
        t->key |= UINT64_C(1) << t->count;
    if (in_key && is_integer)
        t->alias = t->alias == -1 ? t->count : -2;
    else if (in_key)
        t->alias = -2; /* a key of several columns, or of a text, is not the rowid */
    t->count++;
    return true;
}

/* A result code of SQLite. */
static int read_columns(struct table *t, sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT name, pk, upper(type) = 'INTEGER'"
                                " FROM pragma_table_info(?1) ORDER BY cid",
                                -1, &row, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 1, t->name, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        rc = t->count == TABLE_COLUMNS_MAX ? SQLITE_TOOBIG
             : add_column(t, row)          ? SQLITE_OK
                                           : SQLITE_NOMEM;
    sqlite3_finalize(row);
    if (!t->has_rowid || t->alias < 0)
        t->alias = -1;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A result code of SQLite. */
static int add_table(struct tables *t, sqlite3 *db, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (name == NULL)
        return SQLITE_NOMEM;
    if (!table_is_common(name))
        return SQLITE_OK;
    if (t->count == TABLES_MAX)
        return SQLITE_TOOBIG;
    struct table *table = &t->list[t->count];
    *table = (struct table){.name = strdup(name), .alias = -1};
    table->has_rowid = !sqlite3_column_int(row, 1);
    table->columns = calloc(TABLE_COLUMNS_MAX, sizeof *table->columns);
    t->count++;
    return table->name != NULL && table->columns != NULL ? read_columns(table, db) : SQLITE_NOMEM;
}

enum catalogue_status tables_load(struct tables *t, sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    tables_done(t);
    t->list = calloc(TABLES_MAX, sizeof *t->list);
    if (t->list == NULL)
        return CATALOGUE_NO_MEMORY;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT name, wr FROM pragma_table_list"
                                " WHERE schema = 'main' AND type = 'table' ORDER BY name",
                                -1, &row, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        rc = add_table(t, db, row);
    sqlite3_finalize(row);
    if (rc == SQLITE_DONE)
        return CATALOGUE_OK;
    tables_done(t);
    enum catalogue_status status = connection_status(rc);
    return status == CATALOGUE_OK ? CATALOGUE_UNAVAILABLE : status;
}

const struct table *tables_find(const struct tables *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->count; i++)
        if (strlen(t->list[i].name) == len && memcmp(t->list[i].name, name, len) == 0)
            return &t->list[i];
    return NULL;
}
