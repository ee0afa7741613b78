/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Whole documents with the oddities that real sites' indexes were found to have, in our own
 * words. */
#include "tests/unit/input/check.h"

#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define ROOT        "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"

static const struct input_case documents[] = {
    {"one line, no newline at the end",
     DECLARATION ROOT "<sitemap><loc>https://one.example/sitemap-0.xml</loc>"
                      "<lastmod>2026-03-04T05:06:07.089Z</lastmod></sitemap></sitemapindex>",
     0, "1 https://one.example/sitemap-0.xml lastmod=2026-03-04T05:06:07.089Z\n", READER_OK, NULL,
     0, 0},
    {"comments between entries, locs that end in a newline",
     DECLARATION
     "\n" ROOT "\n    <!-- by hand -->\n    <sitemap>\n        <loc>"
     "https://two.example/a.xml.gz\n        </loc>\n    </sitemap>\n"
     "    <!-- generated -->\n    <sitemap>\n        <loc>https://two.example/b.xml.gz</loc>"
     "\n    </sitemap>\n</sitemapindex>\n",
     0, "4 https://two.example/a.xml.gz +loc-padded\n9 https://two.example/b.xml.gz\n", READER_OK,
     NULL, 0, 0},
    {"a schema named",
     DECLARATION "\n<sitemapindex\n  xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"\n"
                 "  xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n"
                 "  xsi:schemaLocation=\"http://www.sitemaps.org/schemas/sitemap/0.9\n"
                 "  http://www.sitemaps.org/schemas/sitemap/0.9/sitemap.xsd\">\n"
                 "<sitemap><loc>https://three.example/Sitemap/1.xml</loc>"
                 "<lastmod>2026-02-28</lastmod></sitemap>\n</sitemapindex>",
     0, "7 https://three.example/Sitemap/1.xml lastmod=2026-02-28 +lastmod-date-only\n", READER_OK,
     NULL, 0, 0},
    {"a style sheet, mixed line ends, comments behind the root",
     DECLARATION "<?xml-stylesheet type=\"text/xsl\" href=\"//four.example/main.xsl\"?>\n" ROOT "\n"
                 "\t<sitemap>\n\t\t<loc>https://four.example/post-sitemap.xml</loc>\n"
                 "\t\t<lastmod>2026-01-01T00:00:00+00:00</lastmod>\n\t</sitemap>\n</sitemapindex>\n"
                 "<!-- XML by a plug-in -->\r\n<!--\r\nCached by another\r\n\r\n-->",
     0, "3 https://four.example/post-sitemap.xml lastmod=2026-01-01T00:00:00+00:00\n", READER_OK,
     NULL, 0, 0},
    {"CDATA, a comment before the style sheet",
     DECLARATION
     "\r\n<!-- hecho con cari\xc3\xb1o -->\r\n\r\n<?xml-stylesheet href=\"x.xsl\"?>\r\n" ROOT
     "\n<sitemap><loc><![CDATA[https://five.example/a.xml]]></loc>"
     "<lastmod><![CDATA[2026-01-01T01:02:03+00:00]]></lastmod></sitemap></sitemapindex>",
     0, "6 https://five.example/a.xml lastmod=2026-01-01T01:02:03+00:00\n", READER_OK, NULL, 0, 0},
    {"an ampersand in the query",
     DECLARATION ROOT
     "<sitemap><loc>https://six.example/products.xml?from=1&amp;to=2</loc></sitemap>"
     "</sitemapindex>",
     0, "1 https://six.example/products.xml?from=1&to=2\n", READER_OK, NULL, 0, 0},
    {"localhost, offsets, lines of white space",
     "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\n" ROOT
     "\n  \n  <sitemap>\n    <loc>http://localhost:1313/en/sitemap.xml</loc>\n    \n"
     "      <lastmod>2026-01-02T03:04:05+04:30</lastmod>\n    \n  </sitemap>\n  "
     "\n</sitemapindex>\n",
     0, "4 http://localhost:1313/en/sitemap.xml lastmod=2026-01-02T03:04:05+04:30\n", READER_OK,
     NULL, 0, 0},
    {"no seconds, pages as queries",
     DECLARATION ROOT "\n<sitemap><loc>http://eight.example/sitemap.xml?page=1</loc>"
                      "<lastmod>2026-01-02T03:04Z</lastmod></sitemap></sitemapindex>",
     0, "2 http://eight.example/sitemap.xml?page=1 lastmod=2026-01-02T03:04:00Z\n", READER_OK, NULL,
     0, 0},
    {"Google's old namespace, indented root",
     DECLARATION
     "\n  <sitemapindex xmlns=\"http://www.google.com/schemas/sitemap/0.84\">\n<sitemap>"
     "<loc>https://nine.example/1.xml</loc>\n  </sitemap></sitemapindex>",
     0, "2 +namespace\n3 https://nine.example/1.xml\n", READER_OK, NULL, 0, 0},
    {"a byte order mark, relative locs",
     "\xef\xbb\xbf" DECLARATION "\n" ROOT "<sitemap><loc>one</loc></sitemap><sitemap><loc>/two.xml"
     "</loc></sitemap></sitemapindex>",
     0, "2 !loc-relative loc one\n2 !loc-relative loc /two.xml\n", READER_OK, NULL, 0, 0},
    {"no declaration, other hosts",
     ROOT "\n<sitemap><loc>https://a.ten.example/sitemap.xml</loc></sitemap>\n"
          "<sitemap><loc>https://b.ten.example/sitemap_index.xml</loc></sitemap>\n</sitemapindex>",
     0, "2 https://a.ten.example/sitemap.xml\n3 https://b.ten.example/sitemap_index.xml\n",
     READER_OK, NULL, 0, 0},
    {"elements of a urlset",
     ROOT "\n\t<sitemap>\n\t\t<loc>https://eleven.example/a.xml</loc>\n    "
          "<changefreq>daily</changefreq>"
          "\n    <priority>1</priority>\n\t</sitemap>\n</sitemapindex>",
     0, "4 +extra-element\n5 +extra-element\n2 https://eleven.example/a.xml\n", READER_OK, NULL, 0,
     0},
    {"its one entry commented out",
     DECLARATION "\n\n" ROOT "\n<!--\n<sitemap>\n<loc>http://www.example.com/sitemap.xml.gz</loc>\n"
                 "<lastmod>YYYY-MM-DD</lastmod>\n</sitemap>\n-->\n</sitemapindex>",
     0, "", READER_OK, NULL, 0, 0},
    {"a loc twice, an invalid date",
     ROOT "<sitemap><loc>https://twelve.example/a.xml</loc><lastmod>2026-01-02T03:04:05Z</lastmod>"
          "</sitemap>\n<sitemap><loc>https://twelve.example/b.xml</loc><lastmod>yesterday</lastmod>"
          "</sitemap>\n<sitemap><loc>https://twelve.example/a.xml</loc></sitemap></sitemapindex>",
     0,
     "1 https://twelve.example/a.xml lastmod=2026-01-02T03:04:05Z\n"
     "2 https://twelve.example/b.xml +lastmod-invalid\n3 https://twelve.example/a.xml\n",
     READER_OK, NULL, 0, 0},
    {"URLs without loc",
     ROOT "\n<sitemap>\nhttps://thirteen.example/?a=1&amp;b=2\n</sitemap>\n</sitemapindex>", 0,
     "2 !loc-missing loc https://thirteen.example/?a=1&b=2\n", READER_OK, NULL, 0, 0},
    {"cut in a tag", ROOT "<sitemap><loc>http://fourteen.example/1.xml</loc><las", 0, "",
     READER_MALFORMED, "truncated", 1, 0},
    {"cut in a date",
     ROOT "\n<sitemap><loc>https://fifteen.example/1.xml</loc></sitemap>\n<sitemap>"
          "<loc>https://fifteen.example/2.xml</loc>\n<lastmod>2026-",
     0, "2 https://fifteen.example/1.xml\n", READER_MALFORMED, "truncated", 4, 0},
    {"a urlset under the name of an index",
     DECLARATION "\n<?xml-stylesheet type=\"application/xml\" href=\"#\"?>\n<urlset\n  "
                 "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n<!-- main -->\n<url>"
                 "<loc>https://sixteen.example/</loc></url>\n</urlset>",
     0, "", READER_WRONG_KIND, "urlset-not-index", 3, 1},
};

static void test_documents(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    options.lenient = true;
    check_cases(documents, &options);
}

static void test_two_thousand(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    struct transcript t = {.stop_at = 0};
    struct str input = STR_INIT;
    str_append_text(&input, DECLARATION "\n" ROOT "\n");
    for (int n = 1; n <= 2000; n++)
        str_append_format(&input, "  <sitemap><loc>https://many.example/s_%d.xml</loc></sitemap>\n",
                          n);
    str_append_text(&input, "</sitemapindex>");
    check_cuts("two thousand", &options, str_text(&input), input.len, &t);
    assert_int_equal(t.entries, 2000);
    assert_non_null(strstr(str_text(&t.brief), "\n2002 https://many.example/s_2000.xml\n"));
    transcript_done(&t);
    str_done(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_two_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
