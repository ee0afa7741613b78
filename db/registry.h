/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The registry: an immutable snapshot of the catalogue without its entries (sites, hosts, lists,
 * numbers of existing pages, tokens, sources) at one revision. Built by catalogue_view_registry,
 * reference counted. All read functions are thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/entry.h"
#include "db/source.h"
#include "db/urlset.h"
#include "server/rules/code.h"
#include "server/rules/entry.h"
#include "server/rules/grant.h"
#include "server/rules/url.h"

/* A list of either kind: an index, or a urlset. */
struct registry_index {
    int64_t id; /* unique among the lists of both kinds */
    int64_t site_id;
    enum list_kind kind;
    const char *path;         /* "/sitemap_index.xml" */
    const char *page_pattern; /* "{stem}-{n}{suffix}" */
    enum freeze frozen;       /* its own; see registry_freeze */
    size_t page_count;        /* pages with entries */
    const uint32_t *pages;    /* their numbers, ascending */
    /* Of a urlset alone: */
    int64_t of_index; /* the index, of the same site, whose entries its pages are */
    unsigned with;    /* EXTENSION_…: extensions that its rows may have and its pages declare */
    URLSET_SETTINGS(URLSET_MEMBER) /* in effect */
};

struct registry_site {
    int64_t id;
    const char *origin;        /* "https://www.example.com[:8443]", normalised, no slash */
    struct url origin_url;     /* the same, parsed */
    bool managed;              /* by the configuration file */
    enum freeze frozen;        /* of all its lists */
    bool check;                /* registered sitemaps are fetched and checked */
    uint32_t max_pages;        /* limit of index files of all its indexes (max_indexes) */
    const char *robots;        /* its own robots.txt; NULL: none */
    size_t robots_len;         /* saves a strlen of a long text */
    bool robots_off;           /* /robots.txt is left to another server */
    uint64_t robots_revision;  /* of the last change of robots or robots_off; 0: none */
    int64_t robots_changed_at; /* Unix seconds */
    size_t cross_host_count;
    const char *const *cross_hosts;
    size_t alias_host_count;
    const char *const *alias_hosts;
    size_t index_count;
    const struct registry_index *indexes; /* by path, bytes ascending */
    size_t urlset_count;
    const struct registry_index *urlsets; /* the same */
};

/* List number `i` of a site, of either kind, from 0; NULL past the last. */
static inline const struct registry_index *registry_site_list(const struct registry_site *site,
                                                              size_t i)
{
    if (i < site->index_count)
        return &site->indexes[i];
    i -= site->index_count;
    return i < site->urlset_count ? &site->urlsets[i] : NULL;
}

/* The next list of a site, in order of path over both kinds; NULL past the last. `*at` begins as
 * {0}. */
struct registry_list_at {
    size_t index, urlset;
};
const struct registry_index *registry_next_list(const struct registry_site *site,
                                                struct registry_list_at *at);

struct registry_token {
    int64_t id;
    uint8_t sha256[32];
    int64_t created_at; /* Unix seconds */
    bool managed;       /* by the configuration file */
    struct grant grant; /* its name and rights */
};

struct registry {
    char epoch[33];    /* of the catalogue: 32 random hex digits */
    uint64_t revision; /* at which it was read; it holds until registry_revision changes */
    uint64_t registry_revision;
    size_t site_count;
    const struct registry_site *sites; /* by origin, bytes ascending */
    size_t token_count;
    const struct registry_token *tokens;
    size_t source_count;
    const struct source_settings *sources; /* by name; without the configuration's sources */
};

/* Add and drop a reference. The last unref frees. Both accept NULL. Thread safe. */
struct registry *registry_ref(const struct registry *r);
void registry_unref(const struct registry *r);

/* Copies `plain`, which the caller built: sites by origin, their indexes by path, NULL for missing
 * members. Tokens are not copied. The caller owns the one reference; NULL when out of memory, or if
 * an origin or a path is invalid. */
struct registry *registry_copy(const struct registry *plain);

/* The site with this origin or id; NULL: none. */
const struct registry_site *registry_site_by_origin(const struct registry *r, const char *origin);
const struct registry_site *registry_site_by_id(const struct registry *r, int64_t id);
/* The site that serves a request's host ("www.example.com", perhaps with ":8080"; any case): by the
 * hosts of origins, then by host aliases. Ports are compared only if the origin or alias has one.
 * NULL: no site. */
