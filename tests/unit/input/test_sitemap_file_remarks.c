/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What is remarked of a sitemap's pages, and what is refused because no crawler could use it. */
#include "tests/unit/input/test_sitemap_file.h"

/* A page of news, dated by its day. */
#define NEWS(x)                                                                                    \
    "<url>" LOC(                                                                                   \
        "maps/" x) "<lastmod>2026-01-01</lastmod><n:news "                                         \
                   "xmlns:n='http://www.google.com/schemas/sitemap-news/0.9'><n:publication>"      \
                   "<n:name>N</n:name><n:language>en</n:language></n:publication>"                 \
                   "<n:publication_date>2026-01-01</n:publication_date><n:title>T</n:title>"       \
                   "</n:news></url>"

#define PAGE(loc) "<url><loc>" loc "</loc></url>\n"
#define GOOD      PAGE("https://example.com/maps/good")

struct remark_case {
    const char *name, *input;
    const char *remarks; /* "code count line:column,line,line given" each with its LF */
};

static const struct remark_case cases[] = {
    {"a good one", OPEN "\n" GOOD CLOSE, ""},
    {"the loc is missing", OPEN "\n" GOOD "<url/><url>\n<priority>1</priority></url>" CLOSE,
     "loc-missing 2 3:1,3 \n"},
    {"an empty loc", OPEN "\n" GOOD PAGE("") PAGE(" ") "<url><loc/></url>" CLOSE,
     "loc-missing 3 3:6,4,5 \n"},
    {"relative", OPEN "\n" GOOD PAGE("/a") PAGE("b") CLOSE, "loc-relative 2 3:6,4 /a\n"},
    {"ftp", OPEN "\n" GOOD " " PAGE("ftp://example.com/a") CLOSE,
     "loc-scheme 1 3:7 ftp://example.com/a\n"},
    {"a space", OPEN "\n" GOOD PAGE("https://example.com/maps/a b") CLOSE,
     "loc-space 1 3:6 https://example.com/maps/a b\n"},
    {"a fragment", OPEN "\n" GOOD PAGE("https://example.com/maps/#a") CLOSE,
     "loc-fragment 1 3:6 https://example.com/maps/#a\n"},
    {"two locs",
     OPEN "\n" GOOD "<url>" LOC("maps/a") "\n" LOC("maps/b") LOC("maps/c") "</url>" CLOSE,
     "loc-repeated 1 4:1 \n"},
    {"markup", OPEN "\n" GOOD PAGE("https://example.com/maps/<b/>a") CLOSE, "loc-markup 1 3:6 \n"},
    {"another host",
     OPEN "\n" PAGE("https://other.example/a") PAGE("https://other.example/b") GOOD CLOSE,
     "outside-site 2 2:6,3 https://other.example/a\n"},
    {"another port", OPEN "\n" PAGE("https://example.com:8443/maps/a") CLOSE,
     "outside-site 1 2:6 https://example.com:8443/maps/a\n"},
    {"www", OPEN "\n" PAGE("https://www.example.com/maps/a") CLOSE,
     "outside-site 1 2:6 https://www.example.com/maps/a\n"},
    {"different scheme", OPEN "\n" PAGE("http://example.com/maps/a") CLOSE,
     "scheme-differs 1 2:6 http://example.com/maps/a\n"},
    {"cross hosts",
     OPEN "\n" PAGE("https://cross.example/a") PAGE("https://port.example:8443/a")
         PAGE("https://port.example/a") PAGE("https://cross.example:99/a") CLOSE,
     "outside-site 1 4:6 https://port.example/a\n"},
    {"above", OPEN "\n" GOOD PAGE("https://example.com/") PAGE("https://example.com/mapsa") CLOSE,
     "outside-directory 2 3:6,4 https://example.com/\n"},
    {"lastmods",
     OPEN "\n<url>" LOC(
         "maps/a") "<lastmod>yesterday</lastmod></url>\n"
                   "<url>" LOC(
                       "maps/b") "<lastmod>2031-01-01</lastmod></url>\n"
                                 "<url>" LOC(
                                     "maps/c") "<lastmod>2026-01-01T10:00:00</lastmod></url>\n"
                                               "<url>" LOC(
                                                   "maps/d") "<lastmod>2026-01-01</lastmod></url>\n"
                                                             "<url>" LOC(
                                                                 "maps/e") "<lastmod/></url>\n"
                                                                           "<url>" LOC(
                                                                               "maps/f") "<lastmod>"
                                                                                         "2031-01-"
                                                                                         "01</"
                                                                                         "lastmod><"
                                                                                         "/url"
                                                                                         ">" CLOSE,
     "lastmod-invalid 1 2:43 yesterday\nlastmod-in-future 2 3:43,7 2031-01-01\n"
     "lastmod-no-zone 1 4:43 2026-01-01T10:00:00\n"},
    {"two lastmods",
     OPEN "\n<url>" LOC(
         "maps/a") "<lastmod>2026-01-01</lastmod><lastmod>2026-01-02</lastmod></url>" CLOSE,
     "lastmod-invalid 1 2:72 \n"},
    {"time of a build",
     OPEN "\n<url>" LOC(
         "maps/a") "<lastmod>2026-01-01</lastmod></url>"
                   "<url>" LOC("maps/b") "<lastmod>2026-01-01</lastmod></url>"
                                         "<url>" LOC(
                                             "maps/c") "<lastmod>2026-01-01</lastmod></url>" CLOSE,
     "one-lastmod 1 0:0 2026-01-01\n"},
    {"two pages that were saved in the same second",
     OPEN "<url>" LOC("maps/a") "<lastmod>2026-01-01T00:00:01Z</lastmod></url>"
                                "<url>" LOC(
                                    "maps/b") "<lastmod>2026-01-01T00:00:01Z</lastmod></url>" CLOSE,
     ""},
    {"the news of a day", OPEN NEWS("a") NEWS("b") NEWS("c") CLOSE, ""},
    {"zeros of clocks",
     OPEN "\n<url>" LOC(
         "maps/a") "<lastmod>0001-01-01T00:00:00+01:00</lastmod></url>"
                   "<url>" LOC("maps/b") "<lastmod>1970-01-01T00:00:00Z</lastmod></url>"
                                         "<url>" LOC(
                                             "maps/c") "<lastmod>1970-01-02</lastmod></url>" CLOSE,
     "lastmod-too-old 2 2:43,2 0001-01-01T00:00:00+01:00\n"},
    {"no namespace", "\n<urlset>" GOOD "</urlset>", "namespace 1 2:1 \n"},
    {"an old namespace",
     "<urlset xmlns=\"http://www.google.com/schemas/sitemap/0.84\">" GOOD "</urlset>",
     "namespace 1 1:1 http://www.google.com/schemas/sitemap/0.84\n"},
    {"a list", "https://example.com/maps/a\n\n  /b\nhttps://other.example/\n",
     "loc-relative 1 3:3 /b\noutside-site 1 4:1 https://other.example/\n"},
    {"controls are not shown", OPEN "\n" GOOD PAGE("/a&#x85;\xc2\x9b") CLOSE,
     "loc-control-character 1 3:6 /a??\n"},
};

