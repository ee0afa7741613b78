/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* When a notification that was not accepted is sent again. */
#pragma once

#include <stdint.h>

struct fetch_reply;

/* How many milliseconds from now on: as the answer asks (Retry-After), `first_ms` at least and a
 * day at most; else `first_ms`, which the `tries` before doubled, an hour at most. `now`: Unix
 * seconds. Pure, thread safe. */
int64_t again_wait_ms(unsigned tries, int64_t first_ms, const struct fetch_reply *reply,
                      int64_t now);
