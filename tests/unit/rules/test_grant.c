/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a token may: each question by its table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/rules/grant.h"

#define BLOG "https://h.example/blog/"

static void test_roles(void **state)
{
    const struct grant all = {0}, read = {.role = GRANT_READ}, write = {.role = GRANT_WRITE},
                       admin = {.role = GRANT_ADMIN};
    enum grant_role role;

    assert_true(grant_may(&all, GRANT_ADMIN));
    assert_true(grant_may(&read, GRANT_READ) && !grant_may(&read, GRANT_WRITE));
    assert_true(grant_may(&write, GRANT_READ) && grant_may(&write, GRANT_WRITE));
    assert_false(grant_may(&write, GRANT_ADMIN));
    assert_true(grant_may(&admin, GRANT_ADMIN));
    assert_true(grant_role_read("write", &role) && role == GRANT_WRITE);
    assert_false(grant_role_read("all", &role) || grant_role_read("", &role));
}

static void test_scopes(void **state)
{
    const struct grant one = {.site_id = 7, .prefix = BLOG}, own = {.own = true, .name = "mine"};

    assert_true(grant_has_site(&one, 7) && !grant_has_site(&one, 8) && grant_has_site(&own, 8));
    assert_true(grant_has_loc(&one, BLOG "a.xml") && !grant_has_loc(&one, "https://h.example/"));
    assert_true(grant_has_source(&own, "mine") && !grant_has_source(&own, "other"));
    assert_false(grant_has_source(&own, NULL));
    assert_true(grant_has_source(&one, "other") && !grant_has_whole(&one) && grant_has_whole(&own));
}

static void test_the_narrower_prefix_counts(void **state)
{
    static const struct {
        const char *own, *asked, *out;
        bool any;
    } rows[] = {
        {NULL, NULL, NULL, true},
        {NULL, BLOG, BLOG, true},
        {BLOG, NULL, BLOG, true},
        {BLOG, "https://h.example/", BLOG, true},
        {BLOG, BLOG "x", BLOG "x", true},
        {BLOG, "https://h.example/shop/", NULL, false},
        {BLOG, "https://h.example/blogger", NULL, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct grant grant = {.prefix = rows[i].own};
        const char *out = NULL;
        assert_int_equal(grant_narrow(&grant, rows[i].asked, &out), rows[i].any);
        if (rows[i].any && rows[i].out != NULL)
            assert_string_equal(out, rows[i].out);
        else if (rows[i].any)
            assert_null(out);
    }
}

static void test_prefixes(void **state)
{
    static const struct {
        const char *text, *out; /* NULL: none */
    } rows[] = {
        {BLOG, BLOG},
        {"HTTPS://H.Example:443/x/../blog/", BLOG},
        {"https://h.example/%62log/", BLOG},
        {"https://h.example", "https://h.example/"},
        {"https://h.example/a-", "https://h.example/a-"},
        {"https://h.example/blog/%2e%2e", "https://h.example/"},
        {"https://h.example/blog", NULL},
        {"https://h.example/blog/?a=/", NULL},
        {"https://h.example/blog/#/", NULL},
        {"/blog/", NULL},
        {"https://u:p@h.example/", NULL},
    };
    char out[GRANT_PREFIX_MAX_CHARS + 1];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *fault = grant_read_prefix(rows[i].text, out);
        assert_int_equal(fault == NULL, rows[i].out != NULL);
        if (fault == NULL)
            assert_string_equal(out, rows[i].out);
    }
}

static void test_expiry(void **state)
{
    static const struct {
        const char *text;
        int64_t at; /* 0: refused */
    } rows[] = {
        {"90d", 1000 + 90 * 86400},
        {"12h", 1000 + 12 * 3600},
        {"6w", 1000 + 6 * 604800},
        {"1970-01-02", 86400},
        {"1970-01-02T00:00:00Z", 86400},
        {"1970-01-01", 0},
        {"0d", 0},
        {"d", 0},
        {"90", 0},
        {"1234567d", 0},
        {"-1d", 0},
        {"2030", 0},
        {"", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t at = 0;
        assert_int_equal(grant_read_expiry(rows[i].text, 1000, &at), rows[i].at != 0);
        assert_int_equal(at, rows[i].at);
    }
    const struct grant grant = {.expires_at = 100}, never = {0};
    assert_true(!grant_is_expired(&grant, 99) && grant_is_expired(&grant, 100));
    assert_false(grant_is_expired(&never, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_the_narrower_prefix_counts),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_expiry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
