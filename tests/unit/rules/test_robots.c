/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a robots.txt allows (RFC 9309), the sitemaps that it names, and what may be served as one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/rules/robots.h"

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

static const struct {
    const char *pattern, *path;
    bool matches;
} patterns[] = {
    {"/", "/a", true},
    {"/a", "/a", true},
    {"/a", "/ab", true},
    {"/a", "/b", false},
    {"/a", "/", false},
    {"/a$", "/a", true},
    {"/a$", "/ab", false},
    {"/*.xml", "/a/b.xml", true},
    {"/*.xml", "/a/b.html", false},
    {"/*.xml$", "/a.xml?x", false},
    {"/*.xml$", "/a.xml.xml", true},
    {"/*/b", "/a/b", true},
    {"/*/b", "/b", false},
    {"*", "/a", true},
    {"/a*", "/a", true},
    {"/a*$", "/abc", true},
    {"/a**b", "/ab", true},
    {"/a*b*c", "/a-b-b-c", true},
    {"/a*b*c$", "/a-b-c-b", false},
    {"$", "/", false},
    {"/a$b", "/a$b", true},
};

static void test_patterns(void **state)
{
    for (size_t i = 0; i < ROWS(patterns); i++)
        if (robots_matches(patterns[i].pattern, strlen(patterns[i].pattern), patterns[i].path) !=
            patterns[i].matches)
            fail_msg("%s and %s", patterns[i].pattern, patterns[i].path);
}

static const struct {
    const char *text, *agent, *path;
    bool allowed;
} files[] = {
    {"", "*", "/a", true},
    {"User-agent: *\nDisallow:\n", "*", "/a", true},
    {"User-agent: *\nDisallow: /\n", "*", "/a", false},
    {"user-AGENT : *\r\n  disallow:/a # all\r\n", "*", "/ab", false},
    {"\xef\xbb\xbfUser-agent: *\nDisallow: /", "*", "/a", false},
    /* The longest rule counts, Allow where two are equal, in whatever order. */
    {"User-agent: *\nDisallow: /\nAllow: /maps/\n", "*", "/maps/1.xml", true},
    {"User-agent: *\nAllow: /maps/\nDisallow: /\n", "*", "/maps/1.xml", true},
    {"User-agent: *\nAllow: /maps/\nDisallow: /maps/1\n", "*", "/maps/1.xml", false},
    {"User-agent: *\nDisallow: /a\nAllow: /a\n", "*", "/a", true},
    /* A crawler's own groups count, all of them, and those of * no more. */
    {"User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nAllow: /\n", "googlebot", "/a", true},
    {"User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nAllow: /\n", "bingbot", "/a", false},
    {"User-agent: googlebot\nDisallow: /a\nUser-agent: x\nDisallow: /\n", "googlebot", "/b", true},
    {"User-agent: googlebot\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: googlebot\n"
     "Disallow: /b\n",
     "googlebot", "/b", false},
    {"User-agent: x\nUser-agent: googlebot\nDisallow: /\n", "googlebot", "/a", false},
    {"User-agent: googlebot-news\nDisallow: /\n", "googlebot", "/a", true},
    /* Other lines end no group, and a rule before any group is of none. */
    {"User-agent: *\nSitemap: x\nCrawl-delay: 1\nDisallow: /\n", "*", "/a", false},
    {"Disallow: /\n", "*", "/a", true},
    {"nonsense\n:\nUser-agent\nUser-agent: *\nDisallow: /", "*", "/a", false},
    /* 2.2: a line ends with CR, LF or both. */
    {"User-agent: *\rDisallow: /\r", "*", "/a", false},
    {"User-agent: x\rDisallow: /\r\rUser-agent: *\rDisallow: /b\r", "*", "/a", true},
    {"# all\rUser-agent: *\rDisallow: /", "*", "/a", false},
    /* 2.2.1: a product token is letters, "_" and "-"; what follows is not part of it. */
    {"User-agent: Googlebot/2.1\nDisallow: /\n\nUser-agent: *\nAllow: /\n", "googlebot", "/a",
     false},
    {"User-agent: Googlebot*\nDisallow: /\n", "googlebot", "/a", false},
    {"User-agent: Googlebot;\nDisallow: /\n", "googlebot", "/a", false},
    {"User-agent: Googlebot (all)\nDisallow: /\n", "googlebot", "/a", false},
    {"User-agent: Googlebot2\nDisallow: /\n", "googlebot", "/a", false},
    {"User-agent: \"Googlebot\"\nDisallow: /\n", "googlebot", "/a", true},
    {"User-agent: Googlebots\nDisallow: /\n", "googlebot", "/a", true},
    {"User-agent: Google_bot\nDisallow: /\n", "googlebot", "/a", true},
    {"User-agent: * # all\nDisallow: /\n", "*", "/a", false},
    {"User-agent: * all\nDisallow: /\n", "*", "/a", false},
    {"User-agent: *bot\nDisallow: /\n", "*", "/a", true},
    {"User-agent: *bot\nDisallow: /\n", "googlebot", "/a", true},
    {"User-agent:\nDisallow: /\n", "*", "/a", true},
    /* 2.2.2: bytes past ASCII are compared percent-encoded, unreserved characters decoded. */
    {"User-agent: *\nDisallow: /\xc3\xa4\n", "*", "/%C3%A4", false},
    {"User-agent: *\nDisallow: /%c3%a4\n", "*", "/%C3%A4", false},
    {"User-agent: *\nDisallow: /%62%61%7A\n", "*", "/baz", false},
    {"User-agent: *\nDisallow: /a%2Fb\n", "*", "/a/b", true},
    {"User-agent: *\nDisallow: /a%\n", "*", "/a%", false},
    {"User-agent: *\nDisallow: /a%2\n", "*", "/a%2", false},
    /* 2.3: a byte that is not UTF-8 spoils its own line at most. */
    {"# B\xfc"
     "cher\nUser-agent: *\nDisallow: /\n",
     "*", "/a", false},
    {"User-agent: B\xfc"
     "cher\nAllow: /\n\nUser-agent: *\nDisallow: /\n",
     "*", "/a", false},
};

