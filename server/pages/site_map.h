/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The site map: from a request's host and path to a page, robots.txt or an alias; made whole from
 * one registry and never changed. What HTTP asks of it is in publisher.h. Internal to pages. */
#pragma once

#include "server/pages/publisher.h"

/* What the cache keeps of a page. */
struct page_place {
    struct place place;
    atomic_uint entries; /* in the page, as the last pass read it */
    /* The page answers with a query, too: no child of the site is the page's URL with a query, as
     * /sitemap.xml?page=1 is. As the last pass found it. */
    atomic_bool takes_query;
    atomic_uint_fast64_t mark; /* the pass that last found it in the registry */
    atomic_uint_fast64_t list; /* whose page it is: site_map_list_hash */
    /* What is on disk of it (page_store): the stamp of the state that was stored or loaded, 0: none
     * that is known; and that a file was found which is of no use. */
    atomic_uint_fast64_t stored;
    atomic_bool misfit;
    /* The keeper's alone: the state that it last saw, since when, and when it last wrote. */
    uint64_t watched;
    int64_t watched_since_ms, tried_at_ms;
};

#define EPOCH_SIZE 33 /* of a catalogue, with its NUL */

/* Which catalogue a map is of. The same epoch comes again where an older copy is restored, so each
 * time that another file, or an older state, is found at the path is another era. */
struct site_map_of {
    const struct registry *registry; /* a reference is taken */
    const char *epoch;               /* copied */
    uint64_t era;
    uint64_t mark; /* for the pages that it has */
};

/* Makes the map with a place in `cache` for each page. `policies` is NULL where there are none.
 * `before` is the map whose place it takes, NULL: none; it shares each robots.txt that is made of
 * the same. The caller owns the one reference. NULL: out of memory. */
struct site_map *site_map_new(const struct site_map_of *of, const struct publish_policies *policies,
                              struct cache *cache, const struct site_map *before);
/* Whether all pages of `old` are pages here, and all its sites sites. */
bool site_map_keeps(const struct site_map *r, const struct site_map *old);
void site_map_ref(const struct site_map *r);
/* What a page of the catalogue that the map is of is called. Borrows from the map. */
struct place_key site_map_key(const struct site_map *r, int64_t index_id, uint32_t number);
/* The same for lists of two catalogues that have the same pages: kind, origin, path and pattern. */
uint64_t site_map_list_hash(const struct registry *r, const struct registry_index *list);
