/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/input/check.h"

#define URL "https://example.com/a.xml"
#define ONE "{\"loc\":\"" URL "\"}"

static const struct input_case lists[] = {
    {"nothing", "", 0, "", READER_OK, NULL, 0, 0},
    {"white space", " \n\t\r\n", 0, "", READER_OK, NULL, 0, 0},
    {"one", URL, 0, "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"lines", "\n\n" URL "\r\n# a comment\n  # another\n" URL "\n", 0, "3 " URL "\n6 " URL "\n",
     READER_OK, NULL, 0, 0},
    {"BOM", "\xef\xbb\xbf" URL "\n", 0, "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"padding", URL " \n\t" URL "\n", 0, "1 " URL " +loc-padded\n2 " URL " +loc-padded\n",
     READER_OK, NULL, 0, 0},
    {"no URLs", "hello\nexample.com/a.xml\n/a.xml\nftp://example.com/a\nhttps://example.com/a b\n",
     0,
     "1 !loc-relative loc hello\n2 !loc-relative loc example.com/a.xml\n"
     "3 !loc-relative loc /a.xml\n4 !loc-scheme loc ftp://example.com/a\n"
     "5 !loc-space loc https://example.com/a b\n",
     READER_OK, NULL, 0, 0},
    {"not UTF-8", "https://example.com/\xe9\n", 0, "1 !loc-not-utf8 loc https://example.com/\xe9\n",
     READER_OK, NULL, 0, 0},
    {"a control character", "https://example.com/\x01\n" URL "\n", 0,
     "1 !loc-control-character loc https://example.com/\x01\n2 " URL "\n", READER_OK, NULL, 0, 0},
    {"a table", URL ",2026-11-21,0.8\n", 0, "", READER_WRONG_KIND, "not-a-list", 1, 0},
    {"one with a time", "# of the shop\n" URL ";2026-11-21T08:30:00Z\n", 0, "", READER_WRONG_KIND,
     "not-a-list", 2, 0},
    {"one with tabs", URL "\tdaily\n", 0, "", READER_WRONG_KIND, "not-a-list", 1, 0},
    {"one with names", "Loc,lastmod\n" URL ",2026-11-21\n", 0, "", READER_WRONG_KIND, "not-a-list",
     1, 0},
    {"a quoted one", "\"" URL "\",\"2026-11-21\"\n", 0, "", READER_WRONG_KIND, "not-a-list", 1, 0},
    {"one with a status", "Address;Status\n" URL ";200\n", 0,
     "1 !loc-relative loc Address;Status\n", READER_WRONG_KIND, "not-a-list", 2, 0},
    {"one with a status alone", URL ";200\n", 0, "", READER_WRONG_KIND, "not-a-list", 1, 0},
    {"one with titles", "title,address\nShoes," URL "\n", 0, "1 !loc-relative loc title,address\n",
     READER_WRONG_KIND, "not-a-list", 2, 0},
    {"white space of Unicode",
     "https://example.com/a\xe2\x80\x83\nhttps://example.com/\xe2\x80\x8c\n"
     "\xe1\xa0\x8ehttps://example.com/b\n",
     0,
     "1 https://example.com/a +loc-padded\n"
     "2 https://example.com/ +loc-no-sitemap +loc-padded\n3 https://example.com/b +loc-padded\n",
     READER_OK, NULL, 0, 0},
    {"white space within",
     "https://example.com/a\xe2\x80\x83"
     "b\nhttps://example.com/\xc2\xad"
     "b\n",
     0,
     "1 !loc-space loc https://example.com/a\xe2\x80\x83"
     "b\n"
     "2 !loc-space loc https://example.com/\xc2\xad"
     "b\n",
     READER_OK, NULL, 0, 0},
    {"a comma", "https://example.com/a,2026\nhttps://example.com/a,b;c.xml\n" URL ",2026-11-21\n",
     0,
     "1 https://example.com/a,2026\n2 https://example.com/a,b;c.xml\n3 " URL
     ",2026-11-21 +loc-no-sitemap\n",
     READER_OK, NULL, 0, 0},
    {"NUL", URL "\n" URL "\0\n" URL, sizeof URL * 3, "1 " URL "\n", READER_WRONG_KIND, "not-text",
     2, 0},
    {"a picture", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, "", READER_WRONG_KIND, "not-text", 0, 0},
    {"noise", "\x01\x02\x03\x04 abc", 0, "", READER_WRONG_KIND, "not-text", 0, 0},
};

