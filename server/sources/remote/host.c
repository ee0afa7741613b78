/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The schedule and the pace of a host. */
#include "server/sources/remote/host.h"

#include <stdlib.h>

#define DROP_POLLS   3u
#define MINUTE       60u
#define FIRST_S      21600u
#define LIAR_LEAST_S 21600u
#define NONE_FIRST_S 3600u
#define TOGETHER_S   10
#define LONG_S       3600u
#define REST_FACTOR  20
#define REST_MOST_MS 60000

#define SECOND_MS         1000
#define MINUTE_MS         (60 * SECOND_MS)
#define HOUR_MS           (60 * MINUTE_MS)
#define RETRY_LEAST_S     60
#define RETRY_MOST_S      86400
#define FAILED_MOST       5
#define FAILED_REST_MS    (5 * MINUTE_MS)
#define GAP_MOST_MS       (10 * SECOND_MS)
#define SLOWEST           (1.0 / 64)
#define ANSWERS_TO_FASTER 100

/* ---- what is due --------------------------------------------------------------------------- */

static double load_of(const struct due *due)
{
    return 1.0 / (due->interval_s > 0 ? due->interval_s : 1);
}

static void swap(struct due *a, struct due *b)
{
    struct due c = *a;
    *a = *b;
    *b = c;
}

static void sink(struct due_heap *h, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && h->at[child + 1].at < h->at[child].at)
            child++;
        if (h->at[i].at <= h->at[child].at)
            return;
        swap(&h->at[i], &h->at[child]);
    }
}

bool due_add(struct due_heap *h, struct due due)
{
    if (h->count == h->capacity) {
        size_t capacity = h->capacity ? h->capacity + h->capacity / 2 : 8;
        struct due *at = realloc(h->at, capacity * sizeof *at);
        if (at == NULL)
            return false;
        h->at = at;
        h->capacity = capacity;
    }
    size_t i = h->count++;
    h->at[i] = due;
    h->load += load_of(&due);
    for (; i > 0 && h->at[(i - 1) / 2].at > h->at[i].at; i = (i - 1) / 2)
        swap(&h->at[(i - 1) / 2], &h->at[i]);
    return true;
}

struct due due_pop(struct due_heap *h)
{
    struct due first = h->at[0];
    h->at[0] = h->at[--h->count];
    sink(h, 0);
    h->load = h->count > 0 ? h->load - load_of(&first) : 0;
    return first;
}

