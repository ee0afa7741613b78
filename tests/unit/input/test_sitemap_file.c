/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a file is, and what it is refused for, by its content. */
#include "tests/unit/input/test_sitemap_file.h"

struct kind_case {
    const char *name, *input;
    enum sitemap_file_kind kind;
    uint64_t urls, bad;
};

static const struct kind_case kinds[] = {
    {"a urlset", DECL "\n" OPEN "\n" URL("a") "\n" URL("b") CLOSE, SITEMAP_FILE_URLSET, 2, 0},
    {"no declaration", OPEN URL("a") CLOSE, SITEMAP_FILE_URLSET, 1, 0},
    {"a BOM", "\xef\xbb\xbf" DECL OPEN URL("a") CLOSE, SITEMAP_FILE_URLSET, 1, 0},
    {"blank in front", "\n \n" OPEN URL("a") CLOSE "\n\n", SITEMAP_FILE_URLSET, 1, 0},
    {"https", "<urlset xmlns=\"https://www.sitemaps.org/schemas/sitemap/0.9\">" URL("a") CLOSE,
     SITEMAP_FILE_URLSET, 1, 0},
    {"0.84", "<urlset xmlns=\"http://www.google.com/schemas/sitemap/0.84\">" URL("a") CLOSE,
     SITEMAP_FILE_URLSET, 1, 0},
    {"no namespace", "<urlset>" URL("a") CLOSE, SITEMAP_FILE_URLSET, 1, 0},
    {"a prefix",
     "<s:urlset xmlns:s=\"" NS "\"><s:url><s:loc>https://example.com/</s:loc></s:url>"
     "</s:urlset>",
     SITEMAP_FILE_URLSET, 1, 0},
    {"extensions",
     "<urlset xmlns=\"" NS "\" xmlns:i=\"urn:i\"><url>" LOC(
         "a") "<i:image><i:loc>x</i:loc><i:url/></i:image></url><i:url/>" CLOSE,
     SITEMAP_FILE_URLSET, 1, 0},
    {"padded loc", OPEN "<url><loc>\n https://example.com/ \n</loc></url>" CLOSE,
     SITEMAP_FILE_URLSET, 1, 0},
    {"bad locs",
     OPEN "<url><loc>/a</loc></url><url/><url><loc/></url><url>" LOC("a")
         LOC("b") "</url><url><loc>ftp://example.com/a</loc><loc>b</loc></url><url><loc>"
                  "https://example.com/<b/></loc></url><url><loc><![CDATA[https://example.com/]]>"
                  "</loc></url>" CLOSE,
     SITEMAP_FILE_URLSET, 7, 6},
    {"utf8 misspelt", "<?xml version='1.0' encoding='utf8'?>" OPEN URL("a") CLOSE,
     SITEMAP_FILE_URLSET, 1, 0},
    {"an empty urlset", DECL OPEN "<!-- none -->\n" CLOSE, SITEMAP_FILE_EMPTY, 0, 0},
    {"an empty tag", "<urlset/>", SITEMAP_FILE_EMPTY, 0, 0},
    {"white space", " \r\n\t\n", SITEMAP_FILE_EMPTY, 0, 0},
    {"a BOM alone", "\xef\xbb\xbf", SITEMAP_FILE_EMPTY, 0, 0},
    {"a list", "https://example.com/a\nhttp://example.com/b\r\n\r\n", SITEMAP_FILE_TEXT, 2, 0},
    {"a BOM, blank lines", "\xef\xbb\xbf\n\n  HTTPS://EXAMPLE.COM/a  \n", SITEMAP_FILE_TEXT, 1, 0},
    {"half of it is not", "https://example.com/a\nwhat", SITEMAP_FILE_TEXT, 2, 1},
    {"refused, but URLs", "https://example.com/#a\nhttps://ex ample.com/\nhttps://example.com/\xff",
     SITEMAP_FILE_TEXT, 3, 3},
    {"most of it is not", "https://example.com/a\nb\nc", SITEMAP_FILE_OTHER, 0, 0},
    {"robots.txt", "User-agent: *\nSitemap: https://example.com/a.xml\n", SITEMAP_FILE_OTHER, 0, 0},
    {"css", "body { color: red }\n", SITEMAP_FILE_OTHER, 0, 0},
    {"JSON", "{\"loc\": \"https://example.com/\"}", SITEMAP_FILE_OTHER, 0, 0},
    {"a scheme alone", "https://", SITEMAP_FILE_OTHER, 0, 0},
    {"half a gzip magic", "\x1f", SITEMAP_FILE_OTHER, 0, 0},
    {"png", "\x89PNG\r\n\x1a\n", SITEMAP_FILE_OTHER, 0, 0},
    {"html", "<!DOCTYPE html>\n<html><head><title>404</title>", SITEMAP_FILE_PAGE, 0, 0},
    {"html, loud", "<HTML><BODY>&nbsp;<br>", SITEMAP_FILE_PAGE, 0, 0},
    {"xhtml", DECL "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"x\"><html/>",
     SITEMAP_FILE_PAGE, 0, 0},
    {"html that quotes a sitemap", "<!DOCTYPE html><html><body><urlset></urlset></body></html>",
     SITEMAP_FILE_PAGE, 0, 0},
    {"an empty feed", DECL "<rss version=\"2.0\"><channel></channel></rss>", SITEMAP_FILE_EMPTY, 0,
     0},
    {"svg", DECL "<!DOCTYPE svg [<!ENTITY a \"b\">]><svg a=\"&a;\">", SITEMAP_FILE_OTHER, 0, 0},
    {"no XML at all", "<nothing <", SITEMAP_FILE_OTHER, 0, 0},
    {"cut before it is known", "<urls", SITEMAP_FILE_OTHER, 0, 0},
    {"an index", DECL "<sitemapindex xmlns=\"" NS "\"><sitemap>", SITEMAP_FILE_INDEX, 0, 0},
};

