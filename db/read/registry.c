/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lookups in a registry: sites by host, indexes by path, and the index that a loc belongs to. */
#include <stdlib.h>
#include <string.h>

#include "db/read/registry_store.h"
#include "db/registry.h"
#include "server/rules/scope.h"

struct registry *registry_ref(const struct registry *r)
{
    struct registry_store *store = (struct registry_store *)(uintptr_t)r;

    if (store == NULL)
        return NULL;
    atomic_fetch_add_explicit(&store->references, 1, memory_order_relaxed);
    return &store->pub;
}

void registry_unref(const struct registry *r)
{
    struct registry_store *store = (struct registry_store *)(uintptr_t)r;

    if (store == NULL)
        return;
    /* Release: this thread's reads happen before another thread frees the store; acquire: for the
     * thread that frees it. */
    if (atomic_fetch_sub_explicit(&store->references, 1, memory_order_acq_rel) == 1)
        registry_store_free(store);
}

/* ---- by text -------------------------------------------------------------------------- */

static const struct registry_site *find_origin(const struct registry_store *store,
                                               const char *origin, size_t len)
{
    struct map_probe probe = map_probe(&store->origin_map, map_hash(MAP_HASH_BASIS, origin, len));

    for (uint32_t at; map_next(&probe, &at);) {
        const struct registry_site *site = &store->sites[at];
        if (site->origin_url.origin_len == len && memcmp(site->origin, origin, len) == 0)
            return site;
    }
    return NULL;
}

/* Finds the claims of a host, which are neighbours: `*count` of them. */
static const struct host_claim *find_claims(const struct registry_store *store, const char *host,
                                            size_t len, size_t *count)
{
    struct map_probe probe = map_probe(&store->host_map, map_hash(MAP_HASH_BASIS, host, len));

    *count = 0;
    for (uint32_t at; map_next(&probe, &at);) {
        const struct host_claim *c = &store->claims[at];
        if (c->host_len != len || memcmp(c->host, host, len) != 0)
            continue;
        *count = c->same_host;
        return c;
    }
    return NULL;
}

/* `hash` is that of the directory's path, begun with store_path_basis. */
static const struct directory *find_directory(const struct registry_store *store, uint32_t site,
                                              const char *path, size_t len, uint32_t hash)
{
    struct map_probe probe = map_probe(&store->directory_map, hash);

    for (uint32_t at; map_next(&probe, &at);) {
        const struct directory *d = &store->directories[at];
        if (d->site == site && d->path_len == len && memcmp(d->path, path, len) == 0)
            return d;
    }
    return NULL;
}

/* The index whose path is `stem` and ".xml"; `hash` is that of the stem, begun the same way. */
static const struct registry_index *find_stem(const struct registry_store *store, uint32_t site,
                                              const char *stem, size_t len, uint32_t hash)
{
    struct map_probe probe = map_probe(&store->stem_map, hash);
    int64_t site_id = store->sites[site].id;

    for (uint32_t at; map_next(&probe, &at);) {
        const struct registry_index *index = &store->indexes[at];
        if (index->site_id == site_id && strncmp(index->path, stem, len) == 0 &&
            store_stem_len(index) == len)
            return index;
    }
    return NULL;
}

/* The claim that serves a request for the host (normalised, without port; `port` 0: none given):
 * origins before aliases, and a claim with the same port before one without. NULL: none. */
static const struct host_claim *best_claim(const struct registry_store *store, const char *host,
                                           size_t len, uint16_t port)
{
    const struct host_claim *best = NULL;
    size_t count;
    const struct host_claim *claims = find_claims(store, host, len, &count);

    for (size_t i = 0; i < count && claims[i].kind != CLAIM_CROSS; i++) {
        if (claims[i].port != 0 && claims[i].port != port)
            continue;
        if (best == NULL ||
            (claims[i].kind == best->kind && best->port == 0 && claims[i].port != 0))
            best = &claims[i];
    }
    return best;
}

const struct registry_site *registry_site_by_origin(const struct registry *r, const char *origin)
{
    return find_origin(registry_store_of(r), origin, strlen(origin));
}

