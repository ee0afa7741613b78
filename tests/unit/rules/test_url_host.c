/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Origins, hosts, the hint for hosts that are not ASCII. */
#include "tests/unit/rules/check.h"

#include "server/rules/url.h"

static void test_hosts_of_locs(void **state)
{
    static const struct {
        const char *authority; /* of https://…/sitemap.xml */
        enum rule_code code;
        const char *want; /* NULL: as given */
    } rows[] = {
        {"www.example.com", RULE_OK, NULL},
        {"WWW.Example.COM", RULE_OK, "www.example.com"},
        {"localhost", RULE_OK, NULL},
        {"a-b.example", RULE_OK, NULL},
        {"a_b.example", RULE_OK, NULL},
        {"xn--mller-kva.de", RULE_OK, NULL},
        {"1.example", RULE_OK, NULL},
        {"", RULE_LOC_HOST, NULL},
        {".", RULE_LOC_HOST, NULL},
        {".example", RULE_LOC_HOST, NULL},
        {"example.", RULE_LOC_HOST, NULL},
        {"a..example", RULE_LOC_HOST, NULL},
        {"-a.example", RULE_LOC_HOST, NULL},
        {"a-.example", RULE_LOC_HOST, NULL},
        {"a.-example", RULE_LOC_HOST, NULL},
        {"a!b.example", RULE_LOC_HOST, NULL},
        {"a,b.example", RULE_LOC_HOST, NULL},
        {"a%41.example", RULE_LOC_HOST, NULL},
        {"%C3%A9.example", RULE_LOC_HOST, NULL},
        {"m\xC3\xBCller.de", RULE_LOC_HOST_IDN, NULL},
        {"m\xC3\xBCller.de:x", RULE_LOC_HOST_IDN, NULL},
        {"user@www.example.com", RULE_LOC_CREDENTIALS, NULL},
        {"user:pw@www.example.com", RULE_LOC_CREDENTIALS, NULL},
        {"@www.example.com", RULE_LOC_CREDENTIALS, NULL},
        {"m\xC3\xBCller@a.de", RULE_LOC_CREDENTIALS, NULL},
        /* ports */
        {"a.example:8443", RULE_OK, NULL},
        {"a.example:1", RULE_OK, NULL},
        {"a.example:65535", RULE_OK, NULL},
        {"a.example:443", RULE_OK, "a.example"},
        {"a.example:", RULE_OK, "a.example"},
        {"a.example:80", RULE_OK, NULL},
        {"a.example:08443", RULE_OK, "a.example:8443"},
        {"a.example:0000000000443", RULE_OK, "a.example"},
        {"a.example:0", RULE_LOC_PORT, NULL},
        {"a.example:000", RULE_LOC_PORT, NULL},
        {"a.example:65536", RULE_LOC_PORT, NULL},
        {"a.example:99999999999999999999", RULE_LOC_PORT, NULL},
        {"a.example:-1", RULE_LOC_PORT, NULL},
        {"a.example:+1", RULE_LOC_PORT, NULL},
        {"a.example:8x", RULE_LOC_PORT, NULL},
        {"a.example:80:80", RULE_LOC_PORT, NULL},
        {"a.example:%38", RULE_LOC_PORT, NULL},
        {":8443", RULE_LOC_HOST, NULL},
        /* IPv4, and what browsers take for it */
        {"192.0.2.1", RULE_OK, NULL},
        {"0.0.0.0", RULE_OK, NULL},
        {"255.255.255.255:8443", RULE_OK, NULL},
        {"256.0.2.1", RULE_LOC_HOST, NULL},
        {"192.0.2", RULE_LOC_HOST, NULL},
        {"192.0.2.1.1", RULE_LOC_HOST, NULL},
        {"192.0.02.1", RULE_LOC_HOST, NULL},
        {"3221225985", RULE_LOC_HOST, NULL},
        {"0x7f.1", RULE_LOC_HOST, NULL},
        {"a.0X7F", RULE_LOC_HOST, NULL},
        {"a.example.1", RULE_LOC_HOST, NULL},
        {"a.0xg", RULE_OK, NULL},
        /* IPv6 */
        {"[::1]", RULE_OK, NULL},
        {"[2001:DB8:0:0:0:0:0:1]", RULE_OK, "[2001:db8::1]"},
        {"[2001:db8::0001]:8443", RULE_OK, "[2001:db8::1]:8443"},
        {"[::1]:443", RULE_OK, "[::1]"},
        {"[::1]:", RULE_OK, "[::1]"},
        {"[::ffff:192.0.2.1]", RULE_OK, NULL},
        {"[]", RULE_LOC_HOST, NULL},
        {"[::1", RULE_LOC_HOST, NULL},
        {"::1", RULE_LOC_HOST, NULL},
        {"[::1]x", RULE_LOC_HOST, NULL},
        {"[::1].", RULE_LOC_HOST, NULL},
        {"[1::2::3]", RULE_LOC_HOST, NULL},
        {"[12345::1]", RULE_LOC_HOST, NULL},
        {"[192.0.2.1]", RULE_LOC_HOST, NULL},
        {"[fe80::1%25eth0]", RULE_LOC_HOST, NULL},
        {"[v1.x]", RULE_LOC_HOST, NULL},
        {"[::1]:0", RULE_LOC_PORT, NULL},
        {"[::1]:x", RULE_LOC_PORT, NULL},
        {"[\xC3\xA9]", RULE_LOC_HOST, NULL},
        {"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]", RULE_LOC_HOST, NULL},
        {"x[::1]", RULE_LOC_HOST, NULL},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *want = rows[i].want != NULL ? rows[i].want : rows[i].authority;
        char text[256] = "https://";
        struct url url;

        strcat(strcat(text, rows[i].authority), "/sitemap.xml");
        check_code(rows[i].authority, url_parse(text, strlen(text), &url, NULL), rows[i].code);
        if (rows[i].code != RULE_OK)
            continue;
        url.text[url.origin_len] = '\0';
        check_text(rows[i].authority, url.text + url.host_at, want);
    }
}

