/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/lastmod.h"

#define NOW_2026  1767225600 /* 2026-01-01T00:00:00Z */
#define COARSE    RULE_BIT(RULE_LASTMOD_COARSE)
#define DATE_ONLY RULE_BIT(RULE_LASTMOD_DATE_ONLY)

static void test_later(void **state)
{
    static const struct {
        const char *a, *b;
        bool later;
    } rows[] = {
        {"2025-11-22", "2025-11-21", true},
        {"2025-11-21", "2025-11-21", false},
        {"2025-11-21T08:30:00+01:00", "2025-11-21T08:00:00Z", false},
        {"2025-11-21T08:30:00-01:00", "2025-11-21T08:30:00Z", true},
        {"2025-11-21", NULL, true},
        {NULL, "2025-11-21", false},
        {NULL, NULL, false},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(rows[i].a != NULL ? rows[i].a : "none", lastmod_is_later(rows[i].a, rows[i].b),
                     rows[i].later);
}

static void test_accepted(void **state)
{
    static const struct {
        const char *text, *stored;
        int64_t unix_seconds;
        rule_set remarks;
    } rows[] = {
        /* the six forms */
        {"2025", "2025", 1735689600, COARSE},
        {"2025-11", "2025-11", 1761955200, COARSE},
        {"2025-11-21", "2025-11-21", 1763683200, DATE_ONLY},
        {"2025-11-21T08:30Z", "2025-11-21T08:30:00Z", 1763713800, 0},
        {"2025-11-21T08:30+01:00", "2025-11-21T08:30:00+01:00", 1763710200, 0},
        {"2025-11-21T08:30:15Z", "2025-11-21T08:30:15Z", 1763713815, 0},
        {"2025-11-21T08:30:15-05:30", "2025-11-21T08:30:15-05:30", 1763733615, 0},
        {"2025-11-21T08:30:15.5Z", "2025-11-21T08:30:15.5Z", 1763713815, 0},
        {"2025-11-21T08:30:15.50Z", "2025-11-21T08:30:15.50Z", 1763713815, 0},
        /* fractions are cut, never rounded */
        {"2025-11-21T08:30:15.123456789+14:00", "2025-11-21T08:30:15.123456789+14:00", 1763663415,
         0},
        {"2025-11-21T08:30:15.1234567899999Z", "2025-11-21T08:30:15.123456789Z", 1763713815, 0},
        /* edges */
        {"2025-11-21T00:00:00-14:00", "2025-11-21T00:00:00-14:00", 1763733600, 0},
        {"2025-11-21T00:00:00-00:00", "2025-11-21T00:00:00-00:00", 1763683200, 0},
        {"2025-11-21T00:00:00+13:59", "2025-11-21T00:00:00+13:59", 1763632860, 0},
        {"2025-11-21T23:59:59Z", "2025-11-21T23:59:59Z", 1763769599, 0},
        {"2024-02-29", "2024-02-29", 1709164800, DATE_ONLY},
        {"2000-02-29", "2000-02-29", 951782400, DATE_ONLY},
        {"0001", "0001", -62135596800, COARSE},
        {"0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00", -62135647200, 0},
        {"1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z", -1, 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct lastmod out, again;
        rule_set remarks = 0;

        check_code(rows[i].text,
                   lastmod_parse(rows[i].text, strlen(rows[i].text), NOW_2026, &out, &remarks),
                   RULE_OK);
        check_text(rows[i].text, out.text, rows[i].stored);
        check_number(rows[i].text, out.unix_seconds, rows[i].unix_seconds);
        check_set(rows[i].text, remarks, rows[i].remarks);
        check_set(rows[i].text, lastmod_remarks(out.text), rows[i].remarks);
        check_number(rows[i].text, out.renders, rows[i].remarks != COARSE);
        check_number(rows[i].text, lastmod_renders(out.text), out.renders);
        /* What is stored stays what it is when it is given again. */
        check_code(rows[i].text, lastmod_parse(out.text, strlen(out.text), NOW_2026, &again, NULL),
                   RULE_OK);
        check_text(rows[i].text, again.text, out.text);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        enum rule_code code;
    } rows[] = {
        /* a time without a zone */
        {BYTES("2025-11-21T08:30"), RULE_LASTMOD_NO_ZONE},
        {BYTES("2025-11-21T08:30:15"), RULE_LASTMOD_NO_ZONE},
        {BYTES("2025-11-21T08:30:15.5"), RULE_LASTMOD_NO_ZONE},
        /* no W3C Datetime at all */
        {BYTES(""), RULE_LASTMOD_INVALID},
        {BYTES("yesterday"), RULE_LASTMOD_INVALID},
        {BYTES("1763713800"), RULE_LASTMOD_INVALID},
        {BYTES("25-11-21"), RULE_LASTMOD_INVALID},
        {BYTES("2025-1-21"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-2"), RULE_LASTMOD_INVALID},
        {BYTES("2025/11/21"), RULE_LASTMOD_INVALID},
        {BYTES("21-11-2025"), RULE_LASTMOD_INVALID},
        {BYTES("20251121"), RULE_LASTMOD_INVALID},
        {BYTES("2025-"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-"), RULE_LASTMOD_INVALID},
        {BYTES("2025-W47"), RULE_LASTMOD_INVALID},
        {BYTES("2025-325"), RULE_LASTMOD_INVALID},
        {BYTES("02025-11-21"), RULE_LASTMOD_INVALID},
        {BYTES("-2025-11-21"), RULE_LASTMOD_INVALID},
        {BYTES(" 2025-11-21"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21 "), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21\n"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21\0"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21Z"), RULE_LASTMOD_INVALID}, /* XSD has it, W3C Datetime has not */
        {BYTES("Fri, 21 Nov 2025 08:30:15 GMT"), RULE_LASTMOD_INVALID},
        /* no real date or time */
        {BYTES("0000"), RULE_LASTMOD_INVALID},
        {BYTES("0000-01-01"), RULE_LASTMOD_INVALID},
        {BYTES("2025-00"), RULE_LASTMOD_INVALID},
        {BYTES("2025-13"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-00"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-31"), RULE_LASTMOD_INVALID},
        {BYTES("2025-02-29"), RULE_LASTMOD_INVALID},
        {BYTES("2024-02-30"), RULE_LASTMOD_INVALID},
        {BYTES("1900-02-29"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T24:00Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T24:00:00Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:60Z"), RULE_LASTMOD_INVALID},
        {BYTES("2016-12-31T23:59:60Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-02-29T08:30"), RULE_LASTMOD_INVALID}, /* before the zone matters */
        {BYTES("2025-11-21T24:00"), RULE_LASTMOD_INVALID},
        /* the letters and the time's shape */
        {BYTES("2025-11-21t08:30Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21 08:30Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T0830Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T8:30Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30:Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30:1Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30:15.Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30:15,5Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30.5Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11T08:30Z"), RULE_LASTMOD_INVALID},
        {BYTES("2025T08:30Z"), RULE_LASTMOD_INVALID},
        /* zones */
        {BYTES("2025-11-21T08:30+14:01"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30-14:01"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30+15:00"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30+01:60"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30+0100"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30+01"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30+1:00"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30 +01:00"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30UTC"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30ZZ"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30Z+01:00"), RULE_LASTMOD_INVALID},
        {BYTES("2025-11-21T08:30\xE2\x88\x92"
               "01:00"),
         RULE_LASTMOD_INVALID},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct lastmod out = {.text = "kept"};
        rule_set remarks = 0;

        check_code(rows[i].text, lastmod_parse(rows[i].text, rows[i].len, NOW_2026, &out, &remarks),
                   rows[i].code);
        check_text(rows[i].text, out.text, "kept");
        check_set(rows[i].text, remarks, 0);
    }
}

static void test_future(void **state)
{
    static const struct {
        const char *text;
        enum rule_code code;
    } rows[] = {
        {"2026-01-02T00:00:00Z", RULE_OK}, /* a day to the second */
        {"2026-01-02T00:00:00.9Z", RULE_OK},
        {"2026-01-02T00:00:01Z", RULE_LASTMOD_FUTURE},
        {"2026-01-02T01:00:00+01:00", RULE_OK},
        {"2026-01-02T00:00:00-00:01", RULE_LASTMOD_FUTURE},
        {"2026-01-02", RULE_OK},
        {"2026-01-03", RULE_LASTMOD_FUTURE},
        {"2026-01", RULE_OK},
        {"2026-02", RULE_LASTMOD_FUTURE},
        {"2026", RULE_OK},
        {"2027", RULE_LASTMOD_FUTURE},
        {"9999-12-31T23:59:59Z", RULE_LASTMOD_FUTURE},
        {"2027-02-29", RULE_LASTMOD_INVALID},
        {"2027-01-01T00:00", RULE_LASTMOD_NO_ZONE},
    };
    struct lastmod out;

    for (size_t i = 0; i < ROWS(rows); i++)
        check_code(rows[i].text,
                   lastmod_parse(rows[i].text, strlen(rows[i].text), NOW_2026, &out, NULL),
                   rows[i].code);
    check_code("a clock at its end", lastmod_parse("9999", 4, INT64_MAX, &out, NULL), RULE_OK);
    check_code("a clock at its start", lastmod_parse("0001", 4, INT64_MIN, &out, NULL),
               RULE_LASTMOD_FUTURE);
}

static void test_format_utc(void **state)
{
    char out[21];

    lastmod_format_utc(1763713815, out);
    assert_string_equal(out, "2025-11-21T08:30:15Z");
    lastmod_format_utc(-62167219200, out);
    assert_string_equal(out, "0000-01-01T00:00:00Z");
    lastmod_format_utc(253402300799, out);
    assert_string_equal(out, "9999-12-31T23:59:59Z");
}

static void test_too_old(void **state)
{
    static const char *const old[] = {
        "0001",       "1969-12-31T23:59:59Z",      "1970",       "1970-01",
        "1970-01-01", "0001-01-01T00:00:00+01:00", "1899-11-30", "1970-01-01T00:00:00Z"};
    static const char *const dates[] = {"1970-01-02", "1970-02", "1971", "2026-01-01T00:00:00Z"};
    for (size_t i = 0; i < ROWS(old); i++)
        if (!lastmod_is_too_old(old[i]))
            fail_msg("%s", old[i]);
    for (size_t i = 0; i < ROWS(dates); i++)
        if (lastmod_is_too_old(dates[i]))
            fail_msg("%s", dates[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_old),  cmocka_unit_test(test_later),
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_future),   cmocka_unit_test(test_format_utc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
