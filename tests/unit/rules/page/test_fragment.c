/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include <stdio.h>

#include "server/rules/page/fragment.h"

#define NOW 1790000000 /* 2026-09-21 */

#define IMAGE(url)     "<image:image><image:loc>" url "</image:loc></image:image>"
#define LINK(tag, url) "<xhtml:link rel=\"alternate\" hreflang=\"" tag "\" href=\"" url "\"/>"
#define NEWS(name, language, date, title)                                                          \
    "<news:news><news:publication><news:name>" name "</news:name><news:language>" language         \
    "</news:language></news:publication><news:publication_date>" date                              \
    "</news:publication_date><news:title>" title "</news:title></news:news>"

static struct fragment f;

static enum rule_code add_news(const char *name, const char *language, const char *date,
                               const char *title)
{
    const char *texts[NEWS_FIELD_COUNT] = {name, language, date, title};

    fragment_begin_news(&f);
    for (size_t i = 0; i < NEWS_FIELD_COUNT; i++) {
        enum rule_code code = RULE_OK;
        if (texts[i] != NULL)
            code = fragment_add_news(&f, (enum news_field)i, texts[i], strlen(texts[i]), NOW);
        if (code != RULE_OK)
            return code;
    }
    return RULE_OK;
}

static enum rule_code add_image(const char *url)
{
    return fragment_add_image(&f, url, strlen(url));
}

static enum rule_code add_alternate(const char *language, const char *url)
{
    return fragment_add_alternate(&f, language, strlen(language), url, strlen(url));
}

static void check_json(const char *fragment, const char *want)
{
    struct str json = STR_INIT;

    fragment_append_json(&json, fragment);
    check_text(fragment, str_text(&json), want);
    str_done(&json);
}

/* One form, however it is said; and shown as it was. */
static void test_canonical(void **state)
{
    fragment_begin(&f, false);
    assert_int_equal(add_alternate("en-us", "https://a.example/en?a=1&b='2'"), RULE_OK);
    assert_int_equal(add_image("HTTPS://Cdn.example:443/\xc3\xa9.jpg"), RULE_OK);
    assert_int_equal(add_alternate("X-Default", "https://a.example/x/../x/"), RULE_OK);
    assert_int_equal(add_alternate("DE", "http://b.example/de"), RULE_OK);
    assert_int_equal(add_image("https://a.example/a.jpg"), RULE_OK);
    assert_int_equal(add_news(" The \"Daily\"\n\t<Bugle>  & Co ", "ZH-CN", "2026-09-20T10:00+02:00",
                              "M\xc3\xbcller's"),
                     RULE_OK);
    assert_int_equal(fragment_end(&f), RULE_OK);
    assert_int_equal(f.remarks == 0, true);
    static const char whole[] =
        NEWS("The &quot;Daily&quot; &lt;Bugle&gt; &amp; Co", "zh-cn", "2026-09-20T10:00:00+02:00",
             "M\xc3\xbcller&apos;s") IMAGE("https://cdn.example/%C3%A9.jpg")
            IMAGE("https://a.example/a.jpg") LINK("de", "http://b.example/de")
                LINK("en-US", "https://a.example/en?a=1&amp;b=&apos;2&apos;")
                    LINK("x-default", "https://a.example/x/");
    assert_string_equal(str_text(&f.text), whole);
    assert_int_equal(extensions_of(whole), EXTENSIONS_ALL & ~EXTENSION_VIDEOS);
    check_json(whole,
               ",\"images\":[\"https://cdn.example/%C3%A9.jpg\",\"https://a.example/a.jpg\"],"
               "\"alternates\":{\"de\":\"http://b.example/de\","
               "\"en-US\":\"https://a.example/en?a=1&b='2'\","
               "\"x-default\":\"https://a.example/x/\"},"
               "\"news\":{\"publication\":{\"name\":\"The \\\"Daily\\\" <Bugle> & Co\","
               "\"language\":\"zh-cn\"},\"publication_date\":\"2026-09-20T10:00:00+02:00\","
               "\"title\":\"M\xc3\xbcller's\"}");
    static const struct {
        unsigned wanted;
        const char *part;
    } parts[] = {
        {0, ""},
        {EXTENSIONS_ALL, whole},
        {EXTENSION_IMAGES,
         IMAGE("https://cdn.example/%C3%A9.jpg") IMAGE("https://a.example/a.jpg")},
        {EXTENSION_ALTERNATES, LINK("de", "http://b.example/de")
                                   LINK("en-US", "https://a.example/en?a=1&amp;b=&apos;2&apos;")
                                       LINK("x-default", "https://a.example/x/")},
    };
    for (size_t i = 0; i < ROWS(parts); i++) {
        struct str part = STR_INIT;
        fragment_append_part(&part, whole, parts[i].wanted);
        assert_string_equal(str_text(&part), parts[i].part);
        str_done(&part);
    }
}

