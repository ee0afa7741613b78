/* Page URLs: a sitemap with extensions, and JSON, say the same; what is hostile is refused by its
 * field, or, leniently, costs only itself. */
#include "tests/unit/input/check.h"

#define NAMESPACES                                                                                 \
    " xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\""                                       \
    " xmlns:i=\"http://www.google.com/schemas/sitemap-image/1.1\""                                 \
    " xmlns:x=\"http://www.w3.org/1999/xhtml\""                                                    \
    " xmlns:n=\"http://www.google.com/schemas/sitemap-news/0.9\""                                  \
    " xmlns:v=\"http://www.google.com/schemas/sitemap-video/1.1\""
#define SITEMAP(urls)  "<?xml version=\"1.0\"?><urlset" NAMESPACES ">" urls "</urlset>"
#define U              "https://a.example/p"
#define ROW(parts)     "<url><loc>" U "</loc>" parts "</url>"
#define IMAGE(url)     "<image:image><image:loc>" url "</image:loc></image:image>"
#define LINK(tag, url) "<xhtml:link rel=\"alternate\" hreflang=\"" tag "\" href=\"" url "\"/>"
#define NEWS                                                                                       \
    "<news:news><news:publication><news:name>A &amp; B</news:name><news:language>en"               \
    "</news:language></news:publication><news:publication_date>2026-09-20"                         \
    "</news:publication_date><news:title>T</news:title></news:news>"
#define ALL                                                                                        \
    NEWS IMAGE("https://c.example/1") IMAGE("https://c.example/2?a&amp;b")                         \
        LINK("de-CH", "https://a.example/de") LINK("x-default", U)

