/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The page map: finds the page, robots.txt or alias for a request's host and path. Built from one
 * registry and immutable. HTTP uses it through publisher.h. Internal to pages. */
#pragma once

#include "server/pages/publisher.h"

/* The place of a page in the cache. */
struct page_place {
    struct place place;
    atomic_uint entries; /* in the page, as the last pass read it */
    /* Whether a request with a query gets the page, too: no entry of the site is the page's URL
     * with a query (/sitemap.xml?page=1). As of the last pass. */
    atomic_bool takes_query;
    atomic_uint_fast64_t mark; /* number of the pass that last found it in the registry */
    atomic_uint_fast64_t list; /* whose page it is: page_map_list_hash */
    /* Of its file on disk (page_store): the stamp of the state that was stored or loaded (0:
     * unknown), and whether a file was found that cannot be used. */
    atomic_uint_fast64_t stored;
    atomic_bool misfit;
    /* For page_store_writer.c: the state that it last saw, since when, and when it last wrote. */
    uint64_t watched;
    int64_t watched_since_ms, tried_at_ms;
};

#define EPOCH_SIZE 33 /* of a catalogue, with its NUL */

/* The catalogue to which a map belongs. A copy that was moved to the path has the same epoch, so
 * any other file or older state at the path begins a new era. */
struct page_map_of {
    const struct registry *registry; /* a reference is taken */
    const char *epoch;               /* copied */
    uint64_t era;
    uint64_t mark;     /* set in the places of its pages */
    uint64_t policies; /* number of the policies: they may be replaced at the same address */
};

/* Makes the map with a place in `cache` for each page. `policies` may be NULL: none. `before` is
 * the map that it replaces, NULL: none; robots.txt files with the same source text are shared with
 * it. The caller owns the one reference. NULL: out of memory. */
struct page_map *page_map_new(const struct page_map_of *of, const struct publish_policies *policies,
                              struct cache *cache, const struct page_map *before);
struct page_map_alias {
    const struct registry_site *site;
    const char *from, *to; /* paths */
    bool leads;            /* to a path of the map */
};
/* Alias number `i` of all sites; its parts are borrowed. False: `i` is past the last one. */
bool page_map_alias(const struct page_map *r, size_t i, struct page_map_alias *out);
/* Whether the map has all pages and all sites of `old`. */
bool page_map_keeps(const struct page_map *r, const struct page_map *old);
void page_map_ref(const struct page_map *r);
/* The cache's key of a page of the map's catalogue. Borrows from the map. */
struct place_key page_map_key(const struct page_map *r, int64_t index_id, uint32_t number);
/* A hash of kind, origin, path and pattern: equal for lists of two catalogues that have the same
 * pages. */
uint64_t page_map_list_hash(const struct registry *r, const struct registry_index *list);
