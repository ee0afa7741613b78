/* What a robots.txt allows (RFC 9309), and the sitemaps that it names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/doctor/robots_txt.h"

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
    (void)state;
    for (size_t i = 0; i < ROWS(patterns); i++)
        if (robots_txt_matches(patterns[i].pattern, strlen(patterns[i].pattern),
                               patterns[i].path) != patterns[i].matches)
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
};

static void test_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(files); i++)
        if (robots_txt_allows(files[i].text, files[i].agent, files[i].path) != files[i].allowed)
            fail_msg("%zu: %s", i, files[i].text);
}

static void test_sitemaps(void **state)
{
    const char *at = "Sitemap: https://a.example/1.xml\r\nUser-agent: *\nDisallow: /\n"
                     "SITEMAP:https://a.example/2.xml # two\nSitemap:\n#Sitemap: x\nsitemap: y";
    static const char *const expected[] = {"https://a.example/1.xml", "https://a.example/2.xml",
                                           "y"};
    const char *value = NULL;

    (void)state;
    for (size_t i = 0; i < ROWS(expected); i++) {
        assert_int_equal(robots_txt_next_sitemap(&at, &value), strlen(expected[i]));
        assert_memory_equal(value, expected[i], strlen(expected[i]));
    }
    assert_int_equal(robots_txt_next_sitemap(&at, &value), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_sitemaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