static void test_kinds(void **state)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct kind_case *c = &kinds[i];
        struct sitemap_file f = verify(c->name, c->input, strlen(c->input));
        if (f.kind != c->kind || f.urls != c->urls || f.bad_urls != c->bad)
            fail_msg("%s: %d, %lu URLs, %lu bad, %s %s", c->name, f.kind, (unsigned long)f.urls,
                     (unsigned long)f.bad_urls, f.code, f.detail);
        bool good = sitemap_file_is_good(f.kind), hashed = good || f.kind == SITEMAP_FILE_EMPTY;
        assert_int_equal(good, *f.code == '\0');
        assert_int_equal(good, *f.detail == '\0');
        assert_int_equal(good, !sitemap_file_has_code(f.code));
        assert_int_equal(f.line, 0);
        assert_int_equal(f.hash[0] != 0 && f.hash[1] != 0, hashed);
    }
}

struct code_case {
    const char *input, *code;
    uint64_t line, column;
};

static const struct code_case codes[] = {
    {"", "empty-file", 0, 0},
    {OPEN "\n<url>\n </ur>" CLOSE, "malformed-xml", 3, 4},
    {OPEN "\n&nbsp;" CLOSE, "malformed-xml", 2, 1},
    {OPEN "\n" CLOSE "\n x", "malformed-xml", 3, 2},
    {OPEN "\n\xc3\xa9<x:a/>" CLOSE, "malformed-xml", 2, 2},
    {DECL "\n<\n<urlset/>", "malformed-xml", 2, 2},
    {"\xef\xbb\xbf" DECL "<1", "malformed-xml", 1, 40},
    {"\n\n " DECL OPEN CLOSE, "malformed-xml", 3, 2},
    {"\n" DECL "\n<1", "malformed-xml", 3, 2},
    {OPEN "\n" URL("a"), "truncated", 2, 44},
    {OPEN "\n<url><lo", "truncated", 2, 6},
    {OPEN "\n<url><loc>http", "truncated", 2, 15},
    {OPEN "\n<!-- ", "truncated", 2, 1},
    {OPEN "\n<a><![CDATA[ x", "truncated", 2, 0},
    {OPEN "\n\xc3", "truncated", 2, 1},
    {DECL, "truncated", 1, 39},
    {DECL "\n<urls", "truncated", 2, 1},
    {DECL "\n<!DOCTYPE urlset>\n" OPEN CLOSE, "doctype", 2, 0},
    {"<!DOCTYPE s:urlset SYSTEM \"http://example.com/x.dtd\">", "doctype", 1, 0},
    {"<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>\n" OPEN "<url>&a;", "doctype", 1, 0},
    {"<!DOCTYPE urlset [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>" OPEN "&b;", "doctype", 1, 0},
    {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n" OPEN CLOSE, "not-utf8", 1, 1},
    {"<?xml version=\"1.0\" encoding=\"windows-1252\"?>\n" OPEN CLOSE, "not-utf8", 1, 1},
    {"<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n" OPEN CLOSE, "not-utf8", 1, 1},
    {OPEN "\n <a>\xe9t\xe9</a>" CLOSE, "not-utf8", 2, 5},
    {OPEN "\n<a b='\xed\xa0\x80'/>" CLOSE, "not-utf8", 2, 7},
    {"<urlset xmlns=\"urn:other\"/>", "wrong-namespace", 1, 1},
    {"<urlset xmlns=\"" NS "x\"/>", "wrong-namespace", 1, 1},
    {DECL "\n<urlset xmlns=\"//www.sitemaps.org/schemas/sitemap/0.9\"/>", "wrong-namespace", 2, 1},
    {"<urlset xmlns=\"" NS " \"/>", "wrong-namespace", 1, 1},
    {"<s:urlset xmlns:s=\"https\"/>", "wrong-namespace", 1, 1},
    {"148e2\n" DECL "\n" OPEN URL("a") CLOSE, "malformed-xml", 1, 1},
    {"\n<br />\n<b>Warning</b>: x\n" DECL OPEN URL("a") CLOSE, "malformed-xml", 2, 1},
    {DECL "\n<head/>" OPEN URL("a") CLOSE, "malformed-xml", 2, 1},
    {"<br>\n" OPEN URL("a") CLOSE, "malformed-xml", 1, 1},
    {"\xef\xbb\xbf\xef\xbb\xbf" OPEN URL("a") CLOSE, "malformed-xml", 1, 1},
    {"URL\nhttps://example.com/a\nhttps://example.com/b", "malformed-list", 1, 1},
    {"\n# all\nhttps://example.com/a\n\nhttps://example.com/b\n", "malformed-list", 2, 1},
    {"\"https://example.com/a\"\n\"https://example.com/b\"\n", "malformed-list", 1, 1},
    {DECL "<rss version=\"2.0\"><channel>", "truncated", 1, 67},
    {"<feed xmlns=\"http://www.w3.org/2005/Atom\">", "truncated", 1, 43},
    {"<?xml version=\"1.0\" encoding=\"windows-1251\"?><rss>\xe0", "not-utf8", 1, 1},
    {"\n" DECL "<rss/>", "malformed-xml", 2, 1},
    {"\x1f\x8b", "truncated", 0, 0},
    {"\x1f\x8b nothing of the kind", "malformed-gzip", 0, 0},
};

static void check_code(const struct code_case *c, size_t len)
{
    struct sitemap_file f = verify(c->input, c->input, len);
    if (f.kind != SITEMAP_FILE_BROKEN || strcmp(f.code, c->code) != 0 || f.line != c->line ||
        (c->column != 0 && f.column != c->column))
        fail_msg("%s: %d %s at %lu:%lu (%s), not %s", c->input, f.kind, f.code,
                 (unsigned long)f.line, (unsigned long)f.column, f.detail, c->code);
    assert_true(f.detail[0] != '\0' && f.hash[0] == 0 && f.hash[1] == 0);
    assert_true(sitemap_file_has_code(f.code));
}

static void test_codes(void **state)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        check_code(&codes[i], strlen(codes[i].input));
}

