/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The content hash: what is not a change to a reader of the file keeps it, whatever else moves it.
 */
#include "tests/unit/input/test_sitemap_file.h"

#define IMAGE "http://www.google.com/schemas/sitemap-image/1.1"
#define XHTML "http://www.w3.org/1999/xhtml"

static const char base[] =
    DECL "<urlset xmlns=\"" NS "\" xmlns:image=\"" IMAGE "\" xmlns:xhtml=\"" XHTML "\">"
         "<url><loc>https://example.com/a?b=1&amp;c=2</loc><lastmod>2026-01-01</lastmod>"
         "<image:image><image:loc>https://example.com/a.png</image:loc>"
         "<image:title>one  two</image:title></image:image></url>"
         "<url><loc>https://example.com/b</loc>"
         "<xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"https://example.com/de\"/></url>"
         "</urlset>";

static void check_hash(const char *name, const struct sitemap_file *f,
                       const struct sitemap_file *to, bool equal)
{
    if (f->kind != to->kind)
        fail_msg("%s: kind %d, %s %s", name, f->kind, f->code, f->detail);
    bool same = f->hash[0] == to->hash[0] && f->hash[1] == to->hash[1];
    if (same != equal)
        fail_msg("%s: the hash is %s", name, same ? "the same" : "another");
}

/* `base` with the first `from` replaced (everywhere, if `all`). */
static void append_replaced(struct str *s, const char *from, const char *to, bool all)
{
    const char *at = base, *found = strstr(at, from);
    assert_non_null(found);
    do {
        str_append(s, at, (size_t)(found - at));
        str_append_text(s, to);
        at = found + strlen(from);
        found = all ? strstr(at, from) : NULL;
    } while (found);
    str_append_text(s, at);
}

static void test_no_change(void **state)
{
    static const struct {
        const char *from, *to;
        bool all;
    } cases[] = {
        {"><", ">\n\t <", true},
        {"<url>", "<!-- generated at 12:00 --><url>", true},
        {"<loc>", "<loc><!-- -->", true},
        {"example.com/b", "example<!-- x -->.com/<?y?>b", false},
        {"<loc>", "<loc>\r\n  ", true},
        {"</image:title>", "  </image:title>", false},
        {"<urlset", "<?xml-stylesheet href=\"s.xsl\"?>\n<urlset", false},
        {DECL, "", false},
        {DECL, "\xef\xbb\xbf" DECL, false},
        {DECL, "\n\n", false},
        {"UTF-8", "us-ascii", false},
        {"https://example.com/a?b=1&amp;c=2", "<![CDATA[https://example.com/a?b=1&c=2]]>", false},
        {"https://example.com/a?b=1&amp;c=2", "https://example.com/a?b=1&#38;<![CDATA[c]]>=2",
         false},
        {"example.com/b", "ex&#97;mple.com/&#x62;", false},
        {"one  two", "one  tw&#111;", false},
        {"image:", "img:", true}, /* with its xmlns:, below */
        {"rel=\"alternate\" hreflang=\"de\"", "hreflang='de' rel='alternate'", false},
        {"rel=\"alternate\" hreflang=\"de\" href=\"https://example.com/de\"",
         "href = \"https://example.com/de\"\n hreflang=\"de\" rel=\"alternate\"", false},
        {"/></url>", "></xhtml:link></url>", false},
        {"xmlns:xhtml", "xmlns:unused=\"urn:x\" xmlns:xhtml", false},
        {"</urlset>", "</urlset>\n<!-- end -->\n", false},
    };
    struct sitemap_file whole = verify("base", base, sizeof base - 1);
    assert_int_equal(whole.kind, SITEMAP_FILE_URLSET);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str s = STR_INIT;
        append_replaced(&s, cases[i].from, cases[i].to, cases[i].all);
        if (strcmp(cases[i].to, "img:") == 0) {
            char *at = strstr(s.data, "xmlns:image");
            memcpy(at, "xmlns:img  ", strlen("xmlns:image"));
        }
        struct sitemap_file f = verify_str(cases[i].to, &s);
        check_hash(cases[i].to, &f, &whole, true);
    }
}

static void test_change(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"example.com/b", "example.com/c"},
        {"2026-01-01", "2026-01-02"},
        {"2026-01-01", "2026-01-01 x"},
        {"<lastmod>2026-01-01</lastmod>", ""},
        {"<lastmod>2026-01-01</lastmod>", "<lastmod/>"},
        {"one  two", "one two"},
        {"one  two", "one  <image:b/>two"},
        {"hreflang=\"de\"", "hreflang=\"fr\""},
        {"hreflang=\"de\"", "hreflang=\"de \""},
        {"hreflang=\"de\"", "rev=\"de\""},
        {"hreflang=\"de\" ", ""},
        {"rel=\"alternate\" hreflang=\"de\"", "rel=\"alternate\" hreflang=\"de\" x=\"\""},
        {"rel=\"alternate\" hreflang=\"de\"", "rel=\"de\" hreflang=\"alternate\""},
        {"rel=\"alternate\"", "xhtml:rel=\"alternate\""},
        {IMAGE, "urn:image"},
        {"image:title>one  two</image:title", "image:caption>one  two</image:caption"},
        {"</url></urlset>", "</url><url/></urlset>"},
        {"</url></urlset>", "</url>x</urlset>"},
        {"</image:image></url><url>", "</image:image>"},
        {"<urlset ", "<urlset version=\"1\" "},
        {"example.com/b</loc>", "example.com/</loc>b"},
    };
    struct sitemap_file whole = verify("base", base, sizeof base - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str s = STR_INIT;
        append_replaced(&s, cases[i].from, cases[i].to, false);
        struct sitemap_file f = verify_str(cases[i].to, &s);
        check_hash(cases[i].to, &f, &whole, false);
    }
}