const struct registry_site *registry_site_by_id(const struct registry *r, int64_t id)
{
    const struct registry_store *store = registry_store_of(r);
    size_t low = 0, high = r->site_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store->sites_by_id[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->site_count && store->sites_by_id[low]->id == id ? store->sites_by_id[low]
                                                                    : NULL;
}

enum freeze registry_freeze(const struct registry *r, const struct registry_index *index)
{
    const struct registry_site *site;

    if (index == NULL)
        return FREEZE_NONE;
    site = registry_site_by_id(r, index->site_id);
    enum freeze frozen =
        site != NULL && site->frozen > index->frozen ? site->frozen : index->frozen;
    const struct registry_index *of =
        index->kind == LIST_URLSET ? registry_index_by_id(r, index->of_index) : NULL;
    return of != NULL && of->frozen > frozen ? of->frozen : frozen;
}

bool registry_is_frozen(const struct registry *r, const struct registry_index *index)
{
    return registry_freeze(r, index) != FREEZE_NONE;
}

const struct source_settings *registry_source(const struct registry *r, const char *name)
{
    for (size_t i = 0; i < r->source_count; i++)
        if (strcmp(r->sources[i].name, name) == 0)
            return &r->sources[i];
    return NULL;
}

const struct registry_index *registry_next_list(const struct registry_site *site,
                                                struct registry_list_at *at)
{
    const struct registry_index *index =
        at->index < site->index_count ? &site->indexes[at->index] : NULL;
    const struct registry_index *urlset =
        at->urlset < site->urlset_count ? &site->urlsets[at->urlset] : NULL;

    if (urlset != NULL && (index == NULL || strcmp(urlset->path, index->path) < 0)) {
        at->urlset++;
        return urlset;
    }
    at->index += index != NULL;
    return index;
}

const struct registry_index *registry_list_by_id(const struct registry *r, int64_t id)
{
    const struct registry_store *store = registry_store_of(r);
    size_t low = 0, high = store->index_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store->indexes_by_id[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < store->index_count && store->indexes_by_id[low]->id == id
               ? store->indexes_by_id[low]
               : NULL;
}

const struct registry_index *registry_index_by_id(const struct registry *r, int64_t id)
{
    const struct registry_index *list = registry_list_by_id(r, id);

    return list != NULL && list->kind == LIST_INDEX ? list : NULL;
}

uint32_t registry_max_pages(const struct registry *r, const struct registry_index *list)
{
    return list->kind == LIST_URLSET ? list->max_pages
                                     : registry_site_by_id(r, list->site_id)->max_pages;
}

/* The claim that serves a request's host; NULL: none. */
static const struct host_claim *answering_claim(const struct registry *r, const char *host)
{
    char normal[HOST_MAX_CHARS + 7];
    uint16_t port;

    if (url_parse_host(host, strlen(host), normal) != RULE_OK)
        return NULL;
    size_t len = store_split_host(normal, &port);
    return best_claim(registry_store_of(r), normal, len, port);
}

const struct registry_site *registry_site_by_host(const struct registry *r, const char *host)
{
    const struct host_claim *claim = answering_claim(r, host);

    return claim != NULL ? &r->sites[claim->site] : NULL;
}

bool registry_is_origin_host(const struct registry *r, const char *host)
{
    const struct host_claim *claim = answering_claim(r, host);

    return claim != NULL && claim->kind == CLAIM_ORIGIN;
}

static const struct registry_index *list_by_path(const struct registry_site *site,
                                                 enum list_kind kind, const char *path)
{
    const struct registry_index *lists = kind == LIST_URLSET ? site->urlsets : site->indexes;
    size_t low = 0, high = kind == LIST_URLSET ? site->urlset_count : site->index_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(lists[middle].path, path);
        if (order == 0)
            return &lists[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Finds the list by the unchanged `name`, which mostly is in normal form: each row of a bulk may
 * name its index. */
static const struct registry_index *list_by_text(const struct registry *r, const char *name,
                                                 enum list_kind kind,
                                                 const struct registry_site **site)
{
    const char *path = name;

    if (name[0] == '/') {
        *site = r->site_count == 1 ? &r->sites[0] : NULL;
    } else {
        const char *slashes = strstr(name, "://");
        path = slashes != NULL ? strchr(slashes + 3, '/') : NULL;
        *site =
            path != NULL ? find_origin(registry_store_of(r), name, (size_t)(path - name)) : NULL;
    }
    return *site != NULL ? list_by_path(*site, kind, path) : NULL;
}

/* `name` (of `len` bytes) in its normal form, as a URL. */
static bool normalise_name(const struct registry *r, const char *name, size_t len, struct url *out)
{
    char text[LOC_MAX_CHARS + 1];
    size_t origin_len;

    if (name[0] != '/')
        return url_parse(name, len, out, NULL) == RULE_OK;
    if (r->site_count != 1)
        return false;
    origin_len = r->sites[0].origin_url.origin_len;
    if (origin_len + len > sizeof text)
        return false;
    memcpy(text, r->sites[0].origin, origin_len);
    memcpy(text + origin_len, name, len);
    return url_parse(text, origin_len + len, out, NULL) == RULE_OK;
}

const struct registry_index *registry_list_by_name(const struct registry *r, const char *name,
                                                   enum list_kind kind,
                                                   const struct registry_site **site)
{
    const struct registry_site *found_site;
    const struct registry_index *index = list_by_text(r, name, kind, &found_site);
    struct url url;

    if (index == NULL && normalise_name(r, name, strlen(name), &url))
        index = list_by_text(r, url.text, kind, &found_site);
    if (index != NULL && site != NULL)
        *site = found_site;
    return index;
}

const struct registry_index *registry_index_by_name(const struct registry *r, const char *name,
                                                    const struct registry_site **site)
{
    return registry_list_by_name(r, name, LIST_INDEX, site);
}

bool registry_is_name_of(const struct registry *r, const char *name, int64_t site_id)
{
    const struct registry_site *site = registry_site_by_id(r, site_id);
    size_t len = site != NULL ? strlen(site->origin) : 0;

    return name[0] == '/' ||
           (site != NULL && strncmp(name, site->origin, len) == 0 && name[len] == '/');
}

/* ---- where a loc belongs --------------------------------------------------------------- */

/* This code runs for each row of a bulk, so it does not allocate, and its time does not grow with
 * the number of sites, of indexes in other folders, or of page names. */

static bool port_fits(const struct host_claim *claim, const struct url *loc)
{
    return claim->port == 0 || claim->port == loc->port;
}

static const struct host_claim *loc_claims(const struct registry *r, const struct url *loc,
                                           size_t *count)
{
    return find_claims(registry_store_of(r), loc->text + loc->host_at, loc->host_len, count);
}

/* The first claim as a cross host of a site with at least this ordinal. A binary search, since a
 * CDN's host may be a cross host of all sites. */
static size_t find_cross(const struct host_claim *claims, size_t count, uint32_t ordinal)
{
    size_t low = 0, high = count;

    while (low < high) { /* cross hosts are last, their sites descending */
        size_t middle = low + (high - low) / 2;
        if (claims[middle].kind != CLAIM_CROSS || claims[middle].site > ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct registry_site *registry_next_cross_site(const struct registry *r,
                                                     const struct url *loc, int64_t only,
                                                     const struct registry_site *after)
{
    const struct registry_site *from = only != 0 ? registry_site_by_id(r, only) : after;
    size_t count, at;
    const struct host_claim *claims = loc_claims(r, loc, &count);

    if (only != 0 && (from == NULL || after != NULL))
        return NULL;
    at = from != NULL ? find_cross(claims, count, (uint32_t)(from - r->sites)) : count;
    if (only != 0) { /* it may list a host with several ports */
        for (; at < count && &r->sites[claims[at].site] == from; at++)
            if (port_fits(&claims[at], loc))
                return from;
        return NULL;
    }
    while (at-- > 0 && claims[at].kind == CLAIM_CROSS)
        if (port_fits(&claims[at], loc))
            return &r->sites[claims[at].site];
    return NULL;
}

static bool is_cross_host(const struct registry *r, const struct registry_site *site,
                          const struct url *loc)
{
    return registry_next_cross_site(r, loc, site->id, NULL) != NULL;
}

static const struct registry_site *site_of(const struct registry *r, const char *host,
                                           enum claim_kind kind,
                                           const struct registry_site *besides)
{
    uint16_t port;
    size_t count, len = store_split_host(host, &port);
    const struct host_claim *claims = find_claims(registry_store_of(r), host, len, &count);

    for (size_t i = 0; i < count && claims[i].kind <= kind; i++) {
        if (claims[i].kind == kind && &r->sites[claims[i].site] != besides &&
            (port == 0 || claims[i].port == 0 || claims[i].port == port))
            return &r->sites[claims[i].site];
    }
    return NULL;
}

const struct registry_site *registry_site_of_host(const struct registry *r, const char *host,
                                                  const struct registry_site *besides)
{
    return site_of(r, host, CLAIM_ORIGIN, besides);
}

const struct registry_site *registry_site_of_alias(const struct registry *r, const char *host,
                                                   const struct registry_site *besides)
{
    return site_of(r, host, CLAIM_ALIAS, besides);
}

/* Why a loc whose origin is not a site's must name its index. */
static enum rule_code refuse_stranger(const struct registry *r, const struct url *loc,
                                      struct placement *out)
{
    enum rule_code code = RULE_SITE_UNKNOWN;
    size_t count;
    const struct host_claim *claims = loc_claims(r, loc, &count);

    for (size_t i = 0; i < count; i++) {
        if (claims[i].kind == CLAIM_CROSS && port_fits(&claims[i], loc)) {
            out->site = &r->sites[claims[i].site];
            return RULE_INDEX_NEEDED;
        }
        if (claims[i].kind == CLAIM_ORIGIN && code == RULE_SITE_UNKNOWN) {
            out->site = &r->sites[claims[i].site];
            code = RULE_OUTSIDE_SITE;
        }
    }
    return code;
}

static size_t directory_len(const struct url *loc)
{
    return scope_directory_len(loc->text + loc->origin_len, loc->path_len);
}

/* The list of the site that could have a page with this name; NULL: none. A page name begins with
 * the list's path without ".xml", so every prefix of the name is looked up, with a hash that is
 * extended byte by byte. Since no pattern has a slash, a prefix contains the whole directory. */
static const struct registry_index *list_of_page(const struct registry *r, uint32_t site,
                                                 const struct url *loc)
{
    const struct registry_store *store = registry_store_of(r);
    const char *path = loc->text + loc->origin_len;
    size_t directory = directory_len(loc);
    uint32_t hash = map_hash(store_path_basis(site), path, directory);

    if (find_directory(store, site, path, directory, hash) == NULL)
        return NULL;
    for (size_t len = directory; len < loc->path_len && len < INDEX_PATH_MAX_CHARS; len++) {
        const struct registry_index *index = find_stem(store, site, path, len, hash);
        if (index != NULL &&
            scope_page_number(index->path, index->page_pattern, registry_max_pages(r, index), path,
                              loc->path_len) != 0)
            return index;
        hash = map_hash(hash, path + len, 1);
    }
    return NULL;
}

/* OK, or why a list of `site` must not contain the loc: the loc is the URL of a page, present or
 * possible, of the site that serves its host. Aliases of another site do not count: a site may have
 * any host that is not an origin as its alias, and could block others' locs on a shared CDN. */
static enum rule_code check_page(const struct registry *r, const struct registry_site *site,
                                 const struct url *loc)
{
    bool standard = loc->port == 80 || loc->port == 443;
    const struct host_claim *claim;

    if (loc->len != loc->origin_len + loc->path_len)
        return RULE_OK; /* a query never gets a page */
    /* Without a port a host has the standard ports of both schemes. */
    claim = best_claim(registry_store_of(r), loc->text + loc->host_at, loc->host_len, loc->port);
    if (claim == NULL || (claim->port == 0 && !standard) ||
        (claim->kind == CLAIM_ALIAS && &r->sites[claim->site] != site))
        return RULE_OK;
    const struct registry_index *list = list_of_page(r, claim->site, loc);
    if (list == NULL)
        return RULE_OK;
    return list->kind == LIST_URLSET ? RULE_OF_URLSET : RULE_LOC_IS_PAGE;
}

/* The deepest index whose directory contains the loc; of several in that directory the oldest, so
 * that a new index beside it takes over nothing. Walks along the path once, and extends the hash
 * from slash to slash. */
static const struct registry_index *deepest_index(const struct registry *r, uint32_t site,
                                                  const char *path, size_t path_len)
{
    const struct registry_store *store = registry_store_of(r);
    uint32_t hash = store_path_basis(site);
    const struct registry_index *deepest = NULL;

    size_t end = scope_directory_len(path, path_len); /* its last slash */
    for (size_t at = 0; at < end && at < INDEX_PATH_MAX_CHARS; at++) {
        const struct directory *directory;
        hash = map_hash(hash, path + at, 1);
        if (path[at] != '/')
            continue;
        directory = find_directory(store, site, path, at + 1, hash);
        if (directory != NULL && store->by_directory[directory->first]->kind == LIST_INDEX)
            deepest = store->by_directory[directory->first];
    }
    return deepest;
}

const struct registry_index *
registry_deepest_index(const struct registry *r, const struct registry_site *site, const char *path)
{
    return deepest_index(r, (uint32_t)(site - r->sites), path, strlen(path));
}

/* `*cross`: the loc's host is a cross host of the site. */
static enum rule_code place_in(const struct registry *r, const struct url *loc,
                               const struct registry_site *site, const struct registry_index *index,
                               bool *cross)
{
    *cross = !url_same_origin(&site->origin_url, loc);
    if (*cross && !is_cross_host(r, site, loc)) {
        *cross = false;
        return RULE_OUTSIDE_SITE;
    }
    enum rule_code code = check_page(r, site, loc);
    if (code != RULE_OK)
        return code;
    return *cross || scope_holds(index->path, loc) ? RULE_OK : RULE_OUTSIDE_DIRECTORY;
}

enum rule_code registry_place_in(const struct registry *r, const struct url *loc,
                                 const struct registry_index *index)
{
    bool cross;

    return place_in(r, loc, registry_site_by_id(r, index->site_id), index, &cross);
}

static enum rule_code place_named(const struct registry *r, const struct url *loc,
                                  const char *index_name, struct placement *out)
{
    const struct registry_site *site;
    const struct registry_index *index = registry_index_by_name(r, index_name, &site);

    if (index == NULL)
        return RULE_INDEX_UNKNOWN;
    out->site = site;
    enum rule_code code = place_in(r, loc, site, index, &out->cross);
    if (code == RULE_OK || code == RULE_OF_URLSET)
        out->index = index;
    return code;
}

enum rule_code registry_place(const struct registry *r, const struct url *loc,
                              const char *index_name, struct placement *out)
{
    const struct registry_site *site;

    *out = (struct placement){NULL, NULL, false};
    if (index_name != NULL)
        return place_named(r, loc, index_name, out);

    site = find_origin(registry_store_of(r), loc->text, loc->origin_len);
    if (site == NULL)
        return refuse_stranger(r, loc, out);
    out->site = site;
    enum rule_code code = check_page(r, site, loc);
    if (code != RULE_OK && code != RULE_OF_URLSET)
        return code;
    out->index =
        deepest_index(r, (uint32_t)(site - r->sites), loc->text + loc->origin_len, loc->path_len);
    return code == RULE_OK && out->index == NULL ? RULE_OUTSIDE_DIRECTORY : code;
}

const char *registry_place_why(const struct registry *r, enum rule_code code, const struct url *loc,
                               const struct registry_site *site)
{
    const struct url *own = site != NULL ? &site->origin_url : NULL;

    if (code == RULE_SITE_UNKNOWN && r->site_count == 0)
        return "belongs to no site: the catalogue has no sites; create one first (`sitemapd site "
               "add "
               "ORIGIN`, or POST /v1/sites)";
    if (code == RULE_SITE_UNKNOWN)
        return "belongs to no site of this catalogue; if it is a site's file on another host (a "
               "CDN), add that host to the site's cross hosts (--add-cross-host) and name the "
               "index";
    if (code != RULE_OUTSIDE_SITE || own == NULL)
        return rule_code_sentence(code);
    if (own->host_len != loc->host_len ||
        memcmp(own->text + own->host_at, loc->text + loc->host_at, loc->host_len) != 0)
        return "is on another host than its index or urlset; to list it, add that host to the "
               "site's cross hosts (cross_hosts, or `sitemapd site update --add-cross-host`)";
    if (own->https && !loc->https)
        return "is http, but its site is https: write https";
    if (!own->https && loc->https)
        return "is https, but its site is http: write http";
    return "is on another port than its site";
}

struct entry_shown registry_describe_entry(const struct registry *r,
                                           const struct entry_record *record)
{
    const struct registry_site *site = registry_site_by_id(r, record->site_id);
    const struct registry_index *index = registry_list_by_id(r, record->index_id);
    return (struct entry_shown){
        .id = record->id,
        .loc = record->loc,
        .lastmod = record->lastmod,
        .digest = record->digest,
        .source = record->source,
        .is_page_url = index != NULL && index->kind == LIST_URLSET,
        .extensions = record->extensions,
        .origin = site != NULL ? site->origin : NULL,
        .path = index != NULL ? index->path : NULL,
        .page = record->page,
        .position = record->position,
        .registered_at = record->registered_at,
        .changed_at = record->changed_at,
    };
}
