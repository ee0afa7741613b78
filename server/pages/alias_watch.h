/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds aliases that crawlers cannot use: those that redirect a listed sitemap, and those without a
 * target. Since the API adds and removes indexes and sitemaps, all aliases are checked again after
 * a change, a bounded number at a time, and never while a client waits for an answer. Internal to
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
    uint64_t revision, began_at; /* of the beginning of the last complete round, and of this one */
    int64_t next_ms;
    struct alias_faults {
        size_t count;
        struct str first; /* a sentence */
    } hidden, nowhere;    /* found in this round */

    pthread_mutex_t lock;
    struct alias_faults last_hidden, last_nowhere; /* of the last complete round */
};

void alias_watch_init(struct alias_watch *w);
void alias_watch_done(struct alias_watch *w);
/* Checks some aliases, if anything has changed since the last check. `map` is borrowed; `revision`
 * is the catalogue's. Reads the catalogue. */
void alias_watch_step(struct alias_watch *w, const struct page_map *map, uint64_t revision,
                      struct catalogue *c);