static void order(struct due_heap *h)
{
    h->load = 0;
    for (size_t i = 0; i < h->count; i++)
        h->load += load_of(&h->at[i]); /* recomputed: a sum that is only adjusted drifts */
    for (size_t i = h->count / 2; i-- > 0;)
        sink(h, i);
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

size_t due_move(struct due_heap *h, const int64_t *ids, size_t count, uint32_t at)
{
    size_t found = 0, left = 0;
    for (size_t i = 0; i < h->count; i++) {
        bool is = count > 0 && bsearch(&h->at[i].id, ids, count, sizeof *ids, compare) != NULL;
        found += is;
        if (is && at == 0)
            continue;
        h->at[left] = h->at[i];
        if (is && at < h->at[left].at)
            h->at[left].at = at;
        left++;
    }
    h->count = left;
    if (found > 0)
        order(h);
    return found;
}

void due_shift(struct due_heap *h, int64_t seconds)
{
    for (size_t i = 0; i < h->count; i++) {
        int64_t at = (int64_t)h->at[i].at + seconds;
        h->at[i].at = at < 1 ? 1 : at > UINT32_MAX ? UINT32_MAX : (uint32_t)at;
    }
}

void due_done(struct due_heap *h)
{
    free(h->at);
    *h = (struct due_heap){0};
}

/* ---- intervals */

static uint32_t within(uint64_t interval_s, struct interval_bounds bounds)
{
    if (interval_s < bounds.min_s)
        return bounds.min_s;
    return interval_s > bounds.max_s ? bounds.max_s : (uint32_t)interval_s;
}

uint32_t interval_first(struct interval_bounds bounds)
{
    return within(FIRST_S, bounds);
}

uint32_t interval_liar(uint32_t interval_s, struct interval_bounds bounds)
{
    return within(interval_s < LIAR_LEAST_S ? LIAR_LEAST_S : interval_s, bounds);
}

uint32_t interval_next(uint32_t interval_s, bool changed, struct interval_bounds bounds)
{
    uint64_t from = interval_s > 0 ? interval_s : FIRST_S;
    return within(changed ? from / 3 : from + from / 4, bounds);
}

int64_t interval_pass_rest_ms(int64_t shared_ms, int64_t took_ms)
{
    int64_t rest = shared_ms * REST_FACTOR;
    if (rest < took_ms)
        rest = took_ms;
    return rest < REST_MOST_MS ? rest : REST_MOST_MS;
}

int64_t interval_rest_ms(int64_t took_ms)
{
    return interval_pass_rest_ms(took_ms, took_ms);
}

bool interval_is_none(enum check_state state)
{
    return state == CHECK_EMPTY || state == CHECK_GONE || state == CHECK_NOT_A_SITEMAP;
}

uint32_t interval_trouble(enum check_state state, uint32_t failures, struct interval_bounds bounds)
{
    bool none = interval_is_none(state);
    uint64_t interval = none                     ? NONE_FIRST_S
                        : state == CHECK_REFUSED ? 60 * MINUTE
                        : state == CHECK_BROKEN  ? 15 * MINUTE
                                                 : 5 * MINUTE;
    for (uint32_t i = 1; i < failures && interval < bounds.max_s; i++)
        interval = none ? interval + interval / 4 : interval * 2;
    return interval > bounds.max_s ? bounds.max_s : (uint32_t)interval;
}

uint32_t interval_jitter(uint32_t interval_s, uint32_t chance)
{
    uint32_t tenth = interval_s / 10;
    return interval_s - tenth + chance % (2 * tenth + 1);
}

int64_t interval_together(int64_t at, uint32_t wait_s)
{
    return wait_s < LONG_S ? at : (at + TOGETHER_S - 1) / TOGETHER_S * TOGETHER_S;
}

bool interval_drops(uint32_t failures, int64_t since, int64_t now, uint32_t drop_after_s)
{
    return drop_after_s > 0 && failures >= DROP_POLLS && now - since >= (int64_t)drop_after_s;
}

/* ---- the host's pace ----------------------------------------------------------------------- */

static int64_t doubled(int64_t first, uint32_t times, int64_t most)
{
    while (times-- > 0 && first < most)
        first *= 2;
    return first < most ? first : most;
}

static double slowness(const struct host_pace *h)
{
    return h->slow > 0 ? h->slow : 1;
}

int64_t host_ready_at(const struct host_pace *h, uint32_t per_host)
{
    /* After a rest, only one request probes the host. */
    if (h->running >= (h->failed >= FAILED_MOST ? 1 : per_host))
        return INT64_MAX;
    return h->rest_ms > h->next_ms ? h->rest_ms : h->next_ms;
}

bool host_rests(const struct host_pace *h, int64_t now_ms)
{
    return h->rest_ms > now_ms;
}

double host_rate(const struct host_pace *h, uint32_t rate)
{
    return slowness(h) * rate;
}

void host_begin(struct host_pace *h, int64_t now_ms, uint32_t rate)
{
    double in_a_second = host_rate(h, rate);
    h->running++;
    if (h->begun == 0 || now_ms - h->begun_ms >= SECOND_MS) {
        h->begun_ms = now_ms;
        h->begun = 0;
    }
    if (++h->begun < in_a_second)
        return;
    h->next_ms = h->begun_ms + (int64_t)(h->begun * SECOND_MS / in_a_second);
    h->begun = 0;
}

static void limit(struct host_pace *h, int64_t now_ms, int64_t retry_after_s)
{
    int64_t rest = doubled(MINUTE_MS, h->limited, HOUR_MS);
    if (retry_after_s >= 0) {
        int64_t asked = retry_after_s < RETRY_LEAST_S ? RETRY_LEAST_S : retry_after_s;
        rest = (asked > RETRY_MOST_S ? RETRY_MOST_S : asked) * SECOND_MS;
    }
    /* Several responses to requests of the same time count once. */
    if (!host_rests(h, now_ms)) {
        h->limited++;
        h->slow = slowness(h) / 2 > SLOWEST ? slowness(h) / 2 : SLOWEST;
    }
    h->answers = 0;
    if (now_ms + rest > h->rest_ms)
        h->rest_ms = now_ms + rest;
}

static void fail(struct host_pace *h, int64_t now_ms)
{
    if (++h->failed < FAILED_MOST || host_rests(h, now_ms))
        return;
    h->rest_ms = now_ms + doubled(FAILED_REST_MS, h->rests++, HOUR_MS);
}

static void answer(struct host_pace *h, int64_t now_ms, int64_t took_ms)
{
    int64_t gap = took_ms < GAP_MOST_MS ? took_ms : GAP_MOST_MS;
    h->limited = 0;
    if (now_ms + gap > h->next_ms)
        h->next_ms = now_ms + gap;
    if (++h->answers < ANSWERS_TO_FASTER)
        return;
    h->answers = 0;
    h->slow = slowness(h) * 1.1 < 1 ? slowness(h) * 1.1 : 1;
}

void host_end(struct host_pace *h, int64_t now_ms, enum host_outcome outcome, int64_t took_ms,
              int64_t retry_after_s)
{
    h->running -= h->running > 0;
    if (outcome == HOST_DROPPED)
        return;
    if (outcome == HOST_FAILED) {
        fail(h, now_ms);
        return;
    }
    h->failed = h->rests = 0;
    if (outcome == HOST_LIMITED)
        limit(h, now_ms, retry_after_s);
    else
        answer(h, now_ms, took_ms);
}

double host_pressure(const struct host_pace *h, double load, uint32_t rate)
{
    return load / (0.9 * host_rate(h, rate));
}