/* UTF-16, with and without a mark; the text is ASCII. */
static void append_wide(struct str *out, const char *text, bool mark, bool big)
{
    if (mark)
        str_append(out, big ? "\xfe\xff" : "\xff\xfe", 2);
    for (; *text; text++) {
        char pair[2] = {big ? '\0' : *text, big ? *text : '\0'};
        str_append(out, pair, 2);
    }
}

static void test_utf16(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        bool mark = i & 1, big = i & 2;
        struct str s = STR_INIT;
        append_wide(&s, OPEN URL("a") CLOSE, mark, big);
        struct sitemap_file f = verify_str("UTF-16 urlset", &s);
        assert_int_equal(f.kind, SITEMAP_FILE_BROKEN);
        assert_string_equal(f.code, "not-utf8");
        append_wide(&s, "<rss/>", mark, big);
        assert_string_equal(verify_str("UTF-16 rss", &s).code, "not-utf8");
        append_wide(&s, "https://example.com/\n", mark, big);
        assert_string_equal(verify_str("UTF-16 list", &s).code, "not-utf8");
    }
}

/* What expat cannot read is recognised by its first bytes; and what is text, and no XML, apart from
 * what no mistake makes of a sitemap. */
static void test_foreign(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *encoding;
    } heads[] = {
        {"\0\0\xfe\xff\0\0\0<", 8, "UTF-32"},      {"\xff\xfe\0\0<\0\0\0", 8, "UTF-32"},
        {"\0\0\0<\0\0\0?", 8, "UTF-32"},           {"<\0\0\0?\0\0\0", 8, "UTF-32"},
        {"\x4c\x6f\xa7\x94\x93\x40", 6, "EBCDIC"},
    };
    char detail[64];
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct sitemap_file f = verify(heads[i].encoding, heads[i].bytes, heads[i].len);
        snprintf(detail, sizeof detail, "is encoded in %s; a sitemap must be UTF-8",
                 heads[i].encoding);
        assert_int_equal(f.kind, SITEMAP_FILE_BROKEN);
        assert_string_equal(f.code, "not-utf8");
        assert_string_equal(f.detail, detail);
    }
    assert_true(verify_text("loc,lastmod\nhttps://example.com/,2026-01-01\n").no_xml);
    assert_true(verify_text("https://example.com/a\nb\nc").no_xml);
    assert_false(verify_text("\x89PNG\r\n\x1a\n").no_xml);
    assert_false(verify_text("<html>").no_xml);
    assert_false(verify_text("<rss/>").no_xml);
}

