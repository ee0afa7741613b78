/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Binds values to the parameters of a statement, and returns them as results. */
#include "db/file/bind.h"

#include <assert.h>

static int bind_hash(sqlite3_stmt *row, int at, const uint64_t hash[2])
{
    unsigned char bytes[16];

    if (hash[0] == 0 && hash[1] == 0)
        return sqlite3_bind_null(row, at);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(hash[i / 8] >> (56 - i % 8 * 8));
    return sqlite3_bind_blob(row, at, bytes, sizeof bytes, SQLITE_TRANSIENT);
}

static int bind_lines(sqlite3_stmt *row, int at, const char *const *texts)
{
    if (texts == NULL || *texts == NULL)
        return sqlite3_bind_null(row, at);
    sqlite3_str *lines = sqlite3_str_new(NULL);
    sqlite3_str_appendall(lines, *texts);
    while (*++texts != NULL)
        sqlite3_str_appendf(lines, "\n%s", *texts);
    char *joined = sqlite3_str_finish(lines);
    return joined != NULL ? sqlite3_bind_text(row, at, joined, -1, sqlite3_free) : SQLITE_NOMEM;
}

static int bind_value(sqlite3_stmt *row, int at, const struct sql_value *value)
{
    switch (value->kind) {
    case SQL_NUMBER:
        return sqlite3_bind_int64(row, at, value->number);
    case SQL_TEXT:
        return sqlite3_bind_text(row, at, value->data, -1, SQLITE_STATIC);
    case SQL_LINES:
        return bind_lines(row, at, value->data);
    case SQL_BYTES:
        return sqlite3_bind_blob64(row, at, value->data, (uint64_t)value->number, SQLITE_STATIC);
    case SQL_HASH:
        return bind_hash(row, at, value->data);
    default:
        return sqlite3_bind_null(row, at);
    }
}

int sql_bind_values(sqlite3_stmt *row, const struct sql_value *values)
{
    int rc = row != NULL ? SQLITE_OK : SQLITE_ERROR;
    int at = 1;

    for (; rc == SQLITE_OK && values[at - 1].kind != SQL_END; at++)
        rc = bind_value(row, at, &values[at - 1]);
    assert(rc != SQLITE_OK || sqlite3_bind_parameter_count(row) == at - 1);
    return rc;
}

void sql_result(sqlite3_context *to, const struct sql_value *value)
{
    if (value->kind == SQL_NUMBER)
        sqlite3_result_int64(to, value->number);
    else if (value->kind == SQL_TEXT)
        sqlite3_result_text(to, value->data, -1, SQLITE_STATIC);
}
