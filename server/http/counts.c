/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Counters of requests by listener, route and status, without locks. */
#include "server/http/counts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STRIPES      8u
#define FIRST_STATUS 100u
#define STATUSES     500u

struct stripe {
    _Alignas(64) atomic_int_fast64_t active;
    atomic_uint_fast64_t received;
    atomic_uint_fast64_t answers[COUNTS_ENCODINGS], bytes[COUNTS_ENCODINGS];
    atomic_uint_fast64_t offered[CODINGS];
};

struct row_times {
    _Alignas(64) struct histogram took;
};

struct counts {
    struct stripe stripes[STRIPES];
    size_t rows;
    /* [stripe][row][status]; zero pages until written to, so the empty cells cost no memory */
    atomic_uint_fast64_t *answered;
    struct row_times *times; /* [stripe][row] */
};

/* Threads are assigned to stripes in turn. If there are more threads than stripes, some share one,
 * which is still correct. */
static unsigned own_stripe(void)
{
    static atomic_uint next;
    static _Thread_local unsigned own = STRIPES;

    if (own == STRIPES)
        own = atomic_fetch_add(&next, 1) % STRIPES;
    return own;
}

struct counts *counts_new(size_t rows)
{
    struct counts *c = aligned_alloc(64, (sizeof *c + 63) / 64 * 64);
    size_t times_size = STRIPES * rows * sizeof c->times[0];

    if (c == NULL)
        return NULL;
    memset(c, 0, sizeof *c);
    c->rows = rows;
    c->answered = calloc(STRIPES * rows * STATUSES, sizeof *c->answered);
    c->times = aligned_alloc(64, times_size);
    if (c->answered == NULL || c->times == NULL) {
        counts_free(c);
        return NULL;
    }
    memset(c->times, 0, times_size);
    return c;
}

void counts_free(struct counts *c)
{
    if (c == NULL)
        return;
    free(c->answered);
    free(c->times);
    free(c);
}

static size_t cell(const struct counts *c, unsigned stripe, size_t row, unsigned status)
{
    return (stripe * c->rows + row) * STATUSES + (status - FIRST_STATUS);
}

static void add(atomic_uint_fast64_t *to, uint64_t value)
{
    atomic_fetch_add_explicit(to, value, memory_order_relaxed);
}

static uint64_t get(const atomic_uint_fast64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

void counts_add(struct counts *c, const struct counts_answer *answer)
{
    unsigned own = own_stripe();
    struct stripe *stripe = &c->stripes[own];

    if (answer->status - FIRST_STATUS >= STATUSES)
        return;
    add(&c->answered[cell(c, own, answer->row, answer->status)], 1);
    histogram_add(&c->times[own * c->rows + answer->row].took, &histogram_times, answer->took_ns);
    add(&stripe->answers[answer->encoding], 1);
    if (answer->bytes > 0)
        add(&stripe->bytes[answer->encoding], answer->bytes);
    if (answer->offered != CODING_UNASKED)
        add(&stripe->offered[answer->offered], 1);
    if (answer->received > 0)
        add(&stripe->received, answer->received);
}

uint64_t counts_get(const struct counts *c, size_t row, unsigned status)
{
    uint64_t sum = 0;

    if (status - FIRST_STATUS < STATUSES)
        for (unsigned i = 0; i < STRIPES; i++)
            sum += get(&c->answered[cell(c, i, row, status)]);
    return sum;
}

void counts_times(const struct counts *c, size_t row, struct histogram_values *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < STRIPES; i++)
        histogram_collect(&c->times[i * c->rows + row].took, out);
}

void counts_sum(const struct counts *c, struct counts_sums *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < STRIPES; i++) {
        const struct stripe *stripe = &c->stripes[i];
        out->received += get(&stripe->received);
        for (size_t e = 0; e < COUNTS_ENCODINGS; e++) {
            out->answers[e] += get(&stripe->answers[e]);
            out->bytes[e] += get(&stripe->bytes[e]);
        }
        for (size_t o = 0; o < CODINGS; o++)
            out->offered[o] += get(&stripe->offered[o]);
    }
}

void counts_begin(struct counts *c)
{
    atomic_fetch_add(&c->stripes[own_stripe()].active, 1);
}

void counts_end(struct counts *c)
{
    atomic_fetch_sub(&c->stripes[own_stripe()].active, 1);
}

uint64_t counts_active(const struct counts *c)
{
    int64_t sum = 0;

    /* A request usually ends on the thread that began it. So each term is usually not below 0, and
     * a sum of 0 means that none was active. */
    for (unsigned i = 0; i < STRIPES; i++)
        sum += atomic_load(&c->stripes[i].active);
    return sum > 0 ? (uint64_t)sum : 0;
}
