/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/input/check.h"

#define URL  "https://example.com/a.xml"
#define LOC  "\"loc\":\"" URL "\""
#define ONE  "{" LOC "}"
#define DATE "\"lastmod\":\"2026-01-02T03:04:05Z\""

static const struct input_case bodies[] = {
    {"an object", ONE, 0, "0 " URL "\n", READER_OK, NULL, 0, 0},
    {"an object, spaced", " \n {\n  \"loc\" : \"" URL "\"\n}\r\n\t", 0, "0 " URL "\n", READER_OK,
     NULL, 0, 0},
    {"BOM", "\xef\xbb\xbf" ONE, 0, "0 " URL "\n", READER_OK, NULL, 0, 0},
    {"an empty array", "[]", 0, "", READER_OK, NULL, 0, 0},
    {"an empty array, spaced", " [ \n ] ", 0, "", READER_OK, NULL, 0, 0},
    {"an array", "[" ONE "," ONE " , \n" ONE "]", 0, "1 " URL "\n2 " URL "\n3 " URL "\n", READER_OK,
     NULL, 0, 0},
    {"brackets, quotes and escapes in strings",
     "[{" LOC ",\"digest\":\"}]{[,\\\"\\\\\"},{" LOC ",\"digest\":\"\\u007d\\\\\"}]", 0,
     "1 " URL " digest=}]{[,\"\\\n2 " URL " digest=}\\\n", READER_OK, NULL, 0, 0},
    {"all fields", "{" LOC "," DATE ",\"digest\":\"x\",\"index\":\"/i.xml\"}", 0,
     "0 " URL " lastmod=2026-01-02T03:04:05Z digest=x index=/i.xml\n", READER_OK, NULL, 0, 0},
    {"nulls", "{" LOC ",\"lastmod\":null,\"digest\":null}", 0,
     "0 " URL " lastmod=null digest=null\n", READER_OK, NULL, 0, 0},
    {"future", "{" LOC ",\"lastmod\":\"2099-01-01\"}", 0, "0 " URL " +lastmod-in-future\n",
     READER_OK, NULL, 0, 0},
    {"no entries", "[1,\"a,]\\\"\",null,true,[],{},-1.5e3 ]", 0,
     "1 !wrong-type -\n2 !wrong-type -\n3 !wrong-type -\n4 !wrong-type -\n5 !wrong-type -\n"
     "6 !loc-missing loc\n7 !wrong-type -\n",
     READER_OK, NULL, 0, 0},
    {"an empty object", "{}", 0, "0 !loc-missing loc\n", READER_OK, NULL, 0, 0},
    {"wrong types",
     "[{\"loc\":1},{" LOC ",\"lastmod\":1},{" LOC ",\"digest\":{}},{" LOC
     ",\"index\":null},{\"loc\":null}]",
     0,
     "1 !wrong-type loc\n2 !wrong-type lastmod " URL "\n3 !wrong-type digest " URL
     "\n4 !wrong-type index " URL "\n5 !wrong-type loc\n",
     READER_OK, NULL, 0, 0},
    {"unknown fields", "[{" LOC ",\"prio\\nrity\":1},{" LOC ",\"position\":1},{\"source\":\"x\"}]",
     0, "1 !unknown-field - " URL "\n2 !unknown-field - " URL "\n3 !unknown-field -\n", READER_OK,
     NULL, 0, 0},
    {"a name twice", "[{" LOC "," LOC "}," ONE "]", 0, "1 !malformed-json -\n2 " URL "\n",
     READER_OK, NULL, 0, 0},
    {"NUL",
     "[{\"loc\":\"https://example.com/\\u0000\"},{" LOC ",\"digest\":\"a\\u0000b\"},{" LOC
     ",\"index\":\"/i.xml\\u0000\"},{" LOC
     ",\"lastmod\":\"2026-01-02\\u0000\"},{\"a\\u0000\":1}," ONE "]",
     0,
     "1 !loc-control-character loc https://example.com/\n2 !digest-malformed digest " URL
     "\n3 !index-unknown index " URL "\n4 !lastmod-invalid lastmod " URL
     "\n5 !malformed-json -\n6 " URL "\n",
     READER_OK, NULL, 0, 0},
    {"padding is not trimmed",
     "[{\"loc\":\" " URL "\"},{\"loc\":\"" URL "\\n\"},{" LOC ",\"lastmod\":\" 2026\"},{" LOC
     ",\"lastmod\":\"\"}]",
     0,
     "1 !loc-space loc  " URL "\n2 !loc-control-character loc " URL
     "\n\n3 !lastmod-invalid lastmod " URL "\n4 !lastmod-invalid lastmod " URL "\n",
     READER_OK, NULL, 0, 0},
    {"digests",
     "[{" LOC ",\"digest\":\"\"},{" LOC ",\"digest\":\"\\t\"},{" LOC ",\"digest\":\"\xc3\xa9\"}]",
     0,
     "1 !digest-malformed digest " URL "\n2 !digest-malformed digest " URL "\n3 " URL
     " digest=\xc3\xa9\n",
     READER_OK, NULL, 0, 0},
    {"relative", "{\"loc\":\"/a.xml\"}", 0, "0 !loc-relative loc /a.xml\n", READER_OK, NULL, 0, 0},
};

