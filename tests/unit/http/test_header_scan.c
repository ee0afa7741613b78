/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/http/request.h"

static const char *const names[HEADER_COUNT] = {
    [HEADER_HOST] = "Host",
    [HEADER_CONTENT_LENGTH] = "Content-Length",
    [HEADER_TRANSFER_ENCODING] = "Transfer-Encoding",
    [HEADER_ACCEPT] = "Accept",
    [HEADER_ACCEPT_ENCODING] = "Accept-Encoding",
    [HEADER_IF_NONE_MATCH] = "If-None-Match",
    [HEADER_IF_MODIFIED_SINCE] = "If-Modified-Since",
    [HEADER_IF_UNMODIFIED_SINCE] = "If-Unmodified-Since",
    [HEADER_CONTENT_TYPE] = "Content-Type",
    [HEADER_AUTHORIZATION] = "Authorization",
    [HEADER_EXPECT] = "Expect",
    [HEADER_IF_MATCH] = "If-Match",
    [HEADER_IF_RANGE] = "If-Range",
    [HEADER_IDEMPOTENCY_KEY] = "Idempotency-Key",
    [HEADER_TRACEPARENT] = "Traceparent",
    [HEADER_RANGE] = "Range",
    [HEADER_CONTENT_ENCODING] = "Content-Encoding",
    [HEADER_X_FORWARDED_HOST] = "X-Forwarded-Host",
    [HEADER_X_FORWARDED_FOR] = "X-Forwarded-For",
    [HEADER_X_REQUEST_ID] = "X-Request-Id",
    [HEADER_SITEMAPD_VIA] = "Sitemapd-Via",
    [HEADER_REFERER] = "Referer",
    [HEADER_USER_AGENT] = "User-Agent",
    [HEADER_CDN_LOOP] = "CDN-Loop",
    [HEADER_SITEMAPD_FORWARDED_BY] = "Sitemapd-Forwarded-By",
};

static void check(const char *name, enum known_header which)
{
    struct header_scan scan = {.malformed = false};

    header_scan_add(&scan, name, strlen(name), "1", 1);
    for (int i = 0; i < HEADER_COUNT; i++)
        if ((scan.lines[i] == 1) != (i == (int)which) || scan.lines[i] > 1)
            fail_msg("%s", name);
    header_scan_done(&scan);
}

static void test_names_in_any_case(void **state)
{
    for (int which = 0; which < HEADER_COUNT; which++) {
        char lower[32] = "", upper[32] = "";
        for (size_t i = 0; names[which][i] != '\0'; i++) {
            lower[i] = (char)tolower((unsigned char)names[which][i]);
            upper[i] = (char)toupper((unsigned char)names[which][i]);
        }
        check(names[which], (enum known_header)which);
        check(lower, (enum known_header)which);
        check(upper, (enum known_header)which);
    }
}

/* What begins alike and is as long, is shorter or longer, or differs in the bit of the case alone.
 */
static void test_names_that_are_near(void **state)
{
    char near[40];

    for (int which = 0; which < HEADER_COUNT; which++) {
        size_t len = strlen(names[which]);
        for (size_t i = 0; i < len; i++) {
            strcpy(near, names[which]);
            near[i] = near[i] == '-' ? '\r' : near[i] ^ 0x01;
            check(near, HEADER_COUNT);
        }
        snprintf(near, sizeof near, "%ss", names[which]);
        check(near, HEADER_COUNT);
        snprintf(near, sizeof near, "%.*s", (int)len - 1, names[which]);
        check(near, HEADER_COUNT);
    }
    check("", HEADER_COUNT);
    check("x", HEADER_COUNT);
}

static bool is_taken(const char *name, size_t len)
{
    struct header_scan scan = {.malformed = false};

    header_scan_add(&scan, name, len, "1", 1);
    header_scan_done(&scan);
    return !scan.malformed;
}

/* RFC 9110 5.6.2, whatever is beside it. */
static void test_names_are_tokens(void **state)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int c = 0; c < 256; c++) {
        char name[8] = {'a', (char)c, 'b', '\0'};
        bool fine = memchr(token, c, sizeof token - 1) != NULL;
        if (is_taken(name, 3) != fine)
            fail_msg("byte %d", c);
    }
    assert_false(is_taken("", 0));
    assert_false(is_taken("Content-Length ", 15));
    assert_false(is_taken("Content-Length5", 15)); /* a folded line (request.c) */
    assert_false(is_taken("TRANSFER-ENCODINGchunked", 24));
    assert_true(is_taken("Content-Lengt", 13));
    assert_true(is_taken("Accept", 6)); /* known, though nobody asks for it */
    assert_false(is_taken("Accep ", 6));
}

static void test_values(void **state)
{
    struct header_scan scan = {.malformed = false};

    header_scan_add(&scan, "Referer", 7, NULL, 0);
    header_scan_add(&scan, "x-forwarded-host", 16, "a", 1);
    header_scan_add(&scan, "X-Forwarded-Host", 16, "b", 1);
    assert_false(scan.malformed);
    assert_string_equal(scan.value[HEADER_REFERER], "");
    assert_string_equal(scan.value[HEADER_X_FORWARDED_HOST], "b");
    assert_int_equal(scan.lines[HEADER_X_FORWARDED_HOST], 2);
    assert_null(header_scan_value(&scan, HEADER_HOST));
    header_scan_add(&scan, "X-Forwarded-For", 15, "c", 1);
    assert_string_equal(header_scan_value(&scan, HEADER_X_FORWARDED_FOR), "c");
    header_scan_add(&scan, "x-forwarded-for", 15, "d", 1);
    assert_string_equal(header_scan_value(&scan, HEADER_X_FORWARDED_FOR), "c, d");
    scan.failed = true; /* without memory a part is not the list */
    assert_null(header_scan_value(&scan, HEADER_X_FORWARDED_FOR));
    header_scan_add(&scan, "User-Agent", 10, "a\rb",
                    3); /* a known name is checked by its value too */
    assert_true(scan.malformed);
    header_scan_done(&scan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_in_any_case),
        cmocka_unit_test(test_names_that_are_near),
        cmocka_unit_test(test_names_are_tokens),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
