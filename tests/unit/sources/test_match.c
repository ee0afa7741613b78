/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which paths are a source's files, and where they are on the web. */
#include "tests/unit/sources/folder.h"

#include <fnmatch.h>

#include "server/sources/folder/glob.h"
#include "server/sources/folder/walk.h"
#include "server/sources/sources.h"

static const char *const none[] = {NULL};
static const char *const drafts_star[] = {"drafts/*", NULL};
static const char *const drafts_slash[] = {"drafts/", NULL};
static const char *const drafts_anchored[] = {"/drafts", NULL};
static const char *const old[] = {"*-old.xml", "tmp", NULL};
static const char *const all_xml[] = {"*.xml", NULL};
static const char *const in_shop[] = {"shop/*.xml", NULL};
static const char *const at_top[] = {"/*.xml", NULL};
static const char *const any_first[] = {"?*.xml", "[.a]*.xml", NULL};
static const char *const dotted[] = {".hidden.xml", NULL};

static const struct {
    const char *path;
    const char *const *patterns, *const *excludes;
    bool want;
} cases[] = {
    {"a.xml", NULL, NULL, true},
    {"a.xml.gz", NULL, none, true},
    {"a/b/c.txt", NULL, NULL, true},
    {"a.txt.gz", NULL, NULL, true},
    {"a.html", NULL, NULL, false},
    {"a.XML", NULL, NULL, true}, /* the usual patterns do not regard case, others do */
    {"a.XML", all_xml, NULL, false},
    {"xml", NULL, NULL, false},
    {".a.xml", NULL, NULL, false},
    {".a.xml.Xy12", NULL, NULL, false},
    {".git/a.xml", NULL, NULL, false},
    {"a/.git/a.xml", NULL, NULL, false},
    {".hidden.xml", dotted, NULL, true},
    {".hidden.xml", any_first, NULL, false},
    {"a.hidden.xml", any_first, NULL, true},
    {"a/..xml", any_first, NULL, false},
    {"lost+found/a.xml", NULL, NULL, false},
    {"a/lost+found/a.xml", NULL, NULL, true},
    {"a/b.xml", all_xml, NULL, true},
    {"a/b.xml.gz", all_xml, NULL, false},
    {"shop/b.xml", in_shop, NULL, true},
    {"shop/a/b.xml", in_shop, NULL, false},
    {"b.xml", in_shop, NULL, false},
    {"x/shop/b.xml", in_shop, NULL, false},
    {"b.xml", at_top, NULL, true},
    {"a/b.xml", at_top, NULL, false},
    {"drafts/b.xml", NULL, drafts_star, false},
    {"drafts/x/y/b.xml", NULL, drafts_star, false},
    {"a/drafts/b.xml", NULL, drafts_star, true},
    {"drafts.xml", NULL, drafts_star, true},
    {"drafts/b.xml", NULL, drafts_slash, false},
    {"a/drafts/b.xml", NULL, drafts_slash, false},
    {"a/drafts/b.xml", NULL, drafts_anchored, true},
    {"drafts/b.xml", NULL, drafts_anchored, false},
    {"a/b-old.xml", NULL, old, false},
    {"a/tmp/b.xml", NULL, old, false},
    {"a/tmp2/b.xml", NULL, old, true},
};

static void patterns(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct match match = {cases[i].patterns, cases[i].excludes};
        if (match_whole(&match, cases[i].path) != cases[i].want)
            fail_msg("%zu: %s", i, cases[i].path);
    }
}

static bool matches(const char *path, const char *pattern, unsigned flags)
{
    static struct glob_path prepared;
    assert_true(glob_init(&prepared, path, flags));
    return glob_match(&prepared, pattern, strlen(pattern), flags);
}

/* All short patterns and paths over a few bytes match as in the C library. */
static void short_patterns_match_as_in_the_shell(void **state)
{
    static const char *const parts[] = {"*", "?", "a", ".", "/", "\\*", "[!a]", "[.-b]", "[]a-]"};
    static const char bytes[] = "abA./*]-";
    enum { PARTS = sizeof parts / sizeof parts[0], BYTES = sizeof bytes - 1 };
    for (size_t p = 0; p < PARTS * PARTS * PARTS * PARTS; p++) {
        char pattern[32] = "";
        for (size_t rest = p; rest > 0; rest /= PARTS)
            strcat(pattern, parts[rest % PARTS]);
        for (size_t t = 0; t < BYTES * BYTES * BYTES; t++) {
            char path[8] = "";
            size_t len = 0;
            for (size_t rest = t; rest > 0; rest /= BYTES)
                path[len++] = bytes[rest % BYTES];
            if (matches(path, pattern, 0) != (fnmatch(pattern, path, FNM_PATHNAME) == 0))
                fail_msg("%s: %s", pattern, path);
        }
    }
}