static void test_nothing(void **state)
{
    fragment_begin(&f, false);
    assert_int_equal(fragment_end(&f), RULE_OK);
    assert_string_equal(str_text(&f.text), "");
    check_json("", "");
    check_json(NULL, "");
}

/* What is not a fragment ends where it ceases to be one. */
static void test_no_fragment(void **state)
{
    check_json("<image:image><image:loc>https://a", "");
    check_json(IMAGE("u") "<image:image>", ",\"images\":[\"u\"]");
    check_json(IMAGE("&amp;&&quot;&lt") "x" LINK("a", "b"), ",\"images\":[\"&&\\\"&lt\"]");
    check_json(LINK("a", "b") "<xhtml:link rel=\"alternate\" hreflang=\"",
               ",\"alternates\":{\"a\":\"b\"}");
    check_json("<news:news><news:publication><news:name>n</news:name>", "");
}

static enum rule_code bad_image(void)
{
    enum rule_code code = add_image("https://a.example/0.jpg");
    return code != RULE_OK ? code : add_image("/1.jpg");
}
static enum rule_code bad_scheme(void)
{
    return add_image("data:image/png;base64,AAAA");
}
static enum rule_code bad_bytes(void)
{
    return add_image("https://a.example/\xff.jpg");
}
static enum rule_code bad_control(void)
{
    return fragment_add_image(&f, BYTES("https://a.example/\0.jpg"));
}
static enum rule_code bad_language(void)
{
    return add_alternate("en_US", "https://a.example/en");
}
static enum rule_code no_language(void)
{
    return add_alternate("", "https://a.example/en");
}
static enum rule_code bad_href(void)
{
    return add_alternate("en", "/en");
}
static enum rule_code hostile_language(void)
{
    return add_alternate("en\x01\xff\"><x", "https://a.example/en");
}
static enum rule_code two_urls(void)
{
    enum rule_code code = add_alternate("en-GB", "https://a.example/1");
    return code != RULE_OK ? code : add_alternate("EN-gb", "https://a.example/2");
}
static enum rule_code no_title(void)
{
    enum rule_code code = add_news("n", "en", "2026-09-20", NULL);
    return code != RULE_OK ? code : fragment_end(&f);
}
static enum rule_code empty_name(void)
{
    return add_news(" \n", "en", "2026-09-20", "t");
}
static enum rule_code control_in_title(void)
{
    return add_news("n", "en", "2026-09-20", "a\x1b[31mb");
}
static enum rule_code noncharacter(void)
{
    return add_news("n", "en", "2026-09-20", "a\xef\xbf\xbf");
}
static enum rule_code bytes_in_title(void)
{
    return add_news("n", "en", "2026-09-20", "a\xc3");
}
static enum rule_code long_title(void)
{
    static char title[NEWS_TEXT_MAX_BYTES + 2];
    memset(title, 'x', sizeof title - 1);
    return add_news("n", "en", "2026-09-20", title);
}
static enum rule_code news_language(void)
{
    return add_news("n", "en-US", "2026-09-20", "t");
}
static enum rule_code news_dash(void)
{
    return add_news("n", "e-n", "2026-09-20", "t");
}
static enum rule_code month(void)
{
    return add_news("n", "en", "2026-09", "t");
}
static enum rule_code no_date(void)
{
    return add_news("n", "en", "yesterday", "t");
}
static enum rule_code no_zone(void)
{
    return add_news("n", "en", "2026-09-20T10:00", "t");
}
static enum rule_code ahead(void)
{
    return add_news("n", "en", "2026-09-25", "t");
}
static enum rule_code two_titles(void)
{
    enum rule_code code = add_news("n", "en", "2026-09-20", "t");
    return code != RULE_OK ? code : fragment_add_news(&f, NEWS_TITLE, "u", 1, NOW);
}

