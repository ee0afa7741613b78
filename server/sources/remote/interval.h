/* How long until a watched sitemap is polled again. Pure functions, thread safe; chance is passed
 * in. Seconds. */
#ifndef SITEMAPD_SOURCES_REMOTE_INTERVAL_H
#define SITEMAPD_SOURCES_REMOTE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "db/check.h"

#define INTERVAL_FIRST_S 21600u /* 6 h */

struct interval_bounds {
    uint32_t min_s, max_s;
};

/* After a good poll: a third where the content was another, a quarter more where it was not. A
 * sitemap that changes daily is then seen 2.7 h late in the mean, for five polls a day. */
uint32_t interval_next(uint32_t interval_s, bool changed, struct interval_bounds bounds);
/* After `failures` polls in a row (1: the first) in a state that is not good: an hour and a quarter
 * more each time for what is none, else doubling from what the trouble deserves (5 min unreachable,
 * 15 min broken, 1 h refused). Within max_s. */
uint32_t interval_trouble(enum check_state state, uint32_t failures, struct interval_bounds bounds);
/* Within a tenth of it, up or down, by `chance`: what began together does not stay so. */
uint32_t interval_jitter(uint32_t interval_s, uint32_t chance);

/* When a sitemap is due that was to be at `at` after a wait of `wait_s`: what waits for an hour or
 * more is rounded up to ten seconds, so that many are polled together. */
int64_t interval_together(int64_t at, uint32_t wait_s);

/* Whether the state says that there is no sitemap there, so that its entry may leave. */
bool interval_is_none(enum check_state state);
/* Whether it is to leave: three polls or more agree, over `drop_after_s` (0: never). */
bool interval_drops(uint32_t failures, int64_t since, int64_t now, uint32_t drop_after_s);

#endif