static const struct input_case strict[] = {
    {"XML with all of them",
     SITEMAP("<url><x:link rel='alternate' hreflang='x-default' href=' " U " '/>"
             "<loc>" U "</loc><i:image><i:loc>https://C.example/1</i:loc></i:image>"
             "<i:image>\n <i:loc><![CDATA[https://c.example/2?a&b]]></i:loc></i:image>"
             "<lastmod>2026-09-20</lastmod>"
             "<n:news><n:publication><n:name>\nA &amp;\n B</n:name><n:language>EN</n:language>"
             "</n:publication><n:publication_date>2026-09-20</n:publication_date>"
             "<n:title>T</n:title></n:news>"
             "<x:link href='https://a.example/de' hreflang='de-ch' rel='Alternate'/></url>"),
     0, "1 " U " lastmod=2026-09-20 extensions=" ALL " +lastmod-date-only\n", READER_OK, NULL, 0,
     0},
    {"JSON with all of them",
     "{\"loc\":\"" U
     "\",\"lastmod\":\"2026-09-20\",\"urlset\":\"/s.xml\",\"news\":{\"title\":\" T \","
     "\"publication_date\":\"2026-09-20\",\"publication\":{\"language\":\"en\",\"name\":\"A & "
     "B\"}},"
     "\"alternates\":{\"X-DEFAULT\":\"" U "\",\"de-ch\":\"https://a.example/de\"},"
     "\"images\":[\"https://c.example:443/1\",\"https://c.example/2?a&b\"]}",
     0, "1 " U " lastmod=2026-09-20 extensions=" ALL " index=/s.xml +lastmod-date-only\n",
     READER_OK, NULL, 0, 0},
    {"the flat form", "{\"loc\":\"" U "\",\"urlset\":\"/s.xml\"}", 0, "1 " U " index=/s.xml\n",
     READER_OK, NULL, 0, 0},
    {"nothing of them says so", SITEMAP(ROW("")), 0, "1 " U " extensions=null\n", READER_OK, NULL,
     0, 0},
    {"null", "{\"loc\":\"" U "\",\"images\":null,\"alternates\":null,\"news\":null}", 0,
     "1 " U " extensions=null\n", READER_OK, NULL, 0, 0},
    {"empty", "{\"loc\":\"" U "\",\"images\":[],\"alternates\":{}}", 0, "1 " U " extensions=null\n",
     READER_OK, NULL, 0, 0},
    {"hints", SITEMAP(ROW("<changefreq>daily</changefreq><priority>1</priority>")), 0,
     "1 " U " extensions=null +hint-dropped\n", READER_OK, NULL, 0, 0},
    {"hints in JSON", "{\"loc\":\"" U "\",\"changefreq\":7,\"priority\":0.5}", 0,
     "1 " U " +hint-dropped\n", READER_OK, NULL, 0, 0},
    {"what is not kept is told",
     SITEMAP(ROW("<v:video><v:title>x</v:title></v:video>"
                 "<i:image><i:loc>https://c.example/1</i:loc><i:caption>c</i:caption></i:image>"
                 "<x:link rel='stylesheet' href='x'/><news/>")),
     0,
     "1 +extra-element\n1 +extra-element\n1 +extra-element\n1 +extra-element\n1 " U
     " extensions=" IMAGE("https://c.example/1") "\n",
     READER_OK, NULL, 0, 0},
    {"a list", "# pages\n" U "\nhttps://a.example/\n", 0, "2 " U "\n3 https://a.example/\n",
     READER_OK, NULL, 0, 0},
    {"an index of JSON", "{\"loc\":\"" U "\",\"index\":\"/s.xml\"}", 0,
     "1 !unknown-field - " U "\n", READER_OK, NULL, 0, 0},
    {"an index", "<sitemapindex" NAMESPACES "/>", 0, "", READER_WRONG_KIND, "index-not-urlset", 1,
     1},
    {"a feed", "<rss/>", 0, "", READER_WRONG_KIND, "feed-not-urlset", 1, 1},
    {"HTML", "<!doctype html><html/>", 0, "", READER_WRONG_KIND, "html-not-urlset", 0, 0},
    {"another", "<x/>", 0, "", READER_WRONG_KIND, "not-a-urlset", 1, 1},
    {"a bomb of entities",
     "<!DOCTYPE urlset [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>" SITEMAP(ROW("&b;")), 0, "",
     READER_FORBIDDEN, "doctype", 0, 0},
    {"an unbound prefix", "<urlset><url><loc>" U "</loc><image:image/></url></urlset>", 0,
     "1 +namespace\n", READER_MALFORMED, "malformed-xml", 0, 0},
    /* each by its field */
    {"an image",
     SITEMAP(ROW("<i:image><i:loc>https://c.example/1</i:loc></i:image>"
                 "<i:image><i:loc>c.jpg</i:loc></i:image>")),
     0, "1 !loc-relative images[1].loc " U "\n", READER_OK, NULL, 0, 0},
    {"an image without a loc", SITEMAP(ROW("<i:image/>")), 0,
     "1 !loc-missing images[0].loc " U "\n", READER_OK, NULL, 0, 0},
    {"an image in JSON", "{\"loc\":\"" U "\",\"images\":[\"https://c.example/1\",\"data:,x\"]}", 0,
     "1 !loc-scheme images[1].loc " U "\n", READER_OK, NULL, 0, 0},
    {"no text", "{\"images\":[\"https://c.example/1\",{}],\"loc\":\"" U "\"}", 0,
     "1 !wrong-type images[1].loc " U "\n", READER_OK, NULL, 0, 0},
    {"no array", "{\"loc\":\"" U "\",\"images\":\"https://c.example/1\"}", 0,
     "1 !wrong-type images " U "\n", READER_OK, NULL, 0, 0},
    {"a control", "{\"loc\":\"" U "\",\"images\":[\"https://c.example/\\u0000\"]}", 0,
     "1 !loc-control-character images[0].loc " U "\n", READER_OK, NULL, 0, 0},
    {"no language", SITEMAP(ROW("<x:link rel='alternate' hreflang='en_US' href='" U "'/>")), 0,
     "1 !language-malformed alternates.en_US " U "\n", READER_OK, NULL, 0, 0},
    {"one language twice",
     "{\"loc\":\"" U "\",\"alternates\":{\"en\":\"" U "\",\"EN\":\"" U "2\"}}", 0,
     "1 !duplicate alternates.EN " U "\n", READER_OK, NULL, 0, 0},
    {"one name twice", "{\"loc\":\"" U "\",\"alternates\":{\"en\":\"" U "\",\"en\":\"" U "2\"}}", 0,
     "1 !malformed-json -\n", READER_OK, NULL, 0, 0},
    {"no URL", "{\"loc\":\"" U "\",\"alternates\":{\"en\":7}}", 0,
     "1 !wrong-type alternates.en " U "\n", READER_OK, NULL, 0, 0},
    {"news without a date",
     "{\"loc\":\"" U "\",\"news\":{\"publication\":{\"name\":\"n\",\"language\":"
     "\"en\"},\"title\":\"t\"}}",
     0, "1 !field-missing news.publication_date " U "\n", READER_OK, NULL, 0, 0},
    {"news of nothing", SITEMAP(ROW("<n:news/>")), 0,
     "1 !field-missing news.publication.name " U "\n", READER_OK, NULL, 0, 0},
    {"two titles", SITEMAP(ROW("<n:news><n:title>a</n:title><n:title>b</n:title></n:news>")), 0,
     "1 !duplicate news.title " U "\n", READER_OK, NULL, 0, 0},
    {"a field of none", "{\"loc\":\"" U "\",\"news\":{\"genres\":\"Blog\"}}", 0,
     "1 !unknown-field news.genres " U "\n", READER_OK, NULL, 0, 0},
    {"no publication", "{\"loc\":\"" U "\",\"news\":{\"publication\":\"n\"}}", 0,
     "1 !wrong-type news.publication " U "\n", READER_OK, NULL, 0, 0},
    {"markup stays text",
     "{\"loc\":\"" U "\",\"news\":{\"publication\":{\"name\":\"A & B\",\"language\":\"en\"},"
     "\"publication_date\":\"2026-09-20\",\"title\":\"</news:title><loc>\\\"'\"}}",
     0,
     "1 " U " extensions=<news:news><news:publication><news:name>A &amp; B</news:name>"
     "<news:language>en</news:language></news:publication><news:publication_date>2026-09-20"
     "</news:publication_date><news:title>&lt;/news:title&gt;&lt;loc&gt;&quot;&apos;</news:title>"
     "</news:news>\n",
     READER_OK, NULL, 0, 0},
    {"the loc first", SITEMAP("<url><loc>x</loc><i:image/></url>"), 0, "1 !loc-relative loc x\n",
     READER_OK, NULL, 0, 0},
};

static const struct input_case lenient[] = {
    {"an image",
     SITEMAP(ROW("<i:image><i:loc>c.jpg</i:loc></i:image>"
                 "<i:image><i:loc>https://c.example/1</i:loc></i:image>")),
     0, "1 " U " extensions=" IMAGE("https://c.example/1") " +extension-dropped\n", READER_OK, NULL,
     0, 0},
    {"news",
     SITEMAP(ROW("<n:news><n:publication/></n:news>"
                 "<x:link rel='alternate' hreflang='de' href='" U "'/>")),
     0, "1 " U " extensions=" LINK("de", U) " +extension-dropped\n", READER_OK, NULL, 0, 0},
};

static void run(const struct input_case *cases, size_t count, bool is_lenient)
{
    for (size_t i = 0; i < count; i++) {
        struct reader_options options = test_options(READER_AUTO);
        options.pages = true;
        options.lenient = is_lenient;
        check_case(&cases[i], &options);
    }
}

static void test_strict(void **state)
{
    (void)state;
    run(strict, sizeof strict / sizeof strict[0], false);
}

static void test_lenient(void **state)
{
    (void)state;
    run(lenient, sizeof lenient / sizeof lenient[0], true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strict),
                                       cmocka_unit_test(test_lenient)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
