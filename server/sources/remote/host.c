#include "server/sources/remote/host.h"

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
    /* Behind a rest one probe goes first. */
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
    /* Two that were under way are one sign. */
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
