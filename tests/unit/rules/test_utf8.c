/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/base/str.h"

static void test_chars(void **state)
{
    static const struct {
        const char *text;
        size_t len, want;
    } rows[] = {
        {BYTES("a"), 1},
        {BYTES("\0"), 1},
        {BYTES("\x7F"), 1},
        {BYTES("\xC2\x80"), 2},
        {BYTES("\xDF\xBF"), 2},
        {BYTES("\xE0\xA0\x80"), 3},
        {BYTES("\xED\x9F\xBF"), 3},
        {BYTES("\xEE\x80\x80"), 3},
        {BYTES("\xEF\xBF\xBF"), 3},
        {BYTES("\xF0\x90\x80\x80"), 4},
        {BYTES("\xF4\x8F\xBF\xBF"), 4},
        /* overlong */
        {BYTES("\xC0\x80"), 0},
        {BYTES("\xC1\xBF"), 0},
        {BYTES("\xE0\x9F\xBF"), 0},
        {BYTES("\xF0\x8F\xBF\xBF"), 0},
        /* surrogates, and past the last character */
        {BYTES("\xED\xA0\x80"), 0},
        {BYTES("\xED\xBF\xBF"), 0},
        {BYTES("\xF4\x90\x80\x80"), 0},
        {BYTES("\xF5\x80\x80\x80"), 0},
        {BYTES("\xFE"), 0},
        {BYTES("\xFF"), 0},
        /* cut short, or without a first byte */
        {BYTES("\x80"), 0},
        {BYTES("\xBF"), 0},
        {BYTES("\xC3"), 0},
        {BYTES("\xC3"
               "a"),
         0},
        {BYTES("\xE2\x82"), 0},
        {BYTES("\xE2\x82"
               "a"),
         0},
        {BYTES("\xF0\x9F\x98"), 0},
        {BYTES("\xF0\x9F\x98"
               "a"),
         0},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        check_number(rows[i].text, (int64_t)utf8_char_len(rows[i].text, rows[i].len),
                     (int64_t)rows[i].want);
        check_number(rows[i].text, utf8_is_valid(rows[i].text, rows[i].len), rows[i].want > 0);
    }
    assert_true(utf8_is_valid("", 0));
    assert_true(utf8_is_valid(BYTES("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z")));
    assert_false(utf8_is_valid(BYTES("a\xC3\xA9\xFF")));
}

static void test_controls(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        bool control;
    } rows[] = {
        {BYTES("\0"), true},       {BYTES("\x1F"), true},      {BYTES(" "), false},
        {BYTES("~"), false},       {BYTES("\x7F"), true},      {BYTES("\xC2\x80"), true},
        {BYTES("\xC2\x9F"), true}, {BYTES("\xC2\xA0"), false}, {BYTES("\xC3\x80"), false},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(rows[i].text, utf8_is_control(rows[i].text, rows[i].len), rows[i].control);
}

static void test_unprintable(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        uint32_t code;
        bool unprintable;
    } rows[] = {
        {BYTES("\x1B"), 0x1B, true},
        {BYTES("a"), 'a', false},
        {BYTES("\xC2\x9B"), 0x9B, true},
        {BYTES("\xD8\x9C"), 0x061C, true},
        {BYTES("\xD8\x9B"), 0x061B, false},
        {BYTES("\xC2\xAD"), 0x00AD, true},
        {BYTES("\xE1\xA0\x8E"), 0x180E, true},
        {BYTES("\xE2\x80\x8A"), 0x200A, false},
        {BYTES("\xE2\x80\x8B"), 0x200B, true},
        {BYTES("\xE2\x80\x8C"), 0x200C, false}, /* joins and parts letters of scripts */
        {BYTES("\xE2\x80\x8D"), 0x200D, false}, /* joins emoji */
        {BYTES("\xE2\x80\x8E"), 0x200E, true},
        {BYTES("\xE2\x80\xA7"), 0x2027, false},
        {BYTES("\xE2\x80\xA8"), 0x2028, true},
        {BYTES("\xE2\x80\xAE"), 0x202E, true},
        {BYTES("\xE2\x80\xAF"), 0x202F, false},
        {BYTES("\xE2\x81\x9F"), 0x205F, false},
        {BYTES("\xE2\x81\xA0"), 0x2060, true},
        {BYTES("\xE2\x81\xA6"), 0x2066, true},
        {BYTES("\xE2\x81\xA9"), 0x2069, true},
        {BYTES("\xE2\x81\xAF"), 0x206F, true},
        {BYTES("\xE2\x81\xB0"), 0x2070, false},
        {BYTES("\xEF\xBB\xBF"), 0xFEFF, true},
        {BYTES("\xF0\x9F\x98\x80"), 0x1F600, false},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        check_number(rows[i].text, utf8_code(rows[i].text, rows[i].len), rows[i].code);
        check_number(rows[i].text, utf8_is_unprintable(rows[i].text, rows[i].len),
                     rows[i].unprintable);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chars),
        cmocka_unit_test(test_controls),
        cmocka_unit_test(test_unprintable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
