/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Debts of sites for the one place where sitemaps are split. */
#include "server/sources/share.h"

#define BYTES_A_S    (5u << 19) /* 2.5 MiB */
#define PAID_IN      10         /* times as long as it used the place */
#define DEBT_MOST_S  7200
#define WAIT_LASTS_S 60

static double debt_of(const struct share *e, int64_t now_ms)
{
    double paid = (double)(now_ms - e->at_ms) / 1000 / PAID_IN;
    return e->debt_s > paid ? e->debt_s - paid : 0;
}

static bool waits(const struct share *e, int64_t now_ms)
{
    return e->waited && now_ms - e->waited_ms < WAIT_LASTS_S * 1000;
}

static double site_debt(const struct shares *s, int64_t site_id, int64_t now_ms)
{
    const struct share *e = site_table_find(&s->of, site_id);
    return e != NULL ? debt_of(e, now_ms) : 0;
}

/* Drops those without debt or wait first. NULL: out of memory. */
static struct share *find_or_add(struct shares *s, int64_t site_id, int64_t now_ms)
{
    struct share *e = site_table_find(&s->of, site_id);
    if (e != NULL)
        return e;
    for (struct share *at = site_table_next(&s->of, NULL), *next; at != NULL; at = next) {
        next = site_table_next(&s->of, at);
        if (!waits(at, now_ms) && debt_of(at, now_ms) <= 0)
            site_table_remove(&s->of, at);
    }
    e = site_table_add(&s->of, site_id, sizeof *e);
    if (e != NULL)
        e->at_ms = now_ms;
    return e;
}

void shares_done(struct shares *s)
{
    site_table_done(&s->of);
}

void shares_wait(struct shares *s, int64_t site_id, int64_t now_ms)
{
    struct share *e = find_or_add(s, site_id, now_ms);
    if (e == NULL)
        return;
    e->waited = true;
    e->waited_ms = now_ms;
}

/* Whether another waiting site has less debt. */
static bool another_has_less(const struct shares *s, int64_t site_id, double debt_s, int64_t now_ms)
{
    for (const struct share *e = NULL; (e = site_table_next(&s->of, e)) != NULL;)
        if (e->row.site_id != site_id && waits(e, now_ms) && debt_of(e, now_ms) < debt_s)
            return true;
    return false;
}

bool shares_is_turn(const struct shares *s, int64_t site_id, int64_t now_ms)
{
    return !another_has_less(s, site_id, site_debt(s, site_id, now_ms), now_ms);
}

bool shares_must_release(const struct shares *s, int64_t site_id, int64_t took_ms, int64_t now_ms)
{
    double took_s = (double)took_ms / 1000;
    return took_s >= SHARE_PATIENCE_S &&
           another_has_less(s, site_id, site_debt(s, site_id, now_ms) + took_s, now_ms);
}

void shares_charge(struct shares *s, int64_t site_id, int64_t took_ms, uint64_t bytes,
                   int64_t now_ms)
{
    struct share *e = find_or_add(s, site_id, now_ms);
    double took_s = (double)took_ms / 1000, sent_s = (double)bytes / BYTES_A_S;
    if (e == NULL)
        return;
    e->debt_s = debt_of(e, now_ms) + (took_s > sent_s ? took_s : sent_s);
    e->debt_s = e->debt_s < DEBT_MOST_S ? e->debt_s : DEBT_MOST_S;
    e->at_ms = now_ms;
    e->waited = false;
}

uint32_t shares_hurry_after_s(const struct shares *s, int64_t site_id, int64_t now_ms)
{
    double more = site_debt(s, site_id, now_ms) - SHARE_FREE_S;
    return more > 0 ? (uint32_t)(more * PAID_IN) + 1 : 0;
}