static void test_host_lengths(void **state)
{
    char text[300];
    struct url url;
    size_t len = 8;

    memset(text, 'a', sizeof text);
    memcpy(text, "https://", 8);
    text[len + 63] = '/';
    check_code("label of 63", url_parse(text, len + 64, &url, NULL), RULE_OK);
    text[len + 63] = 'a';
    text[len + 64] = '/';
    check_code("label of 64", url_parse(text, len + 65, &url, NULL), RULE_LOC_HOST);
    for (size_t i = 0; i < HOST_MAX_CHARS; i++)
        text[len + i] = i % 2 == 0 ? 'a' : '.';
    text[len + HOST_MAX_CHARS] = '/';
    check_code("host of 253", url_parse(text, len + HOST_MAX_CHARS + 1, &url, NULL), RULE_OK);
    text[len + HOST_MAX_CHARS] = 'b';
    check_code("host of 254", url_parse(text, len + HOST_MAX_CHARS + 1, &url, NULL), RULE_LOC_HOST);
}

static void test_origin(void **state)
{
    static const struct {
        const char *text;
        enum rule_code code;
        const char *want;
        uint16_t port;
    } rows[] = {
        {"https://www.example.com", RULE_OK, "https://www.example.com", 443},
        {"https://www.example.com/", RULE_OK, "https://www.example.com", 443},
        {"HTTP://WWW.example.com:80", RULE_OK, "http://www.example.com", 80},
        {"http://www.example.com:443/", RULE_OK, "http://www.example.com:443", 443},
        {"http://h", RULE_OK, "http://h", 80}, /* a loc would be too short */
        {"http://[::1]:8080", RULE_OK, "http://[::1]:8080", 8080},
        {"", RULE_LOC_MISSING, NULL, 0},
        {"www.example.com", RULE_LOC_RELATIVE, NULL, 0},
        {"ftp://www.example.com", RULE_LOC_SCHEME, NULL, 0},
        {"https://www.example.com/x", RULE_ORIGIN, NULL, 0},
        {"https://www.example.com//", RULE_ORIGIN, NULL, 0},
        {"https://www.example.com/.", RULE_ORIGIN, NULL, 0},
        {"https://www.example.com?", RULE_ORIGIN, NULL, 0},
        {"https://www.example.com/?a", RULE_ORIGIN, NULL, 0},
        {"https://www.example.com#", RULE_LOC_FRAGMENT, NULL, 0},
        {"https://u@www.example.com", RULE_LOC_CREDENTIALS, NULL, 0},
        {"https://", RULE_LOC_HOST, NULL, 0},
        {"https://www.example.com:0", RULE_LOC_PORT, NULL, 0},
        {"https://www.example.com ", RULE_LOC_SPACE, NULL, 0},
        {"https://m\xC3\xBCller.de", RULE_LOC_HOST_IDN, NULL, 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct url out = {.port = 7};

        check_code(rows[i].text, url_parse_origin(rows[i].text, strlen(rows[i].text), &out),
                   rows[i].code);
        if (rows[i].code != RULE_OK) {
            check_number(rows[i].text, out.port, 7);
            continue;
        }
        check_text(rows[i].text, out.text, rows[i].want);
        check_number(rows[i].text, out.port, rows[i].port);
        check_number(rows[i].text, out.origin_len, (int64_t)strlen(rows[i].want));
        check_number(rows[i].text, out.len, out.origin_len);
        check_number(rows[i].text, out.path_len, 0);
    }
}

static void test_host(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *want; /* NULL: refused */
    } rows[] = {
        {BYTES("www.example.com"), "www.example.com"},
        {BYTES("WWW.EXAMPLE.com:8080"), "www.example.com:8080"},
        {BYTES("www.example.com:80"), "www.example.com:80"},
        {BYTES("www.example.com:443"), "www.example.com:443"},
        {BYTES("www.example.com:"), "www.example.com"},
        {BYTES("www.example.com:0080"), "www.example.com:80"},
        {BYTES("www.example.com."), "www.example.com"},
        {BYTES("www.example.com.:8080"), "www.example.com:8080"},
        {BYTES("127.0.0.1:8080"), "127.0.0.1:8080"},
        {BYTES("[::1]"), "[::1]"},
        {BYTES("[0:0::1]:8080"), "[::1]:8080"},
        {BYTES(""), NULL},
        {BYTES("."), NULL},
        {BYTES(".:80"), NULL},
        {BYTES("www.example.com.."), NULL},
        {BYTES(":80"), NULL},
        {BYTES("www.example.com:0"), NULL},
        {BYTES("www.example.com:65536"), NULL},
        {BYTES("www.example.com/"), NULL},
        {BYTES("https://www.example.com"), NULL},
        {BYTES("user@www.example.com"), NULL},
        {BYTES("www.example.com, www.example.org"), NULL},
        {BYTES(" www.example.com"), NULL},
        {BYTES("www.example.com\0"), NULL},
        {BYTES("www.example.com\r\n"), NULL},
        {BYTES("m\xC3\xBCller.de"), NULL},
        {BYTES("[::1"), NULL},
        {BYTES("[::\0]"), NULL},
        {BYTES("::1"), NULL},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char out[HOST_MAX_CHARS + 7] = "kept";

        check_code(rows[i].text, url_parse_host(rows[i].text, rows[i].len, out),
                   rows[i].want != NULL ? RULE_OK : RULE_HOST);
        check_text(rows[i].text, out, rows[i].want != NULL ? rows[i].want : "kept");
    }
}

