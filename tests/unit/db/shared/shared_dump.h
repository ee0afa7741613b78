/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What two catalogue files must hold alike: every row of every table that is not a node's own. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/base/str.h"

static inline void dump_rows(sqlite3 *db, const char *table, bool has_rowid, struct str *out)
{
    sqlite3_stmt *row = NULL;
    char *sql = sqlite3_mprintf("SELECT %s* FROM \"%w\"%s", has_rowid ? "rowid, " : "", table,
                                has_rowid ? " ORDER BY rowid" : "");
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    sqlite3_free(sql);
    while (sqlite3_step(row) == SQLITE_ROW) {
        str_append_format(out, "%s:", table);
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            int type = sqlite3_column_type(row, i), len = sqlite3_column_bytes(row, i);
            str_append_format(out, " %d/%d/", type, len);
            str_append(out, sqlite3_column_blob(row, i), (size_t)sqlite3_column_bytes(row, i));
        }
        str_append_char(out, '\n');
    }
    sqlite3_finalize(row);
}

static inline void dump(sqlite3 *db, struct str *out)
{
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT l.name, wr, sql FROM pragma_table_list AS l"
                                        " JOIN sqlite_schema AS s ON s.name = l.name"
                                        " WHERE schema = 'main' AND l.type = 'table'"
                                        " AND l.name NOT GLOB 'local_*' ORDER BY 1",
                                        -1, &row, NULL),
                     SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW) {
        str_append_format(out, "%s\n", (const char *)sqlite3_column_text(row, 2));
        dump_rows(db, (const char *)sqlite3_column_text(row, 0), !sqlite3_column_int(row, 1), out);
    }
    sqlite3_finalize(row);
    assert_false(out->failed);
}

static inline bool are_equal_dumps(sqlite3 *one, sqlite3 *other)
{
    struct str a = STR_INIT, b = STR_INIT;
    dump(one, &a);
    dump(other, &b);
    bool equal = a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
    str_done(&a);
    str_done(&b);
    return equal;
}

/* Fails with the first line that differs. */
static inline void assert_equal_dumps(sqlite3 *one, sqlite3 *other)
{
    struct str a = STR_INIT, b = STR_INIT;
    dump(one, &a);
    dump(other, &b);
    size_t at = 0, line = 0;
    while (at < a.len && at < b.len && a.data[at] == b.data[at])
        if (a.data[at++] == '\n')
            line = at;
    if (at < a.len || at < b.len)
        fail_msg("the files differ:\n%.300s\n%.300s", a.data + line, b.data + line);
    str_done(&a);
    str_done(&b);
}
