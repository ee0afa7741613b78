/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/lib/sql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

/* cmocka.h needs these. */
#include <cmocka.h>

void fixture_sql(sqlite3 *db, const char *format, ...)
{
    va_list arguments;
    char *error = NULL;

    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
    sqlite3_free(sql);
}

int64_t fixture_number(sqlite3 *db, const char *format, ...)
{
    sqlite3_stmt *row = NULL;
    va_list arguments;

    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_free(sql);
    return number;
}
