/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The private part of a registry: its memory and the maps for lookups. Internal to db/:
 * registry_store.c fills it, registry.c uses its maps; all others see `struct registry`.
 *
 * Invariants after registry_store_seal: only `references` changes; every pointer of the public
 * struct leads into this store. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "db/catalogue.h"
#include "db/registry.h"
#include "server/base/map.h"

/* The reason why a host belongs to a site, in order of preference. */
enum claim_kind { CLAIM_ORIGIN, CLAIM_ALIAS, CLAIM_CROSS };

struct host_claim {
    const char *host; /* without port; not NUL-terminated */
    uint32_t host_len;
    enum claim_kind kind;
    uint32_t site;      /* ordinal in registry.sites */
    bool managed;       /* an alias of the configuration: before others */
    uint16_t port;      /* 0: none given, matches every port */
    uint32_t same_host; /* in the first claim of a host: how many claims the host has */
};

/* The lists of one site in one directory. */
struct directory {
    const char *path; /* including its last slash; not NUL-terminated */
    uint32_t path_len;
    uint32_t site;         /* ordinal in registry.sites */
    uint32_t first, count; /* of by_directory, indexes before urlsets, each by id ascending */
};

/* A site's robots.txt, up to 500 KiB: shared by all registries that have it. */
struct shared_text {
    atomic_uint references;
    size_t len;
    char text[];
};

struct registry_store {
    struct registry pub; /* first: the public pointer is this struct's */
    atomic_uint references;

    /* Owned arrays; the public ones are views of these. Capacities are fixed by `_new`. */
    struct registry_site *sites;
    struct shared_text **robots; /* of each site, as loaded; a reference, or NULL */
    struct registry_index *indexes;
    struct registry_token *tokens;
    struct source_settings *sources;
    uint32_t *pages;
    const char **hosts; /* followed by the lines of sources' lists */
    char *strings;
    size_t site_capacity, index_capacity, token_capacity, source_capacity, page_capacity,
        host_capacity;
    size_t string_capacity;
    size_t index_count, page_count, host_count, string_len;

    /* For lookups, owned. */
    const struct registry_site **sites_by_id;
    const struct registry_index **indexes_by_id;
    const struct registry_index **by_directory;
    struct directory *directories;
    size_t directory_count;
    struct host_claim *claims; /* by host, kind, then site descending */
    size_t claim_count;
    struct map origin_map;    /* of sites */
    struct map host_map;      /* of the first claim of each host */
    struct map directory_map; /* of directories */
    struct map stem_map;      /* of indexes, by their path without ".xml" */
};

/* Upper bounds of what is loaded. */
struct registry_sizes {
    size_t sites, indexes, tokens, sources, pages, hosts, string_bytes;
};
/* Frees a store, complete or not, whatever its references. Accepts NULL. */
void registry_store_free(struct registry_store *store);

static inline const struct registry_store *registry_store_of(const struct registry *r)
{
    return (const struct registry_store *)r;
}

/* Initial value of the hashes of a site's paths (of directories and indexes). */
static inline uint32_t store_path_basis(uint32_t site)
{
    return map_hash(MAP_HASH_BASIS, (const char *)&site, sizeof site);
}

/* The length of its path without ".xml". */
static inline size_t store_stem_len(const struct registry_index *index)
{
    return strlen(index->path) - strlen(".xml");
}
/* Splits "host" or "host:port" (normalised; also "[::1]:8080"): returns the length without port;
 * `*port` is 0 without one. */
size_t store_split_host(const char *host, uint16_t *port);

/* Reads a registry from the file. Internal to db/: views and the writer use it. */

/* Reads inside the caller's transaction, so that all of it is of one revision (the writer's own
 * uncommitted changes included). Removed sites and indexes are left out. The caller owns the one
 * reference; on failure `*out` is NULL. `before` (NULL: none) is a registry of the same file at the
 * same or an earlier committed revision: unchanged robots.txt texts are shared with it, so that a
 * change need not read those of all sites. */
enum catalogue_status registry_load(sqlite3 *db, const struct registry *before,
                                    struct registry **out);
