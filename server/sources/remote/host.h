/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* When a host is asked for what: how long a watched sitemap waits, which one of a host's is next (a
 * heap by time, 16 bytes each, one thread's), and how fast the host may be asked. Pure functions
 * and plain values: seconds where not said, chance and clocks are passed in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/check.h"

/* ---- what is due */

struct due {
    int64_t id;
    uint32_t at;         /* Unix seconds */
    uint32_t interval_s; /* what it asks of its host: one poll in so many seconds */
};

/* All zero is an empty one. */
struct due_heap {
    struct due *at; /* owned; at[0] is the first */
    size_t count, capacity;
    double load; /* polls a second that all ask for together */
};

bool due_add(struct due_heap *h, struct due due); /* false: out of memory */
/* Takes the first out. The heap is not empty. */
struct due due_pop(struct due_heap *h);
/* Makes those of `ids` (ascending) due at `at`, or removes them if `at` is 0. Returns how many were
 * found. */
size_t due_move(struct due_heap *h, const int64_t *ids, size_t count, uint32_t at);
/* The clock was set: all are due so many seconds later. */
void due_shift(struct due_heap *h, int64_t seconds);
void due_done(struct due_heap *h);

/* ---- intervals */

struct interval_bounds {
    uint32_t min_s, max_s;
};

/* After the first good poll, which says nothing of how often the content changes: 6 h. */
uint32_t interval_first(struct interval_bounds bounds);
/* The same of one whose validators lie, so that each poll costs the whole file: at least 6 h. */
uint32_t interval_liar(uint32_t interval_s, struct interval_bounds bounds);
/* After a good poll: a third where the content was another, a quarter more where it was not. A
 * sitemap that changes daily is then seen 2.7 h late in the mean, for five polls a day. */
uint32_t interval_next(uint32_t interval_s, bool changed, struct interval_bounds bounds);
/* After `failures` polls in a row (1: the first) in a state that is not good: an hour and a quarter
 * more each time for what is not a sitemap, else doubling from what the trouble deserves (5 min
 * unreachable, 15 min broken, 1 h refused). Within max_s. */
uint32_t interval_trouble(enum check_state state, uint32_t failures, struct interval_bounds bounds);
/* Changes it by up to a tenth, up or down, by `chance`: what began together is spread. */
uint32_t interval_jitter(uint32_t interval_s, uint32_t chance);

/* When a sitemap is due that was to be at `at` after a wait of `wait_s`: what waits for an hour or
 * more is rounded up to ten seconds, so that many are polled together. */
int64_t interval_together(int64_t at, uint32_t wait_s);

/* How long what goes through all rows rests, after it took so long: a client that has it begin
 * without end takes a twentieth of the thread, or where it takes more than 3 s begins it once a
 * minute. */
int64_t interval_rest_ms(int64_t took_ms);

/* Whether the state says that there is no sitemap there, so that its entry may leave. */
bool interval_is_none(enum check_state state);
/* Whether it is to leave: three polls or more agree, over `drop_after_s` (0: never). */
bool interval_drops(uint32_t failures, int64_t since, int64_t now, uint32_t drop_after_s);

/* ---- the host's pace: milliseconds of a clock that nobody sets
 *
 * As many as the rate begin in a second, one behind the other, so that one waking of ours does for
 * all of them; and none sooner after an answer than it took: who is slow is asked less. The caller
 * for it (429, 503) rests, and is asked half as fast from then on; who cannot be connected to
 * rests, too, and is then tried once. */

struct host_pace {
    uint32_t running;
    int64_t next_ms;  /* no request begins before it */
    int64_t begun_ms; /* of the first of a second's */
    uint32_t begun;   /* since then */
    int64_t rest_ms;  /* nor before this: it rests until then */
    double slow;      /* of the rate, 0 to 1; 0: not set yet, as 1 */
    uint32_t answers; /* since its rate was last lowered or raised */
    uint32_t limited; /* 429 and 503 in a row */
    uint32_t failed;  /* connections that failed in a row */
    uint32_t rests;   /* for failed connections, in a row */
};

enum host_outcome {
    HOST_ANSWERED,
    HOST_LIMITED, /* 429 or 503 */
    HOST_FAILED,  /* no connection, or no answer in time */
    HOST_DROPPED, /* given up by ourselves: says nothing */
};

/* When a request may begin, at the earliest; INT64_MAX: when one of those running has ended. */
int64_t host_ready_at(const struct host_pace *h, uint32_t per_host);
/* Whether it rests. */
bool host_rests(const struct host_pace *h, int64_t now_ms);
void host_begin(struct host_pace *h, int64_t now_ms, uint32_t rate);
/* `retry_after_s`: of a HOST_LIMITED, as it asks; negative: it does not say. */
void host_end(struct host_pace *h, int64_t now_ms, enum host_outcome outcome, int64_t took_ms,
              int64_t retry_after_s);
/* Requests a second that it bears now. */
double host_rate(const struct host_pace *h, uint32_t rate);

/* What is asked of a host, `load` polls a second, to nine tenths of what it bears. Where it is more
 * than 1, intervals count so many times longer, so that nothing queues. */
double host_pressure(const struct host_pace *h, double load, uint32_t rate);
