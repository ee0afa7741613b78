/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include <stdio.h>

#include "server/rules/page/render.h"

static void test_frame(void **state)
{
    struct str plain = STR_INIT, styled = STR_INIT;

    render_head(&plain, false);
    assert_string_equal(str_text(&plain),
                        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                        "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    assert_string_equal(render_tail, "</sitemapindex>\n");
    assert_int_equal(render_frame_bytes(), plain.len + strlen(render_tail));
    render_head(&styled, true);
    assert_int_equal(styled.len, plain.len + strlen(page_style));
    const char *style = strstr(str_text(&styled), page_style);
    assert_ptr_equal(style, strchr(str_text(&styled), '\n') + 1);
    assert_string_equal(style + strlen(page_style), strchr(str_text(&plain), '\n') + 1);
    str_done(&plain);
    str_done(&styled);
}

/* The limit holds with the style as without: a page that it would lift over goes without. */
static void test_style_at_the_limit(void **state)
{
    assert_true(render_may_style(render_frame_bytes(), page_style));
    assert_true(render_may_style(LIMIT_PAGE_BYTES - strlen(page_style), page_style));
    assert_false(render_may_style(LIMIT_PAGE_BYTES - strlen(page_style) + 1, page_style));
    assert_false(render_may_style(LIMIT_PAGE_BYTES, page_style));
}

static void test_entries(void **state)
{
    static const struct {
        const char *loc, *lastmod, *xml;
    } rows[] = {
        {"https://a.example/x.xml", NULL,
         "<sitemap><loc>https://a.example/x.xml</loc></sitemap>\n"},
        {"https://a.example/x.xml", "2026-01-01T00:00:00Z",
         "<sitemap><loc>https://a.example/x.xml</loc>"
         "<lastmod>2026-01-01T00:00:00Z</lastmod></sitemap>\n"},
        {"https://a.example/x.xml", "2026-01-01",
         "<sitemap><loc>https://a.example/x.xml</loc><lastmod>2026-01-01</lastmod></sitemap>\n"},
        /* the XSD refuses these */
        {"https://a.example/x.xml", "2026-01",
         "<sitemap><loc>https://a.example/x.xml</loc></sitemap>\n"},
        {"https://a.example/x.xml", "2026",
         "<sitemap><loc>https://a.example/x.xml</loc></sitemap>\n"},
        {"https://a.example/?a=1&b='\"<>", NULL,
         "<sitemap><loc>https://a.example/?a=1&amp;b=&apos;&quot;&lt;&gt;</loc></sitemap>\n"},
        {"https://a.example/?a=1&amp;b", NULL,
         "<sitemap><loc>https://a.example/?a=1&amp;amp;b</loc></sitemap>\n"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str out = STR_INIT;
        size_t loc_len = strlen(rows[i].loc);

        render_entry(&out, rows[i].loc, loc_len, rows[i].lastmod);
        check_text(rows[i].loc, str_text(&out), rows[i].xml);
        check_number(rows[i].loc, (int64_t)out.len, (int64_t)strlen(rows[i].xml));
        assert_true(out.len <= render_entry_bytes(rows[i].loc, loc_len));
        str_done(&out);
    }
}

/* Each byte at each place of a loc is escaped or means itself: nothing depends on its
 * neighbours. */
static void test_each_byte_at_each_place(void **state)
{
    enum { LEN = 19 };
    static const char *const escapes[256] = {
        ['&'] = "&amp;", ['\''] = "&apos;", ['"'] = "&quot;", ['<'] = "&lt;", ['>'] = "&gt;"};

    for (unsigned place = 0; place < LEN; place++) {
        for (unsigned byte = 1; byte < 256; byte++) {
            char loc[LEN + 1] = "https://a.example/1", expected[64], itself[2] = {(char)byte};
            struct str out = STR_INIT;

            loc[place] = 0;
            snprintf(expected, sizeof expected, "<sitemap><loc>%s%s%s</loc></sitemap>\n", loc,
                     escapes[byte] != NULL ? escapes[byte] : itself, loc + place + 1);
            loc[place] = (char)byte;
            render_entry(&out, loc, LEN, NULL);
            check_text(expected, str_text(&out), expected);
            check_number(expected, render_entry_bytes(loc, LEN),
                         (int64_t)strlen(expected) + (int64_t)strlen("<lastmod></lastmod>") +
                             LASTMOD_MAX_CHARS);
            str_done(&out);
        }
    }
}

/* The weight is that of the entry with the longest date, whatever date it has. */
static void test_weight(void **state)
{
    static const char loc[] = "https://a.example/?a&b'c";
    static const char longest[] = "2026-01-01T00:00:00.123456789+14:00";
    struct str out = STR_INIT;

    assert_int_equal(strlen(longest), LASTMOD_MAX_CHARS);
    render_entry(&out, loc, sizeof loc - 1, longest);
    assert_int_equal(out.len, render_entry_bytes(loc, sizeof loc - 1));
    str_done(&out);
}

static void test_many(void **state)
{
    struct str out = STR_INIT;
    size_t one;

    render_entry(&out, "https://a.example/1", 19, NULL);
    one = out.len;
    for (int i = 0; i < 999; i++)
        render_entry(&out, "https://a.example/1", 19, NULL);
    assert_false(out.failed);
    assert_int_equal(out.len, 1000 * one);
    assert_int_equal(strlen(str_text(&out)), out.len);
    str_done(&out);
}

static void test_out_of_memory(void **state)
{
    struct str out = {.failed = true};

    render_entry(&out, "https://a.example/1", 19, NULL);
    assert_true(out.failed);
    assert_string_equal(str_text(&out), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame),
        cmocka_unit_test(test_style_at_the_limit),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_each_byte_at_each_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
