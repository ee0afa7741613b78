/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/http/address.h"
#include "server/http/headers.h"

static struct header_scan scan_of(const char *const *lines)
{
    struct header_scan scan = {.malformed = false};
    for (; *lines != NULL; lines++) {
        const char *colon = strchr(*lines, ':');
        header_scan_add(&scan, *lines, (size_t)(colon - *lines), colon + 1, strlen(colon + 1));
    }
    return scan;
}

static void test_framing(void **state)
{
    static const struct {
        bool fine;
        const char *version, *lines[5];
    } all[] = {
        {true, "HTTP/1.1", {"Host:a"}},
        {true, "HTTP/1.1", {"Host:a", "content-length:5"}},
        {true, "HTTP/1.1", {"Host:a", "TRANSFER-ENCODING:Chunked"}},
        {false, "HTTP/1.0", {"Transfer-Encoding:chunked"}},
        {false, "HTTP/1.1", {"Host:a", "hOST:a"}},
        {false, "HTTP/1.1", {"Content-Length:5", "Content-Length:5"}},
        {false, "HTTP/1.1", {"Content-Length:5", "Transfer-Encoding:chunked"}},
        {false, "HTTP/1.1", {"Transfer-Encoding:chunked", "Transfer-Encoding:chunked"}},
        {false, "HTTP/1.1", {"Transfer-Encoding:chunked, chunked"}},
        {false, "HTTP/1.1", {"Transfer-Encoding:"}},
        {false, "HTTP/1.1", {"Content-Length :5"}},
        {false, "HTTP/1.1", {"Content-Length:18446744073709551615"}},
        {false, "HTTP/1.1", {"Content-Length:five"}},
        {false, "HTTP/1.1", {"\tX:5"}},
        {false, "HTTP/1.1", {":5"}},
        {false, "HTTP/1.1", {"X\x80:5"}},
        {false, "HTTP/1.1", {"X(y):5"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct header_scan scan = scan_of(all[i].lines);
        if ((check_framing(&scan, all[i].version) == NULL) != all[i].fine)
            fail_msg("%s", all[i].lines[0]);
        header_scan_done(&scan);
    }
    struct header_scan scan = {.malformed = false};
    header_scan_add(&scan, "X", 1, "a\0b", 3);
    assert_non_null(check_framing(&scan, "HTTP/1.1"));
}

static void test_lists_on_several_lines(void **state)
{
    static const char *const lines[] = {"Accept-Encoding:br",   "If-None-Match:\"a\"",
                                        "accept-encoding:gzip", "Accept-Encoding:zstd",
                                        "If-None-Match:\"b\"",  "X-Forwarded-Host:a",
                                        "X-Forwarded-Host:b",   NULL};
    struct header_scan scan = scan_of(lines);
    assert_string_equal(header_scan_value(&scan, HEADER_ACCEPT_ENCODING), "br, gzip, zstd");
    assert_string_equal(header_scan_value(&scan, HEADER_IF_NONE_MATCH), "\"a\", \"b\"");
    assert_string_equal(scan.value[HEADER_X_FORWARDED_HOST], "b");
    header_scan_done(&scan);
}

static void test_content_length(void **state)
{
    static const struct {
        const char *line;
        bool fine;
        uint64_t value;
    } all[] = {
        {"Content-Length:0", true, 0},
        {"Content-Length:9223372036854775807", true, INT64_MAX},
        {"Content-Length:9223372036854775808", false, 0},
        {"Content-Length:18446744073709551615", false, 0}, /* libmicrohttpd: unknown */
        {"Content-Length:18446744073709551616", false, 0},
        {"Content-Length:99999999999999999999999", false, 0},
        {"Content-Length:", false, 0},
        {"Content-Length:+5", false, 0},
        {"Content-Length:5 ", false, 0},
        {"Content-Length:5/", false, 0},
        {"Content-Length:5\xb5", false, 0},
        {"Content-Length:0x5", false, 0},
        {"X:5", false, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *const lines[] = {all[i].line, NULL};
        struct header_scan scan = scan_of(lines);
        uint64_t value = 0;
        assert_int_equal(check_content_length(&scan, &value), all[i].fine);
        assert_true(value == all[i].value);
    }
}

static void test_local_hosts(void **state)
{
    static const char *const local[] = {"127.0.0.1",      "10.1.2.3:80", "localhost",
                                        "LocalHost:8081", "[::1]",       "[fe80::1]:65535",
                                        "127.0.0.1:"};
    static const char *const other[] = {"",
                                        "example.com",
                                        "localhost.evil.example",
                                        "127.0.0.1.evil.example",
                                        "[::1",
                                        "[::1]x",
                                        "[localhost]",
                                        "::1",
                                        "127.1",
                                        "0x7f000001",
                                        "localhost:80:80",
                                        "127.0.0.1:80x",
                                        "user@[::1]",
                                        "[]",
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (!check_host_is_local(local[i]))
            fail_msg("%s", local[i]);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (check_host_is_local(other[i]))
            fail_msg("%s", other[i]);
}

static void test_listed_hosts(void **state)
{
    const char *const allowed[] = {"admin.example.com", "other.example.com:8081"};
    assert_true(check_host_is_listed("admin.example.com", allowed, 2));
    assert_true(check_host_is_listed("ADMIN.example.com:9000", allowed, 2));
    assert_true(check_host_is_listed("other.example.com:8081", allowed, 2));
    assert_false(check_host_is_listed("other.example.com", allowed, 2));
    assert_false(check_host_is_listed("other.example.com:80", allowed, 2));
    assert_false(check_host_is_listed("admin.example.com.evil.org", allowed, 2));
    assert_false(check_host_is_listed("admin.example.com:x", allowed, 2));
    assert_false(check_host_is_listed("example.com", allowed, 2));
    assert_false(check_host_is_listed("admin.example.com", NULL, 0));
}

static void test_targets(void **state)
{
    static const struct {
        const char *target, *host;
        enum target_status status;
        const char *path, *query, *authority;
    } all[] = {
        {"/", "a", TARGET_OK, "/", NULL, NULL},
        {"/a%2Fb?x=1?y", "a", TARGET_OK, "/a%2Fb", "x=1?y", NULL},
        {"/?", "a", TARGET_OK, "/", "", NULL},
        {"//evil/x", "a", TARGET_OK, "//evil/x", NULL, NULL},
        {"http://A:80/x?y", "a:80", TARGET_OK, "/x", "y", NULL},
        {"HTTPS://a", "a", TARGET_OK, "/", NULL, NULL},
        {"http://a?q=/x", "a", TARGET_OK, "/", "q=/x", NULL},
        {"http://a/x", NULL, TARGET_OK, "/x", NULL, "a"},
        {"http://a.example:8080?q", NULL, TARGET_OK, "/", "q", "a.example:8080"},
        {"http://b/x", "a", TARGET_OTHER_HOST, NULL, NULL, NULL},
        {"http://a:80/x", "a", TARGET_OTHER_HOST, NULL, NULL, NULL},
        {"http:///x", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"ftp://a/x", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"x", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"/a b", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"/a\x7f", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"/a#b", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"/?a#", "a", TARGET_MALFORMED, NULL, NULL, NULL},
        {"http://a#b", "a#b", TARGET_MALFORMED, NULL, NULL, NULL},
        {"http://%zz/x", NULL, TARGET_MALFORMED, NULL, NULL, NULL},
        {"http://u@a/x", NULL, TARGET_MALFORMED, NULL, NULL, NULL},
        {"http://:80/x", NULL, TARGET_MALFORMED, NULL, NULL, NULL},
        {"*", "a", TARGET_ASTERISK, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char *target = strdup(all[i].target);
        const char *path, *query, *authority;
        assert_int_equal(check_target(target, all[i].host, &path, &query, &authority),
                         all[i].status);
        if (all[i].status == TARGET_OK) {
            assert_string_equal(path, all[i].path);
            assert_int_equal(query == NULL, all[i].query == NULL);
            if (query != NULL)
                assert_string_equal(query, all[i].query);
            assert_int_equal(authority == NULL, all[i].authority == NULL);
            if (authority != NULL)
                assert_string_equal(authority, all[i].authority);
        }
        free(target);
    }
}

static void test_content_types(void **state)
{
    static const char *const allowed[] = {"application/json", "application/x-ndjson", NULL};
    assert_true(check_content_type("application/json", allowed));
    assert_true(check_content_type("Application/X-NDJSON ; charset=utf-8", allowed));
    assert_false(check_content_type("application/jso", allowed));
    assert_false(check_content_type("application/json5", allowed));
    assert_false(check_content_type("", allowed));
    assert_false(check_content_type(NULL, allowed));
}

static void test_segments(void **state)
{
    static const struct {
        const char *text, *decoded;
    } all[] = {{"abc", "abc"},    {"a%2fb%C3%A4", "a/b\xc3\xa4"},
               {"%4", NULL},      {"%", NULL},
               {"%00", NULL},     {"%g0", NULL},
               {"a%0ab", "a\nb"}, {"+", "+"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct str out = STR_INIT;
        bool ok = check_decode_segment(all[i].text, strlen(all[i].text), &out);
        assert_int_equal(ok, all[i].decoded != NULL);
        if (ok)
            assert_string_equal(out.data, all[i].decoded);
        str_done(&out);
    }
}

static void test_address_ranges(void **state)
{
    static const struct {
        const char *range, *peer;
        bool holds;
    } all[] = {
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"10.0.0.0/8", "10.255.1.1", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"10.0.0.128/25", "10.0.0.200", true},
        {"10.0.0.128/25", "10.0.0.100", false},
        {"0.0.0.0/0", "1.2.3.4", true},
        {"0.0.0.0/0", "::1", false},
        {"fd00::/8", "fdab::1", true},
        {"fd00::/8", "fc00::1", false},
        {"fd00::/8", "10.0.0.1", false},
        {"::/0", "fdab::1", true},
        {"::/0", "10.0.0.1", false},
        {"::/0", "::ffff:10.0.0.1", false},
        {"::ffff:10.0.0.0/104", "10.1.2.3", true},
        {"::ffff:10.0.0.0/104", "11.0.0.1", false},
        {"10.0.0.0/8", "::ffff:10.1.2.3", true},
        {"::1", "::1", true},
        {"10.0.0.1", "", false},
    };
    static const char *const bad[] = {"",        "x",          "10.0.0.1/", "10.0.0.1/33",
                                      "::1/129", "10.0.0.1/1x"};
    struct address_range range;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_true(address_range_parse(all[i].range, &range));
        assert_int_equal(address_ranges_hold(&range, 1, all[i].peer), all[i].holds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(address_range_parse(bad[i], &range));
}

static void test_host(void **state)
{
    static const char *const good[] = {"",          "a",         "www.example.com", "a:80",
                                       "a:",        "127.0.0.1", "127.0.0.1:8081",  "[::1]",
                                       "[::1]:443", "a_b.c-d",   "%41.b",           "A.Example",
                                       "a:65535",   "%c3%A9",    "[::ffff:1.2.3.4]"};
    static const char *const bad[] = {
        "a b",       "a/b",    "a@b",          "a?b",     "a#b",     "a\\b",
        "<a>",       "\"a\"",  "a:b",          "a:1:2",   "a:-1",    "a:123456",
        "[::1",      "::1",    "[]",           "[",       "[::1]x",  "[::1]:x",
        "a\x01",     "a\x7f",  "\xc3\xa9",     "http://", "a\tb",    " a",
        "a ",        "[::1]]", "[a/b]",        "%zz",     "a%",      "a%4",
        "a%4g",      "%",      ":80",          ":",       "a:65536", "[a]",
        "[1.2.3.4]", "[v1.x]", "[::1%25eth0]", "[::%41]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(check_host(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (check_host(bad[i]))
            fail_msg("%s", bad[i]);
}

/* It is the library that runs which counts: both have one soname. */
static void test_parser_versions(void **state)
{
    static const struct {
        const char *version;
        bool strict;
    } rows[] = {{"0.9.75", false},  {"0.9.75-1", false}, {"0.9.77", false}, {"0.9.77.1", true},
                {"0.9.78", true},   {"0.10", true},      {"1.0", true},     {"1.0.1", true},
                {"1.0.10-3", true}, {"0.8.99.9", false}, {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (parser_version_is_strict(rows[i].version) != rows[i].strict)
            fail_msg("%s", rows[i].version);
    assert_int_equal(parser_is_strict(), parser_version_is_strict(MHD_get_version()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parser_versions), cmocka_unit_test(test_host),
        cmocka_unit_test(test_framing),         cmocka_unit_test(test_lists_on_several_lines),
        cmocka_unit_test(test_content_length),  cmocka_unit_test(test_local_hosts),
        cmocka_unit_test(test_listed_hosts),    cmocka_unit_test(test_targets),
        cmocka_unit_test(test_content_types),   cmocka_unit_test(test_segments),
        cmocka_unit_test(test_address_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
