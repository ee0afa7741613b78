/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Histograms: how many of the values measured so far lie in which range, and their sum. Whole
 * numbers in a base unit of the caller's (nanoseconds, changes); what a reader is shown is scaled
 * where it is written. Fixed size, no allocation. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_MAX_BOUNDS 17u

/* The upper bounds of the ranges, each inclusive, ascending; what is above the last is counted in
 * one more cell. Static. */
struct histogram_bounds {
    size_t count;
    uint64_t upper[HISTOGRAM_MAX_BOUNDS];
};

/* Nanoseconds: 100 µs to a minute. */
extern const struct histogram_bounds histogram_times;

/* All zero but for the bounds is an empty one. */
struct histogram {
    atomic_uint_fast64_t cells[HISTOGRAM_MAX_BOUNDS + 1];
    atomic_uint_fast64_t sum;
};

/* A copy to read from. Not of one instant: values added meanwhile may show in a cell and not yet in
 * the sum. */
struct histogram_values {
    uint64_t cells[HISTOGRAM_MAX_BOUNDS + 1];
    uint64_t sum;
};

/* Any thread, no lock, relaxed: nothing else is ordered by it. */
void histogram_add(struct histogram *h, const struct histogram_bounds *bounds, uint64_t value);
/* Adds what `h` holds to `out`. Any thread. */
void histogram_collect(const struct histogram *h, struct histogram_values *out);
/* All values: the sum of the cells. */
uint64_t histogram_count(const struct histogram_values *values);
