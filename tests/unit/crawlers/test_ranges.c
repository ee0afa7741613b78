/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Files of address ranges, and who is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/crawlers/names.h"

#define GOOGLE                                                                                     \
    "{\"creationTime\": \"2026-01-01T00:00:00\", \"prefixes\": [\n"                                \
    "{\"ipv6Prefix\": \"2001:4860:4801:10::/64\"},\n"                                              \
    "{\"ipv4Prefix\": \"66.249.64.0/27\"}, {\"ipv4Prefix\": \"66.249.64.32/27\"}]}"

static void test_who_is_in(void **state)
{
    static const struct {
        const char *text, *address;
        bool in;
    } table[] = {
        {GOOGLE, "66.249.64.0", true},
        {GOOGLE, "66.249.64.63", true},
        {GOOGLE, "66.249.64.64", false},
        {GOOGLE, "66.249.63.255", false},
        {GOOGLE, "::ffff:66.249.64.5", true},
        {GOOGLE, "2001:4860:4801:10::1", true},
        {GOOGLE, "2001:4860:4801:11::1", false},
        {GOOGLE, "0.0.0.0", false},
        {GOOGLE, "", false},
        {GOOGLE, "unknown", false},
        {"192.0.2.7\n", "192.0.2.7", true},
        {"192.0.2.7\n", "192.0.2.8", false},
        {"# ours\n\n  192.0.2.0/24 # the office\r\n2001:db8::/32", "192.0.2.255", true},
        {"# ours\n\n  192.0.2.0/24 # the office\r\n2001:db8::/32", "2001:db8:ffff::1", true},
        {"10.0.0.0/8\n10.1.0.0/16\n", "10.1.2.3", true}, /* one within another */
        {"10.0.0.0/8\n10.1.0.0/16\n", "10.255.2.3", true},
        {"192.0.2.9/24\n", "192.0.2.1", true}, /* bits behind the prefix do not count */
        {"0.0.0.1\n255.255.255.255\n", "255.255.255.255", true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ranges r = {0};
        char why[256] = "";
        if (!ranges_parse(&r, table[i].text, strlen(table[i].text), RANGES_MAX, why, sizeof why))
            fail_msg("%zu: %s", i, why);
        ranges_seal(&r);
        if (ranges_hold(&r, table[i].address) != table[i].in)
            fail_msg("%zu: %s", i, table[i].address);
        ranges_done(&r);
    }
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } table[] = {
        {"", "contains no range"},
        {"# nothing\n", "contains no range"},
        {"{\"prefixes\": []}", "contains no range"},
        {"{}", "no list \"prefixes\""},
        {"{\"prefixes\": {}}", "no list \"prefixes\""},
        {"{\"prefixes\": [{\"ipv4Prefix\": \"66.249.64.0/27\"}", "line"},
        {"{\"prefixes\": [{}]}", "element 0"},
        {"{\"prefixes\": [{\"ipv4Prefix\": 7}]}", "element 0"},
        {"{\"prefixes\": [\"66.249.64.0/27\"]}", "element 0"},
        {"{\"prefixes\": [{\"ipv4Prefix\": \"66.249.64.0/33\"}]}", "is not an address"},
        {"192.0.2.0/24\n<html>\n", "is not an address"},
        {"192.0.2\n", "is not an address"},
        {"192.0.2.0/\n", "is not an address"},
        {"192.0.2.0/x\n", "is not an address"},
        {"www.example.com\n", "is not an address"},
        {"0.0.0.0/0\n", "wider"},
        {"::/0\n", "wider"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ranges r = {0};
        char why[256] = "";
        if (ranges_parse(&r, table[i].text, strlen(table[i].text), RANGES_MAX, why, sizeof why) ||
            strstr(why, table[i].why) == NULL)
            fail_msg("%zu: \"%s\"", i, why);
        assert_int_equal(r.count, 0);
        ranges_done(&r);
    }
}

static void test_there_is_a_limit(void **state)
{
    struct ranges r = {0};
    char why[256], *text = malloc(RANGES_MAX * 16u + 16);
    size_t len = 0;
    assert_non_null(text);
    for (unsigned i = 0; i < RANGES_MAX; i++)
        len += (size_t)sprintf(text + len, "20.%u.%u.0/25\n", i / 256, i % 256);
    assert_true(ranges_parse(&r, text, len, RANGES_MAX, why, sizeof why));
    ranges_seal(&r);
    assert_int_equal(r.count, RANGES_MAX);
    assert_true(ranges_hold(&r, "20.7.9.127"));
    assert_false(ranges_hold(&r, "20.7.9.128"));
    len += (size_t)sprintf(text + len, "1.2.3.4\n");
    struct ranges more = {0};
    assert_false(ranges_parse(&more, text, len, RANGES_MAX, why, sizeof why));
    assert_non_null(strstr(why, "more than 20000"));
    ranges_done(&more);
    ranges_done(&r);
    free(text);
}

static void test_what_is_no_file(void **state)
{
    struct ranges r = {0};
    char why[256];
    assert_false(ranges_read(&r, "/", RANGES_MAX, why, sizeof why));
    assert_non_null(strstr(why, "cannot be read"));
    assert_false(ranges_read(&r, "/dev/zero", RANGES_MAX, why, sizeof why));
    assert_false(ranges_read(&r, "/nowhere/at/all", RANGES_MAX, why, sizeof why));
    assert_non_null(strstr(why, "No such file"));
    ranges_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_in),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_there_is_a_limit),
        cmocka_unit_test(test_what_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