/* The entries of a feed are its pages. */
static void test_feeds(void **state)
{
    static const struct {
        const char *name, *input;
        uint64_t urls;
        const char *newest;
    } feeds[] = {
        {"Atom",
         "<feed xmlns=\"http://www.w3.org/2005/Atom\"><link href=\"https://example.com/feed\"/>"
         "<updated>2026-12-01T00:00:00Z</updated><entry><link rel=\"self\" href=\"x\"/><link "
         "href=\"https://example.com/a\"/><published>2026-01-01T00:00:00Z</published><updated>"
         "2026-02-01T00:00:00Z</updated></entry><entry><link rel=\"alternate\" href=\"/b\"/>"
         "<updated>2026-01-02T00:00:00Z</updated></entry></feed>",
         2, "2026-02-01T00:00:00Z"},
        {"RSS 2.0",
         DECL "<rss version=\"2.0\"><channel><link>https://example.com/</link><item><title>A"
              "</title><link> https://example.com/a\n</link><pubDate>Sat, 07 Feb 2026 23:59:59 "
              "+0200</pubDate></item><item><guid>https://example.com/b</guid><pubDate>6 Feb 26 "
              "10:00 EST</pubDate></item></channel></rss>",
         2, "2026-02-07T21:59:59Z"},
        {"RSS 1.0",
         "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" "
         "xmlns=\"http://purl.org/rss/1.0/\" "
         "xmlns:d=\"http://purl.org/dc/elements/1.1/\"><channel/>"
         "<item><link>https://example.com/a</link><d:date>2026-03-04</d:date></item></r:RDF>",
         1, "2026-03-04"},
        {"no date", "<rss><channel><item><link>https://example.com/</link></item></channel></rss>",
         1, ""},
        {"invalid dates",
         "<rss><channel><item><pubDate>Sat, 31 Feb 2026 00:00:00 GMT</pubDate></item><item>"
         "<pubDate>1 Mar 2026 24:00 GMT</pubDate></item><item><pubDate>1 Mar 2026 10:60 GMT"
         "</pubDate></item><item><pubDate>1 Mar 2026 10:00:60 GMT</pubDate></item></channel></rss>",
         4, ""},
    };
    for (size_t i = 0; i < sizeof feeds / sizeof feeds[0]; i++) {
        struct sitemap_file f = verify_text(feeds[i].input);
        if (f.kind != SITEMAP_FILE_FEED || !f.feed || f.urls != feeds[i].urls ||
            strcmp(f.newest_lastmod, feeds[i].newest) != 0 || f.hash[0] == 0)
            fail_msg("%s: %d %s %s, %lu, %s", feeds[i].name, f.kind, f.code, f.detail,
                     (unsigned long)f.urls, f.newest_lastmod);
    }
    /* The date of a build, and a title, are not what it says; an entry's link and date are. */
    struct sitemap_file a =
        verify_text("<rss><channel><lastBuildDate>1</lastBuildDate><item><title>"
                    "a</title><link>https://e.com/</link></item></channel></rss>");
    struct sitemap_file b =
        verify_text("<rss><channel><lastBuildDate>2</lastBuildDate><item><title>"
                    "b</title><link>https://e.com/</link></item></channel></rss>");
    struct sitemap_file c = verify_text("<rss><channel><item><link>https://e.com/c</link></item>"
                                        "</channel></rss>");
    assert_memory_equal(a.hash, b.hash, sizeof a.hash);
    assert_memory_not_equal(a.hash, c.hash, sizeof a.hash);
}