/* Each refused by its code and field; and, leniently, left out with a remark. */
static void test_refused(void **state)
{
    static const struct {
        enum rule_code (*add)(void);
        enum rule_code code;
        const char *field;
    } rows[] = {
        {bad_image, RULE_LOC_RELATIVE, "images[1].loc"},
        {bad_scheme, RULE_LOC_SCHEME, "images[0].loc"},
        {bad_bytes, RULE_LOC_UTF8, "images[0].loc"},
        {bad_control, RULE_LOC_CONTROL, "images[0].loc"},
        {bad_language, RULE_LANGUAGE, "alternates.en_US"},
        {no_language, RULE_LANGUAGE, "alternates"},
        {hostile_language, RULE_LANGUAGE, "alternates.en??\"><x"},
        {bad_href, RULE_LOC_RELATIVE, "alternates.en"},
        {two_urls, RULE_DUPLICATE, "alternates.EN-gb"},
        {no_title, RULE_FIELD_MISSING, "news.title"},
        {empty_name, RULE_TEXT, "news.publication.name"},
        {control_in_title, RULE_TEXT, "news.title"},
        {noncharacter, RULE_TEXT, "news.title"},
        {bytes_in_title, RULE_TEXT, "news.title"},
        {long_title, RULE_TEXT, "news.title"},
        {news_language, RULE_LANGUAGE, "news.publication.language"},
        {news_dash, RULE_LANGUAGE, "news.publication.language"},
        {month, RULE_LASTMOD_INVALID, "news.publication_date"},
        {no_date, RULE_LASTMOD_INVALID, "news.publication_date"},
        {no_zone, RULE_LASTMOD_NO_ZONE, "news.publication_date"},
        {ahead, RULE_LASTMOD_FUTURE, "news.publication_date"},
        {two_titles, RULE_DUPLICATE, "news.title"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        fragment_begin(&f, false);
        check_code(rows[i].field, rows[i].add(), rows[i].code);
        check_text("field", f.field, rows[i].field);
        assert_true(utf8_is_valid(f.why, strlen(f.why)));
        assert_memory_equal(f.why, f.field, strlen(f.field));
        fragment_begin(&f, true);
        check_code(rows[i].field, rows[i].add(), RULE_OK);
        check_code(rows[i].field, fragment_end(&f), RULE_OK);
        check_set(rows[i].field, f.remarks, RULE_BIT(RULE_EXTENSION_DROPPED));
        assert_null(strstr(str_text(&f.text), "<news"));
    }
}

/* Once is enough. */
static void test_twice(void **state)
{
    fragment_begin(&f, false);
    assert_int_equal(add_image("https://a.example/1"), RULE_OK);
    assert_int_equal(add_image("https://A.example/1"), RULE_OK);
    assert_int_equal(add_alternate("en", "https://a.example/1"), RULE_OK);
    assert_int_equal(add_alternate("EN", "https://a.example/1"), RULE_OK);
    assert_int_equal(fragment_end(&f), RULE_OK);
    check_set("twice", f.remarks, RULE_BIT(RULE_DUPLICATE));
    assert_string_equal(str_text(&f.text),
                        IMAGE("https://a.example/1") LINK("en", "https://a.example/1"));
}

/* With URLs of `len` bytes. */
static void add_many(unsigned count, int len)
{
    for (unsigned i = 0; i < count; i++) {
        char url[2048];
        snprintf(url, sizeof url, "https://a.example/%0*u", len - 18, i);
        assert_int_equal(add_image(url), RULE_OK);
    }
}

/* Where it is too large it is refused, or the last images go, and no other part. */
static void test_bound(void **state)
{
    static const struct {
        unsigned count;
        int len;
        unsigned lost;
    } rows[] = {
        {1, 40, 0}, {1000, 200, 0}, {1001, 40, 1}, {1003, 200, 3}, {1000, 220, 30}, {200, 2000, 73},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        bool large = rows[i].lost > 0;
        fragment_begin(&f, false);
        add_many(rows[i].count, rows[i].len);
        assert_int_equal(add_alternate("de", "https://a.example/"), RULE_OK);
        check_code("strict", fragment_end(&f), large ? RULE_EXTENSIONS_LONG : RULE_OK);
        if (!large)
            continue;
        assert_string_equal(f.field, "images");
        fragment_begin(&f, true);
        add_many(rows[i].count, rows[i].len);
        assert_int_equal(add_alternate("de", "https://a.example/"), RULE_OK);
        check_code("lenient", fragment_end(&f), RULE_OK);
        check_set("lenient", f.remarks, RULE_BIT(RULE_EXTENSION_DROPPED));
        assert_in_range(f.text.len, 1, EXTENSIONS_MAX_BYTES);
        assert_int_equal(f.seen[1], rows[i].count);
        assert_int_equal(f.loss.lost[1], rows[i].lost);
        assert_int_equal(f.loss.reason_count, 1);
        assert_int_equal(f.loss.reasons[0].count, rows[i].lost);
        assert_int_equal(f.loss.reasons[0].code, RULE_EXTENSIONS_LONG);
        assert_int_equal(strlen(str_text(&f.text)), f.text.len);
        assert_non_null(strstr(str_text(&f.text), LINK("de", "https://a.example/")));
    }
    fragment_begin(&f, false); /* many languages */
    for (unsigned i = 0; i < 26 * 26; i++) {
        char tag[] = {(char)('a' + i / 26), (char)('a' + i % 26), '\0'};
        assert_int_equal(add_alternate(tag, "https://a.example/"), RULE_OK);
    }
    check_code("languages", fragment_end(&f), RULE_EXTENSIONS_LONG);
    assert_string_equal(f.field, "alternates");
}

static int end(void **state)
{
    fragment_done(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),   cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_no_fragment), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_twice),       cmocka_unit_test(test_bound),
    };

    return cmocka_run_group_tests(tests, NULL, end);
}
