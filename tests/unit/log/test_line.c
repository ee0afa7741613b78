/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Escapes and numbers, each beside what it must come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/log/log_writer.h"

static void check(const char *in, size_t max, enum line_escape escape, const char *out)
{
    struct line l;
    l.len = 0;
    line_append_escaped(&l, in, max, escape);
    l.text[l.len] = '\0';
    assert_string_equal(l.text, out);
}

static void escapes(void **state)
{
    static const struct {
        const char *in, *text, *combined, *json;
    } rows[] = {
        {"", "", "", ""},
        {"plain text, longer than eight bytes!", "plain text, longer than eight bytes!",
         "plain text, longer than eight bytes!", "plain text, longer than eight bytes!"},
        {"1234567\"", "1234567\"", "1234567\\x22", "1234567\\\""},
        {"\"12345678", "\"12345678", "\\x2212345678", "\\\"12345678"},
        {"12345678\\", "12345678\\\\", "12345678\\x5C", "12345678\\\\"},
        {"\x1f \x7f~", "\\x1f \\x7f~", "\\x1F \\x7F~", "\\u001f \\u007f~"},
        {"\xc2\x85", "\\x85", "\\xC2\\x85", "\\u0085"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
         "\\xC3\\xA9\\xE2\\x82\\xAC\\xF0\\x9F\\x98\\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc0\xaf", "\\xc0\\xaf", "\\xC0\\xAF", "\\ufffd\\ufffd"}, /* overlong */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xED\\xA0\\x80", "\\ufffd\\ufffd\\ufffd"}, /* half */
        {"\xe2\x82", "\\xe2\\x82", "\\xE2\\x82", "\\ufffd\\ufffd"},                      /* cut */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xF4\\x90\\x80\\x80",
         "\\ufffd\\ufffd\\ufffd\\ufffd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(rows[i].in, LINE_BYTES, LINE_ESCAPE_TEXT, rows[i].text);
        check(rows[i].in, LINE_BYTES, LINE_ESCAPE_COMBINED, rows[i].combined);
        check(rows[i].in, LINE_BYTES, LINE_ESCAPE_JSON, rows[i].json);
    }
}

/* `byte` at place `at` of a run of `len` letters. */
static void check_byte(unsigned byte, size_t at, size_t len)
{
    const char letters[] = "abcdefghijklmnopqrst";
    bool plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
    char in[21], out[24];

    snprintf(in, sizeof in, "%.*s", (int)len, letters);
    in[at] = (char)byte;
    snprintf(out, sizeof out, plain ? "%.*s%c%.*s" : "%.*s\\x%02X%.*s", (int)at, letters, byte,
             (int)(len - at - 1), letters + at + 1);
    check(in, LINE_BYTES, LINE_ESCAPE_COMBINED, out);
}

/* Every byte, at every place of plain texts of every length: the ways of eight and of four at a
 * time know all of them. */
static void every_byte_at_every_place(void **state)
{
    for (unsigned byte = 1; byte < 256; byte++)
        for (size_t len = 1; len <= 20; len++)
            for (size_t at = 0; at < len; at++)
                check_byte(byte, at, len);
}

static void a_limit_cuts_no_character(void **state)
{
    check("123456789", 5, LINE_ESCAPE_TEXT, "12345");
    check("1234567890abcdef", 8, LINE_ESCAPE_TEXT, "12345678");
    check("1234\n", 7, LINE_ESCAPE_TEXT, "1234");
    check("1234\n", 8, LINE_ESCAPE_TEXT, "1234\\x0a");
    check("1234\xe2\x82\xac", 6, LINE_ESCAPE_JSON, "1234");
    check("\"\"\"", 5, LINE_ESCAPE_JSON, "\\\"\\\"");
    check("abc", 0, LINE_ESCAPE_JSON, "");
}

static void a_full_line_keeps_its_end(void **state)
{
    char many[5001];
    struct line l;
    memset(many, '\n', 5000);
    many[5000] = '\0';
    l.len = 0;
    line_append_escaped(&l, many, LINE_BYTES, LINE_ESCAPE_JSON);
    line_append_text(&l, "no room");
    line_append_json(&l, "value", LINE_BYTES);
    line_end(&l, "\"}\n");
    assert_true(l.len <= LINE_BYTES && l.len > LINE_BYTES - 10);
    assert_memory_equal(l.text + l.len - 9, "\\u000a\"}\n", 9);
}

static void numbers_and_times(void **state)
{
    struct line l;
    l.len = 0;
    line_append_number(&l, 0);
    line_append_text(&l, " ");
    line_append_number(&l, 10);
    line_append_text(&l, " ");
    line_append_number(&l, UINT64_MAX);
    line_append_text(&l, " ");
    line_append_time(&l, &(struct timespec){0, 999999999});
    line_append_text(&l, " ");
    line_append_time(&l, &(struct timespec){1795301540, 7000000});
    LINE_PUT(&l, ",\"a\":");
    line_append_json(&l, NULL, 9);
    LINE_PUT(&l, ",\"b\":");
    line_append_json(&l, "c\"", 9);
    line_end(&l, "\n");
    l.text[l.len] = '\0';
    assert_string_equal(l.text, "0 10 18446744073709551615 1970-01-01T00:00:00.999Z "
                                "2026-11-21T22:52:20.007Z,\"a\":null,\"b\":\"c\\\"\"\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes),
        cmocka_unit_test(every_byte_at_every_place),
        cmocka_unit_test(a_limit_cuts_no_character),
        cmocka_unit_test(a_full_line_keeps_its_end),
        cmocka_unit_test(numbers_and_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
