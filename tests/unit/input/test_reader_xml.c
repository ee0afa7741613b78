/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/input/index_xml.h"

static const struct input_case accepted[] = {
    {"one", HEAD OPEN ONE SHUT, 0, "2 " URL "\n", READER_OK, NULL, 0, 0},
    {"no declaration", OPEN ONE SHUT, 0, "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"none", HEAD OPEN SHUT, 0, "", READER_OK, NULL, 0, 0},
    {"empty root tag", "<sitemapindex xmlns=\"" NS "\"/>", 0, "", READER_OK, NULL, 0, 0},
    {"BOM", "\xef\xbb\xbf" HEAD OPEN ONE SHUT, 0, "2 " URL "\n", READER_OK, NULL, 0, 0},
    {"white space before the declaration", " \r\n\t\n" HEAD OPEN ONE SHUT, 0, "4 " URL "\n",
     READER_OK, NULL, 0, 0},
    {"BOM and white space", "\xef\xbb\xbf\n\n" HEAD OPEN ONE SHUT, 0, "4 " URL "\n", READER_OK,
     NULL, 0, 0},
    {"lines", HEAD OPEN "\n" ONE "\n" ONE "\n\n<sitemap>\n<loc>" URL "</loc></sitemap>" SHUT, 0,
     "3 " URL "\n4 " URL "\n6 " URL "\n", READER_OK, NULL, 0, 0},
    {"CRLF", "<?xml version=\"1.0\"?>\r\n" OPEN "\r\n" ONE "\r\n" ONE "\r\n" SHUT "\r\n", 0,
     "3 " URL "\n4 " URL "\n", READER_OK, NULL, 0, 0},
    {"padding",
     OPEN "<sitemap><loc>\n\t " URL "\r\n  </loc><lastmod> 2026-01-02T03:04:05Z\n"
          "</lastmod></sitemap>" SHUT,
     0, "1 " URL " lastmod=2026-01-02T03:04:05Z +loc-padded\n", READER_OK, NULL, 0, 0},
    {"CDATA",
     OPEN "<sitemap><loc><![CDATA[https://example.com/?a=1&b=2]]></loc>"
          "<lastmod><![CDATA[2026-01-02]]></lastmod></sitemap>" SHUT,
     0, "1 https://example.com/?a=1&b=2 lastmod=2026-01-02 +lastmod-date-only\n", READER_OK, NULL,
     0, 0},
    {"CDATA and text mixed",
     OPEN "<sitemap><loc>https://<![CDATA[example]]>.com/<!-- c -->a.xml</loc></sitemap>" SHUT, 0,
     "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"references",
     OPEN "<sitemap><loc>https://example.com/?a&#61;1&amp;b=&#x32;</loc></sitemap>" SHUT, 0,
     "1 https://example.com/?a=1&b=2\n", READER_OK, NULL, 0, 0},
    {"empty lastmod",
     OPEN "<sitemap><loc>" URL "</loc><lastmod/></sitemap><sitemap><loc>" URL
          "</loc><lastmod> \n</lastmod></sitemap>" SHUT,
     0, "1 " URL " +lastmod-invalid\n1 " URL " +lastmod-invalid\n", READER_OK, NULL, 0, 0},
    {"lastmod first",
     OPEN "<sitemap><lastmod>2026-01-02</lastmod><loc>" URL "</loc></sitemap>" SHUT, 0,
     "1 " URL " lastmod=2026-01-02 +lastmod-date-only\n", READER_OK, NULL, 0, 0},
    {"future", OPEN "<sitemap><loc>" URL "</loc><lastmod>2099-01-01</lastmod></sitemap>" SHUT, 0,
     "1 " URL " +lastmod-in-future\n", READER_OK, NULL, 0, 0},
    {"extra elements",
     OPEN "<sitemap><loc>" URL
          "</loc><changefreq>daily</changefreq>\n<x><loc>no</loc></x></sitemap>"
          "<url><loc>no</loc></url>" SHUT,
     0,
     "1 +extra-element\n2 +extra-element\n2 +loc-ignored\n1 " URL
     "\n2 +extra-element\n2 +loc-ignored\n",
     READER_OK, NULL, 0, 0},
    {"text beside a loc", OPEN "<sitemap>hm<loc>" URL "</loc></sitemap>" SHUT, 0,
     "1 +extra-element\n1 " URL "\n", READER_OK, NULL, 0, 0},
    {"text in the root", OPEN "\nhttps://example.com/b.xml\nand more" ONE "and\n" SHUT, 0,
     "2 +extra-element\n3 " URL "\n3 +extra-element\n", READER_OK, NULL, 0, 0},
    {"extension elements",
     OPEN "<sitemap><loc>" URL "</loc><x:y xmlns:x=\"urn:x\">t<x:loc>u</x:loc></x:y></sitemap>"
          "<n:n xmlns:n=\"http://www.google.com/schemas/sitemap-news/0.9\"><n:n/></n:n>" SHUT,
     0, "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"prefixed",
     "<s:sitemapindex xmlns:s=\"" NS "\"><s:sitemap><s:loc>" URL
     "</s:loc></s:sitemap></s:sitemapindex>",
     0, "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"comments and instructions everywhere",
     "<!-- a --><?p q?>" OPEN "<!-- b --><?p q?><sitemap><!-- c --><loc>" URL
     "</loc><?p?></sitemap>" SHUT "<!-- d -->\n<?p q?>\n",
     0, "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"ISO-8859-1",
     "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>" OPEN
     "<sitemap><loc>https://example.com/\xe9</loc></sitemap>" SHUT,
     0, "1 https://example.com/%C3%A9 +loc-normalised\n", READER_OK, NULL, 0, 0},
    {"UTF-8", OPEN "<sitemap><loc>https://example.com/\xc3\xa9</loc></sitemap>" SHUT, 0,
     "1 https://example.com/%C3%A9 +loc-normalised\n", READER_OK, NULL, 0, 0},
    {"UTF-16", "\xff\xfe<\0s\0i\0t\0e\0m\0a\0p\0i\0n\0d\0e\0x\0 \0x\0m\0l\0n\0s\0=\0'\0'\0/\0>\0",
     50, "1 +namespace\n", READER_OK, NULL, 0, 0},
};

#define WITH_NS(ns) "<sitemapindex xmlns=\"" ns "\">" ONE SHUT

static const struct input_case namespaces[] = {
    {"https", WITH_NS("https://www.sitemaps.org/schemas/sitemap/0.9"), 0,
     "1 +namespace\n1 " URL "\n", READER_OK, NULL, 0, 0},
    {"Google's", WITH_NS("http://www.google.com/schemas/sitemap/0.84"), 0,
     "1 +namespace\n1 " URL "\n", READER_OK, NULL, 0, 0},
    {"slash behind", WITH_NS("http://www.sitemaps.org/schemas/sitemap/0.9/"), 0,
     "1 +namespace\n1 " URL "\n", READER_OK, NULL, 0, 0},
    {"none", "<sitemapindex>" ONE ONE SHUT, 0, "1 +namespace\n1 " URL "\n1 " URL "\n", READER_OK,
     NULL, 0, 0},
    {"someone's", WITH_NS("urn:x"), 0, "", READER_WRONG_KIND, "wrong-namespace", 1, 1},
    {"an extension's", WITH_NS("http://www.google.com/schemas/sitemap-news/0.9"), 0, "",
     READER_WRONG_KIND, "wrong-namespace", 0, 0},
    {"no version", WITH_NS("http://www.sitemaps.org/schemas/sitemap/x"), 0, "", READER_WRONG_KIND,
     "wrong-namespace", 0, 0},
};

static const struct input_case rejected[] = {
    {"the loc is missing", OPEN "<sitemap/>\n<sitemap><lastmod>2026-01-02</lastmod></sitemap>" SHUT,
     0, "1 !loc-missing loc\n2 !loc-missing loc\n", READER_OK, NULL, 0, 0},
    {"empty loc", OPEN "<sitemap><loc> \n</loc></sitemap><sitemap><loc/></sitemap>" SHUT, 0,
     "1 !loc-missing loc\n2 !loc-missing loc\n", READER_OK, NULL, 0, 0},
    {"text without loc", OPEN "<sitemap>\nhttps://example.com/?a&amp;b\n</sitemap>" ONE SHUT, 0,
     "1 !loc-missing loc https://example.com/?a&b\n3 " URL "\n", READER_OK, NULL, 0, 0},
    {"relative", OPEN "<sitemap><loc>abc</loc></sitemap>" SHUT, 0, "1 !loc-relative loc abc\n",
     READER_OK, NULL, 0, 0},
    {"two locs",
     OPEN "<sitemap><loc>" URL "</loc><loc>https://example.com/b.xml</loc></sitemap>" SHUT, 0,
     "1 !loc-repeated loc " URL "\n", READER_OK, NULL, 0, 0},
    {"an element in the loc", OPEN "<sitemap><loc>https://exa<b>mple</b>.com/</loc></sitemap>" SHUT,
     0, "1 +extra-element\n1 !loc-markup loc https://exa.com/\n", READER_OK, NULL, 0, 0},
    {"space inside", OPEN "<sitemap><loc>https://example.com/a b</loc></sitemap>" SHUT, 0,
     "1 !loc-space loc https://example.com/a b\n", READER_OK, NULL, 0, 0},
    {"line break inside", OPEN "<sitemap><loc>https://example.com/a\nb</loc></sitemap>" SHUT, 0,
     "1 !loc-control-character loc https://example.com/a\nb\n", READER_OK, NULL, 0, 0},
    {"bad date", OPEN "<sitemap><loc>" URL "</loc><lastmod>soon</lastmod></sitemap>" ONE SHUT, 0,
     "1 !lastmod-invalid lastmod " URL "\n1 " URL "\n", READER_OK, NULL, 0, 0},
    {"no zone",
     OPEN "<sitemap><loc>" URL "</loc><lastmod>2026-01-02T03:04:05</lastmod></sitemap>" SHUT, 0,
     "1 !lastmod-no-zone lastmod " URL "\n", READER_OK, NULL, 0, 0},
    {"two dates",
     OPEN "<sitemap><loc>" URL "</loc><lastmod>2026-01-02</lastmod>"
          "<lastmod>2026-01-02</lastmod></sitemap>" SHUT,
     0, "1 !lastmod-invalid lastmod " URL "\n", READER_OK, NULL, 0, 0},
};

static const struct input_case lenient[] = {
    {"bad date", OPEN "<sitemap><loc>" URL "</loc><lastmod>soon</lastmod></sitemap>" ONE SHUT, 0,
     "1 " URL " +lastmod-invalid\n1 " URL "\n", READER_OK, NULL, 0, 0},
    {"no zone",
     OPEN "<sitemap><loc>" URL "</loc><lastmod>2026-01-02T03:04:05</lastmod></sitemap>" SHUT, 0,
     "1 " URL " +lastmod-no-zone\n", READER_OK, NULL, 0, 0},
    {"two dates",
     OPEN "<sitemap><loc>" URL "</loc><lastmod>2026-01-02</lastmod>"
          "<lastmod>2026-01-02</lastmod></sitemap>" SHUT,
     0, "1 " URL " +lastmod-invalid\n", READER_OK, NULL, 0, 0},
    {"a date with an element",
     OPEN "<sitemap><loc>" URL "</loc><lastmod>2026<b/>-01</lastmod>"
          "</sitemap>" SHUT,
     0, "1 +extra-element\n1 " URL " +lastmod-invalid\n", READER_OK, NULL, 0, 0},
    {"future", OPEN "<sitemap><loc>" URL "</loc><lastmod>2099-01-01</lastmod></sitemap>" SHUT, 0,
     "1 " URL " +lastmod-in-future\n", READER_OK, NULL, 0, 0},
    {"a bad loc all the same", OPEN "<sitemap><loc>abc</loc></sitemap>" SHUT, 0,
     "1 !loc-relative loc abc\n", READER_OK, NULL, 0, 0},
};

static const struct input_case refused[] = {
    {"doctype", "<!DOCTYPE sitemapindex>" OPEN ONE SHUT, 0, "", READER_FORBIDDEN, "doctype", 1, 0},
    {"doctype with entities",
     HEAD "<!DOCTYPE x [<!ENTITY a \"b\"><!ENTITY c SYSTEM \"file:///etc/passwd\">]>" OPEN
          "<sitemap><loc>&a;&c;</loc></sitemap>" SHUT,
     0, "", READER_FORBIDDEN, "doctype", 2, 0},
    {"doctype of a DTD", "<!DOCTYPE x SYSTEM \"http://example.com/x.dtd\">" OPEN SHUT, 0, "",
     READER_FORBIDDEN, "doctype", 1, 0},
    {"urlset", HEAD "<urlset xmlns=\"" NS "\"><url><loc>" URL "</loc></url></urlset>", 0, "",
     READER_WRONG_KIND, "urlset-not-index", 2, 1},
    {"XHTML", HEAD "<html xmlns=\"http://www.w3.org/1999/xhtml\"/>", 0, "", READER_WRONG_KIND,
     "html-not-index", 0, 0},
    {"HTML", "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>Oh", 0, "",
     READER_WRONG_KIND, "html-not-index", 0, 0},
    {"a bot wall", "<!doctype html><html><title>Just a moment...</title>", 0, "", READER_WRONG_KIND,
     "bot-wall", 0, 0},
    {"maintenance", "<!doctype html><html><title>Site maintenance</title>", 0, "",
     READER_WRONG_KIND, "maintenance-page", 0, 0},
    {"HTML 4", "\n<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\">\n<HTML><BODY><P>Oh", 0, "",
     READER_WRONG_KIND, "html-not-index", 0, 0},
    {"HTML behind a comment", "<!-- x --><?php ?> <HTML lang=en>", 0, "", READER_WRONG_KIND,
     "html-not-index", 0, 0},
    {"RSS", "<rss version=\"2.0\"><channel/></rss>", 0, "", READER_WRONG_KIND, "feed-not-index", 1,
     1},
    {"Atom", "<feed xmlns=\"http://www.w3.org/2005/Atom\"/>", 0, "", READER_WRONG_KIND,
     "feed-not-index", 0, 0},
    {"RDF", "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>", 0, "",
     READER_WRONG_KIND, "feed-not-index", 0, 0},
    {"S3's error", "<Error><Code>AccessDenied</Code></Error>", 0, "", READER_WRONG_KIND,
     "not-an-index", 1, 1},
    {"truncated in a tag", OPEN ONE "\n<las", 0, "1 " URL "\n", READER_MALFORMED, "truncated", 2,
     1},
    {"truncated in text", OPEN ONE "<sitemap><loc>https://exam", 0, "1 " URL "\n", READER_MALFORMED,
     "truncated", 1, 0},
    {"truncated in CDATA", OPEN "<sitemap><loc><![CDATA[abc", 0, "", READER_MALFORMED, "truncated",
     1, 0},
    {"truncated in a comment", OPEN "<!-- abc", 0, "", READER_MALFORMED, "truncated", 1, 0},
    {"truncated in a character", OPEN "<sitemap><loc>\xc3", 0, "", READER_MALFORMED, "truncated", 1,
     0},
    {"no root", HEAD "<!-- -->", 0, "", READER_MALFORMED, "truncated", 0, 0},
    {"end tag amiss", OPEN "\n<sitemap><loc>x</lox></sitemap>" SHUT, 0, "", READER_MALFORMED,
     "malformed-xml", 2, 18},
    {"bare ampersand", OPEN "<sitemap><loc>https://example.com/?a&b=c</loc></sitemap>" SHUT, 0, "",
     READER_MALFORMED, "malformed-xml", 1, 0},
    {"unknown entity", OPEN "<sitemap><loc>https://example.com/&nbsp;</loc></sitemap>" SHUT, 0, "",
     READER_MALFORMED, "malformed-xml", 1, 0},
    {"UTF-16 that is declared otherwise",
     "\xff\xfe<\0?\0x\0m\0l\0 \0v\0e\0r\0s\0i\0o\0n\0=\0'\0001\0.\0000\0'\0 \0"
     "e\0n\0c\0o\0d\0i\0n\0g\0=\0'\0U\0T\0F\0-\0008\0'\0?\0>\0<\0a\0/\0>\0",
     86, "", READER_MALFORMED, "not-utf8", 1, 0},
    {"unbound prefix", OPEN "<x:y/>" SHUT, 0, "", READER_MALFORMED, "malformed-xml", 1, 0},
    {"bad UTF-8", HEAD OPEN "<sitemap><loc>https://example.com/\xe9</loc></sitemap>" SHUT, 0, "",
     READER_MALFORMED, "malformed-xml", 2, 0},
    {"unknown encoding", "<?xml version=\"1.0\" encoding=\"klingon\"?>" OPEN SHUT, 0, "",
     READER_MALFORMED, "malformed-xml", 1, 0},
    {"junk behind", OPEN ONE SHUT "\n<p/>", 0, "1 " URL "\n", READER_MALFORMED, "malformed-xml", 2,
     1},
    {"text behind", OPEN ONE SHUT "\nx", 0, "1 " URL "\n", READER_MALFORMED, "malformed-xml", 2, 1},
    {"NUL", OPEN "\0" SHUT, sizeof OPEN + sizeof SHUT - 1, "", READER_MALFORMED, "malformed-xml", 1,
     0},
};

static void test_accepted(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    check_cases(accepted, &options);
    check_cases(namespaces, &options);
    options.format = READER_XML;
    check_cases(accepted, &options);
}

static void test_rejected(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    check_cases(rejected, &options);
}

static void test_lenient(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    options.lenient = true;
    check_cases(lenient, &options);
    check_cases(accepted, &options);
    options.drop_lastmod = true;
    check_case(&(struct input_case){"dropped",
                                    OPEN "<sitemap><loc>" URL "</loc><lastmod>x</lastmod></sitemap>"
                                         "<sitemap><loc>" URL
                                         "</loc><lastmod>2026-01-02</lastmod></sitemap>" SHUT,
                                    0, "1 " URL "\n1 " URL "\n", READER_OK, NULL, 0, 0},
               &options);
}

static void test_refused(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    check_cases(refused, &options);
    options.format = READER_XML;
    check_cases(refused, &options);
    check_case(&(struct input_case){"empty", "", 0, "", READER_MALFORMED, "truncated", 0, 0},
               &options);
    check_case(
        &(struct input_case){"a list", URL "\n", 0, "", READER_MALFORMED, "malformed-xml", 1, 7},
        &options);
}

static void test_stopped(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    struct transcript t = {.stop_at = 2};
    const char *input = OPEN ONE "<sitemap/>" ONE ONE SHUT;
    check_cuts("stopped", &options, input, strlen(input), &t);
    assert_int_equal(t.status, READER_STOPPED);
    assert_int_equal(t.entries + t.rejections, 2);
    transcript_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_lenient),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