static const struct {
    const char *input;
    enum reader_format format;
    const char *expect;
} formats[] = {
    {URL, READER_LIST, "1 " URL "\n"},
    {"", READER_LIST, ""},
    {ONE, READER_NDJSON, "1 " URL "\n"},
    {ONE "\n" ONE, READER_NDJSON, "1 " URL "\n2 " URL "\n"},
    {"\n " ONE "\nx\n" ONE, READER_NDJSON, "2 " URL "\n3 !malformed-json -\n4 " URL "\n"},
    {ONE " x\n" ONE, READER_NDJSON, "1 !malformed-json -\n2 " URL "\n"},
    {"{\n\"loc\":\"" URL "\"}", READER_JSON, "0 " URL "\n"},
    {"\xef\xbb\xbf{\"loc\":\n\"" URL "\"}\n", READER_JSON, "0 " URL "\n"},
    {"{\"digest\":\"}\\\"\"\n}", READER_JSON, "0 !loc-missing loc\n"},
    {"{\"loc\":", READER_JSON, ""},
    {"[" ONE "]", READER_JSON, "1 " URL "\n"},
    {" \n [\n]", READER_JSON, ""},
    {"\n<sitemapindex/>", READER_XML, "2 +namespace\n"},
};

static void test_lists(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    check_cases(lists, &options);
    options.format = READER_LIST;
    check_cases(lists, &options);
    check_case(&(struct input_case){"formats in a list", "<a/>\n[]\n" ONE "\n" URL, 0,
                                    "1 !loc-malformed loc <a/>\n2 !loc-relative loc []\n"
                                    "3 !loc-malformed loc " ONE "\n4 " URL "\n",
                                    READER_OK, NULL, 0, 0},
               &options);
}

static void test_formats(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct transcript t = {.stop_at = 0}, told = {.stop_at = 0};
        struct reader_options with = test_options(formats[i].format);
        check_cuts(formats[i].input, &options, formats[i].input, strlen(formats[i].input), &t);
        transcript_run(&told, &with, formats[i].input, strlen(formats[i].input), CUT_WHOLE);
        if (strcmp(str_text(&t.text), str_text(&told.text)) != 0 ||
            strcmp(str_text(&t.brief), formats[i].expect) != 0)
            fail_msg("%s: got:\n%s\nand where the format is given:\n%s", formats[i].input,
                     str_text(&t.text), str_text(&told.text));
        transcript_done(&t);
        transcript_done(&told);
    }
}

/* White space of more than one head before the text. */
static void test_far_start(void **state)
{
    static const char *const texts[] = {URL "\n", ONE "\n", "{\n\"loc\":\"" URL "\"}",
                                        "<?xml version='1.0'?><sitemapindex><sitemap><loc>" URL
                                        "</loc></sitemap></sitemapindex>",
                                        "<x>"};
    static const char *const expect[] = {"3001 " URL "\n", "3001 " URL "\n", "0 " URL "\n",
                                         "3001 +namespace\n3001 " URL "\n", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct reader_options options = test_options(READER_AUTO);
        struct str input = STR_INIT;
        struct transcript t = {.stop_at = 0};
        for (int n = 0; n < 3000; n++)
            str_append_text(&input, n % 7 ? "\n" : "\r\n");
        str_append_text(&input, texts[i]);
        check_cuts(texts[i], &options, str_text(&input), input.len, &t);
        assert_string_equal(str_text(&t.brief), expect[i]);
        assert_int_equal(t.line, strcmp(texts[i], "<x>") == 0 ? 3001 : 0);
        transcript_done(&t);
        str_done(&input);
    }
}