static void write_remarks(const struct sitemap_remarks *r, struct str *out)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct sitemap_remark *one = &r->at[i];
        str_append_format(out, "%s %lu %lu:%lu", rule_code_word(one->code),
                          (unsigned long)one->count, (unsigned long)one->lines[0],
                          (unsigned long)one->column);
        for (size_t line = 1; line < SITEMAP_REMARK_PLACES && one->lines[line] > 0; line++)
            str_append_format(out, ",%lu", (unsigned long)one->lines[line]);
        str_append_format(out, " %s\n", one->given);
    }
}

static int expect_place(void **state)
{
    static const char loc[] = "https://example.com/maps/a.xml";
    static const char *const hosts[] = {"cross.example", "port.example:8443"};
    static struct url own;
    assert_int_equal(url_parse(loc, sizeof loc - 1, &own, NULL), RULE_OK);
    verify_expect =
        (struct sitemap_expect){.now = NOW, .url = &own, .hosts = hosts, .host_count = 2};
    return 0;
}

static void test_remarks(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sitemap_file f = verify_text(cases[i].input);
        struct sitemap_remarks read;
        char text[SITEMAP_REMARKS_TEXT];
        if (f.kind != SITEMAP_FILE_URLSET && f.kind != SITEMAP_FILE_TEXT)
            fail_msg("%s: %s %s", cases[i].name, f.code, f.detail);
        sitemap_remarks_write(&f.remarks, text);
        sitemap_remarks_read(text, &read); /* what is kept is what was found */
        struct str told = STR_INIT;
        write_remarks(&read, &told);
        if (strcmp(str_text(&told), cases[i].remarks) != 0)
            fail_msg("%s:\n%swant:\n%s", cases[i].name, str_text(&told), cases[i].remarks);
        str_done(&told);
    }
}

