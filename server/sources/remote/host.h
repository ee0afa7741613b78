/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The schedule of polls of a host: the interval of each watched sitemap, a heap by due time (16
 * bytes each; for one thread), and the pace that the host allows. Plain values and pure functions;
 * times are seconds unless said otherwise; random numbers and clocks are parameters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/check.h"

/* ---- what is due */

struct due {
    int64_t id;
    uint32_t at;         /* Unix seconds */
    uint32_t interval_s; /* its load on the host: one poll in so many seconds */
};

/* A zeroed one is empty. */
struct due_heap {
    struct due *at; /* owned; at[0] is the first */
    size_t count, capacity;
    double load; /* polls a second of all together */
};

bool due_add(struct due_heap *h, struct due due); /* false: out of memory */
/* Removes the first. The heap must not be empty. */
struct due due_pop(struct due_heap *h);
/* Makes the given `ids` (ascending) due at `at`, or removes them if `at` is 0. Returns how many
 * were found. */
size_t due_move(struct due_heap *h, const int64_t *ids, size_t count, uint32_t at);
/* Shifts all due times, because the clock was set. */
void due_shift(struct due_heap *h, int64_t seconds);
void due_done(struct due_heap *h);

/* ---- intervals */

struct interval_bounds {
    uint32_t min_s, max_s;
};

/* After the first good poll, which does not show how often the content changes: 6 h. */
uint32_t interval_first(struct interval_bounds bounds);
/* For a sitemap whose validators lie, so that each poll downloads the whole file: at least 6 h. */
uint32_t interval_liar(uint32_t interval_s, struct interval_bounds bounds);
/* After a good poll: a third if the content changed, else a quarter more. Changes of a sitemap that
 * changes daily are then found 2.7 h late on average, with five polls a day. */
uint32_t interval_next(uint32_t interval_s, bool changed, struct interval_bounds bounds);
/* After `failures` polls in a row (1: the first) in a state that is not good. Not a sitemap: an
 * hour, and a quarter more each time. Otherwise doubled each time, from 5 min (unreachable), 15 min
 * (broken) or 1 h (refused). At most max_s. */
uint32_t interval_trouble(enum check_state state, uint32_t failures, struct interval_bounds bounds);
/* Changes the interval by up to a tenth, up or down, by `chance`, so that polls that began together
 * spread out. */
uint32_t interval_jitter(uint32_t interval_s, uint32_t chance);

/* Rounds the due time `at` after a wait of `wait_s` up to ten seconds if the wait is an hour or
 * more, so that many sitemaps are polled together. */
int64_t interval_together(int64_t at, uint32_t wait_s);

/* The pause after a pass over all rows that took so long: a client that triggers passes without end
 * uses a twentieth of the thread; a pass of more than 3 s runs at most once a minute. */
int64_t interval_rest_ms(int64_t took_ms);
/* The same where only `shared_ms` of the pass count, since the rest of it pauses by itself; but at
 * least as long as the pass took. */
int64_t interval_pass_rest_ms(int64_t shared_ms, int64_t took_ms);

/* Whether there is no sitemap in this state, so that its entry may be dropped. */
bool interval_is_none(enum check_state state);
/* Whether to drop it: at least three polls agree, over `drop_after_s` (0: never). */
bool interval_drops(uint32_t failures, int64_t since, int64_t now, uint32_t drop_after_s);

/* ---- the host's pace: milliseconds of a clock that nobody sets
 *
 * The requests of a second begin together, as many as the rate allows, so that the thread wakes
 * once for all of them. After a response, the next request waits as long as that one took: a slow
 * host gets fewer. A host that answers 429 or 503 rests, and then gets half the rate. A host that
 * does not answer rests, too, and is then probed once. */

struct host_pace {
    uint32_t running;
    int64_t next_ms;  /* no request begins before it */
    int64_t begun_ms; /* when the first request of this second began */
    uint32_t begun;   /* requests since then */
    int64_t rest_ms;  /* it rests until then: no request begins before */
    double slow;      /* fraction of the rate, 0 to 1; 0 counts as 1 */
    uint32_t answers; /* since its rate was last lowered or raised */
    uint32_t limited; /* 429 and 503 in a row */
    uint32_t failed;  /* connections that failed in a row */
    uint32_t rests;   /* for failed connections, in a row */
};

enum host_outcome {
    HOST_ANSWERED,
    HOST_LIMITED, /* 429 or 503 */
    HOST_FAILED,  /* no connection, or no answer in time */
    HOST_DROPPED, /* given up by this server: says nothing about the host */
};

/* The earliest time for the next request; INT64_MAX: when one of those under way has ended. */
int64_t host_ready_at(const struct host_pace *h, uint32_t per_host);
/* Whether it rests. */
bool host_rests(const struct host_pace *h, int64_t now_ms);
void host_begin(struct host_pace *h, int64_t now_ms, uint32_t rate);
/* A request has ended. `retry_after_s`: for HOST_LIMITED, by Retry-After; negative: none. */
void host_end(struct host_pace *h, int64_t now_ms, enum host_outcome outcome, int64_t took_ms,
              int64_t retry_after_s);
/* The current rate of the host, requests a second. */
double host_rate(const struct host_pace *h, uint32_t rate);

/* The ratio of `load` (polls a second) to nine tenths of the host's rate. If it exceeds 1, all
 * intervals are stretched by it, so that nothing queues. */
double host_pressure(const struct host_pace *h, double load, uint32_t rate);