static void test_files(void **state)
{
    for (size_t i = 0; i < ROWS(files); i++)
        if (robots_allows(files[i].text, strlen(files[i].text), files[i].agent, files[i].path) !=
            files[i].allowed)
            fail_msg("%zu: %s", i, files[i].text);
}

/* Each as "URL LINE WORD GUESS": the URL as written, why crawlers do not take it (ok: they do), and
 * the one that its author meant. */
static const struct {
    const char *text, *expected;
} sitemaps[] = {
    {"Sitemap: https://a.example/1.xml\r\nUser-agent: *\nDisallow: /\n"
     "SITEMAP:https://a.example/2.xml # two\nSitemap:\n#Sitemap: x\n sitemap : "
     "https://b.example/3.xml",
     "https://a.example/1.xml 1 ok https://a.example/1.xml\n"
     "https://a.example/2.xml 4 ok https://a.example/2.xml\n"
     "https://b.example/3.xml 7 ok https://b.example/3.xml\n"},
    {"User-agent: *\rSitemap: https://a.example/index.xml\rDisallow: /x\r",
     "https://a.example/index.xml 2 ok https://a.example/index.xml\n"},
    {"Sitemap: https://a.example/?sitemap=index\n",
     "https://a.example/?sitemap=index 1 ok https://a.example/?sitemap=index\n"},
    {"Sitemap: /index.xml\nSitemap: index.xml\nSitemap: //a.example/x.xml\nSitemap: "
     "www.example.com/y.xml\n"
     "Sitemap: mailto:x\n",
     "/index.xml 1 loc-relative https://www.example.com/index.xml\n"
     "index.xml 2 loc-relative https://www.example.com/index.xml\n"
     "//a.example/x.xml 3 loc-relative https://a.example/x.xml\n"
     "www.example.com/y.xml 4 loc-relative https://www.example.com/y.xml\n"
     "mailto:x 5 loc-scheme -\n"},
    {"Sitemap: \"https://a.example/1.xml\"\nSitemap: '/2.xml'\nSitemap: "
     "<https://a.example/3.xml>\n",
     "https://a.example/1.xml 1 sitemap-line-quoted https://a.example/1.xml\n"
     "/2.xml 2 sitemap-line-quoted https://www.example.com/2.xml\n"
     "https://a.example/3.xml 3 sitemap-line-quoted https://a.example/3.xml\n"},
    {"Sitemap: https://a.example/1.xml https://a.example/2.xml\n"
     "Sitemap: https://a.example/3.xml, https://a.example/4.xml,\n"
     "Sitemap: https://a.example/5.xml Sitemap: https://a.example/6.xml Sitemap:\n",
     "https://a.example/1.xml 1 sitemap-line-shared https://a.example/1.xml\n"
     "https://a.example/2.xml 1 sitemap-line-shared https://a.example/2.xml\n"
     "https://a.example/3.xml 2 sitemap-line-shared https://a.example/3.xml\n"
     "https://a.example/4.xml 2 sitemap-line-shared https://a.example/4.xml\n"
     "https://a.example/5.xml 3 sitemap-line-shared https://a.example/5.xml\n"
     "https://a.example/6.xml 3 sitemap-line-shared https://a.example/6.xml\n"},
    {"Sitemap: https://a.example/1,2.xml\nSitemap: https://a.example/a b.xml\n",
     "https://a.example/1,2.xml 1 ok https://a.example/1,2.xml\n"
     "https://a.example/a b.xml 2 loc-space -\n"},
    {"Sitemap: \"\"\nSitemap: ,\nSitemap\n", " 1 sitemap-line-quoted -\n"},
};

