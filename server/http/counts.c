#include "server/http/counts.h"

#include <stdatomic.h>
#include <stdlib.h>

#define STRIPES      8u
#define FIRST_STATUS 100u
#define STATUSES     500u

struct stripe {
    _Alignas(64) atomic_int_fast64_t active;
};

struct counts {
    struct stripe stripes[STRIPES];
    size_t rows;
    /* [stripe][row][status]; zero pages until written to, so the empty cells cost no memory */
    atomic_uint_fast64_t *answered;
};

/* Threads take stripes in turn; more threads than stripes share, which stays right. */
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

    if (c == NULL)
        return NULL;
    for (unsigned i = 0; i < STRIPES; i++)
        atomic_init(&c->stripes[i].active, 0);
    c->rows = rows;
    c->answered = calloc(STRIPES * rows * STATUSES, sizeof *c->answered);
    if (c->answered == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void counts_free(struct counts *c)
{
    if (c == NULL)
        return;
    free(c->answered);
    free(c);
}

static size_t cell(const struct counts *c, unsigned stripe, size_t row, unsigned status)
{
    return (stripe * c->rows + row) * STATUSES + (status - FIRST_STATUS);
}

void counts_add(struct counts *c, size_t row, unsigned status)
{
    if (status - FIRST_STATUS < STATUSES)
        atomic_fetch_add_explicit(&c->answered[cell(c, own_stripe(), row, status)], 1,
                                  memory_order_relaxed);
}

uint64_t counts_get(const struct counts *c, size_t row, unsigned status)
{
    uint64_t sum = 0;

    if (status - FIRST_STATUS < STATUSES)
        for (unsigned i = 0; i < STRIPES; i++)
            sum +=
                atomic_load_explicit(&c->answered[cell(c, i, row, status)], memory_order_relaxed);
    return sum;
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

    /* A request ends on the thread that began it, as a rule; so each term alone is no less than 0
     * there, and a sum of 0 means that none was active. */
    for (unsigned i = 0; i < STRIPES; i++)
        sum += atomic_load(&c->stripes[i].active);
    return sum > 0 ? (uint64_t)sum : 0;
}