static const struct input_case malformed[] = {
    {"nothing", "", 0, "", READER_MALFORMED, "malformed-json", 1, 1},
    {"white space", " \n ", 0, "", READER_MALFORMED, "malformed-json", 2, 2},
    {"a string", "\"x\"", 0, "", READER_MALFORMED, "malformed-json", 1, 1},
    {"XML", "<a/>", 0, "", READER_MALFORMED, "malformed-json", 1, 1},
    {"two objects", ONE "\n" ONE, 0, "0 " URL "\n", READER_MALFORMED, "malformed-json", 2, 1},
    {"something behind", "[]x", 0, "", READER_MALFORMED, "malformed-json", 1, 3},
    {"truncated object", "{" LOC, 0, "", READER_MALFORMED, "truncated", 1, 0},
    {"truncated string", "{\"loc\":\"https://", 0, "", READER_MALFORMED, "truncated", 1, 0},
    {"truncated array", "[" ONE, 0, "1 " URL "\n", READER_MALFORMED, "truncated", 1, 0},
    {"truncated behind a comma", "[" ONE ",", 0, "1 " URL "\n", READER_MALFORMED, "truncated", 1,
     0},
    {"truncated at once", "[", 0, "", READER_MALFORMED, "truncated", 1, 2},
    {"truncated number", "[1", 0, "", READER_MALFORMED, "truncated", 1, 3},
    {"a comma too many", "[" ONE ",\n]", 0, "1 " URL "\n", READER_MALFORMED, "malformed-json", 2,
     1},
    {"a comma first", "[," ONE "]", 0, "", READER_MALFORMED, "malformed-json", 1, 2},
    {"no comma", "[" ONE "\n " ONE "]", 0, "1 " URL "\n", READER_MALFORMED, "malformed-json", 2, 2},
    {"the wrong bracket", "[" ONE "}", 0, "1 " URL "\n", READER_MALFORMED, "malformed-json", 1, 0},
    {"brackets crossed", "[{" LOC "]}", 0, "", READER_MALFORMED, "malformed-json", 1, 0},
    {"an element is not JSON", "[" ONE ",\n  {\"loc\"\n:tru}]", 0, "1 " URL "\n", READER_MALFORMED,
     "malformed-json", 3, 0},
    {"a scalar is not JSON", "[tru]", 0, "", READER_MALFORMED, "malformed-json", 1, 0},
    {"single quotes", "{'loc':'x'}", 0, "", READER_MALFORMED, "malformed-json", 1, 0},
    {"raw line break in a string", "{\"loc\":\"a\nb\"}", 0, "", READER_MALFORMED, "malformed-json",
     0, 0},
    {"bad UTF-8", "[{\"loc\":\"https://example.com/\xe9\"}]", 0, "", READER_MALFORMED,
     "malformed-json", 1, 0},
    {"raw NUL", "[\0]", 3, "", READER_MALFORMED, "malformed-json", 1, 2},
    {"nested", "[[[[[[[[[[[[[[[[[[[[[]", 0, "", READER_TOO_LARGE, "nested-too-deep", 1, 0},
};

static const struct input_case lines[] = {
    {"nothing", "", 0, "", READER_OK, NULL, 0, 0},
    {"one", ONE, 0, "1 " URL "\n", READER_OK, NULL, 0, 0},
    {"blank lines and CRLF", "\n" ONE "\r\n\r\n  \n\t" ONE " \n\n" ONE, 0,
     "2 " URL "\n5 " URL "\n7 " URL "\n", READER_OK, NULL, 0, 0},
    {"BOM", "\xef\xbb\xbf" ONE "\n" ONE, 0, "1 " URL "\n2 " URL "\n", READER_OK, NULL, 0, 0},
    {"bad lines",
     ONE "\nx\n{\"loc\n" ONE ONE "\n[" ONE "]\n" ONE ",\n{\"loc\":\"\xe9\"}\n" ONE "\n", 0,
     "1 " URL "\n2 !malformed-json -\n3 !malformed-json -\n4 !malformed-json -\n5 !wrong-type -\n"
     "6 !malformed-json -\n7 !malformed-json -\n8 " URL "\n",
     READER_OK, NULL, 0, 0},
    {"a NUL", ONE "\n\0\n" ONE, 2 * sizeof ONE + 1, "1 " URL "\n2 !malformed-json -\n3 " URL "\n",
     READER_OK, NULL, 0, 0},
    {"nested", "[[[[[[[[[[[[[[[[[[[[\n" ONE, 0, "1 !malformed-json -\n2 " URL "\n", READER_OK, NULL,
     0, 0},
};

