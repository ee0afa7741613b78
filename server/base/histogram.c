/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Counts values in buckets. */
#include "server/base/histogram.h"

#define US 1000u
#define MS 1000000u
#define S  1000000000u

const struct histogram_bounds histogram_times = {
    .count = 17,
    .upper = {100 * US, 250 * US, 500 * US, 1 * MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS, 50 * MS,
              100 * MS, 250 * MS, 500 * MS, 1ull * S, 2500ull * MS, 5ull * S, 10ull * S, 60ull * S},
};

void histogram_add(struct histogram *h, const struct histogram_bounds *bounds, uint64_t value)
{
    size_t at = 0;

    /* Search from below: most values are small. */
    while (at < bounds->count && value > bounds->upper[at])
        at++;
    atomic_fetch_add_explicit(&h->cells[at], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

void histogram_collect(const struct histogram *h, struct histogram_values *out)
{
    for (size_t i = 0; i < HISTOGRAM_MAX_BOUNDS + 1; i++)
        out->cells[i] += atomic_load_explicit(&h->cells[i], memory_order_relaxed);
    out->sum += atomic_load_explicit(&h->sum, memory_order_relaxed);
}

uint64_t histogram_count(const struct histogram_values *values)
{
    uint64_t count = 0;

    for (size_t i = 0; i < HISTOGRAM_MAX_BOUNDS + 1; i++)
        count += values->cells[i];
    return count;
}
