/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/lastmod.h"

static void test_days_in_month(void **state)
{
    static const struct {
        const char *name;
        int64_t year;
        unsigned month, days;
    } rows[] = {
        {"january", 2026, 1, 31},        {"april", 2026, 4, 30},
        {"december", 2026, 12, 31},      {"common february", 2026, 2, 28},
        {"leap february", 2024, 2, 29},  {"century", 1900, 2, 28},
        {"fourth century", 2000, 2, 29}, {"no month 0", 2026, 0, 0},
        {"no month 13", 2026, 13, 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(rows[i].name, calendar_days_in_month(rows[i].year, rows[i].month),
                     rows[i].days);
}

static void test_known_instants(void **state)
{
    static const struct {
        const char *name;
        struct calendar_time time;
        int64_t unix_seconds;
    } rows[] = {
        {"epoch", {1970, 1, 1, 0, 0, 0, 4}, 0},
        {"RFC 9110's example", {1994, 11, 6, 8, 49, 37, 0}, 784111777},
        {"before the epoch", {1969, 12, 31, 23, 59, 59, 3}, -1},
        {"leap day", {2024, 2, 29, 12, 0, 0, 4}, 1709208000},
        {"first", {0, 1, 1, 0, 0, 0, 6}, -62167219200},
        {"last", {9999, 12, 31, 23, 59, 59, 5}, 253402300799},
        {"past 2038", {2038, 1, 19, 3, 14, 8, 2}, 2147483648},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        const struct calendar_time *want = &rows[i].time;
        struct calendar_time got;

        check_number(rows[i].name, calendar_to_unix(want), rows[i].unix_seconds);
        calendar_from_unix(rows[i].unix_seconds, &got);
        check_number(rows[i].name, got.year, want->year);
        check_number(rows[i].name, got.month, want->month);
        check_number(rows[i].name, got.day, want->day);
        check_number(rows[i].name, got.hour, want->hour);
        check_number(rows[i].name, got.minute, want->minute);
        check_number(rows[i].name, got.second, want->second);
        check_number(rows[i].name, got.weekday, want->weekday);
    }
}

/* Every day of the range follows the one before it. */
static void test_each_day(void **state)
{
    struct calendar_time t, previous = {.day = 0};
    int64_t first = -62167219200, last = 253402300799;

    for (int64_t at = first; at <= last; at += CALENDAR_SECONDS_PER_DAY) {
        calendar_from_unix(at, &t);
        assert_true(calendar_to_unix(&t) == at);
        if (previous.day != 0) {
            assert_int_equal(t.weekday, (previous.weekday + 1) % 7);
            if (t.day != 1)
                assert_int_equal(t.day, previous.day + 1);
            else
                assert_int_equal(previous.day,
                                 calendar_days_in_month(previous.year, previous.month));
        }
        previous = t;
    }
}

static void test_outside_is_clamped(void **state)
{
    struct calendar_time t;

    calendar_from_unix(INT64_MIN, &t);
    assert_int_equal(t.year, 0);
    calendar_from_unix(INT64_MAX, &t);
    assert_int_equal(t.year, 9999);
    assert_int_equal(t.second, 59);
}

static void test_write_digits(void **state)
{
    char out[5] = "xxxx";

    assert_ptr_equal(calendar_write_digits(out, 7, 2), out + 2);
    assert_string_equal(out, "07xx");
    calendar_write_digits(out, 2026, 4);
    assert_string_equal(out, "2026");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days_in_month), cmocka_unit_test(test_known_instants),
        cmocka_unit_test(test_each_day),      cmocka_unit_test(test_outside_is_clamped),
        cmocka_unit_test(test_write_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