/* Pages of bot walls and of maintenance say nothing about the sitemap. */
static void test_pages(void **state)
{
    static const struct {
        const char *body, *code, *word;
    } pages[] = {
        {"<head><title>Making sure you&#39;re not a bot!</title><script id=\"anubis_challenge\">",
         "bot-wall", "Anubis"},
        {"<head><META NAME=\"robots\" CONTENT=\"noindex\"><script "
         "src=\"/_Incapsula_Resource?SWJIYLWA=5\"></script>",
         "bot-wall", "Imperva"},
        {"<body><script src=\"/_sec/cp_challenge/ak-challenge-4-3.htm\"></script>", "bot-wall",
         "Akamai"},
        {"<title>You are being redirected...</title><script>sucuri_cloudproxy_js=''", "bot-wall",
         "Sucuri"},
        {"<title>DDoS-Guard</title>", "bot-wall", "DDoS-Guard"},
        {"<form action=\"/.lsrecap/recaptcha\">", "bot-wall", "LiteSpeed"},
        {"<script>window._cf_chl_opt={}", "bot-wall", "Cloudflare"},
        {"<title>Just a moment...</title>", "bot-wall", "challenge"},
        {"<p>Please verify you are human", "bot-wall", "challenge"},
        {"<body>Briefly unavailable for scheduled maintenance. Check back in a minute.",
         "maintenance-page", "maintenance"},
        {"<title>Site Maintenance</title>", "maintenance-page", "\"Site Maintenance\""},
        {"<title>Not found</title>", "not-a-sitemap", "titled \"Not found\""},
        {"<body>captcha", "not-a-sitemap", "HTML"},
    };
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "<!doctype html>\n<html>%s", pages[i].body);
        struct sitemap_file f = verify_text(text);
        bool page = strcmp(pages[i].code, "not-a-sitemap") == 0;
        if (f.kind != (page ? SITEMAP_FILE_PAGE : SITEMAP_FILE_WALL) ||
            strcmp(f.code, pages[i].code) != 0 || strstr(f.detail, pages[i].word) == NULL)
            fail_msg("%s: %d %s %s", text, f.kind, f.code, f.detail);
    }
}

