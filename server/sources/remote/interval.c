#include "server/sources/remote/interval.h"

#define DROP_POLLS   3u
#define MINUTE       60u
#define NONE_FIRST_S 3600u
#define TOGETHER_S   10
#define LONG_S       3600u

static uint32_t within(uint64_t interval_s, struct interval_bounds bounds)
{
    if (interval_s < bounds.min_s)
        return bounds.min_s;
    return interval_s > bounds.max_s ? bounds.max_s : (uint32_t)interval_s;
}

uint32_t interval_next(uint32_t interval_s, bool changed, struct interval_bounds bounds)
{
    uint64_t from = interval_s > 0 ? interval_s : INTERVAL_FIRST_S;
    return within(changed ? from / 3 : from + from / 4, bounds);
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
