/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/base/str.h"

static void test_appends(void **state)
{
    struct str s = STR_INIT;

    assert_string_equal(str_text(&s), "");
    str_append(&s, NULL, 0);
    assert_string_equal(str_text(&s), "");
    str_append_text(&s, "page ");
    str_append_u64(&s, 0);
    str_append_char(&s, ' ');
    str_append_u64(&s, UINT64_MAX);
    str_append(&s, " of", 3);
    str_append_format(&s, " %s %d%%", "x", 42);
    str_append_format(&s, "%s", "");
    assert_string_equal(str_text(&s), "page 0 18446744073709551615 of x 42%");
    assert_int_equal(s.len, strlen(str_text(&s)));
    str_clear(&s);
    assert_string_equal(str_text(&s), "");
    assert_int_equal(s.len, 0);
    str_append_text(&s, "again");
    assert_string_equal(str_text(&s), "again");
    str_done(&s);
    assert_null(s.data);
    str_append_text(&s, "and again");
    assert_string_equal(str_text(&s), "and again");
    str_done(&s);
    str_done(&s);
    str_done(NULL);
}

static void test_growth(void **state)
{
    struct str s = STR_INIT;

    for (int i = 0; i < 100000; i++)
        str_append_char(&s, (char)('a' + i % 26));
    assert_false(s.failed);
    assert_int_equal(s.len, 100000);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(s.data[i], 'a' + i % 26);
    assert_int_equal(s.data[s.len], '\0');
    str_clear(&s);
    assert_true(str_reserve(&s, 1000000));
    assert_true(s.capacity > 1000000);
    str_done(&s);
}

/* A room that no machine has: the contents stay, what follows is not appended. */
static void test_sticky_failure(void **state)
{
    struct str s = STR_INIT;

    str_append_text(&s, "kept");
    assert_false(str_reserve(&s, SIZE_MAX));
    assert_true(s.failed);
    assert_false(str_reserve(&s, 1));
    str_append_text(&s, "lost");
    str_append_format(&s, "%d", 1);
    assert_string_equal(str_text(&s), "kept");
    str_clear(&s);
    assert_false(s.failed);
    str_append_text(&s, "new");
    assert_string_equal(str_text(&s), "new");
    assert_false(str_reserve(&s, SIZE_MAX - 3));
    str_done(&s);
    assert_false(s.failed);
}

static void test_json(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *json;
    } rows[] = {
        {BYTES(""), "\"\""},
        {BYTES("plain/text"), "\"plain/text\""},
        {BYTES("a\"b\\c"), "\"a\\\"b\\\\c\""},
        {BYTES("\n\r\t"), "\"\\n\\r\\t\""},
        {BYTES("\0\x01\x1F\x7F"), "\"\\u0000\\u0001\\u001f\\u007f\""},
        {BYTES("\xC2\x80\xC2\x9Bm\xC2\x9F\xC2\xA0"), "\"\\u0080\\u009bm\\u009f\xC2\xA0\""},
        {BYTES("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\""},
        {BYTES("a\xFF"
               "b"),
         "\"a\xEF\xBF\xBD"
         "b\""},
        {BYTES("\xC3"), "\"\xEF\xBF\xBD\""},
        {BYTES("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {BYTES("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };
    struct str s = STR_INIT;

    for (size_t i = 0; i < ROWS(rows); i++) {
        str_clear(&s);
        str_append_json(&s, rows[i].text, rows[i].len);
        check_text(rows[i].json, str_text(&s), rows[i].json);
    }
    str_clear(&s);
    str_append_json(&s, NULL, 0);
    assert_string_equal(str_text(&s), "null");
    str_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_sticky_failure),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
