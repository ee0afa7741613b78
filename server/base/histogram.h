/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Histograms: the number of values in each range, and the sum of all values. Values are whole
 * numbers in the caller's base unit (nanoseconds, changes); the code that writes them for readers
 * scales them. Fixed size, no allocation. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_MAX_BOUNDS 17u

/* The upper bounds of the ranges, inclusive and ascending; one more cell counts the values above
 * the last bound. Static. */
struct histogram_bounds {
    size_t count;
    uint64_t upper[HISTOGRAM_MAX_BOUNDS];
};

/* Bounds in nanoseconds, from 100 µs to a minute. */
extern const struct histogram_bounds histogram_times;

/* A zeroed one is empty. */
struct histogram {
    atomic_uint_fast64_t cells[HISTOGRAM_MAX_BOUNDS + 1];
    atomic_uint_fast64_t sum;
};

/* A copy to read from. It is not of one instant: a value that is added during the copy may be in a
 * cell and not yet in the sum. */
struct histogram_values {
    uint64_t cells[HISTOGRAM_MAX_BOUNDS + 1];
    uint64_t sum;
};

/* Adds a value. Any thread, without a lock; the atomic operations are relaxed and order nothing
 * else. */
void histogram_add(struct histogram *h, const struct histogram_bounds *bounds, uint64_t value);
/* Adds what `h` holds to `out`. Any thread. */
void histogram_collect(const struct histogram *h, struct histogram_values *out);
/* The number of values: the sum of the cells. */
uint64_t histogram_count(const struct histogram_values *values);