/* Each byte against each class. */
static void classes_match_as_in_the_shell(void **state)
{
    static const char *const patterns[] = {
        "[[:alnum:]]",  "[[:alpha:]]",
        "[[:blank:]]",  "[[:cntrl:]]",
        "[[:digit:]]",  "[[:graph:]]",
        "[[:lower:]]",  "[[:print:]]",
        "[[:punct:]]",  "[[:space:]]",
        "[[:xdigit:]]", "[[:upper:]_]",
        "[[:nope:]]",   "[^a-c[:digit:]-]",
        "[\\]x]",       "[a\\-c]",
        "[\x80-\xff]",  "[c-a]",
        "[[a]",         "[a",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (int c = 1; c < 256; c++) {
            const char path[] = {(char)c, '\0'};
            if (matches(path, patterns[i], 0) != (fnmatch(patterns[i], path, FNM_PATHNAME) == 0))
                fail_msg("%s: %d", patterns[i], c);
        }
}

/* Names of more than 64 bytes need more than one word of places. */
static void long_paths(void **state)
{
    char path[GLOB_MAX_PATH_BYTES + 2], pattern[600] = "";
    static struct glob_path prepared;
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_false(glob_init(&prepared, path, 0));
    path[GLOB_MAX_PATH_BYTES] = '\0';
    path[700] = '/';
    path[GLOB_MAX_PATH_BYTES - 1] = 'b';
    assert_true(matches(path, "*/*b", 0));
    assert_true(matches(path, "a*b", GLOB_NAME));
    assert_true(matches(path, "*a", GLOB_NAME | GLOB_ABOVE));
    assert_false(matches(path, "*a", GLOB_NAME));
    assert_false(matches(path, "*b", 0));
    /* Going back from star to star would take longer than the sun shines. */
    for (int i = 0; i < 256; i++)
        strcat(pattern, "*a");
    assert_false(matches(path, pattern, GLOB_NAME));
    strcat(pattern, "*b");
    assert_true(matches(path, pattern, GLOB_NAME));
}

static void paths_and_urls_go_both_ways(void **state)
{
    static const char *const pairs[][2] = {
        {"a.xml", "/s/a.xml"},
        {"b/a.xml", "/s/b/a.xml"},
        {"a b.xml", "/s/a%20b.xml"},
        {"50%.xml", "/s/50%25.xml"},
        {"a?b#c.xml", "/s/a%3Fb%23c.xml"},
        {"\xc3\xbc.xml", "/s/%C3%BC.xml"},
        {"a+b&c=d;e,f@g:h!i$j'k(l)*~.xml", "/s/a+b&c=d;e,f@g:h!i$j'k(l)*~.xml"},
        {"[1]{2}|\"<>^`\\.xml", "/s/%5B1%5D%7B2%7D%7C%22%3C%3E%5E%60%5C.xml"},
        {"%2e%2e/x.xml", "/s/%252e%252e/x.xml"},
        {"...", "/s/..."},
    };
    struct location l;
    struct url url;
    char why[256], path[SOURCE_MAX_PATH_BYTES + 1];
    assert_true(location_init(&l, "HTTPS://WWW.example.com:443/%73/", why, sizeof why));
    assert_string_equal(l.base, "https://www.example.com/s/");
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(location_loc(&l, pairs[i][0], &url), RULE_OK);
        assert_string_equal(url.text + url.origin_len, pairs[i][1]);
        assert_true(location_path(&l, "https://www.example.com", pairs[i][1], path));
        assert_string_equal(path, pairs[i][0]);
    }
    /* What is not the one form of a path, or none. */
    static const char *const not_normal[] = {
        "/s/",
        "/s",
        "/t/a.xml",
        "/s/../s/a.xml",
        "/s/%2e%2e/a.xml",
        "/s/a%2Fb.xml",
        "/s/a%2fb",
        "/s//a.xml",
        "/s/a/./b.xml",
        "/s/%61.xml",
        "/s/a%00.xml",
        "/s/a%0a",
        "/s/%FF.xml",
        "/s/a%2",
        "/s/%c3%bc.xml",
        "/s/\xc3\xbc.xml",
        "/s/a b.xml",
        "/s/a/",
        "/s/a?b",
        "/s/a%",
        "/s/..",
        "/s/.",
        "/s/a/..",
        "/s/%C0%AE%C0%AE/a",
    };
    for (size_t i = 0; i < sizeof not_normal / sizeof not_normal[0]; i++)
        if (location_path(&l, "https://www.example.com", not_normal[i], path))
            fail_msg("%s: %s", not_normal[i], path);
    assert_false(location_path(&l, "http://www.example.com", "/s/a.xml", path));
    assert_false(location_path(&l, "https://www.example.com:8443", "/s/a.xml", path));
    assert_false(location_path(&l, "", "/s/a.xml", path));
}

static void a_folder_needs_a_url(void **state)
{
    static const char *const bad[] = {"",
                                      "https://www.example.com",
                                      "https://x.de/a",
                                      "/sitemaps/",
                                      "ftp://x.de/",
                                      "https://x.de/?a/",
                                      "https://u:p@x.de/"};
    struct location l;
    struct url url;
    char why[256], path[SOURCE_MAX_PATH_BYTES + 1];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why[0] = '\0';
        assert_false(location_init(&l, bad[i], why, sizeof why));
        assert_true(strlen(why) > 10);
    }
    assert_true(location_init(&l, "http://a.b/", why, sizeof why));
    assert_string_equal(l.base, "http://a.b/");
    char longest[SOURCE_MAX_PATH_BYTES + 1];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(location_loc(&l, longest, &url), RULE_OK);
    assert_true(location_path(&l, "http://a.b", url.text + url.origin_len, path));
    memset(longest, '\\', sizeof longest - 1);
    assert_int_equal(location_loc(&l, longest, &url), RULE_LOC_TOO_LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(short_patterns_match_as_in_the_shell),
        cmocka_unit_test(classes_match_as_in_the_shell),
        cmocka_unit_test(long_paths),
        cmocka_unit_test(paths_and_urls_go_both_ways),
        cmocka_unit_test(a_folder_needs_a_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
