/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Index XML that is too large, too deep or too long, and how much is counted. */
#include "tests/unit/input/index_xml.h"

static void append_times(struct str *out, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        str_append_text(out, text);
}

/* Expat before 2.6 looks at a token again with each byte that comes: larger ones come whole and in
 * pieces only. */
#define LARGEST_BY_BYTE 20000u

/* Builds OPEN + before + times × piece + after + SHUT and runs it. */
static void check_large(const char *name, const char *before, const char *piece, size_t times,
                        const char *after, const char *expect, enum reader_status status,
                        const char *code)
{
    struct reader_options options = test_options(READER_AUTO);
    struct str input = STR_INIT;
    struct transcript t = {.stop_at = 0};
    str_append_text(&input, OPEN);
    str_append_text(&input, before);
    append_times(&input, piece, times);
    str_append_text(&input, after);
    str_append_text(&input, SHUT);
    for (unsigned cut = 0; cut < 3; cut++) {
        if (cut == CUT_BYTES && input.len > LARGEST_BY_BYTE)
            continue;
        transcript_run(&t, &options, str_text(&input), input.len, cut);
        if (t.status != status || strcmp(t.code, code) != 0 ||
            (expect && strcmp(str_text(&t.brief), expect) != 0))
            fail_msg("%s, cut %u: %.2000s", name, cut, str_text(&t.text));
        transcript_done(&t);
    }
    str_done(&input);
}

static void test_limits(void **state)
{
    check_large("nesting", "", "<a>", 100, "", NULL, READER_TOO_LARGE, "nested-too-deep");
    check_large("a long comment", "<!-- ", "0123456789", 20000, " -->", "", READER_TOO_LARGE,
                "item-too-large");
    check_large("a comment of middling length", "<!-- ", "0123456789", 5000, " -->" ONE,
                "1 " URL "\n", READER_OK, "ok");
    check_large("a long attribute", "<x y='", "0123456789", 20000, "'/>", "", READER_TOO_LARGE,
                "item-too-large");
    check_large("text of any length that is not kept", "<x>", "0123456789", 50000, "</x>" ONE,
                "1 +extra-element\n1 " URL "\n", READER_OK, "ok");
    check_large("white space of any length", "<sitemap><loc>" URL, "          ", 20000,
                "</loc></sitemap>", "1 " URL " +loc-padded\n", READER_OK, "ok");
    check_large("a long date", "<sitemap><loc>" URL "</loc><lastmod>", "2026", 1000,
                "</lastmod></sitemap>", "1 !lastmod-invalid lastmod " URL "\n", READER_OK, "ok");
}

static void test_long_loc(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    static const size_t lens[] = {LOC_MAX_CHARS, LOC_MAX_CHARS + 1, READER_MAX_TEXT_BYTES,
                                  READER_MAX_TEXT_BYTES + 1, 3 * READER_MAX_TEXT_BYTES};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct str input = STR_INIT;
        struct transcript t = {.stop_at = 0};
        str_append_text(&input, OPEN "<sitemap><loc>https://example.com/");
        for (size_t len = strlen("https://example.com/"); len < lens[i]; len++)
            str_append_char(&input, 'x');
        str_append_text(&input, "</loc></sitemap>" ONE SHUT);
        transcript_run(&t, &options, str_text(&input), input.len, 5);
        assert_int_equal(t.status, READER_OK);
        assert_int_equal(t.entries, lens[i] <= LOC_MAX_CHARS ? 2 : 1);
        assert_int_equal(t.rejections, lens[i] <= LOC_MAX_CHARS ? 0 : 1);
        if (t.rejections)
            assert_non_null(strstr(str_text(&t.text), "!loc-too-long"));
        transcript_done(&t);
        str_done(&input);
    }
}

static void test_counts(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    options.max_entries = 2;
    check_case(&(struct input_case){"as many as may be", OPEN ONE ONE SHUT, 0,
                                    "1 " URL "\n1 " URL "\n", READER_OK, NULL, 0, 0},
               &options);
    check_case(&(struct input_case){"one more", OPEN ONE "<sitemap/>\n" ONE SHUT, 0,
                                    "1 " URL "\n1 !loc-missing loc\n", READER_TOO_LARGE,
                                    "too-many-entries", 2, 0},
               &options);
    options = test_options(READER_AUTO);
    options.max_bytes = strlen(OPEN ONE);
    check_case(&(struct input_case){"too many bytes", OPEN ONE ONE SHUT, 0, "", READER_TOO_LARGE,
                                    "body-too-large", 0, 0},
               &options);
    options.max_bytes = strlen(OPEN ONE SHUT);
    check_case(&(struct input_case){"just enough bytes", OPEN ONE SHUT, 0, "1 " URL "\n", READER_OK,
                                    NULL, 0, 0},
               &options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_long_loc),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