static void test_sitemaps(void **state)
{
    struct url base, url;

    assert_int_equal(url_parse("https://www.example.com/robots.txt", 34, &base, NULL), RULE_OK);
    for (size_t i = 0; i < ROWS(sitemaps); i++) {
        struct robots_cursor at = {0};
        struct robots_sitemap found;
        char told[4096] = "";

        while (robots_next_sitemap(sitemaps[i].text, strlen(sitemaps[i].text), &at, &found)) {
            const char *code, *why;
            bool good = robots_sitemap_url(&found, &url, &code, &why);
            size_t used = strlen(told);

            assert_int_equal(good, strcmp(code, "ok") == 0);
            snprintf(told + used, sizeof told - used, "%.*s %u %s %s\n", (int)found.url_len,
                     found.url, (unsigned)found.line, code,
                     robots_sitemap_guess(&found, &base, &url) ? url.text : "-");
        }
        assert_string_equal(told, sitemaps[i].expected);
    }
}

static void test_what_may_be_served(void **state)
{
    static const struct {
        const char *text, *repaired;
        bool good;
    } texts[] = {
        {"User-agent: *\rDisallow: /\r", "User-agent: *\rDisallow: /\r", true},
        {"# B\xfc"
         "cher\nUser-agent: *\n",
         "# B?cher\nUser-agent: *\n", true},
        {"Disallow: /a # \xe4\xf6 \xc3\xbc\rAllow: /\n", "Disallow: /a # ?? \xc3\xbc\rAllow: /\n",
         true},
        {"# a\nDisallow: /\xfc\n", "# a\nDisallow: /\xfc\n", false},
        {"\xef\xbb\xbf <!doctype html>", "\xef\xbb\xbf <!doctype html>", false},
        {"# \x01\n", "# \x01\n", false},
    };

    for (size_t i = 0; i < ROWS(texts); i++) {
        char text[64];

        strcpy(text, texts[i].text);
        robots_repair_comments(text, strlen(text));
        assert_string_equal(text, texts[i].repaired);
        assert_int_equal(robots_fault(text, strlen(text)) == NULL, texts[i].good);
    }
}

/* Each byte of a line is looked at a bounded number of times: else these would take minutes. */
static void long_lines_are_read_once(void **state)
{
    enum { LEN = 1 << 20 };
    char *text = malloc(LEN);
    assert_non_null(text);
    for (int blanks = 0; blanks < 2; blanks++) {
        struct robots_cursor at = {0};
        struct robots_sitemap sitemap;
        size_t count = 0;
        memset(text, ' ', LEN);
        memcpy(text, "Sitemap: x", 10);
        for (size_t i = 11; !blanks && i < LEN; i += 2)
            text[i] = '/';
        text[LEN - 1] = 'y';
        for (; robots_next_sitemap(text, LEN, &at, &sitemap); count++)
            assert_int_equal(sitemap.shared, !blanks);
        assert_int_equal(count, blanks ? 1 : LEN / 2 - 5);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_sitemaps),
        cmocka_unit_test(test_what_may_be_served),
        cmocka_unit_test(long_lines_are_read_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
