/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Numbers, times and words as engines write them, and as they should not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/engines/engine.h"

static json_t *text(const char *value)
{
    json_t *made = json_string(value);
    assert_non_null(made);
    return made;
}

static void numbers_come_as_numbers_and_as_texts(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
    } of[] = {
        {"0", 0},
        {"7", 7},
        {"1234567", 1234567},
        {"1099511627776", INT64_C(1) << 40},
        {"1099511627777", 0},
        {"9223372036854775807", 0},
        {"99999999999999999999999", 0},
        {"", 0},
        {"-1", 0},
        {"+1", 0},
        {" 1", 0},
        {"1 ", 0},
        {"1.5", 0},
        {"0x10", 0},
        {"many", 0},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        json_t *value = text(of[i].text);
        if (engine_number(value) != of[i].number)
            fail_msg("\"%s\"", of[i].text);
        json_decref(value);
    }
    json_t *others[] = {json_integer(42), json_integer(-3), json_integer(INT64_C(1) << 40),
                        json_real(2.5),   json_true(),      json_null(),
                        json_array(),     json_object()};
    const uint64_t numbers[] = {42, 0, INT64_C(1) << 40, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(engine_number(others[i]), numbers[i]);
        json_decref(others[i]);
    }
    assert_int_equal(engine_number(NULL), 0);
}

struct time_case {
    const char *text;
    int64_t seconds;
};

static void times_are(int64_t (*read)(const json_t *), const struct time_case *of, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *value = text(of[i].text);
        if (read(value) != of[i].seconds)
            fail_msg("\"%s\": %lld", of[i].text, (long long)read(value));
        json_decref(value);
    }
    json_t *number = json_integer(1700000000);
    assert_int_equal(read(number), 0);
    json_decref(number);
    assert_int_equal(read(NULL), 0);
}

static void times_of_google_are_rfc_3339(void **state)
{
    static const struct time_case of[] = {
        {"2023-11-14T22:13:20Z", 1700000000},
        {"2023-11-14T22:13:20.999Z", 1700000000},
        {"2023-11-14T23:13:20+01:00", 1700000000},
        {"2023-11-14T22:13:20", 0},
        {"2023-13-14T22:13:20Z", 0},
        {"yesterday", 0},
        {"", 0},
    };
    times_are(engine_time, of, sizeof of / sizeof *of);
}

static void times_of_bing_are_milliseconds_in_a_call(void **state)
{
    static const struct time_case of[] = {
        {"/Date(1700000000000)/", 1700000000},
        {"/Date(1700000000999-0700)/", 1700000000},
        {"/Date(1700000000000+0200)/", 1700000000},
        {"/Date(-62135568000000)/", 0}, /* .NET's least time: never */
        {"/Date(0)/", 0},
        {"/Date(99999999999999999999)/", 0},
        {"/Date(1700000000000", 0},
        {"/Date(soon)/", 0},
        {"/Date()/", 0},
        {"Date(1700000000000)", 0},
        {"2023-11-14T22:13:20Z", 0},
        {"", 0},
    };
    times_are(engine_bing_time, of, sizeof of / sizeof *of);
}

static void what_goes_into_a_path_is_escaped(void **state)
{
    struct str out = STR_INIT;
    engine_append_escaped(&out, "https://a.example/x-1._~?q=1&r=\xc3\xa4 %");
    assert_string_equal(out.data, "https%3A%2F%2Fa.example%2Fx-1._~%3Fq%3D1%26r%3D%C3%A4%20%25");
    str_done(&out);
}

static void only_a_plain_word_of_an_error_is_shown(void **state)
{
    static const struct {
        const char *text, *word;
    } of[] = {
        {"rateLimitExceeded", "rateLimitExceeded"},
        {"invalid_grant", "invalid_grant"},
        {"a secret: 1", ""},
        {"<b>", ""},
        {"", ""},
    };
    char out[65], longest[66];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        json_t *value = text(of[i].text);
        assert_string_equal(engine_word(value, out), of[i].word);
        json_decref(value);
    }
    memset(longest, 'a', sizeof longest);
    longest[64] = '\0';
    json_t *value = text(longest);
    assert_string_equal(engine_word(value, out), longest);
    json_decref(value);
    longest[64] = 'a';
    longest[65] = '\0';
    value = text(longest);
    assert_string_equal(engine_word(value, out), "");
    json_decref(value);
    assert_string_equal(engine_word(NULL, out), "");
}

static void a_list_is_bounded(void **state)
{
    struct engine_list list = {.at = NULL};
    char loc[LOC_MAX_CHARS + 2];
    memset(loc, 'a', sizeof loc);
    loc[LOC_MAX_CHARS + 1] = '\0';
    engine_list_add(&list, &(struct engine_sitemap){.loc = loc, .parent = ""});
    assert_int_equal(list.count, 0); /* longer than any sitemap's */
    for (size_t i = 0; i < ENGINE_SITEMAPS_MAX + 5; i++)
        engine_list_add(&list,
                        &(struct engine_sitemap){.loc = "https://a.example/1.xml", .parent = ""});
    assert_int_equal(list.count, ENGINE_SITEMAPS_MAX);
    assert_false(list.failed);
    assert_string_equal(list.at[ENGINE_SITEMAPS_MAX - 1].loc, "https://a.example/1.xml");
    engine_list_done(&list);
    assert_int_equal(list.count, 0);
    /* Of one site, and of use. */
    static const char *const others[] = {
        "https://a.example.org/1.xml", "https://a.example",        "javascript:alert(1)",
        "https://a.example/1\x7f.xml", "https://a.example/ 1.xml", ""};
    list.origin = "https://a.example";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        engine_list_add(&list, &(struct engine_sitemap){.loc = others[i], .parent = ""});
    assert_int_equal(list.count, 0);
    engine_list_add(&list, &(struct engine_sitemap){
                               .loc = "https://a.example/1.xml", .parent = "", .urls = UINT64_MAX});
    assert_int_equal(list.count, 1);
    assert_int_equal(list.at[0].urls, INT64_C(1) << 40);
    engine_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_as_numbers_and_as_texts),
        cmocka_unit_test(times_of_google_are_rfc_3339),
        cmocka_unit_test(times_of_bing_are_milliseconds_in_a_call),
        cmocka_unit_test(what_goes_into_a_path_is_escaped),
        cmocka_unit_test(only_a_plain_word_of_an_error_is_shown),
        cmocka_unit_test(a_list_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