/* Content codings come off before the file is checked (RFC 9110 8.4). */
static void test_codings(void **state)
{
    static const char sitemap[] = OPEN URL("a") CLOSE;
    static const struct {
        const char *encoding, *type;
        unsigned packed; /* how many times */
        enum sitemap_packing name;
        const char *code, *remark; /* of the file */
    } cases[] = {
        {NULL, NULL, 0, SITEMAP_PACKING_PLAIN, "", NULL},
        {"", NULL, 0, SITEMAP_PACKING_PLAIN, "", NULL},
        {" , identity", NULL, 0, SITEMAP_PACKING_PLAIN, "", NULL},
        {"gzip", NULL, 1, SITEMAP_PACKING_PLAIN, "", NULL},
        {"X-GZIP", NULL, 1, SITEMAP_PACKING_PLAIN, "", NULL},
        {"gzip", NULL, 0, SITEMAP_PACKING_PLAIN, "encoding", NULL},
        {"gzip", NULL, 0, SITEMAP_PACKING_GZIP, "encoding", NULL},
        {"br", NULL, 0, SITEMAP_PACKING_PLAIN, "encoding", NULL},
        {"gzip, deflate", NULL, 1, SITEMAP_PACKING_PLAIN, "encoding", NULL},
        {"gzip, gzip, gzip", NULL, 3, SITEMAP_PACKING_PLAIN, "encoding", NULL},
        {"aws-chunked", NULL, 0, SITEMAP_PACKING_PLAIN, "", "encoding-odd"},
        {"none", NULL, 0, SITEMAP_PACKING_PLAIN, "", "encoding-odd"},
        {"aws-chunked,gzip", NULL, 1, SITEMAP_PACKING_PLAIN, "", "encoding-odd"},
        {"gzip, gzip", NULL, 2, SITEMAP_PACKING_PLAIN, "", NULL},
        {"gzip", "application/gzip", 2, SITEMAP_PACKING_PLAIN, "", NULL},
        {"gzip", "application/x-gzip; a=b", 2, SITEMAP_PACKING_PLAIN, "", NULL},
        {"gzip", NULL, 2, SITEMAP_PACKING_GZIP, "", NULL},
        {"gzip", NULL, 1, SITEMAP_PACKING_GZIP, "", NULL},
        {"gzip", NULL, 2, SITEMAP_PACKING_PLAIN, "packed-twice", NULL},
        {"gzip", NULL, 3, SITEMAP_PACKING_GZIP, "packed-twice", NULL},
        {NULL, NULL, 2, SITEMAP_PACKING_GZIP, "packed-twice", NULL},
        {NULL, NULL, 0, SITEMAP_PACKING_GZIP, "not-gzip", NULL},
        {NULL, "application/gzip", 0, SITEMAP_PACKING_GZIP, "not-gzip", NULL},
        {NULL, NULL, 1, SITEMAP_PACKING_PLAIN, "", "gzip-unmarked"},
        {NULL, "application/gzip", 1, SITEMAP_PACKING_PLAIN, "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str body = STR_INIT;
        str_append_text(&body, sitemap);
        for (unsigned n = 0; n < cases[i].packed; n++) {
            struct str packed = STR_INIT;
            append_gzip(&packed, body.data, body.len, 6);
            str_done(&body);
            body = packed;
        }
        for (size_t step = 1; step <= body.len; step += body.len - 1) {
            struct sitemap_file f;
            struct sitemap_expect expect = {.now = NOW, .packing = cases[i].name};
            struct sitemap_verifier *v = sitemap_verifier_new(&expect);
            assert_non_null(v);
            sitemap_verifier_head(v, cases[i].encoding, cases[i].type);
            for (size_t at = 0; at < body.len; at += step)
                sitemap_verifier_feed(v, body.data + at, step);
            assert_true(sitemap_verifier_finish(v, &f));
            sitemap_verifier_free(v);
            const char *remark = f.remarks.count > 0 ? rule_code_word(f.remarks.at[0].code) : "";
            if (strcmp(f.code, cases[i].code) != 0 || (*f.code == '\0') != (f.urls == 1) ||
                strcmp(remark, cases[i].remark ? cases[i].remark : "") != 0)
                fail_msg("%s, packed %u times: %d %s %s %s", cases[i].encoding, cases[i].packed,
                         f.kind, f.code, f.detail, remark);
        }
        str_done(&body);
    }
}

static void test_lastmod(void **state)
{
    static const struct {
        const char *lastmods, *newest; /* one page each, by '|' */
        bool one;
    } cases[] = {
        {"2026-01-01|2026-01-01", "2026-01-01", true},
        {"2026-01-01", "2026-01-01", false},
        {"2026-01-01|", "2026-01-01", false},
        {"2026-01-01|2026-01-02|2026-01-01", "2026-01-02", false},
        {" 2026-01-01 |\n2026-01-01", "2026-01-01", true},
        {"2026-01-01T01:00:00+02:00|2026-01-01", "2026-01-01", false},
        {"2026-01-01T00:00:00Z|2025-12-31T23:30:00-01:00", "2025-12-31T23:30:00-01:00", false},
        {"2026-01-01T00:00:00.25Z|2026-01-01T00:00:00.5Z|2026-01-01T00:00:00.50Z",
         "2026-01-01T00:00:00.5Z", false},
        {"2027-01-16|2027-01-17|2999-01-01", "2027-01-16", false},
        {"2999-01-01|2999-01-01", "", false},
        {"yesterday|yesterday|2026-02-30", "", false},
        {"2025|2026-01", "2026-01", false},
        {"2026-01-01T10:00Z|2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", true},
        {"|", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str s = STR_INIT;
        str_append_text(&s, OPEN);
        for (const char *at = cases[i].lastmods; at; at = strchr(at, '|')) {
            at += *at == '|';
            str_append_text(&s, "<url>" LOC("a") "<lastmod>");
            str_append(&s, at, strcspn(at, "|"));
            str_append_text(&s, "</lastmod><x:a xmlns:x='x'><x:lastmod>2026-12-31</x:lastmod>"
                                "</x:a></url>");
        }
        str_append_text(&s, CLOSE);
        struct sitemap_file f = verify_str(cases[i].lastmods, &s);
        assert_int_equal(f.kind, SITEMAP_FILE_URLSET);
        assert_string_equal(f.newest_lastmod, cases[i].newest);
        if (f.one_lastmod != cases[i].one)
            fail_msg("%s: one_lastmod is %d", cases[i].lastmods, f.one_lastmod);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),   cmocka_unit_test(test_codes),
        cmocka_unit_test(test_utf16),   cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_lastmod), cmocka_unit_test(test_feeds),
        cmocka_unit_test(test_pages),   cmocka_unit_test(test_codings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
