/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/input/frame.h"

#define URL "https://example.com/a.xml"

static const struct reader_options options = {.now = 1790000000};

/* The text in memory of its own, so that a sanitizer sees a byte read past its end. */
static bool read_exact(const char *text, const struct reader_options *with, struct raw_entry *raw,
                       char **copy)
{
    size_t len = strlen(text);
    *copy = malloc(len > 0 ? len : 1);
    assert_non_null(*copy);
    memcpy(*copy, text, len);
    *raw = (struct raw_entry){.position = POSITION_NONE, .line = 7};
    return json_flat_read(*copy, len, with, raw);
}

static void test_taken(void **state)
{
    struct raw_entry raw;
    char *copy;
    assert_true(read_exact(" { \"index\" : \"/i.xml\" ,\t\"loc\":\"" URL
                           "\"\r\n,\"digest\":\"d'1\","
                           "\"lastmod\":\"\" } ",
                           &options, &raw, &copy));
    assert_int_equal(raw.loc_len, strlen(URL));
    assert_memory_equal(raw.loc, URL, raw.loc_len);
    assert_int_equal(raw.index_len, 6);
    assert_memory_equal(raw.index, "/i.xml", 6);
    assert_int_equal(raw.digest_len, 3);
    assert_memory_equal(raw.digest, "d'1", 3);
    assert_int_equal(raw.digest_state, FIELD_SET);
    assert_non_null(raw.lastmod);
    assert_int_equal(raw.lastmod_len, 0);
    assert_int_equal(raw.lastmod_state, FIELD_SET);
    assert_int_equal(raw.position, POSITION_NONE);
    assert_int_equal(raw.line, 7);
    free(copy);

    assert_true(read_exact("{\"loc\":\"x\"}", &options, &raw, &copy));
    assert_int_equal(raw.loc_len, 1);
    assert_null(raw.index);
    assert_int_equal(raw.lastmod_state, FIELD_ABSENT);
    assert_int_equal(raw.digest_state, FIELD_ABSENT);
    free(copy);

    struct reader_options dropping = options;
    dropping.drop_lastmod = true;
    assert_true(read_exact("{\"loc\":\"x\",\"lastmod\":\"y\"}", &dropping, &raw, &copy));
    assert_int_equal(raw.lastmod_state, FIELD_ABSENT);
    free(copy);
}

static void test_left_to_the_general_reader(void **state)
{
    static const char *const table[] = {
        "",
        " ",
        "{",
        "{}",
        "[]",
        "\"loc\"",
        "{\"loc\"",
        "{\"loc\":",
        "{\"loc\":\"",
        "{\"loc\":\"x",
        "{\"loc\":\"x\"",
        "{\"loc\":\"x\",",
        "{\"loc\":\"x\",}",
        "{,\"loc\":\"x\"}",
        "{\"loc\":\"x\"}}",
        "{\"loc\":\"x\"} {}",
        "{\"loc\":\"x\" \"digest\":\"d\"}",
        "{\"loc\" \"x\"}",
        "{\"loc\":\"x\",\"loc\":\"y\"}",
        "{\"loc\":\"x\",\"digest\":\"\",\"digest\":\"y\"}",
        "{\"lastmod\":\"x\"}",
        "{\"loc\":null}",
        "{\"loc\":\"x\",\"digest\":null}",
        "{\"loc\":\"x\",\"position\":1}",
        "{\"loc\":\"x\",\"Digest\":\"1\"}",
        "{\"loc\":\"x\",\"lo\":\"1\"}",
        "{\"loc\":\"x\",\"\":\"1\"}",
        "{\"loc\":\"a\\/b\"}",
        "{\"l\\u006fc\":\"a\"}",
        "{\"loc\":\"a\tb\"}",
        "{\"loc\":\"a\x7f"
        "b\"}",
        "{\"loc\":\"b\xc3\xbc\"}",
        "{\"loc\":\"b\xff\"}",
        "\xef\xbb\xbf{\"loc\":\"x\"}",
        "\v{\"loc\":\"x\"}",
        "{'loc':'x'}",
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct raw_entry raw, before = {.position = POSITION_NONE, .line = 7};
        char *copy;
        if (read_exact(table[i], &options, &raw, &copy))
            fail_msg("taken: %s", table[i]);
        assert_ptr_equal(raw.loc, before.loc);
        assert_ptr_equal(raw.digest, before.digest);
        assert_int_equal(raw.lastmod_state, FIELD_ABSENT);
        free(copy);
    }
}

/* Wherever it stands, each byte is taken, or ends the string, or is left to the general reader. */
static void test_each_byte_at_each_place(void **state)
{
    enum { LEN = 19 };
    for (unsigned place = 0; place < LEN; place++) {
        for (unsigned byte = 1; byte < 256; byte++) {
            char text[] = "{\"loc\":\"https://a.example/1\"}";
            struct raw_entry raw;
            char *copy;
            text[8 + place] = (char)byte;
            bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
            if (read_exact(text, &options, &raw, &copy) != plain)
                fail_msg("byte %u at %u", byte, place);
            if (plain)
                assert_true(raw.loc_len == LEN && memcmp(raw.loc, text + 8, LEN) == 0);
            free(copy);
        }
    }
}

static void describe(const char *text, const struct reader_options *with, char *out, size_t size)
{
    struct json_entry e;
    struct rejection r;
    enum rule_code code = json_entry_parse(text, strlen(text), 3, with, &e, &r);
    if (code == RULE_OK)
        snprintf(out, size, "%s|%s|%s|%s|%d|%d|%llx", e.entry.loc,
                 e.entry.lastmod ? e.entry.lastmod : "-", e.entry.digest ? e.entry.digest : "-",
                 e.entry.index ? e.entry.index : "-", e.entry.lastmod_state, e.entry.digest_state,
                 (unsigned long long)e.entry.remarks);
    else
        snprintf(out, size, "%d|%s|%s|%s", code, r.loc ? r.loc : "-", r.field ? r.field : "-",
                 r.detail);
    json_entry_done(&e);
}

/* Both ways to the same end: a backslash in a name makes the general reader take the same entry. */
static void test_same_as_the_general_reader(void **state)
{
    static const char *const rests[] = {
        ":\"" URL "\"}",
        ":\"HTTPS://Example.com:443/%41?b=1\",\"lastmod\":\"2026-01-02\"}",
        ":\"" URL "\",\"lastmod\":\"soon\"}",
        ":\"" URL "\",\"lastmod\":\"\"}",
        ":\"" URL "\",\"digest\":\"\"}",
        ":\"" URL "\",\"digest\":\"d\",\"index\":\"/i.xml\"}",
        ":\"" URL "\",\"index\":\"\"}",
        ":\"\"}",
        ":\"/a\",\"lastmod\":\"2026-01-02\"}",
        ":\"ftp://example.com/a\"}",
        ":\"https://example.com/a b\"}",
        ":\"https://example.com/<b>\"}",
        ":\"https://user@example.com/a\"}",
        ":\"" URL "\",\"lastmod\":\"9999-01-01\"}",
    };
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        struct reader_options lenient = options;
        lenient.lenient = i % 2 == 1;
        char flat[512], general[512], one[512], other[512];
        snprintf(flat, sizeof flat, "{\"loc\"%s", rests[i]);
        snprintf(general, sizeof general, "{\"l\\u006fc\"%s", rests[i]);
        describe(flat, &lenient, one, sizeof one);
        describe(general, &lenient, other, sizeof other);
        assert_string_equal(one, other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_left_to_the_general_reader),
        cmocka_unit_test(test_each_byte_at_each_place),
        cmocka_unit_test(test_same_as_the_general_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
