/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The text format: what is written down here is what a scraper reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/api/exposition.h"

static void expect(struct str *out, const char *text)
{
    assert_false(out->failed);
    assert_string_equal(str_text(out), text);
    str_done(out);
}

static void test_samples(void **state)
{
    struct str out = STR_INIT;

    metric_counter(&out, "a_total", "What it is.", UINT64_MAX);
    expect(&out, "# HELP a_total What it is.\n# TYPE a_total counter\n"
                 "a_total 18446744073709551615\n");
    metric_gauge(&out, "a", "Help.", 0);
    expect(&out, "# HELP a Help.\n# TYPE a gauge\na 0\n");
    metric_sample(&out, "a", LABELS("x", "1", "y", "2", "z", "3"), 4);
    expect(&out, "a{x=\"1\",y=\"2\",z=\"3\"} 4\n");
    metric_sample_ms(&out, "a", NO_LABELS, 1002);
    expect(&out, "a 1.002\n");
}

static void test_values_are_escaped(void **state)
{
    struct str out = STR_INIT;

    metric_sample(&out, "a", LABELS("x", "back\\slash \"quoted\"\nnext, {brace} \xc3\xa9", "y", ""),
                  1);
    expect(&out, "a{x=\"back\\\\slash \\\"quoted\\\"\\nnext, {brace} \xc3\xa9\",y=\"\"} 1\n");
}

static void test_a_histogram_of_numbers(void **state)
{
    static const struct histogram_bounds bounds = {.count = 2, .upper = {1, 50}};
    struct histogram_values values = {.cells = {3, 0, 2}, .sum = 1003};
    struct str out = STR_INIT;

    metric_histogram(&out, "n", LABELS("x", "1"), &bounds, &values);
    expect(&out, "n_bucket{x=\"1\",le=\"1\"} 3\nn_bucket{x=\"1\",le=\"50\"} 3\n"
                 "n_bucket{x=\"1\",le=\"+Inf\"} 5\nn_sum{x=\"1\"} 1003\nn_count{x=\"1\"} 5\n");
}

static void test_a_histogram_of_times(void **state)
{
    struct histogram_values values = {.cells = {1}, .sum = 61000000001u};
    struct str out = STR_INIT;

    values.cells[17] = 1;
    metric_histogram(&out, "t", NO_LABELS, &histogram_times, &values);
    expect(&out,
           "t_bucket{le=\"0.0001\"} 1\nt_bucket{le=\"0.00025\"} 1\nt_bucket{le=\"0.0005\"} 1\n"
           "t_bucket{le=\"0.001\"} 1\nt_bucket{le=\"0.0025\"} 1\nt_bucket{le=\"0.005\"} 1\n"
           "t_bucket{le=\"0.01\"} 1\nt_bucket{le=\"0.025\"} 1\nt_bucket{le=\"0.05\"} 1\n"
           "t_bucket{le=\"0.1\"} 1\nt_bucket{le=\"0.25\"} 1\nt_bucket{le=\"0.5\"} 1\n"
           "t_bucket{le=\"1\"} 1\nt_bucket{le=\"2.5\"} 1\nt_bucket{le=\"5\"} 1\n"
           "t_bucket{le=\"10\"} 1\nt_bucket{le=\"60\"} 1\nt_bucket{le=\"+Inf\"} 2\n"
           "t_sum 61.000000001\nt_count 2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_values_are_escaped),
        cmocka_unit_test(test_a_histogram_of_numbers),
        cmocka_unit_test(test_a_histogram_of_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
