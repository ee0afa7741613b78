/* Where a loc belongs. Runs once for each row of a bulk, so: no allocation, and nothing that grows
 * with the number of sites, of indexes elsewhere, or of page names. */
#include <string.h>

#include "db/registry_store.h"
#include "server/rules/scope.h"

static bool port_fits(const struct host_claim *claim, const struct url *loc)
{
    return claim->port == 0 || claim->port == loc->port;
}

static const struct host_claim *loc_claims(const struct registry *r, const struct url *loc,
                                           size_t *count)
{
    return store_claims(registry_store_of(r), loc->text + loc->host_at, loc->host_len, count);
}

/* By halves, since a CDN's host may be a cross host of every site there is. */
static bool is_cross_host(const struct registry *r, const struct registry_site *site,
                          const struct url *loc)
{
    uint32_t ordinal = (uint32_t)(site - r->sites);
    size_t count, low = 0, high;
    const struct host_claim *claims = loc_claims(r, loc, &count);

    high = count;
    while (low < high) { /* cross hosts stand last, their sites descending */
        size_t middle = low + (high - low) / 2;
        if (claims[middle].kind != CLAIM_CROSS || claims[middle].site > ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    /* A site may list a host with several ports. */
    for (; low < count && claims[low].site == ordinal; low++) {
        if (port_fits(&claims[low], loc))
            return true;
    }
    return false;
}

/* Why a loc whose origin is no site's has no place without an index named. */
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

/* True where an index of `directory` calls one of its pages so. A page lies in the directory of
 * its index, since no pattern has a slash. */
static bool names_page(const struct registry *r, const struct directory *directory,
                       const struct url *loc)
{
    const struct registry_index **indexes = registry_store_of(r)->by_directory + directory->first;

    for (uint32_t i = 0; i < directory->count; i++) {
        if (scope_page_number(indexes[i]->path, indexes[i]->page_pattern,
                              r->sites[directory->site].max_pages, loc->text + loc->origin_len,
                              (size_t)loc->len - loc->origin_len) != 0)
            return true;
    }
    return false;
}

/* True where a site that answers for the loc's host has a page of this name, present or possible.
 * Own locs and those of cross hosts alike: a host that is an alias here, or another site of this
 * catalogue, serves its pages under that name too. */
static bool is_page(const struct registry *r, const struct url *loc)
{
    const char *path = loc->text + loc->origin_len;
    size_t count, len;
    const struct host_claim *claims;

    if (loc->len != loc->origin_len + loc->path_len)
        return false; /* a query never gets a page */
    claims = loc_claims(r, loc, &count);
    len = count > 0 ? directory_len(loc) : 0;
    for (size_t i = 0; i < count && claims[i].kind != CLAIM_CROSS; i++) {
        const struct directory *directory;
        bool standard = loc->port == 80 || loc->port == 443;
        if (!(claims[i].port == 0 ? standard : claims[i].port == loc->port))
            continue;
        directory = store_directory(registry_store_of(r), claims[i].site, path, len,
                                    store_hash(store_directory_basis(claims[i].site), path, len));
        if (directory != NULL && names_page(r, directory, loc))
            return true;
    }
    return false;
}

/* The index whose directory holds the loc, the deepest; of several there the oldest, so that a new
 * index beside it diverts nothing. One walk along the path, the hash carried on from slash to
 * slash. */
static const struct registry_index *deepest_index(const struct registry *r, uint32_t site,
                                                  const struct url *loc)
{
    const struct registry_store *store = registry_store_of(r);
    const char *path = loc->text + loc->origin_len;
    uint32_t hash = store_directory_basis(site);
    const struct registry_index *deepest = NULL;

    size_t end = directory_len(loc); /* its last slash */
    for (size_t at = 0; at < end && at < INDEX_PATH_MAX_CHARS; at++) {
        const struct directory *directory;
        hash = store_hash(hash, path + at, 1);
        if (path[at] != '/')
            continue;
        directory = store_directory(store, site, path, at + 1, hash);
        if (directory != NULL)
            deepest = store->by_directory[directory->first];
    }
    return deepest;
}

static enum rule_code place_named(const struct registry *r, const struct url *loc,
                                  const char *index_name, struct placement *out)
{
    const struct registry_site *site;
    const struct registry_index *index = registry_index_by_name(r, index_name, &site);

    if (index == NULL)
        return RULE_INDEX_UNKNOWN;
    out->site = site;
    if (!url_same_origin(&site->origin_url, loc)) {
        if (!is_cross_host(r, site, loc))
            return RULE_OUTSIDE_SITE;
        out->cross = true;
    }
    if (is_page(r, loc))
        return RULE_LOC_IS_PAGE;
    if (!out->cross && !scope_holds(index->path, loc))
        return RULE_OUTSIDE_DIRECTORY;
    out->index = index;
    return RULE_OK;
}

enum rule_code registry_place(const struct registry *r, const struct url *loc,
                              const char *index_name, struct placement *out)
{
    const struct registry_site *site;

    *out = (struct placement){NULL, NULL, false};
    if (index_name != NULL)
        return place_named(r, loc, index_name, out);

    site = store_site_by_origin(registry_store_of(r), loc->text, loc->origin_len);
    if (site == NULL)
        return refuse_stranger(r, loc, out);
    out->site = site;
    if (is_page(r, loc))
        return RULE_LOC_IS_PAGE;
    out->index = deepest_index(r, (uint32_t)(site - r->sites), loc);
    return out->index != NULL ? RULE_OK : RULE_OUTSIDE_DIRECTORY;
}
