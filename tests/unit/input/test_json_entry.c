/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/input/reader.h"

#define URL "https://example.com/a.xml"

static const struct reader_options options = {.now = 1790000000};

static enum rule_code parse(const char *text, struct json_entry *e, struct rejection *r)
{
    char *copy = strdup(text); /* gone before the result is looked at */
    enum rule_code code = json_entry_parse(copy, strlen(text), 9, &options, e, r);
    memset(copy, '#', strlen(text));
    free(copy);
    return code;
}

static void test_accepted(void **state)
{
    struct json_entry e;
    struct rejection r;
    assert_int_equal(
        parse("{\"loc\":\"HTTPS://Example.com:443/a.xml\",\"lastmod\":\"2026-01-02T03:04Z\","
              "\"digest\":\"d\",\"index\":\"/i.xml\"}",
              &e, &r),
        RULE_OK);
    assert_string_equal(e.entry.loc, URL);
    assert_string_equal(e.entry.lastmod, "2026-01-02T03:04:00Z");
    assert_string_equal(e.entry.digest, "d");
    assert_string_equal(e.entry.index, "/i.xml");
    assert_int_equal(e.entry.lastmod_state, FIELD_SET);
    assert_int_equal(e.entry.digest_state, FIELD_SET);
    assert_int_equal(e.entry.position, POSITION_NONE);
    assert_int_equal(e.entry.line, 9);
    assert_true(e.entry.remarks & RULE_BIT(RULE_LOC_NORMALISED));
    json_entry_done(&e);

    assert_int_equal(parse("{\"loc\":\"" URL "\",\"digest\":null}", &e, &r), RULE_OK);
    assert_null(e.entry.lastmod);
    assert_null(e.entry.digest);
    assert_null(e.entry.index);
    assert_int_equal(e.entry.lastmod_state, FIELD_ABSENT);
    assert_int_equal(e.entry.digest_state, FIELD_NULL);
    json_entry_done(&e);
    json_entry_done(&e); /* may be called again */
    json_entry_done(NULL);
}

static void test_rejected(void **state)
{
    static const struct {
        const char *text;
        enum rule_code code;
        const char *field, *loc, *detail; /* detail: a part of it */
    } table[] = {
        {"", RULE_JSON, NULL, NULL, "column"},
        {"{", RULE_JSON, NULL, NULL, "column 1"},
        {"[]", RULE_FIELD_TYPE, NULL, NULL, "object"},
        {"{} {}", RULE_JSON, NULL, NULL, "column 4"},
        {"{\n\"loc\":\n x}", RULE_JSON, NULL, NULL, "line 3"},
        {"{\"loc\":\"a\",\"loc\":\"b\"}", RULE_JSON, NULL, NULL, "uplicate"},
        {"{}", RULE_LOC_MISSING, "loc", NULL, "loc is missing"},
        {"{\"loc\":\"/a\"}", RULE_LOC_RELATIVE, "loc", "/a", "absolute"},
        {"{\"lastmod\":\"soon\",\"loc\":\"" URL "\"}", RULE_LASTMOD_INVALID, "lastmod", URL,
         "\"soon\""},
        {"{\"loc\":\"" URL "\",\"a\\nb\":0}", RULE_FIELD_UNKNOWN, NULL, URL, "\"a?b\""},
        {"{\"loc\":\"" URL "\",\"digest\":0}", RULE_FIELD_TYPE, "digest", URL, "digest"},
        {"{\"loc\":\"https://b\xc3\xbc"
         "cher.example/\"}",
         RULE_LOC_HOST_IDN, "loc",
         "https://b\xc3\xbc"
         "cher.example/",
         "xn--bcher-kva.example"},
        {"[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]", RULE_JSON, NULL, NULL, "deep"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct json_entry e;
        struct rejection r;
        enum rule_code code = parse(table[i].text, &e, &r);
        if (code != table[i].code || r.code != code || r.line != 9 ||
            !strstr(r.detail, table[i].detail))
            fail_msg("%s: %s, %s", table[i].text, rule_code_word(code), r.detail);
        if (table[i].field)
            assert_string_equal(r.field, table[i].field);
        else
            assert_null(r.field);
        if (table[i].loc)
            assert_string_equal(r.loc, table[i].loc);
        else
            assert_null(r.loc);
        json_entry_done(&e);
    }
}

/* What is kept of a loc ends at a character, whatever its length. */
static void test_long_loc(void **state)
{
    for (size_t shift = 0; shift < 4; shift++) {
        static char text[9000];
        struct json_entry e;
        struct rejection r;
        snprintf(text, sizeof text, "{\"loc\":\"https://example.com/%.*s", (int)shift, "xxxx");
        while (strlen(text) < 5000)
            strcat(text, "\xf0\x9f\x98\x80");
        strcat(text, "\"}");
        assert_int_equal(parse(text, &e, &r), RULE_LOC_TOO_LONG);
        size_t len = strlen(r.loc);
        assert_in_range(len, LOC_MAX_CHARS - 3, LOC_MAX_CHARS);
        assert_memory_equal(r.loc + len - 4, "\xf0\x9f\x98\x80", 4);
        json_entry_done(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_long_loc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
