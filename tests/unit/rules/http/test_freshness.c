/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/http/freshness.h"

#define NOW 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */

static void test_left(void **state)
{
    static const struct {
        const char *cache_control, *age;
        int64_t left;
    } rows[] = {
        {NULL, NULL, 0},
        {"", NULL, 0},
        {"public", NULL, 0},
        {"max-age=0", NULL, 0},
        {"max-age=3600", NULL, 3600},
        {"Max-Age=3600", NULL, 3600},
        {"public, max-age=3600, must-revalidate", NULL, 3600},
        {" ,, public ,\tmax-age=60 , ", NULL, 60},
        {"max-age=\"60\"", NULL, 60},
        {"max-age=60, max-age=30", NULL, 30},
        {"max-age=30, max-age=60", NULL, 30},
        {"s-maxage=600, max-age=60", NULL, 60},
        {"ext=\"max-age=600, \\\"x\", max-age=60", NULL, 60},
        {"no-store, max-age=60", NULL, 0},
        {"max-age=60, no-cache", NULL, 0},
        {"max-age=60, No-Cache=\"Set-Cookie\"", NULL, 0},
        {"max-age=60", "20", 40},
        {"max-age=60", " 20 ", 40},
        {"max-age=60", "60", 0},
        {"max-age=60", "61", 0},
        {"max-age=60", "x", 60},
        {"max-age=60", "-1", 60},
        {"max-age=60", "1, 2", 60},
        {"max-age=2147483647", NULL, 2147483647},
        {"max-age=99999999999999999999999999", NULL, 2147483648},
        {"max-age=99999999999999999999999999", "99999999999999999999", 0},
        /* what cannot be read promises nothing */
        {"max-age", NULL, 0},
        {"max-age=", NULL, 0},
        {"max-age=-60", NULL, 0},
        {"max-age=60s", NULL, 0},
        {"max-age=6 0", NULL, 0},
        {"max-age = 60", NULL, 0},
        {"max-age=\"60", NULL, 0},
        {"max-age=\"60\\", NULL, 0},
        {"max-age=60; public", NULL, 0},
        {"=60, max-age=60", NULL, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (freshness_remaining(rows[i].cache_control, rows[i].age) != rows[i].left)
            fail_msg("%s | %s", rows[i].cache_control, rows[i].age);
}

static void test_retry_after(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: malformed */
    } rows[] = {
        {NULL, -1},
        {"", -1},
        {"0", 0},
        {"120", 120},
        {" 120 ", 120},
        {"99999999999999999999", 2147483648},
        {"Sun, 06 Nov 1994 08:51:37 GMT", 120},
        {"Sunday, 06-Nov-94 08:51:37 GMT", 120},
        {"Sun Nov  6 08:51:37 1994", 120},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sat, 05 Nov 1994 08:49:37 GMT", 0},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 2147483648},
        {"-1", -1},
        {"1.5", -1},
        {"2 minutes", -1},
        {"Sun, 06 Nov 1994", -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t seconds = -1;

        if (freshness_retry_after(rows[i].text, NOW, &seconds) != (rows[i].seconds >= 0) ||
            seconds != rows[i].seconds)
            fail_msg("%s: %lld", rows[i].text, (long long)seconds);
    }
}

static void test_modified_at(void **state)
{
    static const struct {
        const char *modified, *date;
        int64_t at; /* -1: it says nothing */
    } rows[] = {
        {"Sun, 06 Nov 1994 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", NOW - 60},
        {"Sun, 06 Nov 1994 08:48:38 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", -1},
        {NULL, "Sun, 06 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1994 08:48:37 GMT", NULL, -1},
        {"yesterday", "Sun, 06 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1994 08:48:37 GMT", "now", -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t at = -1;

        if (freshness_modified_at(rows[i].modified, rows[i].date, NOW, &at) != (rows[i].at >= 0) ||
            at != rows[i].at)
            fail_msg("row %zu: %lld", i, (long long)at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_modified_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
