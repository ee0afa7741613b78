/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How the one place in which a sitemap is fetched and split (split_fetch.c) is shared by sites.
 * Plain values; milliseconds of a clock that nobody sets, passed in. One thread.
 *
 * What a site had of it is its debt: the seconds that it took, or one for each 2.5 MiB that came,
 * whichever is more. A tenth of the time that passes pays it back. Of sites that wait the one with
 * the least goes first; who has had the place for long, and more of it than one that waits,
 * releases it; and a request for a fetch before its time gets it while the debt is small. So an
 * origin that is as slow, as large or as other each time as it likes takes a tenth, and 22 GB a
 * day. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_PATIENCE_S 600u /* before that nobody is made to release it */
#define SHARE_FREE_S     600u /* so much debt hinders nobody from asking */

struct share {
    int64_t site_id;
    double debt_s;
    int64_t at_ms;     /* when it was so much */
    int64_t waited_ms; /* when it last waited */
    bool waited;
};

/* All zero: nobody had it yet. */
struct shares {
    struct share *at; /* owned */
    size_t count, capacity;
};

void shares_done(struct shares *s);
/* A sitemap of the site would begin, and the place is taken, or another's turn. Its wait counts for
 * a minute; where there is no memory it does not. */
void shares_wait(struct shares *s, int64_t site_id, int64_t now_ms);
/* Whether no other site that waits has less debt. */
bool shares_is_turn(const struct shares *s, int64_t site_id, int64_t now_ms);
/* Whether the site, which has had the place for so long, is to release it. */
bool shares_must_release(const struct shares *s, int64_t site_id, int64_t took_ms, int64_t now_ms);
/* Its turn is over. */
void shares_charge(struct shares *s, int64_t site_id, int64_t took_ms, uint64_t bytes,
                   int64_t now_ms);
/* How long until the site may have it before its time; 0: now. */
uint32_t shares_hurry_after_s(const struct shares *s, int64_t site_id, int64_t now_ms);