const struct registry_site *registry_site_by_host(const struct registry *r, const char *host);
/* Whether the host is the host of an origin, not an alias. */
bool registry_is_origin_host(const struct registry *r, const char *host);
/* The index, or the list of either kind, with this id; NULL: none. */
const struct registry_index *registry_index_by_id(const struct registry *r, int64_t id);
const struct registry_index *registry_list_by_id(const struct registry *r, int64_t id);
/* The index with this URL ("https://…/x.xml") or, if the registry has exactly one site, with this
 * path. NULL: none. Sets `*site` (may be NULL), too. */
const struct registry_index *registry_index_by_name(const struct registry *r, const char *name,
                                                    const struct registry_site **site);
/* The same for a list of this kind. */
const struct registry_index *registry_list_by_name(const struct registry *r, const char *name,
                                                   enum list_kind kind,
                                                   const struct registry_site **site);
/* Whether the name of an unknown list can be only of this site: a path, or a URL of its origin. */
bool registry_is_name_of(const struct registry *r, const char *name, int64_t site_id);
/* Maximum number of pages of the list: for an index, the limit of its site. */
uint32_t registry_max_pages(const struct registry *r, const struct registry_index *list);

/* The strongest freeze of the list, its site and, for a urlset, its index. Unless it is
 * FREEZE_NONE, writes to the list are rejected. */
enum freeze registry_freeze(const struct registry *r, const struct registry_index *index);
bool registry_is_frozen(const struct registry *r, const struct registry_index *index);

/* The source with this name that the API or the command line created; NULL: none. */
const struct source_settings *registry_source(const struct registry *r, const char *name);

struct site_declaration;
struct token_declaration;
/* True if sites and tokens are already as a configuration declares them (db/change.h,
 * CHANGE_CONFIGURE). False also when out of memory. */
bool registry_is_declared(const struct registry *r, const struct site_declaration *declared,
                          size_t count, const struct token_declaration *tokens, size_t token_count);

/* Where a loc belongs. */
struct placement {
    const struct registry_site *site;
    const struct registry_index
        *index; /* NULL: no index was named, and none contains it by scope */
    bool cross; /* its host is a cross host of the site */
};

/* Finds the site and the index of `loc`: the index `index_name`, which must allow the loc, or
 * without a name the deepest index of its origin's site whose directory contains it. Rejects it
 * with RULE_SITE_UNKNOWN, RULE_INDEX_UNKNOWN, RULE_INDEX_NEEDED, RULE_OUTSIDE_SITE,
 * RULE_OUTSIDE_DIRECTORY or RULE_LOC_IS_PAGE (the URL of a page, present or possible, of the site
 * that serves its host; an alias of a site other than the index's does not count), or
 * RULE_OF_URLSET, if that page is of a urlset: then `out->index` is the index that an ordinary loc
 * would belong to, or NULL. A loc of the same host but another scheme is RULE_OUTSIDE_SITE unless
 * the host is a cross host. */
enum rule_code registry_place(const struct registry *r, const struct url *loc,
                              const char *index_name, struct placement *out);
/* The index of the site with the longest directory that contains the path; NULL: none. */
const struct registry_index *registry_deepest_index(const struct registry *r,
                                                    const struct registry_site *site,
                                                    const char *path);
/* Iterates, in the order of sites, over those that have the loc's host as a cross host: the next
 * one after `after` (NULL: the first), NULL past the last. If `only` is not 0, all other sites are
 * skipped. */
const struct registry_site *registry_next_cross_site(const struct registry *r,
                                                     const struct url *loc, int64_t only,
                                                     const struct registry_site *after);
/* The site to whose origin the host belongs ("www.example.com", normalised; with or without port),
 * whatever the scheme, except `besides` (NULL: none). Without a port the host means all of its
 * ports. NULL: no site. */
const struct registry_site *registry_site_of_host(const struct registry *r, const char *host,
                                                  const struct registry_site *besides);
/* The same for host aliases. */
const struct registry_site *registry_site_of_alias(const struct registry *r, const char *host,
                                                   const struct registry_site *besides);

/* Whether the loc may be in the list: OK, or the code of registry_place. */
enum rule_code registry_place_in(const struct registry *r, const struct url *loc,
                                 const struct registry_index *index);

/* A record as the API shows it, without remarks; borrows strings from `r` and `record`. */
struct entry_shown registry_describe_entry(const struct registry *r,
                                           const struct entry_record *record);

/* The message for a loc that registry_place rejected with `code`, more precise than the code's own
 * sentence. `site` is the placement's, or NULL. Static. */
const char *registry_place_why(const struct registry *r, enum rule_code code, const struct url *loc,
                               const struct registry_site *site);
