/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/http/negotiate.h"

#define NOW_2026 1767225600 /* 2026-01-01T00:00:00Z */
#define NOV_1994 784111777  /* Sun, 06 Nov 1994 08:49:37 GMT */

static void test_accepted(void **state)
{
    static const struct {
        const char *text;
        int64_t now, want;
    } rows[] = {
        /* RFC 9110 5.6.7: the three forms of one time */
        {"Sun, 06 Nov 1994 08:49:37 GMT", NOW_2026, NOV_1994},
        {"Sunday, 06-Nov-94 08:49:37 GMT", NOW_2026, NOV_1994},
        {"Sun Nov  6 08:49:37 1994", NOW_2026, NOV_1994},
        {"Sun Nov 06 08:49:37 1994", NOW_2026, NOV_1994},
        {"Wed Nov 16 08:49:37 1994", NOW_2026, NOV_1994 + 864000},
        {"Thu, 01 Jan 1970 00:00:00 GMT", NOW_2026, 0},
        {"Thu, 29 Feb 2024 00:00:00 GMT", NOW_2026, 1709164800},
        {"Sat, 31 Dec 2016 23:59:60 GMT", NOW_2026, 1483228800}, /* a real leap second */
        {"Mon, 06 Nov 1994 08:49:37 GMT", NOW_2026, NOV_1994},   /* it was a Sunday */
        /* Two digits: at most 50 years ahead, else the past. */
        {"Thursday, 01-Jan-26 00:00:00 GMT", NOW_2026, NOW_2026},
        {"Wednesday, 01-Jan-76 00:00:00 GMT", NOW_2026, 3345062400},
        {"Thursday, 01-Jan-76 00:00:01 GMT", NOW_2026, 189302401},
        {"Friday, 01-Jan-99 00:00:00 GMT", NOW_2026, 915148800},
        {"Saturday, 01-Jan-05 00:00:00 GMT", 915148800, 1104537600}, /* asked in 1999 */
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t got = -1;

        if (!http_date_parse(rows[i].text, rows[i].now, &got))
            fail_msg("refused: %s", rows[i].text);
        check_number(rows[i].text, got, rows[i].want);
    }
}

static void test_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "yesterday",
        "784111777",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 2026 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun,  06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT; length=5",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Monday, 29-Feb-26 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT",
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t out = 42;

        if (http_date_parse(rows[i], NOW_2026, &out))
            fail_msg("accepted: %s", rows[i]);
        check_number(rows[i], out, 42);
    }
}

static void test_format(void **state)
{
    static const struct {
        int64_t unix_seconds;
        const char *want;
    } rows[] = {
        {NOV_1994, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
        {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char out[30];
        int64_t again;

        http_date_format(rows[i].unix_seconds, out);
        check_text(rows[i].want, out, rows[i].want);
        assert_true(http_date_parse(out, NOW_2026, &again));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
