/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "server/input/sitemap_file.h"
#include "tests/unit/input/check.h"
#include "tests/unit/input/gzip.h"

#define URL "https://example.com/a.xml"
#define XML "<sitemapindex><sitemap><loc>" URL "</loc></sitemap></sitemapindex>"

static void append_text(struct str *out, const char *text)
{
    append_gzip(out, text, strlen(text), 6);
}

/* Runs `input` in every cut and frees it. */
static void check_gzip(const char *name, struct str *input, const struct reader_options *options,
                       const char *expect, enum reader_status status, const char *code)
{
    struct transcript t = {.stop_at = 0};
    check_cuts(name, options, input->data, input->len, &t);
    if (t.status != status || strcmp(t.code, code) != 0 ||
        (expect && strcmp(str_text(&t.brief), expect) != 0))
        fail_msg("%s: got:\n%.2000s", name, str_text(&t.text));
    transcript_done(&t);
    str_done(input);
}

static void test_formats(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    struct str in = STR_INIT;
    append_text(&in, XML);
    check_gzip("XML", &in, &options, "1 +namespace\n1 " URL "\n", READER_OK, "ok");
    append_text(&in, "[{\"loc\":\"" URL "\"}]");
    check_gzip("JSON", &in, &options, "1 " URL "\n", READER_OK, "ok");
    append_text(&in, "{\"loc\":\"" URL "\"}\n{\"loc\":\"" URL "\"}\n");
    check_gzip("NDJSON", &in, &options, "1 " URL "\n2 " URL "\n", READER_OK, "ok");
    append_text(&in, URL "\n" URL);
    check_gzip("list", &in, &options, "1 " URL "\n2 " URL "\n", READER_OK, "ok");
    append_text(&in, "");
    check_gzip("empty", &in, &options, "", READER_OK, "ok");
    append_text(&in, "<urlset/>");
    check_gzip("urlset", &in, &options, "", READER_WRONG_KIND, "urlset-not-index");
    append_text(&in, "");
    options.format = READER_JSON;
    check_gzip("empty JSON", &in, &options, "", READER_MALFORMED, "malformed-json");
    append_text(&in, "[{\"loc\":\"" URL "\"}]");
    check_gzip("JSON by name", &in, &options, "1 " URL "\n", READER_OK, "ok");
}

static void test_members(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    struct str in = STR_INIT;
    append_text(&in, "https://exam");
    append_text(&in, "");
    append_text(&in, "ple.com/a.xml\n");
    append_gzip(&in, URL, strlen(URL), 0);
    check_gzip("members", &in, &options, "1 " URL "\n2 " URL "\n", READER_OK, "ok");
    append_text(&in, URL);
    str_append(&in, "\0\0\0\0\0", 5);
    check_gzip("zeros behind", &in, &options, "1 " URL "\n", READER_OK, "ok");
    append_text(&in, URL);
    str_append_text(&in, "junk");
    check_gzip("junk behind", &in, &options, NULL, READER_MALFORMED, "malformed-gzip");
    append_text(&in, URL);
    str_append(&in, "\0", 1);
    append_text(&in, URL);
    check_gzip("a member behind zeros", &in, &options, NULL, READER_MALFORMED, "malformed-gzip");
    struct str inner = STR_INIT;
    append_text(&inner, URL);
    append_gzip(&in, inner.data, inner.len, 6);
    str_done(&inner);
    check_gzip("gzip within gzip", &in, &options, "", READER_WRONG_KIND, "packed-twice");
}

/* What decodes to nothing is not read to its end, however long it is: a hole behind a good member,
 * members of nothing, a name that does not end. A member for each line is allowed. */
static void test_waste(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    size_t len = 2u << 20;
    char *filler = calloc(1, len);
    struct str in = STR_INIT;
    assert_non_null(filler);
    append_text(&in, URL);
    str_append(&in, filler, len / 4);
    check_gzip("some zeros behind", &in, &options, "1 " URL "\n", READER_OK, "ok");
    append_text(&in, URL);
    str_append(&in, filler, len);
    check_gzip("a hole behind", &in, &options, NULL, READER_MALFORMED, "malformed-gzip");
    append_text(&in, URL);
    while (in.len < len)
        append_text(&in, "");
    check_gzip("empty members", &in, &options, NULL, READER_MALFORMED, "malformed-gzip");
    memset(filler, 'n', len);
    str_append(&in, "\x1f\x8b\x08\x08\0\0\0\0\0\x03", 10); /* FNAME */
    str_append(&in, filler, len);
    check_gzip("an endless name", &in, &options, NULL, READER_MALFORMED, "malformed-gzip");
    free(filler);

    struct sitemap_expect expect = {.now = 1800000000};
    while (in.len < len)
        append_text(&in, "https://example.com/some/page\n");
    struct sitemap_verifier *v = sitemap_verifier_new(&expect);
    struct sitemap_file file;
    assert_true(sitemap_verifier_feed(v, in.data, in.len));
    assert_true(sitemap_verifier_finish(v, &file));
    assert_int_equal(file.kind, SITEMAP_FILE_TEXT);
    sitemap_verifier_free(v);
    str_done(&in);
}