static void test_useless(void **state)
{
    static const struct {
        const char *input, *detail;
        uint64_t line, column;
    } useless[] = {
        {OPEN "\n" PAGE("/a") PAGE("/b") CLOSE,
         "none of its 2 URLs can be used: \"/a\" must be an absolute URL (https://host/path); "
         "2 in all, also line 3",
         2, 6},
        {OPEN "\n<url/>" CLOSE, "its one URL cannot be used: the loc is missing", 2, 1},
        {"<urlset><url><lastmod>no</lastmod>\n<loc>ftp://example.com/</loc></url></urlset>",
         "its one URL cannot be used: \"ftp://example.com/\" must be an http or https URL", 2, 1},
        {"https://example.com/a\rhttps://example.com/b\r",
         "its one URL cannot be used: \"https://example.com/a?https://example.com/b\" has a "
         "control "
         "character",
         1, 1},
    };
    for (size_t i = 0; i < sizeof useless / sizeof useless[0]; i++) {
        struct sitemap_file f = verify_text(useless[i].input);
        assert_int_equal(f.kind, SITEMAP_FILE_BROKEN);
        assert_string_equal(f.code, "no-usable-url");
        assert_string_equal(f.detail, useless[i].detail);
        assert_int_equal(f.line, useless[i].line);
        assert_int_equal(f.column, useless[i].column);
    }
}

/* What some crawler makes something of does not cost the file. */
static void test_some_use(void **state)
{
    static const char *const inputs[] = {
        OPEN PAGE("https://example.com/#/a") PAGE("https://example.com/#/b") CLOSE,
        OPEN PAGE("https://ex_ample.com/a") GOOD CLOSE,
        OPEN PAGE("https://m\xc3\xbcller.example/") CLOSE,
        OPEN PAGE("https://www.example.com/") CLOSE,
        OPEN PAGE("https://other.example/") PAGE("https://example.com/a") CLOSE,
        OPEN PAGE("https://example.com/a b") CLOSE,
        OPEN "<url>" LOC("a") LOC("b") "</url>" CLOSE,
        OPEN PAGE("/a") PAGE("https://example.com/100%") CLOSE,
    };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (verify_text(inputs[i]).kind != SITEMAP_FILE_URLSET)
            fail_msg("%s", inputs[i]);
}

static void test_packing(void **state)
{
    struct str zipped = STR_INIT;
    append_gzip(&zipped, OPEN GOOD CLOSE, sizeof OPEN GOOD CLOSE - 1, 6);
    for (enum sitemap_packing p = SITEMAP_PACKING_ANY; p <= SITEMAP_PACKING_GZIP; p++) {
        verify_expect.packing = p;
        struct sitemap_file plain = verify_text(OPEN GOOD CLOSE);
        struct sitemap_file gzip = verify("gzip", zipped.data, zipped.len);
        assert_int_equal(plain.kind,
                         p == SITEMAP_PACKING_GZIP ? SITEMAP_FILE_BROKEN : SITEMAP_FILE_URLSET);
        assert_string_equal(plain.code, p == SITEMAP_PACKING_GZIP ? "not-gzip" : "");
        assert_int_equal(gzip.kind, SITEMAP_FILE_URLSET);
        assert_int_equal(gzip.remarks.count, p == SITEMAP_PACKING_PLAIN);
        if (p == SITEMAP_PACKING_PLAIN)
            assert_int_equal(gzip.remarks.at[0].code, RULE_GZIP_UNMARKED);
    }
    /* A page, or what is broken, is called so, whatever its name is. */
    assert_int_equal(verify_text("<html>").kind, SITEMAP_FILE_PAGE);
    assert_string_equal(verify_text("BZh91AY&SY").code, "not-gzip");
    assert_string_equal(verify_text(OPEN GOOD).code, "truncated");
    assert_string_equal(verify_text(OPEN CLOSE).code, "not-gzip");
    verify_expect.packing = SITEMAP_PACKING_ANY;
    str_done(&zipped);
}

