/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include <stdio.h>

#include "server/rules/scope.h"

static void test_directory(void **state)
{
    static const struct {
        const char *path;
        size_t len;
    } rows[] = {
        {"/sitemap_index.xml", 1},
        {"/shop/x.xml", 6},
        {"/a/b/c.xml", 5},
        {"/a/b/", 5},
        {"/", 1},
        {"", 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(rows[i].path, (int64_t)scope_directory_len(rows[i].path, strlen(rows[i].path)),
                     (int64_t)rows[i].len);
}

static void test_holds(void **state)
{
    static const struct {
        const char *index_path, *loc;
        bool holds;
    } rows[] = {
        {"/sitemap_index.xml", "https://a.example/", true},
        {"/sitemap_index.xml", "https://a.example/x.xml", true},
        {"/sitemap_index.xml", "https://a.example/a/b/c.xml", true},
        {"/public/sitemap_index.xml", "https://a.example/public/x.xml", true},
        {"/public/sitemap_index.xml", "https://a.example/public/", true},
        {"/public/sitemap_index.xml", "https://a.example/public/a/x.xml", true},
        {"/public/sitemap_index.xml", "https://a.example/public/?page=1", true},
        {"/public/sitemap_index.xml", "https://a.example/%70ublic/x.xml", true},
        {"/public/sitemap_index.xml", "https://a.example/x.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/public", false},
        {"/public/sitemap_index.xml", "https://a.example/publicity/x.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/Public/x.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/public/../x.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/public/%2e%2E/x.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/public%2Fx.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/?/public/x.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/publi?c/x.xml", false},
        {"/public/sitemap_index.xml", "https://a.example/a/../public/x.xml", true},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct url loc;

        check_code(rows[i].loc, url_parse(rows[i].loc, strlen(rows[i].loc), &loc, NULL), RULE_OK);
        check_number(rows[i].loc, scope_holds(rows[i].index_path, &loc), rows[i].holds);
    }
}

static void test_index_path(void **state)
{
    static const struct {
        const char *path;
        enum rule_code code;
    } rows[] = {
        {"/sitemap_index.xml", RULE_OK},
        {"/shop/sitemap_index.xml", RULE_OK},
        {"/a%20b/x.xml", RULE_OK},
        {"/%C3%A9.xml", RULE_OK},
        {"/a//x.xml", RULE_OK},
        {"/.xml", RULE_OK},
        {"", RULE_INDEX_PATH},
        {"/", RULE_INDEX_PATH},
        {"x.xml", RULE_INDEX_PATH},
        {"https://a.example/x.xml", RULE_INDEX_PATH},
        {"/x.XML", RULE_INDEX_PATH},
        {"/x.xml.gz", RULE_INDEX_PATH},
        {"/x.txt", RULE_INDEX_PATH},
        {"/robots.txt", RULE_INDEX_PATH},
        {"/xxml", RULE_INDEX_PATH},
        {"/x.xml?a", RULE_INDEX_PATH},
        {"/x?a=.xml", RULE_INDEX_PATH},
        {"/x#.xml", RULE_INDEX_PATH},
        {"/a/../x.xml", RULE_INDEX_PATH},
        {"/./x.xml", RULE_INDEX_PATH},
        {"/%2e/x.xml", RULE_INDEX_PATH},
        {"/%78.xml", RULE_INDEX_PATH},
        {"/%c3%a9.xml", RULE_INDEX_PATH},
        {"/\xC3\xA9.xml", RULE_INDEX_PATH},
        {"/%zz.xml", RULE_INDEX_PATH},
        {"/a b.xml", RULE_INDEX_PATH},
        {"/a\n.xml", RULE_INDEX_PATH},
        {"/a\\b.xml", RULE_INDEX_PATH},
        {"/{n}.xml", RULE_INDEX_PATH},
    };
    char longest[INDEX_PATH_MAX_CHARS + 2];

    for (size_t i = 0; i < ROWS(rows); i++)
        check_code(rows[i].path, scope_check_index_path(rows[i].path), rows[i].code);

    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    memcpy(longest + INDEX_PATH_MAX_CHARS - 4, ".xml", 5);
    check_code("512", scope_check_index_path(longest), RULE_OK);
    memcpy(longest + INDEX_PATH_MAX_CHARS - 4, "a.xml", 6);
    check_code("513", scope_check_index_path(longest), RULE_INDEX_PATH);
}

#define FIFTY "12345678901234567890123456789012345678901234567890"

static void test_pattern(void **state)
{
    static const struct {
        const char *pattern;
        enum rule_code code;
    } rows[] = {
        {PAGE_PATTERN_DEFAULT, RULE_OK},
        {"{stem}.{n}{suffix}", RULE_OK},
        {"{stem}-page-{n}-of-many{suffix}", RULE_OK},
        {"{stem}~!$&'()*+,;=:@{n}{suffix}", RULE_OK},
        {"{stem}0{n}{suffix}", RULE_OK},
        {"{stem}" FIFTY "{n}{suffix}", RULE_OK},
        {"{stem}" FIFTY "{n}1{suffix}", RULE_INDEX_PATTERN},
        {"", RULE_INDEX_PATTERN},
        {"{stem}{n}{suffix}", RULE_INDEX_PATTERN}, /* nothing between: "/x12.xml" of "/x.xml"? */
        {"{stem}-{suffix}", RULE_INDEX_PATTERN},
        {"{stem}-{n}", RULE_INDEX_PATTERN},
        {"-{n}{suffix}", RULE_INDEX_PATTERN},
        {"{n}-{stem}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}{suffix}-{n}", RULE_INDEX_PATTERN},
        {"x{stem}-{n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}-{n}{suffix}x", RULE_INDEX_PATTERN},
        {"{stem}-{n}-{n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}{stem}-{n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}-{n}{suffix}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}/{n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}-{n}/{suffix}", RULE_INDEX_PATTERN},
        {"{stem}?{n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}#{n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem} {n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}%2D{n}{suffix}", RULE_INDEX_PATTERN},
        {"{stem}\xC3\xA9{n}{suffix}", RULE_INDEX_PATTERN},
        {"{STEM}-{N}{SUFFIX}", RULE_INDEX_PATTERN},
        {"{stem}-{number}{n}{suffix}", RULE_INDEX_PATTERN},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_code(rows[i].pattern, scope_check_pattern(rows[i].pattern), rows[i].code);
}

static void test_page_path(void **state)
{
    static const struct {
        const char *index_path, *pattern;
        uint32_t number;
        bool gz;
        const char *path;
    } rows[] = {
        {"/sitemap_index.xml", PAGE_PATTERN_DEFAULT, 1, false, "/sitemap_index.xml"},
        {"/sitemap_index.xml", PAGE_PATTERN_DEFAULT, 1, true, "/sitemap_index.xml.gz"},
        {"/sitemap_index.xml", PAGE_PATTERN_DEFAULT, 2, false, "/sitemap_index-2.xml"},
        {"/sitemap_index.xml", PAGE_PATTERN_DEFAULT, 500, true, "/sitemap_index-500.xml.gz"},
        {"/shop/x.xml", "{stem}.page{n}a{suffix}", 10, false, "/shop/x.page10a.xml"},
        {"/x.xml", PAGE_PATTERN_DEFAULT, UINT32_MAX, true, "/x-4294967295.xml.gz"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char out[PAGE_PATH_SIZE];

        scope_page_path(rows[i].index_path, rows[i].pattern, rows[i].number, rows[i].gz, out);
        check_text(rows[i].path, out, rows[i].path);
        check_number(
            rows[i].path,
            scope_page_number(rows[i].index_path, rows[i].pattern, UINT32_MAX, out, strlen(out)),
            rows[i].number);
    }
}

/* The longest name there can be fits to the byte. */
static void test_longest_page_path(void **state)
{
    static const char pattern[] = "{stem}" FIFTY "{n}{suffix}";
    char index_path[INDEX_PATH_MAX_CHARS + 1];
    char out[PAGE_PATH_SIZE];

    memset(index_path, 'a', sizeof index_path);
    index_path[0] = '/';
    memcpy(index_path + INDEX_PATH_MAX_CHARS - 4, ".xml", 5);
    check_code("path", scope_check_index_path(index_path), RULE_OK);
    check_code("pattern", scope_check_pattern(pattern), RULE_OK);
    scope_page_path(index_path, pattern, UINT32_MAX, true, out);
    assert_int_equal(strlen(out), PAGE_PATH_SIZE - 1);
}

static void test_page_number(void **state)
{
    static const struct {
        const char *path;
        uint32_t number;
    } rows[] = {
        {"/shop/x.xml", 1},
        {"/shop/x.xml.gz", 1},
        {"/shop/x-2.xml", 2},
        {"/shop/x-2.xml.gz", 2},
        {"/shop/x-500.xml", 500},
        {"/shop/x-501.xml", 0},
        {"/shop/x-1.xml", 0},
        {"/shop/x-0.xml", 0},
        {"/shop/x-02.xml", 0},
        {"/shop/x--2.xml", 0},
        {"/shop/x-+2.xml", 0},
        {"/shop/x-.xml", 0},
        {"/shop/x-2a.xml", 0},
        {"/shop/x-4294967298.xml", 0}, /* 2 modulo 2^32 */
        {"/shop/x-18446744073709551618.xml", 0},
        {"/shop/x-99999999999.xml", 0},
        {"/shop/x.xml?", 0},
        {"/shop/x.xml?page=2", 0},
        {"/shop/x.xml?.xml", 0},
        {"/shop/x-2.xml?a", 0},
        {"/shop/x-2.XML", 0},
        {"/shop/X-2.xml", 0},
        {"/shop/x-2", 0},
        {"/shop/x.gz", 0},
        {"/shop/x.xml.gz.gz", 0},
        {"/shop/x.gz.xml", 0},
        {"/shop/y-2.xml", 0},
        {"/x-2.xml", 0},
        {"/shop/x", 0},
        {"/shop/", 0},
        {"/", 0},
        {"", 0},
        {".xml", 0},
        {".gz", 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(rows[i].path,
                     scope_page_number("/shop/x.xml", PAGE_PATTERN_DEFAULT, 500, rows[i].path,
                                       strlen(rows[i].path)),
                     rows[i].number);
}

/* Path and number are each other's inverse, even where literals look like numbers. */
static void test_inverse(void **state)
{
    static const char *const patterns[] = {PAGE_PATTERN_DEFAULT, "{stem}1{n}{suffix}",
                                           "{stem}-{n}0{suffix}", "{stem}0{n}0{suffix}",
                                           "{stem}.xml{n}.xml{suffix}"};
    static const char *const paths[] = {"/x.xml", "/a/b-2.xml", "/1.xml", "/.xml"};

    for (size_t p = 0; p < ROWS(patterns); p++) {
        check_code(patterns[p], scope_check_pattern(patterns[p]), RULE_OK);
        for (size_t i = 0; i < ROWS(paths); i++) {
            for (uint32_t number = 1; number <= 500; number++) {
                char out[PAGE_PATH_SIZE];

                scope_page_path(paths[i], patterns[p], number, number % 2 == 0, out);
                check_number(out, scope_page_number(paths[i], patterns[p], 500, out, strlen(out)),
                             number);
                check_number(
                    out, scope_page_number(paths[i], patterns[p], number - 1, out, strlen(out)), 0);
            }
        }
    }
}

/* What scope_pages_meet answers without a search must be what a search finds. */
static void test_meeting(void **state)
{
    static const char *const stems[] = {"a",   "a-",   "a-1", "a-12", "a-1-",
                                        "a-2", "a-20", "a1",  "a-0",  "b"};
    static const char *const patterns[] = {
        PAGE_PATTERN_DEFAULT,  "{stem}_{n}{suffix}",   "{stem}1{n}{suffix}",
        "{stem}-{n}0{suffix}", "{stem}-{n}-3{suffix}", "{stem}-{n}10{suffix}",
        "{stem}-1{n}{suffix}", "{stem}-{n}-{suffix}",  "{stem}-2{n}0{suffix}",
    };
    static const uint32_t most[] = {1, 2, 9, 10, 25, 130};
    unsigned met = 0, apart = 0;

    for (size_t i = 0; i < ROWS(stems) * ROWS(patterns); i++) {
        for (size_t k = 0; k < ROWS(stems) * ROWS(patterns) * ROWS(most); k++) {
            const char *pattern_a = patterns[i / ROWS(stems)];
            const char *pattern_b = patterns[k / ROWS(stems) % ROWS(patterns)];
            uint32_t max = most[k / ROWS(stems) / ROWS(patterns)];
            char a[16], b[16], name[PAGE_PATH_SIZE];
            bool found = false;

            snprintf(a, sizeof a, "/%s.xml", stems[i % ROWS(stems)]);
            snprintf(b, sizeof b, "/%s.xml", stems[k % ROWS(stems)]);
            for (uint32_t number = 1; number <= max && !found; number++) {
                scope_page_path(a, pattern_a, number, false, name);
                found = scope_page_number(b, pattern_b, max, name, strlen(name)) != 0;
            }
            if (scope_pages_meet(a, pattern_a, b, pattern_b, max) != found)
                fail_msg("%s %s and %s %s up to %u: %d", a, pattern_a, b, pattern_b, max, found);
            met += found;
            apart += !found;
        }
    }
    assert_true(met > 1000 && apart > 10000);
    /* It takes no longer where there may be very many. */
    assert_true(scope_pages_meet("/a.xml", PAGE_PATTERN_DEFAULT, "/a-1.xml", "{stem}1{n}{suffix}",
                                 UINT32_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_index_path),
        cmocka_unit_test(test_pattern),
        cmocka_unit_test(test_page_path),
        cmocka_unit_test(test_longest_page_path),
        cmocka_unit_test(test_page_number),
        cmocka_unit_test(test_inverse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
