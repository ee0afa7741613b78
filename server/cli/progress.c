#include "server/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH   30
#define INTERVAL_MS 100
/* Short work needs no bar: nothing is drawn before this. */
#define PATIENCE_MS 300

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_capable(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

void progress_start(struct progress *p, const char *label, const char *unit, uint64_t total)
{
    *p = (struct progress){
        .shown = is_capable(),
        .label = label,
        .unit = unit,
        .total = total,
        .drawn_at = now_ms() + PATIENCE_MS - INTERVAL_MS,
    };
}

void progress_update(struct progress *p, uint64_t done)
{
    int64_t now;

    if (!p->shown)
        return;
    now = now_ms();
    if (now - p->drawn_at < INTERVAL_MS)
        return;
    p->drawn_at = now;
    if (p->total > 0) {
        uint64_t shown = done < p->total ? done : p->total;
        int filled = (int)((double)shown / (double)p->total * BAR_WIDTH);

        fprintf(stderr, "\r\x1b[K%s [%.*s%*s] %3d%%  %" PRIu64 " %s", p->label, filled,
                "##############################", BAR_WIDTH - filled, "",
                (int)((double)shown / (double)p->total * 100), done, p->unit);
    } else {
        fprintf(stderr, "\r\x1b[K%s  %" PRIu64 " %s", p->label, done, p->unit);
    }
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        fputs("\r\x1b[K", stderr);
    p->shown = false;
}