/* However much is wrong: a few kinds, a few places, and how many there are. */
static void test_bounds(void **state)
{
    char told[SITEMAP_REMARK_SENTENCE];
    struct str s = STR_INIT;
    str_append_text(&s, OPEN "\n" GOOD);
    for (unsigned i = 1; i < SITEMAP_FILE_MAX_URLS; i++)
        str_append_format(&s, "<url><loc>/%u</loc></url>\n", i);
    str_append_text(&s, CLOSE);
    struct sitemap_file f = verify_str("50,000", &s);
    assert_int_equal(f.kind, SITEMAP_FILE_URLSET);
    assert_int_equal(f.bad_urls, SITEMAP_FILE_MAX_URLS - 1);
    assert_int_equal(f.remarks.count, 1);
    sitemap_remark_report(&f.remarks.at[0], told);
    assert_string_equal(told, "\"/1\" must be an absolute URL (https://host/path); 49999 in all, "
                              "also line 4, 5");

    static const char *const kinds[] = {
        "/a",
        "ftp://e/",
        "https://e/#a",
        "https://a:b@e/",
        "https://e/a b",
        "http://",
        "https://e:99999999",
        "https://e.com/%zz",
        "https://\xc3\xbc.example/",
        "https://e.com/\x7f\x7f",
    };
    f = verify_text(OPEN "<url>" LOC(
        "maps/a") "<lastmod>2026-01-01</lastmod></url>"
                  "<url>" LOC("maps/b") "<lastmod>2026-01-01</lastmod></url>"
                                        "<url>" LOC(
                                            "maps/c") "<lastmod>2026-01-01</lastmod></url>" CLOSE);
    sitemap_remark_report(&f.remarks.at[0], told);
    assert_string_equal(
        told, "all of its pages have the same lastmod, 2026-01-01: probably the time of a build");

    str_append_text(&s, OPEN GOOD);
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        str_append_format(&s, "<url><loc>%s%0200d</loc></url>\n", kinds[i], 0);
    str_append_text(&s, CLOSE);
    f = verify_str("all kinds", &s);
    assert_int_equal(f.remarks.count, SITEMAP_MAX_REMARKS);
    assert_int_equal(f.bad_urls, sizeof kinds / sizeof kinds[0]);
}

/* Half of a sitemap is one that was meant, wherever its writer was stopped. */
static void test_begun(void **state)
{
    static const struct {
        const char *input, *code;
    } begun[] = {
        {"<urlset", "truncated"},
        {"<urlset ", "truncated"},
        {"<urlset xmlns=\"http://www.site", "truncated"},
        {"<!-- made by x -->\n<urlset xm", "truncated"},
        {"<s:urlset xmlns:s=\"http://www.site", "truncated"},
        {"\n <urlset xmlns=\"" NS "\"", "truncated"},
        {"<urlset xmlns=x>", "malformed-xml"},
    };
    static const char *const others[] = {"<urls", "<urlsets", "<urlset-x ", "<a:rss ",
                                         "<a><urlset"};
    for (size_t i = 0; i < sizeof begun / sizeof begun[0]; i++) {
        struct sitemap_file f = verify_text(begun[i].input);
        if (f.kind != SITEMAP_FILE_BROKEN || strcmp(f.code, begun[i].code) != 0 || f.line == 0)
            fail_msg("%s: %d %s", begun[i].input, f.kind, f.code);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (verify_text(others[i]).kind != SITEMAP_FILE_OTHER)
            fail_msg("%s", others[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remarks),  cmocka_unit_test(test_useless),
        cmocka_unit_test(test_some_use), cmocka_unit_test(test_packing),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_begun),
    };
    return cmocka_run_group_tests(tests, expect_place, NULL);
}
