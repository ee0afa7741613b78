/* A progress bar on stderr, where that is a terminal; else nothing. Internal to server/cli/. One
 * thread at a time. */
#ifndef SITEMAPD_CLI_PROGRESS_H
#define SITEMAPD_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shown;        /* stderr is a terminal that can move its cursor */
    const char *label; /* borrowed */
    const char *unit;  /* "bytes", "entries"; borrowed */
    uint64_t total;    /* 0: not known */
    int64_t drawn_at;  /* monotonic milliseconds; 0: not yet */
};

void progress_start(struct progress *p, const char *label, const char *unit, uint64_t total);
/* Draws at most ten times a second. */
void progress_update(struct progress *p, uint64_t done);
/* Takes the bar away. */
void progress_end(struct progress *p);

#endif
