/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Looks for aliases that crawlers cannot use: one that redirects a listed sitemap, and one that
 * leads nowhere. Indexes and sitemaps of the API come and go, so all aliases are looked at again
 * after a change, a bounded number of them at a time, and never while an answer waits. Internal to
 * pages. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/pages/publisher.h"

struct alias_watch {
    /* For the publisher's thread alone. */
    const struct page_map *map;  /* a reference; NULL at first */
    size_t at;                   /* the next alias */
    uint64_t revision, began_at; /* of the last whole round's begin; of this one's */
    int64_t next_ms;
    struct alias_faults {
        size_t count;
        struct str first; /* a sentence */
    } hidden, nowhere;    /* found in this round */

    pthread_mutex_t lock;
    struct alias_faults last_hidden, last_nowhere; /* of the last whole round; guarded by it */
};

void alias_watch_init(struct alias_watch *w);
void alias_watch_done(struct alias_watch *w);
/* Looks at some aliases, if anything has changed since they were looked at. `map` is borrowed, and
 * `revision` the catalogue's. Reads the catalogue. */
void alias_watch_step(struct alias_watch *w, const struct page_map *map, uint64_t revision,
                      struct catalogue *c);
