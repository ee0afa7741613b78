/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Growing intervals between retries, or Retry-After. */
#include "server/notify/again.h"

#include "server/client/client.h"

#define HOUR_MS 3600000
#define DAY_MS  86400000

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value > most ? most : value < least ? least : value;
}

int64_t again_wait_ms(unsigned tries, int64_t first_ms, const struct fetch_reply *reply,
                      int64_t now)
{
    int64_t asked_s = fetch_retry_after(reply, now);

    if (asked_s >= 0)
        return between(first_ms, asked_s * 1000, DAY_MS);
    return tries < 7 ? between(0, first_ms << tries, HOUR_MS) : HOUR_MS;
}
