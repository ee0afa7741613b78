/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/config/fixture.h"

#include "config/suggest.h"

static void test_distances(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {
        {"", "", 0},         {"abc", "abc", 0}, {"", "abc", 3},           {"abc", "", 3},
        {"abc", "abd", 1},   {"abc", "ab", 1},  {"abc", "abcd", 1},       {"abc", "acb", 1},
        {"lsit", "list", 1}, {"ca", "abc", 3},  {"kitten", "sitting", 3},
    };
    char long_word[80];

    for (size_t i = 0; i < ROWS(rows); i++)
        if (suggest_distance(rows[i].a, rows[i].b) != rows[i].distance)
            fail_msg("%s, %s: %zu", rows[i].a, rows[i].b, suggest_distance(rows[i].a, rows[i].b));
    memset(long_word, 'x', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_true(suggest_distance(long_word, "x") == SIZE_MAX);
    assert_false(suggest_is_close(long_word, long_word));
}

static void test_the_closest_wins(void **state)
{
    struct suggestion s = {0};

    suggest_consider(&s, "exprot", "import");
    assert_null(s.word);
    suggest_consider(&s, "exprot", "exports");
    suggest_consider(&s, "exprot", "export");
    suggest_consider(&s, "exprot", "expert");
    assert_string_equal(s.word, "export");
    s = (struct suggestion){0};
    suggest_consider(&s, "x", "y"); /* a word of one letter is like any other */
    suggest_consider(&s, "zzzz", "list");
    assert_true(s.word == NULL || strcmp(s.word, "y") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_the_closest_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
