/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/base/text.h"

/* The words are an interface: kebab-case, each once. */
static void test_words(void **state)
{
    for (int i = 0; i < RULE_CODE_COUNT; i++) {
        const char *word = rule_code_word((enum rule_code)i);

        assert_true(strlen(word) > 0);
        for (const char *c = word; *c != '\0'; c++)
            assert_true((*c >= 'a' && *c <= 'z') || ascii_is_digit(*c) || *c == '-');
        assert_true(strlen(rule_code_sentence((enum rule_code)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(word, rule_code_word((enum rule_code)j));
    }
}

static void test_known_words(void **state)
{
    assert_string_equal(rule_code_word(RULE_OK), "ok");
    assert_string_equal(rule_code_word(RULE_LOC_MISSING), "loc-missing");
    assert_string_equal(rule_code_word(RULE_LASTMOD_COARSE), "lastmod-too-coarse");
    assert_string_equal(rule_code_word(RULE_EXTRA_ELEMENT), "extra-element");
}

static void test_outside(void **state)
{
    assert_string_equal(rule_code_word(RULE_CODE_COUNT), "unknown");
    assert_true(strlen(rule_code_sentence(RULE_CODE_COUNT)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_known_words),
        cmocka_unit_test(test_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
