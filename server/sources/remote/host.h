/* How fast a host may be asked. A plain value; milliseconds of a clock that nobody sets, passed in.
 *
 * As many as the rate begin in a second, one behind the other, so that one waking of ours does for
 * all of them; and none sooner after an answer than it took: who is slow is asked less. Who asks
 * for it (429, 503) rests, and is asked half as fast from then on; who cannot be connected to
 * rests, too, and is then tried once. */
#ifndef SITEMAPD_SOURCES_REMOTE_HOST_H
#define SITEMAPD_SOURCES_REMOTE_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct host_pace {
    uint32_t running;
    int64_t next_ms;  /* no request begins before it */
    int64_t begun_ms; /* of the first of a second's */
    uint32_t begun;   /* since then */
    int64_t rest_ms;  /* nor before this: it rests until then */
    double slow;      /* of the rate, 0 to 1; 0: not set yet, as 1 */
    uint32_t answers; /* since it was last slowed or let go faster */
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

#endif
