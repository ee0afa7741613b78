/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Binds all parameters of a statement in one call. Internal to db/. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "server/base/sql_values.h"

/* Binds the values from the first parameter on, as many as there are. Returns SQLite's result code;
 * SQLITE_ERROR if `row` is NULL. */
#define sql_bind(row, ...) sql_bind_values((row), SQL_VALUES(__VA_ARGS__))
int sql_bind_values(sqlite3_stmt *row, const struct sql_value *values);
/* Steps to the next row, if the call before, whose result `*rc` is, bound or found a row. False:
 * at the end, or failed. */
static inline bool sql_next(sqlite3_stmt *row, int *rc)
{
    if (*rc == SQLITE_OK || *rc == SQLITE_ROW)
        *rc = sqlite3_step(row);
    return *rc == SQLITE_ROW;
}
/* Returns a number or a text, which stays as it is, as the result of a function or column. */
void sql_result(sqlite3_context *to, const struct sql_value *value);
