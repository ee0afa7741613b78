/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* [notify] url: notifies another server by a POST of JSON lines: when a source begins to fail, the
 * shrink guard holds removals, sitemaps of a source can no longer be read, one is gone, or the
 * index has an old date of one; and when each of these ends. One thread checks the state of the
 * sources and sends. Requests obey the address guard. Part of the assembly. */
#pragma once

#include <stdint.h>

#include "config/config.h"

/* The state of a source. Strings are borrowed for the call. */
struct notify_state {
    const char *name;    /* "": the registered sitemaps of a site with `check` */
    const char *site;    /* an origin; NULL: unknown */
    const char *failure; /* why its list or folder cannot be read; NULL: it can be */
    int64_t failed_at;   /* Unix seconds; 0: unknown */
    uint64_t held;       /* removals that the shrink guard holds back */
    uint64_t bad;        /* sitemaps that a crawler cannot use (check_is_bad) */
};
typedef void notify_each(void *context, const struct notify_state *state);

/* An event of one polled sitemap. Strings are borrowed for the call. */
enum notify_word {
    NOTIFY_GONE,  /* 404 or 410 */
    NOTIFY_BACK,  /* good again after it was gone */
    NOTIFY_STALE, /* its content changed, and its date in the index could not */
    NOTIFY_DATED, /* its date is right again */
    NOTIFY_WORDS
};
struct notify_sitemap {
    enum notify_word word;
    const char *source; /* as struct notify_state's name */
    const char *site;   /* an origin */
    const char *loc;
    int64_t at; /* Unix seconds */
};
typedef void notify_listener(void *context, const struct notify_sitemap *what);

struct notify_options {
    const char *url;                    /* borrowed, as all texts here; the callee copies them */
    const char *agent;                  /* User-Agent */
    const char *const *allow_addresses; /* as in struct remote_bounds */
    uint32_t look_ms, pace_ms; /* 0: 10 s between looks, a minute between posts of a kind */
    /* Calls `each` for every source there is, and every site with registered sitemaps to report. On
     * the thread; must not wait for I/O. */
    void (*look)(void *context, notify_each *each, void *each_context);
    void *context;
};

struct notify;
/* NULL, with the error reported: it failed, and there are no notifications. */
struct notify *notify_start(const struct notify_options *options);
/* Any thread; never waits for I/O. `n` is a struct notify. */
void notify_sitemap(void *context, const struct notify_sitemap *what);
/* Ends the thread at once. Unsent lines are lost; the next start reports existing faults again.
 * Accepts NULL. */
void notify_stop(struct notify *n);