static void test_broken(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    struct str whole = STR_INIT;
    append_text(&whole, XML);
    for (size_t len = 2; len < whole.len; len++) {
        struct str in = STR_INIT;
        str_append(&in, whole.data, len);
        check_gzip("truncated", &in, &options, NULL, READER_MALFORMED, "truncated");
    }
    /* The checksum, the length, the method, the flags. */
    static const struct {
        size_t at;
        bool from_end;
    } places[] = {{8, true}, {1, true}, {2, false}, {3, false}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct str in = STR_INIT;
        str_append(&in, whole.data, whole.len);
        in.data[places[i].from_end ? in.len - places[i].at : places[i].at] ^= (char)0xe1;
        check_gzip("one byte changed", &in, &options, NULL, READER_MALFORMED, "malformed-gzip");
    }
    str_done(&whole);
}

static void test_not_allowed(void **state)
{
    struct reader_options options = test_options(READER_AUTO);
    struct str in = STR_INIT;
    options.allow_gzip = false;
    append_text(&in, XML);
    check_gzip("not allowed", &in, &options, "", READER_FORBIDDEN, "gzip-not-allowed");
    str_append_text(&in, URL);
    check_gzip("plain", &in, &options, "1 " URL "\n", READER_OK, "ok");
    str_append_text(&in, "\x1f");
    check_gzip("half the magic", &in, &options, NULL, READER_WRONG_KIND, "not-text");
    str_append_text(&in, "\x1f ");
    check_gzip("the magic broken off", &in, &options, NULL, READER_WRONG_KIND, "not-text");
}

/* Half a million comment lines: 1 MiB is free, past that the ratio counts. */
static void test_bombs(void **state)
{
    for (unsigned megabytes = 1; megabytes <= 8; megabytes *= 8) {
        struct str text = STR_INIT, in = STR_INIT;
        while (text.len < megabytes * 1048576u)
            str_append_text(&text, "#\n");
        append_gzip(&in, text.data, text.len, 9);
        struct reader_options options = test_options(READER_AUTO);
        static const struct {
            uint32_t ratio;
            uint64_t bytes;
            const char *code;
        } limits[] = {
            {0, 0, "ok"}, {100, 0, "gzip-bomb"}, {2000, 0, "ok"}, {0, 3000000, "body-too-large"}};
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
            options.max_ratio = limits[i].ratio;
            options.max_bytes = limits[i].bytes;
            const char *code = megabytes > 1 ? limits[i].code : "ok";
            for (unsigned cut = 0; cut < 3; cut++) {
                struct transcript t = {.stop_at = 0};
                transcript_run(&t, &options, in.data, in.len, cut);
                assert_string_equal(t.code, code);
                assert_int_equal(t.status, strcmp(code, "ok") == 0 ? READER_OK : READER_TOO_LARGE);
                transcript_done(&t);
            }
        }
        str_done(&text);
        str_done(&in);
    }
}

static void test_large(void **state)
{
    struct str text = STR_INIT, in = STR_INIT;
    for (unsigned n = 0; n < 50000; n++)
        str_append_format(&text, "https://example.com/%u.xml\n", n);
    size_t third = text.len / 3;
    append_gzip(&in, text.data, third, 1);
    append_gzip(&in, text.data + third, text.len - third, 6);
    struct reader_options options = test_options(READER_AUTO);
    options.max_ratio = 200;
    struct transcript t = {.stop_at = 0};
    check_cuts("large", &options, in.data, in.len, &t);
    assert_int_equal(t.entries, 50000);
    assert_int_equal(t.status, READER_OK);
    transcript_done(&t);
    str_done(&text);
    str_done(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),     cmocka_unit_test(test_members),
        cmocka_unit_test(test_waste),       cmocka_unit_test(test_broken),
        cmocka_unit_test(test_not_allowed), cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
