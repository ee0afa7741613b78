/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/http/query.h"

static void test_values(void **state)
{
    static const struct {
        const char *text, *name, *value; /* value NULL: absent */
    } rows[] = {
        {NULL, "a", NULL},
        {"", "a", NULL},
        {"a=1", "a", "1"},
        {"a=1&b=2", "b", "2"},
        {"a=1&b=2", "c", NULL},
        {"a", "a", ""},
        {"a=", "a", ""},
        {"&&a=1&", "a", "1"},
        {"a==", "a", "="},
        {"a=b=c", "a", "b=c"},
        {"a=x+y", "a", "x y"},
        {"a=x%2By", "a", "x+y"},
        {"a=%41%c3%A9", "a", "A\xC3\xA9"},
        {"%61=1", "a", "1"},
        {"a=%26%3D", "a", "&="},
        {"a=https%3A%2F%2Fx%2F%3Fq%3D1", "a", "https://x/?q=1"},
        {"a=?/:@", "a", "?/:@"},
        {"A=1", "a", NULL},
        {"=1", "", "1"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct query q;
        const char *got;

        if (query_parse(rows[i].text, &q) != QUERY_OK)
            fail_msg("refused: %s", rows[i].text);
        got = query_value(&q, rows[i].name);
        check_text(rows[i].text ? rows[i].text : "(none)", got ? got : "(absent)",
                   rows[i].value ? rows[i].value : "(absent)");
        query_done(&q);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        enum query_status status;
    } rows[] = {
        {"a=%", QUERY_MALFORMED},
        {"a=%4", QUERY_MALFORMED},
        {"a=%zz", QUERY_MALFORMED},
        {"a=%4g", QUERY_MALFORMED},
        {"a=%00", QUERY_MALFORMED},
        {"a%00b=1", QUERY_MALFORMED},
        {"a=%FF", QUERY_MALFORMED},
        {"a=%c3", QUERY_MALFORMED},
        {"a=\xC0\xAF", QUERY_MALFORMED},
        {"a=%ED%A0%80", QUERY_MALFORMED},
        {"a=%c3&b=%a9", QUERY_MALFORMED}, /* no character spans two values */
        {"a=1&a=2", QUERY_REPEATED},
        {"a=1&%61=1", QUERY_REPEATED},
        {"a&a", QUERY_REPEATED},
        {"1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17", QUERY_TOO_MANY},
    };
    struct query q;

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(rows[i].text, query_parse(rows[i].text, &q), rows[i].status);
    assert_int_equal(query_parse("1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16", &q), QUERY_OK);
    assert_int_equal(q.count, QUERY_MAX_PAIRS);
    query_done(&q);
    query_done(&q);
    query_done(NULL);
}

static void test_number(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        bool ok;
        uint64_t value;
    } rows[] = {
        {"0", 10, true, 0},
        {"10", 10, true, 10},
        {"007", 10, true, 7},
        {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
        {"11", 10, false, 0},
        {"18446744073709551616", UINT64_MAX, false, 0},
        {"99999999999999999999", UINT64_MAX, false, 0},
        {"", 10, false, 0},
        {"-1", 10, false, 0},
        {"+1", 10, false, 0},
        {" 1", 10, false, 0},
        {"1 ", 10, false, 0},
        {"1.0", 10, false, 0},
        {"0x1", 10, false, 0},
        {"1e1", 10, false, 0},
        {"\xD9\xA1", 10, false, 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        uint64_t out = 42;

        check_number(rows[i].text, query_number(rows[i].text, rows[i].max, &out), rows[i].ok);
        if (out != (rows[i].ok ? rows[i].value : 42))
            fail_msg("%s: wrong value", rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
