/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The listener's tables: sums over threads, and what is not counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "server/http/counts.h"

#define THREADS 12 /* more than stripes: some share */
#define TIMES   2000

static void *count(void *counts)
{
    for (unsigned i = 0; i < TIMES; i++) {
        struct counts_answer answer = {.row = i % 3,
                                       .status = i % 2 == 0 ? 200 : 304,
                                       .encoding = i % 2 == 0 ? COUNTS_GZIP : COUNTS_NONE,
                                       .bytes = i % 2 == 0 ? 7 : 0,
                                       .received = 2,
                                       .took_ns = 50000};
        counts_begin(counts);
        counts_add(counts, &answer);
        counts_end(counts);
    }
    return NULL;
}

static void test_nothing_is_lost_between_threads(void **state)
{
    struct counts *c = counts_new(3);
    struct counts_sums sums;
    struct histogram_values took;
    pthread_t threads[THREADS];
    uint64_t all = 0;

    assert_non_null(c);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    for (size_t row = 0; row < 3; row++) {
        uint64_t of_row = counts_get(c, row, 200) + counts_get(c, row, 304);
        counts_times(c, row, &took);
        assert_int_equal(histogram_count(&took), of_row);
        assert_int_equal(took.cells[0], of_row);
        assert_int_equal(took.sum, of_row * 50000);
        all += of_row;
    }
    assert_int_equal(all, THREADS * TIMES);
    counts_sum(c, &sums);
    assert_int_equal(sums.answers[COUNTS_GZIP], THREADS * TIMES / 2);
    assert_int_equal(sums.answers[COUNTS_NONE], THREADS * TIMES / 2);
    assert_int_equal(sums.answers[COUNTS_IDENTITY], 0);
    assert_int_equal(sums.bytes[COUNTS_GZIP], THREADS * TIMES / 2 * 7);
    assert_int_equal(sums.bytes[COUNTS_NONE], 0);
    assert_int_equal(sums.received, THREADS * TIMES * 2);
    assert_int_equal(counts_active(c), 0);
    counts_free(c);
}

static void test_rows_and_statuses_are_apart(void **state)
{
    struct counts *c = counts_new(2);
    static const unsigned odd[] = {0, 99, 600, 4000000000u};
    struct counts_sums sums;

    assert_non_null(c);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        counts_add(c, &(struct counts_answer){.row = 1, .status = odd[i], .bytes = 1});
        assert_int_equal(counts_get(c, 1, odd[i]), 0);
    }
    counts_add(c, &(struct counts_answer){.row = 0, .status = 599});
    counts_add(c, &(struct counts_answer){.row = 1, .status = 100});
    assert_int_equal(counts_get(c, 0, 599), 1);
    assert_int_equal(counts_get(c, 1, 100), 1);
    assert_int_equal(counts_get(c, 1, 599) + counts_get(c, 0, 100), 0);
    counts_sum(c, &sums);
    assert_int_equal(sums.answers[COUNTS_NONE], 2);
    assert_int_equal(sums.bytes[COUNTS_NONE], 0);
    counts_free(c);
    counts_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost_between_threads),
        cmocka_unit_test(test_rows_and_statuses_are_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
