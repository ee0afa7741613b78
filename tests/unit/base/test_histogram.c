/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Where a value is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/base/histogram.h"

static const struct histogram_bounds three = {.count = 3, .upper = {10, 20, 1000}};

static void test_bounds_are_inclusive(void **state)
{
    static const struct {
        uint64_t value;
        size_t cell;
    } rows[] = {{0, 0},  {1, 0},   {10, 0},   {11, 1},   {20, 1},
                {21, 2}, {999, 2}, {1000, 2}, {1001, 3}, {UINT64_MAX / 2, 3}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct histogram h = {0};
        struct histogram_values values = {0};

        histogram_add(&h, &three, rows[i].value);
        histogram_collect(&h, &values);
        assert_int_equal(values.cells[rows[i].cell], 1);
        assert_int_equal(histogram_count(&values), 1);
        assert_int_equal(values.sum, rows[i].value);
    }
}

/* Stripes are collected into one. */
static void test_collecting_adds(void **state)
{
    struct histogram a = {0}, b = {0};
    struct histogram_values values = {0};

    histogram_add(&a, &three, 5);
    histogram_add(&a, &three, 15);
    histogram_add(&b, &three, 15);
    histogram_collect(&a, &values);
    histogram_collect(&b, &values);
    assert_int_equal(values.cells[0], 1);
    assert_int_equal(values.cells[1], 2);
    assert_int_equal(values.sum, 35);
    assert_int_equal(histogram_count(&values), 3);
}

static void test_the_times_ascend(void **state)
{
    assert_in_range(histogram_times.count, 1, HISTOGRAM_MAX_BOUNDS);
    for (size_t i = 1; i < histogram_times.count; i++)
        assert_true(histogram_times.upper[i - 1] < histogram_times.upper[i]);
    assert_int_equal(histogram_times.upper[0], 100000);
    assert_int_equal(histogram_times.upper[histogram_times.count - 1], 60000000000u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_are_inclusive),
        cmocka_unit_test(test_collecting_adds),
        cmocka_unit_test(test_the_times_ascend),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
