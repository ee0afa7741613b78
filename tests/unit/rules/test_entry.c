/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/entry.h"

#define LONG  RULE_BIT(RULE_LOC_LONG)
#define CROSS RULE_BIT(RULE_CROSS_HOST)
#define OTHER RULE_BIT(RULE_SCHEME_DIFFERS)

static void test_lint(void **state)
{
    static const struct {
        const char *loc, *lastmod, *origin;
        rule_set remarks;
    } rows[] = {
        {"https://a.example/x.xml", NULL, "https://a.example", 0},
        {"https://a.example/x.xml", "2026-01-01T00:00:00Z", "https://a.example", 0},
        {"https://a.example/x.xml", "2026-01-01", "https://a.example",
         RULE_BIT(RULE_LASTMOD_DATE_ONLY)},
        {"https://a.example/x.xml", "2026-01", "https://a.example", RULE_BIT(RULE_LASTMOD_COARSE)},
        {"https://a.example/x.xml", "2026", "https://a.example", RULE_BIT(RULE_LASTMOD_COARSE)},
        {"https://cdn.example/x.xml", NULL, "https://a.example", CROSS},
        {"https://a.example.org/x.xml", NULL, "https://a.example", CROSS},
        {"https://a.example/x.xml", NULL, "https://a.example.org", CROSS},
        {"https://a.example:8443/x.xml", NULL, "https://a.example", CROSS},
        {"https://a.example:8443/x.xml", NULL, "https://a.example:8443", 0},
        {"http://a.example/x.xml", NULL, "https://a.example", OTHER},
        {"http://cdn.example/x.xml", NULL, "https://a.example", OTHER | CROSS},
        {"https://[::1]/x.xml", NULL, "https://[::1]", 0},
        {"https://[::1]/x.xml", NULL, "https://[::2]", CROSS},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_set(rows[i].loc, entry_lint(rows[i].loc, rows[i].lastmod, rows[i].origin),
                  rows[i].remarks);
}

static void test_lint_length(void **state)
{
    static const char origin[] = "https://a.example";
    char loc[LOC_LINT_CHARS + 2];

    memset(loc, 'a', sizeof loc);
    memcpy(loc, "https://a.example/", sizeof "https://a.example/" - 1);
    loc[LOC_LINT_CHARS + 1] = '\0';
    check_set("1025", entry_lint(loc, NULL, origin), LONG);
    loc[LOC_LINT_CHARS] = '\0';
    check_set("1024", entry_lint(loc, NULL, origin), 0);
}

static void test_digest(void **state)
{
    char text[DIGEST_MAX_BYTES + 1];
    static const struct {
        const char *text;
        size_t len;
        enum rule_code code;
    } rows[] = {
        {BYTES("\"d41d8cd98f00b204e9800998ecf8427e\""), RULE_OK},
        {BYTES("a b"), RULE_OK},
        {BYTES("\xC3\xA9"), RULE_OK},
        {BYTES(""), RULE_DIGEST},
        {BYTES("a\nb"), RULE_DIGEST},
        {BYTES("a\0b"), RULE_DIGEST},
        {BYTES("\x7F"), RULE_DIGEST},
        {BYTES("\xC2\x80"), RULE_DIGEST},
        {BYTES("\xFF"), RULE_DIGEST},
        {BYTES("\xC3"), RULE_DIGEST},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_code(rows[i].text, entry_check_digest(rows[i].text, rows[i].len), rows[i].code);
    memset(text, 'x', sizeof text);
    check_code("256", entry_check_digest(text, DIGEST_MAX_BYTES), RULE_OK);
    check_code("257", entry_check_digest(text, DIGEST_MAX_BYTES + 1), RULE_DIGEST);
}

static void test_name(void **state)
{
    char text[NAME_MAX_BYTES + 1];
    static const struct {
        const char *text;
        size_t len;
        enum rule_code code;
    } rows[] = {
        {BYTES("products"), RULE_OK},   {BYTES("A-z_0.9"), RULE_OK}, {BYTES(""), RULE_NAME},
        {BYTES("a b"), RULE_NAME},      {BYTES("a/b"), RULE_NAME},   {BYTES("a\0b"), RULE_NAME},
        {BYTES("\xC3\xA9"), RULE_NAME},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_code(rows[i].text, entry_check_name(rows[i].text, rows[i].len), rows[i].code);
    memset(text, 'x', sizeof text);
    check_code("64", entry_check_name(text, NAME_MAX_BYTES), RULE_OK);
    check_code("65", entry_check_name(text, NAME_MAX_BYTES + 1), RULE_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lint),
        cmocka_unit_test(test_lint_length),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
