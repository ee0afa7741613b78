/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes of another site that come between the transactions of a long change, by the catalogue's
 * clock, which the writer asks at the begin of each: whatever the speed of the machine. */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/unit/db/write/write_fixture.h"

#define B "https://b.example"

static struct {
    struct catalogue *_Atomic c;
    atomic_bool armed;
    _Atomic unsigned submitted, done;
} between;

static inline void between_done(void *context, struct change_result *result)
{
    (void)context;
    assert_int_equal(result->status, CATALOGUE_OK);
    between.done++;
}

/* On the writer's thread, at the begin of a transaction and when it is dated: where no such write
 * waits or is at work, another one comes. */
static inline int64_t clock_between(void)
{
    if (between.armed && between.submitted == between.done) {
        char loc[64];
        snprintf(loc, sizeof loc, B "/%u.xml", between.submitted++);
        struct change change = put_change(loc, NULL);
        catalogue_submit(between.c, &change, between_done);
    }
    return fixture_now();
}

/* No more of them come; how many came. */
static inline unsigned disarm(void)
{
    between.armed = false;
    while (between.submitted != between.done)
        sched_yield();
    return between.done;
}