static void test_order(void **state)
{
    struct sitemap_file a = verify_text(OPEN URL("a") URL("b") CLOSE);
    struct sitemap_file b = verify_text(OPEN URL("b") URL("a") CLOSE);
    check_hash("pages", &b, &a, false);
    a = verify_text(OPEN "<url>" LOC("a") "<lastmod>2026</lastmod></url>" CLOSE);
    b = verify_text(OPEN "<url><lastmod>2026</lastmod>" LOC("a") "</url>" CLOSE);
    check_hash("children", &b, &a, false);
}

static void test_dateless(void **state)
{
    static const struct {
        const char *name, *a, *b;
        bool same;
    } cases[] = {
        {"a date", OPEN "<url>" LOC("a") "<lastmod>2026-01-01</lastmod></url>" CLOSE,
         OPEN "<url>" LOC("a") "<lastmod>2026-01-02</lastmod></url>" CLOSE, true},
        {"no date", OPEN "<url>" LOC("a") "<lastmod>2026-01-01</lastmod></url>" CLOSE,
         OPEN "<url>" LOC("a") "</url>" CLOSE, false},
        {"a loc", OPEN "<url>" LOC("a") "<lastmod>2026-01-01</lastmod></url>" CLOSE,
         OPEN "<url>" LOC("b") "<lastmod>2026-01-01</lastmod></url>" CLOSE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sitemap_file a = verify(cases[i].name, cases[i].a, strlen(cases[i].a));
        struct sitemap_file b = verify(cases[i].name, cases[i].b, strlen(cases[i].b));
        check_hash(cases[i].name, &b, &a, false);
        if ((memcmp(a.dateless, b.dateless, sizeof a.dateless) == 0) != cases[i].same)
            fail_msg("%s: without dates it is %s", cases[i].name,
                     cases[i].same ? "another" : "the same");
    }
}

static void test_gzip(void **state)
{
    struct sitemap_file whole = verify("base", base, sizeof base - 1);
    for (int level = 0; level <= 9; level += 3) {
        struct str s = STR_INIT;
        append_gzip(&s, base, sizeof base - 1, level);
        struct sitemap_file f = verify_str("gzip", &s);
        check_hash("gzip", &f, &whole, true);
        assert_true(f.gzip && !whole.gzip && f.bytes == whole.bytes);
    }
    struct str s = STR_INIT;
    append_gzip(&s, base, 100, 6);
    append_gzip(&s, "", 0, 6);
    append_gzip(&s, base + 100, sizeof base - 1 - 100, 6);
    struct sitemap_file f = verify_str("members", &s);
    check_hash("members", &f, &whole, true);
}

static void test_list(void **state)
{
    static const char list[] = "https://example.com/a\nhttps://example.com/b\n";
    static const char *const same[] = {
        "https://example.com/a\nhttps://example.com/b",
        "\xef\xbb\xbf\n https://example.com/a\r\n\r\n\thttps://example.com/b \r\n",
    };
    static const char *const others[] = {
        "https://example.com/b\nhttps://example.com/a\n",
        "https://example.com/a\n",
        "https://example.com/a\nhttps://example.com/b\nhttps://example.com/b\n",
        "https://example.com/ahttps://example.com/b\n",
        "https://example.com/A\nhttps://example.com/b\n",
    };
    struct sitemap_file whole = verify("list", list, sizeof list - 1);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct sitemap_file f = verify_text(same[i]);
        check_hash(same[i], &f, &whole, true);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct sitemap_file f = verify_text(others[i]);
        check_hash(others[i], &f, &whole, false);
    }
}

/* Hashes are kept in catalogues: another way to make them would date every file again. These are
 * XXH3-128 of the bytes `L 0000 l 21,0,0,0 https://example.com/a` and
 * `< 6,0,0,0 urlset @ 1,0,0,0 a = 1,0,0,0 b < 3,0,0,0 url < 3,0,0,0 loc t 20,0,0,0
 * https://example.com/ > 0000 > 0000 > 0000`, made by another program. */
static void test_stays(void **state)
{
    struct sitemap_file f = verify_text("https://example.com/a\n");
    assert_true(f.hash[0] == 0xd41da90334dcc287 && f.hash[1] == 0xacb9dbd764b54904);
    f = verify_text("<urlset a='b'><url><loc> https://example.com/ </loc></url></urlset>");
    assert_true(f.hash[0] == 0xf99b5a939b96b098 && f.hash[1] == 0x6aea5a88b032b6d3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_change), cmocka_unit_test(test_change),
        cmocka_unit_test(test_order),     cmocka_unit_test(test_dateless),
        cmocka_unit_test(test_gzip),      cmocka_unit_test(test_list),
        cmocka_unit_test(test_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
