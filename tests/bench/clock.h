/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The clocks of the bench programs. */
#pragma once

#include <time.h>

static inline double clock_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
