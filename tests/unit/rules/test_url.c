/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include <stdlib.h>

#include "server/rules/url.h"

#define NORMALISED RULE_BIT(RULE_LOC_NORMALISED)
#define LONG       RULE_BIT(RULE_LOC_LONG)

/* What url_parse wrote comes apart as url_parse took it. */
static void check_split(const struct url *url)
{
    struct url split;

    memset(&split, 0xff, sizeof split);
    assert_true(url_split(url->text, url->len, &split));
    check_text(url->text, split.text, url->text);
    assert_int_equal(split.len, url->len);
    assert_int_equal(split.https, url->https);
    assert_int_equal(split.host_at, url->host_at);
    assert_int_equal(split.host_len, url->host_len);
    assert_int_equal(split.port, url->port);
    assert_int_equal(split.origin_len, url->origin_len);
    assert_int_equal(split.path_len, url->path_len);
}

static void test_not_a_url_at_all(void **state)
{
    static const char *const texts[] = {
        "",
        "http://a",
        "https://www.example.com",
        "ftp://www.example.com/x",
        "httpx://www.example.com/",
        "http:/www.example.com/xyz",
        "https://[::1/without-its-end",
        "/sitemaps/a-relative-one.xml",
    };
    struct url url;

    for (size_t i = 0; i < ROWS(texts); i++)
        assert_false(url_split(texts[i], strlen(texts[i]), &url));
}