/* A line past the limit costs only itself, whatever it is. */
static void test_long_lines(void **state)
{
    static const size_t lens[] = {READER_MAX_ITEM_BYTES, READER_MAX_ITEM_BYTES + 1,
                                  3 * READER_MAX_ITEM_BYTES};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct reader_options options = test_options(READER_AUTO);
        struct str input = STR_INIT;
        struct transcript t = {.stop_at = 0};
        str_append_text(&input, URL "\n# ");
        for (size_t n = 2; n < lens[i]; n++)
            str_append_char(&input, 'c');
        str_append_text(&input, "\nhttps://example.com/");
        for (size_t n = 20; n < lens[i]; n++)
            str_append_char(&input, 'x');
        str_append_text(&input, "\n" URL);
        check_cuts("long lines", &options, str_text(&input), input.len, &t);
        assert_int_equal(t.status, READER_OK);
        assert_int_equal(t.entries, 2);
        assert_int_equal(t.rejections, 1);
        assert_non_null(strstr(str_text(&t.text), "3 !loc-too-long loc https://example.com/xxx"));
        assert_non_null(strstr(str_text(&t.text), "\n4 " URL "\n"));
        transcript_done(&t);
        str_done(&input);
    }
}

/* A first line too long to distinguish NDJSON from one object. */
static void test_long_object(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    struct str input = STR_INIT;
    struct transcript t = {.stop_at = 0};
    str_append_text(&input, "{\"digest\":\"");
    for (size_t n = 0; n < READER_MAX_ITEM_BYTES; n++)
        str_append_char(&input, 'x');
    str_append_text(&input, "\"}\n" ONE);
    check_cuts("a long first object", &options, str_text(&input), input.len, &t);
    assert_int_equal(t.status, READER_TOO_LARGE);
    assert_string_equal(t.code, "item-too-large");
    transcript_done(&t);
    str_clear(&input);
    str_append_text(&input, ONE);
    for (size_t n = 0; n < READER_MAX_ITEM_BYTES; n++)
        str_append_char(&input, ' ');
    str_append_text(&input, "\n" ONE);
    check_cuts("a long first line", &options, str_text(&input), input.len, &t);
    assert_string_equal(str_text(&t.brief), "1 !malformed-json -\n2 " URL "\n");
    transcript_done(&t);
    str_done(&input);
}

static void test_limits(void **state)
{
    static const enum reader_format wanted[] = {READER_LIST, READER_NDJSON, READER_JSON};
    static const char *const pieces[] = {URL "\n", ONE "\n", ONE ","};
    for (size_t f = 0; f < sizeof wanted / sizeof wanted[0]; f++) {
        struct reader_options options = test_options(wanted[f]);
        struct str input = STR_INIT;
        struct transcript t = {.stop_at = 0};
        size_t piece = strlen(pieces[f]);
        if (wanted[f] == READER_JSON)
            str_append_char(&input, '[');
        for (int n = 0; n < 100; n++)
            str_append_text(&input, pieces[f]);
        options.max_entries = 60;
        check_cuts("too many", &options, str_text(&input), input.len, &t);
        assert_int_equal(t.entries, 60);
        assert_int_equal(t.status, READER_TOO_LARGE);
        assert_string_equal(t.code, "too-many-entries");
        transcript_done(&t);
        options.max_entries = 0;
        options.max_bytes = 80 * piece + 5;
        check_cuts("too large", &options, str_text(&input), input.len, &t);
        assert_int_equal(t.entries, 80);
        assert_int_equal(t.status, READER_TOO_LARGE);
        assert_string_equal(t.code, "body-too-large");
        transcript_done(&t);
        t.stop_at = 7;
        options.max_bytes = 0;
        check_cuts("stopped", &options, str_text(&input), input.len, &t);
        assert_int_equal(t.entries, 7);
        assert_int_equal(t.status, READER_STOPPED);
        transcript_done(&t);
        str_done(&input);
    }
}

/* A format that the caller names is not second-guessed. */
static void test_named(void **state)
{
    struct reader_options options = test_options(READER_NDJSON);
    check_case(&(struct input_case){"a pretty object as NDJSON", "{\n\"loc\":\"" URL "\"}", 0,
                                    "1 !malformed-json -\n2 !malformed-json -\n", READER_OK, NULL,
                                    0, 0},
               &options);
    check_case(&(struct input_case){"XML as NDJSON", "<html>", 0, "1 !malformed-json -\n",
                                    READER_OK, NULL, 0, 0},
               &options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_formats),
        cmocka_unit_test(test_far_start),   cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_long_object), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
