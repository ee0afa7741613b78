/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parameters of an SQL statement in one list; the type of a value says how it is passed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum sql_kind { SQL_END, SQL_NULL, SQL_NUMBER, SQL_TEXT, SQL_LINES, SQL_BYTES, SQL_HASH };

struct sql_value {
    enum sql_kind kind;
    int64_t number;   /* of SQL_BYTES: how many */
    const void *data; /* borrowed until the statement is reset; SQL_LINES, SQL_HASH: copied */
};

static inline struct sql_value sql_number(int64_t number)
{
    return (struct sql_value){.kind = SQL_NUMBER, .number = number};
}
static inline struct sql_value sql_unsigned(uint64_t number)
{
    return sql_number((int64_t)number);
}
/* NULL if the number is 0. */
static inline struct sql_value sql_not_0(int64_t number)
{
    return (struct sql_value){.kind = number != 0 ? SQL_NUMBER : SQL_NULL, .number = number};
}
/* NULL for a NULL pointer, like sql_bytes. */
static inline struct sql_value sql_text(const char *text)
{
    return (struct sql_value){.kind = SQL_TEXT, .data = text};
}
/* Texts up to a NULL, each on a line; NULL for none. */
static inline struct sql_value sql_lines(const char *const *texts)
{
    return (struct sql_value){.kind = SQL_LINES, .data = texts};
}
static inline struct sql_value sql_bytes(const void *bytes, size_t len)
{
    return (struct sql_value){.kind = SQL_BYTES, .number = (int64_t)len, .data = bytes};
}
/* 16 bytes, big-endian; NULL for the hash 0, 0. */
static inline struct sql_value sql_hash(const uint64_t *hash)
{
    return (struct sql_value){.kind = SQL_HASH, .data = hash};
}
static inline struct sql_value sql_same(struct sql_value value)
{
    return value;
}

/* clang-format off */
#define SQL_VALUE(x)                                                                               \
    _Generic((x),                                                                                  \
        char *: sql_text,                                                                          \
        const char *: sql_text,                                                                    \
        const char *const *: sql_lines,                                                            \
        uint64_t *: sql_hash,                                                                      \
        const uint64_t *: sql_hash,                                                                \
        unsigned long: sql_unsigned,                                                               \
        unsigned long long: sql_unsigned,                                                          \
        struct sql_value: sql_same,                                                                \
        default: sql_number)(x)

/* An array of up to 32 values, from none on, with SQL_END behind them. A macro does not expand
 * itself: SQL_EACH expands again what is left, the name of SQL_NEXT. */
#define SQL_VALUES(...)                                                                            \
    (const struct sql_value[]){__VA_OPT__(SQL_EACH(SQL_NEXT(__VA_ARGS__))) SQL_LAST}
/* clang-format on */
#define SQL_LAST                                                                                   \
    (const struct sql_value)                                                                       \
    {                                                                                              \
        .kind = SQL_END                                                                            \
    }
#define SQL_NEXT(x, ...) SQL_VALUE(x), __VA_OPT__(SQL_AGAIN SQL_NOTHING(__VA_ARGS__))
#define SQL_AGAIN()      SQL_NEXT
#define SQL_NOTHING      ()
#define SQL_EACH(...)    SQL_EACH_8(SQL_EACH_8(SQL_EACH_8(SQL_EACH_8(__VA_ARGS__))))
#define SQL_EACH_8(...)  SQL_EACH_2(SQL_EACH_2(SQL_EACH_2(SQL_EACH_2(__VA_ARGS__))))
#define SQL_EACH_2(...)  SQL_ONCE(SQL_ONCE(__VA_ARGS__))
#define SQL_ONCE(...)    __VA_ARGS__