static void test_longest_host(void **state)
{
    char text[HOST_MAX_CHARS + 6];
    char out[HOST_MAX_CHARS + 7];

    for (size_t i = 0; i < HOST_MAX_CHARS; i++)
        text[i] = i % 2 == 0 ? 'a' : '.';
    memcpy(text + HOST_MAX_CHARS, ":65535", 6);
    check_code("longest", url_parse_host(text, sizeof text, out), RULE_OK);
    assert_int_equal(strlen(out), HOST_MAX_CHARS + 6);
}

static void test_punycode(void **state)
{
    static const struct {
        const char *text;
        const char *want; /* NULL: no hint */
    } rows[] = {
        {"https://m\xC3\xBCller.de/x.xml", "xn--mller-kva.de"},
        {"https://M\xC3\x9CLLER.de:8443/x.xml", "xn--mller-kva.de"},
        {"https://mu\xCC\x88ller.de?x", "xn--mller-kva.de"}, /* composed first */
        {"https://stra\xC3\x9F"
         "e.de",
         "xn--strae-oqa.de"}, /* non-transitional */
        {"https://\xE4\xBE\x8B\xE3\x81\x88.jp/", "xn--r8jz45g.jp"},
        {"https://u:p@m\xC3\xBCller.de/", "xn--mller-kva.de"},
        {"m\xC3\xBCller.de:80", "xn--mller-kva.de"},
        {"https:///x.xml", NULL},
        {"", NULL},
        {"https://m\xC3\xBCller..de/", NULL},
        {"https://\xE2\x82\xAC \xFF/", NULL},
        {"https://\xFF.de/", NULL},
    };
    char out[64];
    char big[8 + 2048];

    for (size_t i = 0; i < ROWS(rows); i++) {
        memset(out, 'x', sizeof out);
        check_number(rows[i].text,
                     url_punycode_hint(rows[i].text, strlen(rows[i].text), out, sizeof out),
                     rows[i].want != NULL);
        check_text(rows[i].text, out, rows[i].want != NULL ? rows[i].want : "");
    }
    assert_false(url_punycode_hint(BYTES("https://m\xC3\xBCller.de/"), out, 16));
    assert_string_equal(out, "");
    assert_true(url_punycode_hint(BYTES("https://m\xC3\xBCller.de/"), out, 17));
    assert_false(url_punycode_hint(BYTES("https://m\xC3\xBCller.de/"), out, 0));
    assert_false(url_punycode_hint(BYTES("https://m\0\xC3\xBC.de/"), out, sizeof out));
    memset(big, '\xC3', sizeof big);
    memcpy(big, "https://", 8);
    assert_false(url_punycode_hint(big, sizeof big, out, sizeof out));
}

static void test_same(void **state)
{
    static const struct {
        const char *a, *b;
        bool origin, host;
    } rows[] = {
        {"https://a.example", "https://A.example:443/", true, true},
        {"https://a.example", "http://a.example", false, false}, /* ports 443 and 80 */
        {"https://a.example:80", "http://a.example", false, true},
        {"https://a.example:8443", "http://a.example:8443", false, true},
        {"https://a.example", "https://a.example:8443", false, false},
        {"https://a.example", "https://b.example", false, false},
        {"https://a.example", "https://a.example.org", false, false},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct url a, b;

        check_code(rows[i].a, url_parse_origin(rows[i].a, strlen(rows[i].a), &a), RULE_OK);
        check_code(rows[i].b, url_parse_origin(rows[i].b, strlen(rows[i].b), &b), RULE_OK);
        check_number(rows[i].b, url_same_origin(&a, &b), rows[i].origin);
        check_number(rows[i].b, url_same_host(&a, &b), rows[i].host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_of_locs), cmocka_unit_test(test_host_lengths),
        cmocka_unit_test(test_origin),        cmocka_unit_test(test_host),
        cmocka_unit_test(test_longest_host),  cmocka_unit_test(test_punycode),
        cmocka_unit_test(test_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
