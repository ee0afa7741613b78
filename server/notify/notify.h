/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* [notify] url: notifies another server, by a POST of JSON lines, when a source begins to fail,
 * when the shrink guard holds removals back, when sitemaps of it can be read no more, when one is
 * gone, when the index bears an old date of one, and when each is well again. One thread, which
 * looks at what the sources say of themselves and sends; by the one client, under the guard of
 * addresses. Part of the assembly. */
#pragma once

#include <stdint.h>

#include "config/config.h"

/* How a source stands. Strings are borrowed for the call. */
struct notify_state {
    const char *name;    /* "" : what the API registered, of sites with `check` */
    const char *site;    /* an origin; NULL: not known */
    const char *failure; /* why its list or folder cannot be read; NULL: it can */
    int64_t failed_at;   /* Unix seconds; 0: not known */
    uint64_t held;       /* removals that the shrink guard holds back */
    uint64_t bad;        /* sitemaps that a crawler cannot use (check_is_bad) */
};
typedef void notify_each(void *context, const struct notify_state *state);

/* What befell one sitemap that is read where it is. Strings are borrowed for the call. */
enum notify_word {
    NOTIFY_GONE,  /* 404 or 410 */
    NOTIFY_BACK,  /* good, and was gone */
    NOTIFY_STALE, /* it changed, and its date in the index could not move */
    NOTIFY_DATED, /* that is over */
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
    const char *url;                    /* borrowed, as all here: copied */
    const char *agent;                  /* User-Agent */
    const char *const *allow_addresses; /* as in struct remote_bounds */
    uint32_t look_ms, pace_ms; /* 0: 10 s between looks, a minute between posts of a kind */
    /* Calls `each` for every source there is. On the thread; must not wait for I/O. */
    void (*look)(void *context, notify_each *each, void *each_context);
    void *context;
};

struct notify;
/* NULL, with the error reported, where it cannot: then there are no notifications. */
struct notify *notify_start(const struct notify_options *options);
/* Any thread; never waits for I/O. `n` is a struct notify. */
void notify_sitemap(void *context, const struct notify_sitemap *what);
/* Ends the thread at once. What was not sent is lost; what is amiss then is reported again by the
 * next start. Takes NULL. */
void notify_stop(struct notify *n);