static void test_accepted(void **state)
{
    static const struct {
        const char *text;
        const char *want; /* NULL: as given */
    } rows[] = {
        {"https://www.example.com/sitemap.xml", NULL},
        {"http://www.example.com/sitemap.xml", NULL},
        {"https://www.example.com/", NULL},
        {"http://ab.c/", NULL}, /* 12 characters */
        /* scheme, host, port */
        {"HTTPS://WWW.EXAMPLE.COM/X.XML", "https://www.example.com/X.XML"},
        {"https://www.example.com:443/x", "https://www.example.com/x"},
        {"http://www.example.com:80/x", "http://www.example.com/x"},
        {"http://www.example.com:443/x", NULL},
        {"https://www.example.com:/x", "https://www.example.com/x"},
        /* path never empty */
        {"https://www.example.com", "https://www.example.com/"},
        {"https://www.example.com?a=b", "https://www.example.com/?a=b"},
        {"https://www.example.com?/../a", "https://www.example.com/?/../a"},
        /* dot segments (RFC 3986 5.2.4) */
        {"https://www.example.com/a/b/c/./../../g", "https://www.example.com/a/g"},
        {"https://www.example.com/.", "https://www.example.com/"},
        {"https://www.example.com/..", "https://www.example.com/"},
        {"https://www.example.com/../../x", "https://www.example.com/x"},
        {"https://www.example.com/a/.", "https://www.example.com/a/"},
        {"https://www.example.com/a/..", "https://www.example.com/"},
        {"https://www.example.com/a/b/..", "https://www.example.com/a/"},
        {"https://www.example.com/a/b/../", "https://www.example.com/a/"},
        {"https://www.example.com/a//../b", "https://www.example.com/a/b"},
        {"https://www.example.com//../b", "https://www.example.com/b"},
        {"https://www.example.com/a/%2e%2E/b", "https://www.example.com/b"},
        {"https://www.example.com/a/.%2e/b", "https://www.example.com/b"},
        {"https://www.example.com/a/%2E/b", "https://www.example.com/a/b"},
        {"https://www.example.com/...", NULL},
        {"https://www.example.com/a/.../b", NULL},
        {"https://www.example.com/.a/..b/c.", NULL},
        {"https://www.example.com/a//b///", NULL},
        {"https://www.example.com/a/..?x", "https://www.example.com/?x"},
        {"https://www.example.com/a?x=/../y", NULL},
        {"https://www.example.com/a?x=/./y", NULL},
        {"https://www.example.com/..%2Fa", NULL}, /* one segment, not two */
        /* percent-encoding */
        {"https://www.example.com/%41%7e%5F", "https://www.example.com/A~_"},
        {"https://www.example.com/a%2fb", "https://www.example.com/a%2Fb"},
        {"https://www.example.com/a%2Fb", NULL},
        {"https://www.example.com/a%20b", NULL},
        {"https://www.example.com/%25", NULL},
        {"https://www.example.com/%2541", NULL}, /* decoded once only */
        {"https://www.example.com/%00%0a%7f", "https://www.example.com/%00%0A%7F"},
        {"https://www.example.com/%c3%a9%ff", "https://www.example.com/%C3%A9%FF"},
        {"https://www.example.com/%3f%23%26", "https://www.example.com/%3F%23%26"},
        {"https://www.example.com/x?a=%41%2b", "https://www.example.com/x?a=A%2B"},
        {"https://www.example.com/%5B%5d%7b%22", "https://www.example.com/%5B%5D%7B%22"},
        /* IRIs (RFC 3987 3.1) */
        {"https://www.example.com/caf\xC3\xA9.xml", "https://www.example.com/caf%C3%A9.xml"},
        {"https://www.example.com/x?q=\xE2\x82\xAC", "https://www.example.com/x?q=%E2%82%AC"},
        {"https://www.example.com/\xF0\x9F\x98\x80", "https://www.example.com/%F0%9F%98%80"},
        {"https://www.example.com/\xC3\xA0", "https://www.example.com/%C3%A0"},
        /* queries, and all that may stand raw */
        {"https://www.example.com/sitemap.xml?page=1&b=2", NULL},
        {"https://www.example.com/?", NULL},
        {"https://www.example.com/x??a=/?", NULL},
        {"https://www.example.com/-._~!$&'()*+,;=:@/?-._~!$&'()*+,;=:@/?", NULL},
        {"https://www.example.com/a:b@c", NULL},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *want = rows[i].want != NULL ? rows[i].want : rows[i].text;
        struct url url, again;
        rule_set remarks = 0;

        check_code(rows[i].text, url_parse(rows[i].text, strlen(rows[i].text), &url, &remarks),
                   RULE_OK);
        check_text(rows[i].text, url.text, want);
        check_number(rows[i].text, url.len, (int64_t)strlen(want));
        check_set(rows[i].text, remarks, rows[i].want != NULL ? NORMALISED : 0);
        remarks = 0;
        check_code(want, url_parse(url.text, url.len, &again, &remarks), RULE_OK);
        check_text(want, again.text, want);
        check_set(want, remarks, 0);
        check_split(&url);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        enum rule_code code;
    } rows[] = {
        {BYTES(""), RULE_LOC_MISSING},
        /* relative */
        {BYTES("abc"), RULE_LOC_RELATIVE},
        {BYTES("sitemap.xml"), RULE_LOC_RELATIVE},
        {BYTES("/sitemap.xml"), RULE_LOC_RELATIVE},
        {BYTES("//www.example.com/x.xml"), RULE_LOC_RELATIVE},
        {BYTES("www.example.com/x.xml"), RULE_LOC_RELATIVE},
        {BYTES("?page=1"), RULE_LOC_RELATIVE},
        {BYTES("/a:b"), RULE_LOC_RELATIVE},
        {BYTES("#x"), RULE_LOC_RELATIVE},
        {BYTES("caf\xC3\xA9/x.xml"), RULE_LOC_RELATIVE},
        /* other schemes */
        {BYTES("ftp://www.example.com/x.xml"), RULE_LOC_SCHEME},
        {BYTES("file:///x.xml"), RULE_LOC_SCHEME},
        {BYTES("mailto:a@b.example"), RULE_LOC_SCHEME},
        {BYTES("javascript:alert(1)"), RULE_LOC_SCHEME},
        {BYTES("httpx://www.example.com/"), RULE_LOC_SCHEME},
        {BYTES("www.example.com:8080/x.xml"), RULE_LOC_SCHEME},
        {BYTES("a:"), RULE_LOC_SCHEME},
        /* no URL */
        {BYTES("http:"), RULE_LOC_MALFORMED},
        {BYTES("http:/www.example.com/x"), RULE_LOC_MALFORMED},
        {BYTES("https:www.example.com"), RULE_LOC_MALFORMED},
        {BYTES("https:\\\\www.example.com\\x"), RULE_LOC_MALFORMED},
        {BYTES("://www.example.com/x"), RULE_LOC_MALFORMED},
        {BYTES("1http://www.example.com/x"), RULE_LOC_MALFORMED},
        {BYTES("\xEF\xBB\xBFhttps://www.example.com/x"), RULE_LOC_MALFORMED}, /* a BOM */
        {BYTES("https://www.example.com/a\\b"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com\\b"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/\"x\""), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/<x>"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/^"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/`"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/{x}"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/a|b"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/[x]"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/x?a[]=1"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/x?a={b}"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/x?a=\"b\""), RULE_LOC_MALFORMED},
        /* characters */
        {BYTES("https://www.example.com/a\0b"), RULE_LOC_CONTROL},
        {BYTES("https://www.example.com/\0"), RULE_LOC_CONTROL},
        {BYTES("\0"), RULE_LOC_CONTROL},
        {BYTES("https://www.example.com/a\nb"), RULE_LOC_CONTROL},
        {BYTES("https://www.example.com/a\tb"), RULE_LOC_CONTROL},
        {BYTES("https://www.example.com/\x7F"), RULE_LOC_CONTROL},
        {BYTES("https://www.exa\x01mple.com/"), RULE_LOC_CONTROL},
        {BYTES("https://www.example.com/\xC2\x85"), RULE_LOC_CONTROL}, /* C1 */
        {BYTES("https://www.example.com/\xC2\xA0"), RULE_LOC_SPACE},
        {BYTES("https://www.example.com/a\xE2\x80\x8D\xE2\x80\x8D/b"), RULE_LOC_SPACE}, /* U+200D */
        {BYTES("\xE2\x80\x8Bhttps://www.example.com/"), RULE_LOC_MALFORMED},
        {BYTES("https://www.example.com/a b"), RULE_LOC_SPACE},
        {BYTES(" https://www.example.com/"), RULE_LOC_SPACE},
        {BYTES("https://www.example.com/ "), RULE_LOC_SPACE},
        {BYTES("https://www.exa mple.com/"), RULE_LOC_SPACE},
        {BYTES("https://www.example.com/\xFF"), RULE_LOC_UTF8},
        {BYTES("https://www.example.com/caf\xE9.xml"), RULE_LOC_UTF8}, /* Latin-1 */
        {BYTES("https://www.example.com/\xC3"), RULE_LOC_UTF8},
        {BYTES("https://www.example.com/\xC0\xAE\xC0\xAE/"), RULE_LOC_UTF8},
        {BYTES("https://www.example.com/\xED\xA0\x80"), RULE_LOC_UTF8},
        {BYTES("https://m\xFCller.de/"), RULE_LOC_UTF8},
        /* parts */
        {BYTES("https://www.example.com/x#top"), RULE_LOC_FRAGMENT},
        {BYTES("https://www.example.com/x#"), RULE_LOC_FRAGMENT},
        {BYTES("https://www.example.com#"), RULE_LOC_FRAGMENT},
        {BYTES("https://user:pw@www.example.com/"), RULE_LOC_CREDENTIALS},
        {BYTES("https:///x.xml"), RULE_LOC_HOST},
        {BYTES("https://"), RULE_LOC_HOST},
        {BYTES("https://?x=abcdefg"), RULE_LOC_HOST},
        {BYTES("https://www.example.com:x/"), RULE_LOC_PORT},
        {BYTES("https://m\xC3\xBCller.de/x.xml"), RULE_LOC_HOST_IDN},
        {BYTES("https://www.example.com/%"), RULE_LOC_PERCENT},
        {BYTES("https://www.example.com/%4"), RULE_LOC_PERCENT},
        {BYTES("https://www.example.com/%4/x"), RULE_LOC_PERCENT},
        {BYTES("https://www.example.com/100%"), RULE_LOC_PERCENT},
        {BYTES("https://www.example.com/%zz"), RULE_LOC_PERCENT},
        {BYTES("https://www.example.com/%u00e9"), RULE_LOC_PERCENT},
        {BYTES("https://www.example.com/x?a=%"), RULE_LOC_PERCENT},
        {BYTES("https://www.example.com/%?a"), RULE_LOC_PERCENT},
        /* length, of the normal form */
        {BYTES("http://a.b/"), RULE_LOC_TOO_SHORT},
        {BYTES("http://a.b"), RULE_LOC_TOO_SHORT},
        {BYTES("https://a/x/../"), RULE_LOC_TOO_SHORT},
        {BYTES("http://a.b:80/"), RULE_LOC_TOO_SHORT},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct url url = {.text = "kept"};
        rule_set remarks = 0;
        /* A copy of its exact size, so that a sanitizer sees a read past the end. */
        char *copy = malloc(rows[i].len + (rows[i].len == 0));

        assert_non_null(copy);
        memcpy(copy, rows[i].text, rows[i].len);
        check_code(rows[i].text, url_parse(copy, rows[i].len, &url, &remarks), rows[i].code);
        free(copy);
        check_text(rows[i].text, url.text, "kept");
        check_set(rows[i].text, remarks, 0);
    }
}

static void test_parts(void **state)
{
    static const char text[] = "HTTPS://www.example.com:8443/a/b.xml?c=d";
    struct url url;

    check_code(text, url_parse(BYTES("HTTPS://www.example.com:8443/a/b.xml?c=d"), &url, NULL),
               RULE_OK);
    assert_true(url.https);
    assert_int_equal(url.port, 8443);
    assert_int_equal(url.host_at, 8);
    assert_int_equal(url.host_len, strlen("www.example.com"));
    assert_int_equal(url.origin_len, strlen("https://www.example.com:8443"));
    assert_int_equal(url.path_len, strlen("/a/b.xml"));
    assert_string_equal(url.text + url.origin_len + url.path_len, "?c=d");
    check_split(&url);

    check_code("http", url_parse(BYTES("http://[::1]/abc"), &url, NULL), RULE_OK);
    assert_false(url.https);
    assert_int_equal(url.port, 80);
    assert_int_equal(url.host_len, 5);
    assert_int_equal(url.path_len, 4);
    check_split(&url);
    check_code("port", url_parse(BYTES("https://[2001:DB8::1]:81/?a:b/c"), &url, NULL), RULE_OK);
    assert_int_equal(url.port, 81);
    check_split(&url);
}

/* `head` and as many of `fill` as make `len` bytes. */
static char *fill_text(const char *head, const char *fill, size_t len)
{
    char *text = malloc(len + 1);
    size_t at = strlen(head), fill_len = strlen(fill);

    assert_non_null(text);
    memcpy(text, head, at);
    for (size_t i = 0; at + i < len; i++)
        text[at + i] = fill[i % fill_len];
    text[len] = '\0';
    return text;
}

static void test_long(void **state)
{
    static const char head[] = "https://a.example/"; /* 18 characters */
    static const struct {
        const char *name, *fill;
        size_t len;
        enum rule_code code;
        rule_set remarks;
    } rows[] = {
        {"1024", "a", 1024, RULE_OK, 0},
        {"1025", "a", 1025, RULE_OK, LONG},
        {"2047", "a", 2047, RULE_OK, LONG},
        {"2048", "a", 2048, RULE_LOC_TOO_LONG, 0},
        {"beyond the work buffer", "a", 100000, RULE_LOC_TOO_LONG, 0},
        /* two bytes become six: 18 + 338 * 6 = 2046 */
        {"IRI that fits", "\xC3\xA9", 18 + 338 * 2, RULE_OK, LONG | NORMALISED},
        {"IRI that grows too long", "\xC3\xA9", 18 + 339 * 2, RULE_LOC_TOO_LONG, 0},
        {"IRI that fills the work buffer", "\xC3\xA9", 18 + 4000, RULE_LOC_TOO_LONG, 0},
        {"encoded letters that shrink", "%61", 18 + 2029 * 3, RULE_OK, LONG | NORMALISED},
        {"one letter more", "%61", 18 + 2030 * 3, RULE_LOC_TOO_LONG, 0},
        {"dot segments that vanish", "a/../", 18 + 600 * 5, RULE_OK, NORMALISED},
        {"faults come before length", "%zz", 4000, RULE_LOC_PERCENT, 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char *text = fill_text(head, rows[i].fill, rows[i].len);
        rule_set remarks = 0;
        struct url url;

        check_code(rows[i].name, url_parse(text, rows[i].len, &url, &remarks), rows[i].code);
        check_set(rows[i].name, remarks, rows[i].remarks);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_not_a_url_at_all),
        cmocka_unit_test(test_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