static const struct input_case exported[] = {
    {"an export",
     "{\"id\":\"1-0-1\"," LOC
     ",\"lastmod\":null,\"digest\":null,\"source\":\"s\",\"index\":\"/i.xml\","
     "\"page\":1,\"position\":7,\"registered_at\":\"x\",\"changed_at\":\"y\",\"warnings\":[\"z\"]}"
     "\n"
     "{" LOC ",\"position\":0}\n{" LOC ",\"position\":4294967294}\n",
     0,
     "1 " URL " lastmod=null digest=null index=/i.xml position=7\n2 " URL " position=0\n3 " URL
     " position=4294967294\n",
     READER_OK, NULL, 0, 0},
    {"bad positions",
     "{" LOC ",\"position\":-1}\n{" LOC ",\"position\":4294967295}\n{" LOC
     ",\"position\":1.0}\n{" LOC ",\"position\":null}\n{" LOC ",\"origin\":1}\n",
     0,
     "1 !position-malformed position " URL "\n2 !position-malformed position " URL
     "\n3 !wrong-type position " URL "\n4 !wrong-type position " URL "\n5 !unknown-field - " URL
     "\n",
     READER_OK, NULL, 0, 0},
};

static const struct input_case lenient[] = {
    {"dates",
     "[{" LOC ",\"lastmod\":\"soon\"},{" LOC ",\"lastmod\":\"2026-01-02T03:04:05\"},{" LOC
     ",\"lastmod\":1}]",
     0, "1 " URL " +lastmod-invalid\n2 " URL " +lastmod-no-zone\n3 !wrong-type lastmod " URL "\n",
     READER_OK, NULL, 0, 0},
};

static void test_bodies(void **state)
{
    struct reader_options options = test_options(READER_JSON);
    check_cases(bodies, &options);
    check_cases(malformed, &options);
}

static void test_lines(void **state)
{
    struct reader_options options = test_options(READER_NDJSON);
    check_cases(lines, &options);
    options.allow_export_fields = true;
    check_cases(lines, &options);
    check_cases(exported, &options);
}

static void test_lenient(void **state)
{
    struct reader_options options = test_options(READER_JSON);
    options.lenient = true;
    check_cases(lenient, &options);
    check_cases(malformed, &options);
    options.drop_lastmod = true;
    check_case(&(struct input_case){"dropped",
                                    "[{" LOC ",\"lastmod\":1},{" LOC ",\"lastmod\":null}]", 0,
                                    "1 " URL "\n2 " URL "\n", READER_OK, NULL, 0, 0},
               &options);
}

static void append_long(struct str *input, size_t len)
{
    size_t start = input->len;
    str_append_text(input, "{\"digest\":\"");
    while (input->len - start < len - 2)
        str_append_char(input, 'x');
    str_append_text(input, "\"}");
}

/* An item of just the limit is read; one byte more is not. */
static void test_long_items(void **state)
{
    for (size_t extra = 0; extra < 2; extra++) {
        struct str input = STR_INIT;
        struct transcript t = {.stop_at = 0};
        struct reader_options options = test_options(READER_NDJSON);
        append_long(&input, READER_MAX_ITEM_BYTES + extra);
        str_append_text(&input, "\n" ONE "\n");
        check_cuts("a long line", &options, str_text(&input), input.len, &t);
        assert_string_equal(str_text(&t.brief), extra ? "1 !malformed-json digest\n2 " URL "\n"
                                                      : "1 !loc-missing loc\n2 " URL "\n");
        transcript_done(&t);

        options.format = READER_JSON;
        str_clear(&input);
        str_append_text(&input, "[\n");
        append_long(&input, READER_MAX_ITEM_BYTES + extra);
        str_append_text(&input, "," ONE "]");
        check_cuts("a long element", &options, str_text(&input), input.len, &t);
        assert_string_equal(t.code, extra ? "item-too-large" : "ok");
        assert_int_equal(t.status, extra ? READER_TOO_LARGE : READER_OK);
        assert_int_equal(t.line, extra ? 2 : 0);
        transcript_done(&t);
        str_done(&input);
    }
}

static void test_single(void **state)
{
    static const struct {
        const char *input;
        bool single;
    } table[] = {{ONE, true}, {"[" ONE "]", false}, {"[]", false}, {" {", true}, {"", false}};
    struct reader_options options = test_options(READER_JSON);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct transcript t = {.stop_at = 0};
        check_cuts(table[i].input, &options, table[i].input, strlen(table[i].input), &t);
        assert_non_null(strstr(str_text(&t.text), table[i].single ? " single=1" : " single=0"));
        transcript_done(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),  cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lenient), cmocka_unit_test(test_long_items),
        cmocka_unit_test(test_single),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
