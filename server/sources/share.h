/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Shares between sites the only place for fetching a sitemap that is split (split_fetch.c), and the
 * only one for splitting a file (split.c). Plain values; times are monotonic milliseconds, passed
 * in; not thread safe.
 *
 * A site's use of the place is its debt: the seconds that it took, or one for each 2.5 MiB
 * received, whichever is more. A tenth of the time that passes pays it back. The waiting site with
 * the least debt is next. A site that has had the place for long, and has more debt than one that
 * waits, must release it. A request for an early fetch is granted while the debt is small. So no
 * origin, however slow, large or often changed, uses more than a tenth of the time and 22 GB a day.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/site_table.h"

#define SHARE_PATIENCE_S 600u /* no site must release it earlier */
#define SHARE_FREE_S     600u /* debt up to which an early fetch is granted */

struct share {
    struct site_row row;
    double debt_s;
    int64_t at_ms;     /* when `debt_s` was computed */
    int64_t waited_ms; /* when it last waited */
    bool waited;
};

/* A zeroed one has no debts. */
struct shares {
    struct site_table of; /* struct share */
};

void shares_done(struct shares *s);
/* The site waits: the place is taken, or it is another's turn. The wait counts for a minute; if
 * memory is short, it does not count. */
void shares_wait(struct shares *s, int64_t site_id, int64_t now_ms);
/* Whether no other waiting site has less debt. */
bool shares_is_turn(const struct shares *s, int64_t site_id, int64_t now_ms);
/* Whether the site, which has had the place for `took_ms`, must release it. */
bool shares_must_release(const struct shares *s, int64_t site_id, int64_t took_ms, int64_t now_ms);
/* The site's turn is over: adds to its debt. */
void shares_charge(struct shares *s, int64_t site_id, int64_t took_ms, uint64_t bytes,
                   int64_t now_ms);
/* The time until the site may fetch early; 0: now. */
uint32_t shares_hurry_after_s(const struct shares *s, int64_t site_id, int64_t now_ms);
