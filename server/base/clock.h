/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads the clocks. Durations, deadlines and ages use the monotonic clock, which nobody sets;
 * people and files get Unix time. Any thread; cannot fail. */
#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_MS_NS     1000000L
#define CLOCK_SECOND_NS 1000000000L

static inline int64_t clock_read_ns(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
    return (uint64_t)clock_read_ns(CLOCK_MONOTONIC);
}

static inline int64_t clock_now_ms(void)
{
    return clock_read_ns(CLOCK_MONOTONIC) / CLOCK_MS_NS;
}

/* The same, up to some milliseconds late, and cheaper: for frequent calls. */
static inline int64_t clock_coarse_ms(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE) / CLOCK_MS_NS;
}

static inline int64_t clock_unix_ns(void)
{
    return clock_read_ns(CLOCK_REALTIME);
}

static inline int64_t clock_unix_ms(void)
{
    return clock_unix_ns() / CLOCK_MS_NS;
}

/* The time `ms` from now by CLOCK_MONOTONIC, for pthread_cond_clockwait and similar functions. */
static inline struct timespec clock_after_ms(int64_t ms)
{
    int64_t ns = clock_read_ns(CLOCK_MONOTONIC) + ms * CLOCK_MS_NS;

    return (struct timespec){.tv_sec = ns / CLOCK_SECOND_NS, .tv_nsec = ns % CLOCK_SECOND_NS};
}
