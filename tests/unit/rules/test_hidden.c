/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* White space and format characters beyond ASCII at the ends of a text: how many bytes they take.
 */
#include "tests/unit/rules/check.h"

#include "server/rules/url.h"

static void test_ends(void **state)
{
    static const struct {
        const char *text;
        size_t len, front, back;
    } rows[] = {
        {BYTES(""), 0, 0},
        {BYTES("a"), 0, 0},
        {BYTES(" a "), 0, 0}, /* ASCII is another's */
        {BYTES("\xC2\xA0"
               "a"),
         2, 0},
        {BYTES("a\xC2\xA0"), 0, 2},
        {BYTES("\xC2\xAD"), 2, 2},
        {BYTES("\xE2\x80\x83"
               "a\xE2\x80\x8B"),
         3, 3}, /* U+2003, U+200B */
        {BYTES("\xE1\x9A\x80"
               "a\xEF\xBB\xBF"),
         3, 3}, /* U+1680, U+FEFF */
        {BYTES("\xF3\xA0\x80\xA1"
               "a\xF3\xA0\x80\xA1"),
         4, 4}, /* U+E0021, a tag */
        {BYTES("\xC3\xA9"
               "a\xC3\xA9"),
         0, 0}, /* letters and signs stay */
        {BYTES("\xE2\x82\xAC"
               "a\xE2\x82\xAC"),
         0, 0},
        {BYTES("\xF0\x9F\x98\x80"
               "a\xF0\x9F\x98\x80"),
         0, 0},
        {BYTES("\x80\x8B"), 0, 0}, /* no UTF-8 */
        {BYTES("a\xE2\x80"), 0, 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        check_number(rows[i].text, (int64_t)hidden_front(rows[i].text, rows[i].len),
                     (int64_t)rows[i].front);
        check_number(rows[i].text, (int64_t)hidden_back(rows[i].text, rows[i].len),
                     (int64_t)rows[i].back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
