/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Page URLs: a sitemap with extensions, and JSON, say the same; what is hostile is refused by its
 * field, or, leniently, costs only itself. */
#include "server/input/frame.h"
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
#define GIVEN_VIDEO                                                                                \
    "<v:thumbnail_loc> https://C.example/t </v:thumbnail_loc><v:title>\nT</v:title>"               \
    "<v:description><![CDATA[D]]></v:description><v:content_loc>https://c.example/v"               \
    "</v:content_loc>"
#define VIDEO(more)                                                                                \
    "<video:video><video:thumbnail_loc>https://c.example/t</video:thumbnail_loc><video:title>T"    \
    "</video:title><video:description>D</video:description><video:content_loc>https://c.example/v" \
    "</video:content_loc>" more "</video:video>"
#define JSON_VIDEO                                                                                 \
    "\"videos\":[{\"thumbnail_loc\":\"https://c.example/t\",\"title\":\"T\",\"description\":"      \
    "\"D\",\"content_loc\":\"https://c.example/v\","
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
    {"what is not kept is reported",
     SITEMAP(ROW("<v:clip><v:title>x</v:title></v:clip>"
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
     "1 !wrong-type images[1] " U "\n", READER_OK, NULL, 0, 0},
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
    {"a video",
     SITEMAP(ROW("<v:video>" GIVEN_VIDEO "<v:live>no</v:live><v:duration>60</v:duration>"
                 "<v:restriction relationship='deny'>at de</v:restriction>"
                 "<v:uploader info='https://c.example/u'>U</v:uploader><v:tag>a</v:tag><v:tag>b"
                 "</v:tag><v:rating/></v:video>")),
     0,
     "1 " U " extensions=" VIDEO(
         "<video:duration>60</video:duration><video:tag>a</video:tag><video:tag>b</video:tag>"
         "<video:restriction relationship=\"deny\">AT DE</video:restriction>"
         "<video:uploader info=\"https://c.example/u\">U</video:uploader>"
         "<video:live>no</video:live>") "\n",
     READER_OK, NULL, 0, 0},
    {"a video in JSON",
     "{\"loc\":\"" U "\"," JSON_VIDEO
     "\"live\":false,\"duration\":60,\"restriction\":{\"deny\":[\"at\",\"de\"]},"
     "\"uploader\":{\"name\":\"U\",\"info\":\"https://c.example/u\"},\"tag\":[\"a\",\"b\"],"
     "\"rating\":null}]}",
     0,
     "1 " U " extensions=" VIDEO(
         "<video:duration>60</video:duration><video:tag>a</video:tag><video:tag>b</video:tag>"
         "<video:restriction relationship=\"deny\">AT DE</video:restriction>"
         "<video:uploader info=\"https://c.example/u\">U</video:uploader>"
         "<video:live>no</video:live>") "\n",
     READER_OK, NULL, 0, 0},
    {"obsolete fields of a video",
     SITEMAP(ROW("<v:video>" GIVEN_VIDEO "<v:price currency='EUR'>1</v:price><v:category>c"
                 "</v:category></v:video>")),
     0, "1 " U " extensions=" VIDEO("") " +hint-dropped\n", READER_OK, NULL, 0, 0},
    {"an obsolete attribute of a video",
     SITEMAP(ROW("<v:video>" GIVEN_VIDEO "<v:player_loc autoplay='a=1'>https://c.example/p"
                 "</v:player_loc></v:video>")),
     0,
     "1 " U " extensions=" VIDEO(
         "<video:player_loc>https://c.example/p</video:player_loc>") " +hint-dropped\n",
     READER_OK, NULL, 0, 0},
    {"obsolete fields in JSON", "{\"loc\":\"" U "\"," JSON_VIDEO "\"price\":7}]}", 0,
     "1 " U " extensions=" VIDEO("") " +hint-dropped\n", READER_OK, NULL, 0, 0},
    {"an unknown field of a video", "{\"loc\":\"" U "\"," JSON_VIDEO "\"length\":7}]}", 0,
     "1 !unknown-field videos[0].length " U "\n", READER_OK, NULL, 0, 0},
    {"an invalid field of a video", SITEMAP(ROW("<v:video><v:duration>x</v:duration></v:video>")),
     0, "1 !video-malformed videos[0].duration " U "\n", READER_OK, NULL, 0, 0},
    {"a duration as a text", "{\"loc\":\"" U "\"," JSON_VIDEO "\"duration\":\"7\"}]}", 0,
     "1 !wrong-type videos[0].duration " U "\n", READER_OK, NULL, 0, 0},
    {"words in a word", "{\"loc\":\"" U "\"," JSON_VIDEO "\"platform\":{\"allow\":[\"tv web\"]}}]}",
     0, "1 !wrong-type videos[0].platform " U "\n", READER_OK, NULL, 0, 0},
    {"both relations",
     "{\"loc\":\"" U "\"," JSON_VIDEO "\"platform\":{\"allow\":[\"tv\"],\"deny\":[\"web\"]}}]}", 0,
     "1 !wrong-type videos[0].platform " U "\n", READER_OK, NULL, 0, 0},
    {"another relation", "{\"loc\":\"" U "\"," JSON_VIDEO "\"platform\":{\"permit\":[\"tv\"]}}]}",
     0, "1 !video-malformed videos[0].platform " U "\n", READER_OK, NULL, 0, 0},
    {"a NUL in a word",
     "{\"loc\":\"" U "\"," JSON_VIDEO "\"restriction\":{\"allow\":[\"AT\\u0000x\"]}}]}", 0,
     "1 !wrong-type videos[0].restriction " U "\n", READER_OK, NULL, 0, 0},
    {"an empty word", "{\"loc\":\"" U "\"," JSON_VIDEO "\"restriction\":{\"allow\":[\"\"]}}]}", 0,
     "1 !wrong-type videos[0].restriction " U "\n", READER_OK, NULL, 0, 0},
    {"a NUL in a URL",
     "{\"loc\":\"" U "\"," JSON_VIDEO
     "\"uploader\":{\"name\":\"U\",\"info\":\"https://c.example/u\\u0000x\"}}]}",
     0, "1 !wrong-type videos[0].uploader " U "\n", READER_OK, NULL, 0, 0},
    {"a URL with blanks around it",
     SITEMAP(ROW("<v:video>" GIVEN_VIDEO "<v:uploader info=' https://c.example/u '>U</v:uploader>"
                 "</v:video>")),
     0,
     "1 " U
     " extensions=" VIDEO("<video:uploader info=\"https://c.example/u\">U</video:uploader>") "\n",
     READER_OK, NULL, 0, 0},
    {"numbers in JSON", "{\"loc\":\"" U "\"," JSON_VIDEO "\"rating\":4.996,\"duration\":60.0}]}", 0,
     "1 " U " extensions=" VIDEO(
         "<video:duration>60</video:duration><video:rating>4.99</video:rating>") "\n",
     READER_OK, NULL, 0, 0},
    {"a rating just above", "{\"loc\":\"" U "\"," JSON_VIDEO "\"rating\":5.001}]}", 0,
     "1 !video-malformed videos[0].rating " U "\n", READER_OK, NULL, 0, 0},
    {"half a second", "{\"loc\":\"" U "\"," JSON_VIDEO "\"duration\":60.5}]}", 0,
     "1 !wrong-type videos[0].duration " U "\n", READER_OK, NULL, 0, 0},
    {"an uploader of a name", "{\"loc\":\"" U "\"," JSON_VIDEO "\"uploader\":\"U\"}]}", 0,
     "1 !wrong-type videos[0].uploader " U "\n", READER_OK, NULL, 0, 0},
    {"tags in one text", "{\"loc\":\"" U "\"," JSON_VIDEO "\"tag\":\"a\"}]}", 0,
     "1 !wrong-type videos[0].tag " U "\n", READER_OK, NULL, 0, 0},
    {"an invalid video", "{\"loc\":\"" U "\",\"videos\":[{},7]}", 0,
     "1 !field-missing videos[0].thumbnail_loc " U "\n", READER_OK, NULL, 0, 0},
    {"no videos", "{\"loc\":\"" U "\",\"videos\":7}", 0, "1 !wrong-type videos " U "\n", READER_OK,
     NULL, 0, 0},
    {"the loc first", SITEMAP("<url><loc>x</loc><i:image/></url>"), 0, "1 !loc-relative loc x\n",
     READER_OK, NULL, 0, 0},
};

static const struct input_case lenient[] = {
    {"an image",
     SITEMAP(ROW("<i:image><i:loc>c.jpg</i:loc></i:image>"
                 "<i:image><i:loc>https://c.example/1</i:loc></i:image>")),
     0, "1 " U " extensions=" IMAGE("https://c.example/1") " +extension-dropped\n", READER_OK, NULL,
     0, 0},
    {"a video",
     SITEMAP(ROW("<v:video><v:title>T</v:title></v:video><v:video>" GIVEN_VIDEO
                 "<v:duration>x</v:duration></v:video>")),
     0, "1 " U " extensions=" VIDEO("") " +extension-dropped\n", READER_OK, NULL, 0, 0},
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
    run(strict, sizeof strict / sizeof strict[0], false);
}

static void test_lenient(void **state)
{
    run(lenient, sizeof lenient / sizeof lenient[0], true);
}

#define SIX(text) text text text text text text
#define DEEP      SIX(SIX("<x>") SIX("<x>")) SIX(SIX("</x>") SIX("</x>"))

#define FOUR(text)  text text text text
#define BLOCK(text) FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(text))))))) /* FRAME_BLOCK_BYTES */

/* An item that is plain is read without expat, and so is what it stands among. Each of these, with
 * a space in its tags for every ~, is the same to expat, and plain no more. @ is the item's name,
 * of a urlset or an index, ^ the root's. */
static const char *const pieces[] = {
    "<@~><loc~>" U "1</loc></@>",
    "\n<@~><loc~>" U "2?a=b;c</loc><lastmod~>2026-09-20T10:00:00Z</lastmod></@>\n",
    "<@~>\r\n\t<loc~>" U "3</loc>\r\n <lastmod~>2026-09-19T10:00:00Z</lastmod>"
    "<changefreq~>daily</changefreq>\n<priority~>0.5</priority></@>\r\n",
    "<@~><lastmod~>2026-09-20T10:00:00Z</lastmod><loc~>" U "4</loc></@>",
    "<@~><loc~> " U "5 </loc><lastmod~>never</lastmod></@>",
    "<@~><loc~>nowhere</loc></@>",
    "<@~><lastmod~>2026-09-20</lastmod></@>",
    "<@~><loc~></loc><lastmod~></lastmod></@>",
    "<@~><loc~>" U "6</loc><loc~>" U "7</loc></@>",
    "<@~><loc~>" U "8</loc><lastmod~>2026-09-20</lastmod>"
    "<lastmod~>2026-09-20</lastmod></@>\n\n",
    "<@~><loc~>" U "9?a&amp;b</loc></@>",
    "<@~><loc~><![CDATA[" U "a]]></loc></@>",
    "<@~><loc~>" U "\xc3\xa9</loc></@>",
    "<@~><loc~>" U "b</loc><!-- </@> --></@>",
    "<!-- <@~><loc~>" U "c</loc></@> -->",
    "<!-- </@>\n --><@~><loc~>" U "d</loc></@>",
    "<@~><loc~>" U "e</loc><i:image><i:loc>https://c.example/1</i:loc></i:image></@>",
    "<@~><loc~>" U "f</loc>text</@>text",
    "<other><@~><loc~>" U "g</loc></@></other>",
    "<i:@><loc~>" U "h</loc></i:@>",
    "<@~ xmlns='urn:x'><loc~>" U "i</loc></@>",
    "<@~><loc~>" U "j</loc><news~/><changefreq~>daily<b/></changefreq></@>",
    "<?x </@> ?>",
    "<@/>",
    "<@~><loc~>" U "k&#x2f;&#47;&quot;</loc></@>",
    "<@~><loc~>" U "l\r\nm</loc>\r<lastmod~>\t2026-09-20\n</lastmod></@>\r",
    "<@~><loc~>" U "n\x7f</loc></@>",
    "<@~><loc~>" U "o</loc><x xmlns='urn:x'><@><loc>" U "p</loc></@></x></@>",
    "<x:@ xmlns:x='urn:x'><@~><loc~>" U "q</loc></@></x:@>",
    "<@ xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><loc>" U "t</loc></@>",
    "<@~ a='&lt;@>'><loc~>" U "r</loc></@>",
    "<![CDATA[</@><@><loc>" U "s</loc></@>]]>",
    "<@~><loc~>" U "v</loc><lastmod~>2026-09-20" FOUR(FOUR(FOUR("0000"))) "</lastmod></@>",
};
/* How it ends; most are refused there, whatever was plain. */
static const char *const ends[] = {
    "\n</^>",
    "\n</^>\n<!-- </@> -->\n<?x?>\n",
    "\n</^><@><loc>" U "</loc></@>",
    "\n</^>text",
    "\n</^><^/>",
    "\n</x>",
    "\n</@>",
    "\n<@~><loc>" U "</loc>",
    "\n<@~><loc~>" U "</loc></@>",
    "\n<@~><loc~>" U "</loc></@",
    "\n<@~><loc~>" U "]]></loc></@></^>",
    "\n<@~><loc~>" U "\x01</loc></@></^>",
    "\n<@~><loc~>" U "\x1f</loc></@></^>",
    "\n<@~><loc~>" U "&x;</loc></@></^>",
    "\n<@~><loc~>" U "&#0;</loc></@></^>",
    "\n<@~><loc~>" U "&#xd800;</loc></@></^>",
    "\n<@~><loc~>" U "?a&b</loc></@></^>",
    "\n<@~><loc~>" U "?a<b</loc></@></^>",
    "\n<@~><loc~>" U "\xff</loc></@></^>",
    "\n<@~><loc~>" U "\xc3</loc></@></^>",
    "\n<@~><loc~>" U "\xed\xa0\x80</loc></@></^>",
    "\n<@~><loc~>" U "\xc0\xaf</loc></@></^>",
    "\n<@~><loc~>" U "\xef\xbf\xbf</loc></@></^>",
    "\n<@~><loc~>" U "</lastmod></loc></@></^>",
    "\n<@~><loc~>" U "</loc><lastmod~>2026-09-20</loc></@></^>",
    "\n<@~ a='1' a='2'><loc~>" U "</loc></@></^>",
    "\n<@~ a='<'><loc~>" U "</loc></@></^>",
    "\n<@~ xmlns:xml='urn:x'><loc~>" U "</loc></@></^>",
    "\n<p:@~><loc~>" U "</loc></p:@></^>",
    "\n<!-- -- </@> --></^>",
    "\n<?xml version='1.0'?></^>",
    "\n<!DOCTYPE ^><@~><loc~>" U "</loc></@></^>",
    "\n<@~><loc~>" U "</loc>" DEEP "</@></^>",
    "\n\x01",
    "\n\xfe\xff",
};
static const char *const roots[] = {
    "<^" NAMESPACES ">",
    "<^>",
    "\xef\xbb\xbf<^" NAMESPACES ">",
    "<?xml version='1.0' encoding='ISO-8859-1'?>\n<^" NAMESPACES ">",
    "<s:^ xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'>",
    "<s:^ xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns='urn:x'>",
    "<?xml version='1.0' encoding='US-ASCII'?>\r\n<!-- </@> --><^" NAMESPACES "\n>",
    "<^ xmlns='urn:x' xmlns:i='http://www.sitemaps.org/schemas/sitemap/0.9'>",
    "<?xml version='1.0' encoding='UTF-16'?><^>",
    "<?xml version='1.0' encoding='EBCDIC-CP-US'?><^>",
    "<?xml version='1.0' encoding='windows-1252'?><^>",
    "<?xml version='1.1'?><^>",
    "<!DOCTYPE ^ [<!ATTLIST @ xmlns CDATA 'urn:x'>]><^>",
    "<!DOCTYPE ^ [<!ATTLIST @ xmlns CDATA #FIXED 'urn:x'><!ENTITY x 'y'>]><^>",
    "<!DOCTYPE ^ SYSTEM 'x.dtd'><^>",
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void add(struct str *out, const char *text, const char *space, bool pages)
{
    for (const char *at = text; *at != '\0'; at++)
        if (*at == '~')
            str_append_text(out, space);
        else if (*at == '@')
            str_append_text(out, pages ? "url" : "sitemap");
        else if (*at == '^')
            str_append_text(out, pages ? "urlset" : "sitemapindex");
        else
            str_append_char(out, *at);
}

/* Of each character the two bytes of UTF-16. */
static void widen(struct str *text, bool big)
{
    struct str wide = STR_INIT;
    for (size_t i = 0; i <= text->len; i++) {
        unsigned c = i == 0 ? 0xfeff : (unsigned char)str_text(text)[i - 1];
        str_append_char(&wide, (char)(big ? c >> 8 : c));
        str_append_char(&wide, (char)(big ? c : c >> 8));
    }
    str_done(text);
    *text = wide;
}

static void make(struct str *out, const char *space, uint32_t seed, bool pages)
{
    uint32_t state = seed, odd = seed % 4 == 0 ? 100 : seed % 4 * 5;
    size_t count = seed % 3 == 0 ? 700 : 20; /* some blocks of them, or few */
    str_clear(out);
    add(out, roots[seed % 5 == 4 ? seed / 5 % COUNT(roots) : seed % 5], space, pages);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        size_t which = (state >> 8) % 100 < odd ? (state >> 16) % COUNT(pieces) : (state >> 20) % 3;
        add(out, pieces[which], space, pages);
    }
    add(out, ends[seed % COUNT(ends)], space, pages);
    if (seed % 19 == 0)
        widen(out, seed & 1);
}

/* Both are reported in the same way; the other is read by expat alone. */
static void check_both(const struct reader_options *options, const struct str *plain,
                       const struct str *other, unsigned stop_at, unsigned cut)
{
    struct transcript told = {.stop_at = stop_at}, expected = told;
    transcript_run(&told, options, str_text(plain), plain->len, cut);
    transcript_run(&expected, options, str_text(other), other->len, CUT_WHOLE);
    assert_string_equal(str_text(&told.brief), str_text(&expected.brief));
    assert_int_equal(told.status, expected.status);
    assert_string_equal(told.code, expected.code);
    assert_int_equal(told.line, expected.line);
    transcript_done(&told);
    transcript_done(&expected);
}

static void test_plain_items(void **state)
{
    struct str plain = STR_INIT, odd = STR_INIT;
    for (uint32_t seed = 1; seed <= 24 * COUNT(ends); seed++) {
        struct reader_options options = test_options(READER_AUTO);
        bool pages = seed % 6 != 0;
        options.pages = pages != (seed % 23 == 0); /* or it is refused */
        options.lenient = seed & 1;
        options.max_entries = seed % 17 == 0 ? 9 : 0;
        make(&plain, "", seed, pages);
        make(&odd, " ", seed, pages);
        check_both(&options, &plain, &odd, seed % 11 == 0 ? 15 : 0, seed / 4 % 4);
    }
    str_done(&plain);
    str_done(&odd);
}

/* Two blocks: what is in the first says whether the plain ones of the second are ours. */
static void make_blocks(struct str *out, const char *space, size_t number, bool pages)
{
    size_t root = number % COUNT(roots), which = number / COUNT(roots);
    const char *piece = pieces[which < COUNT(pieces) ? which : 0];
    str_clear(out);
    add(out, roots[root], space, pages);
    add(out, piece, space, pages);
    add(out, pieces[0], space, pages);
    for (size_t i = 0; i < FRAME_BLOCK_BYTES; i++)
        str_append_char(out, '\n');
    add(out, piece, space, pages);
    for (size_t i = 0; i < 3; i++)
        add(out, pieces[i], space, pages);
    add(out, piece, space, pages);
    add(out, pieces[0], space, pages);
    add(out, ends[which < COUNT(pieces) ? 0 : which - COUNT(pieces)], space, pages);
}

static void test_plain_behind_another(void **state)
{
    struct str plain = STR_INIT, odd = STR_INIT;
    for (size_t i = 0; i < 2 * COUNT(roots) * (COUNT(pieces) + COUNT(ends)); i++) {
        struct reader_options options = test_options(READER_AUTO);
        options.pages = i & 1;
        options.lenient = true;
        make_blocks(&plain, "", i / 2, options.pages);
        make_blocks(&odd, " ", i / 2, options.pages);
        check_both(&options, &plain, &odd, 0, CUT_WHOLE);
    }
    str_done(&plain);
    str_done(&odd);
}

/* What expat did not read also precedes the fault. */
static const struct input_case places[] = {
    {"in one line", "<urlset>" ROW("") BLOCK(" ") ROW("") ROW("") "<x></y>", 0,
     "1 +namespace\n1 " U " extensions=null\n1 " U " extensions=null\n1 " U
     " extensions=null\n1 +extra-element\n",
     READER_MALFORMED, "malformed-xml", 1, 137 + FRAME_BLOCK_BYTES},
    {"in lines", "<urlset>\n" ROW("") BLOCK("\n") "\n" ROW("") "\n  " ROW("") "<x></y>", 0,
     "1 +namespace\n2 " U " extensions=null\n16387 " U " extensions=null\n16388 " U
     " extensions=null\n16388 +extra-element\n",
     READER_MALFORMED, "malformed-xml", 4 + FRAME_BLOCK_BYTES, 49},
};

static void test_places(void **state)
{
    run(places, COUNT(places), false);
}

/* What is longer than a field may be is refused as a whole: what fits of it may be another value.
 */
static void test_long(void **state)
{
    static const struct {
        const char *before, *fill, *behind, *field, *code;
    } rows[] = {
        {"<v:description>Good start", " ", "LOST</v:description>", "description",
         "video-malformed"},
        {"<v:restriction relationship='allow'>AT", " ", "DE</v:restriction>", "restriction",
         "video-malformed"},
        {"<v:expiration_date>2026-01-01", " ", "x</v:expiration_date>", "expiration_date",
         "lastmod-invalid"},
        {"<v:uploader info='https://c.example/", "%61", "'>U</v:uploader>", "uploader",
         "video-malformed"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str text = STR_INIT, want = STR_INIT;
        str_append_text(&text, "<urlset" NAMESPACES "><url><loc>" U "</loc><v:video>");
        str_append_text(&text, rows[i].before);
        while (text.len < 20000)
            str_append_text(&text, rows[i].fill);
        str_append_text(&text, rows[i].behind);
        str_append_text(&text, "</v:video></url></urlset>");
        str_append_format(&want, "1 !%s videos[0].%s " U "\n", rows[i].code, rows[i].field);
        const struct input_case one = {
            rows[i].field, str_text(&text), 0, str_text(&want), READER_OK, NULL, 0, 0};
        run(&one, 1, false);
        str_done(&text);
        str_done(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_strict),
                                       cmocka_unit_test(test_lenient),
                                       cmocka_unit_test(test_plain_items),
                                       cmocka_unit_test(test_plain_behind_another),
                                       cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
