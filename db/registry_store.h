/* A registry while it is made, and the tables behind its lookups. Internal to db/: registry_load.c
 * fills one, registry.c and place.c look things up in it; everybody else sees `struct registry`.
 *
 * Invariants after registry_store_seal: nothing changes but `references`; every pointer of the
 * public struct leads into this store. */
#ifndef SITEMAPD_DB_REGISTRY_STORE_H
#define SITEMAPD_DB_REGISTRY_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/registry.h"

/* What says that a host is a site's. The order is that of preference. */
enum claim_kind { CLAIM_ORIGIN, CLAIM_ALIAS, CLAIM_CROSS };

struct host_claim {
    const char *host; /* without port; not NUL-terminated */
    uint32_t host_len;
    enum claim_kind kind;
    uint32_t site;      /* ordinal in registry.sites */
    bool managed;       /* an alias that the configuration gave: before others */
    uint16_t port;      /* as written; 0: none, fits every port */
    uint32_t same_host; /* of the first of a host: how many there are */
};

/* The indexes of one site that lie in one directory. */
struct directory {
    const char *path; /* up to and with its last slash; not NUL-terminated */
    uint32_t path_len;
    uint32_t site;         /* ordinal in registry.sites */
    uint32_t first, count; /* of registry_store.by_directory, by id ascending */
};

/* Open addressing with linear probes; at most half full. A slot holds an ordinal + 1, 0 is free. */
struct slot_table {
    uint32_t mask;
    uint32_t *slots; /* owned */
};

struct registry_store {
    struct registry pub; /* first: the public pointer is this struct's */
    atomic_uint references;

    /* Owned arrays; the public ones are views of these. Capacities are fixed by `_new`. */
    struct registry_site *sites;
    struct registry_index *indexes;
    struct registry_token *tokens;
    uint32_t *pages;
    const char **hosts;
    char *strings;
    size_t site_capacity, index_capacity, token_capacity, page_capacity, host_capacity;
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
    struct slot_table origin_table;    /* of sites */
    struct slot_table host_table;      /* of the first claim of each host */
    struct slot_table directory_table; /* of directories */
};

/* How much is to be loaded, at most. */
struct registry_sizes {
    size_t sites, indexes, tokens, pages, hosts, string_bytes;
};

/* An empty store with one reference; NULL when out of memory. */
struct registry_store *registry_store_new(const struct registry_sizes *sizes);
/* Frees a store, whole or half built, whatever its references. Takes NULL. */
void registry_store_free(struct registry_store *store);
/* Copies a text into the string arena; NULL when it would not fit (string_bytes was wrong). */
const char *registry_store_text(struct registry_store *store, const char *text, size_t len);
/* Sorts the sites by id; to be called once all sites stand, before registry_site_by_id. */
void registry_store_sort_sites(struct registry_store *store);
/* The same for indexes. */
void registry_store_sort_indexes(struct registry_store *store);
/* Builds the lookup tables once all is loaded. False when out of memory. */
bool registry_store_seal(struct registry_store *store);

static inline const struct registry_store *registry_store_of(const struct registry *r)
{
    return (const struct registry_store *)r;
}

/* FNV-1a, which can be carried on byte by byte along a path. */
#define STORE_HASH_BASIS 2166136261u
static inline uint32_t store_hash(uint32_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash;
}
/* Where the hashes of a site's directories begin. */
static inline uint32_t store_directory_basis(uint32_t site)
{
    return (STORE_HASH_BASIS ^ site) * 16777619u;
}

/* Lookups by text of a given length; NULL where there is none. The claims of a host are
 * neighbours: `*count` of them. */
const struct registry_site *store_site_by_origin(const struct registry_store *store,
                                                 const char *origin, size_t len);
const struct host_claim *store_claims(const struct registry_store *store, const char *host,
                                      size_t len, size_t *count);
/* `hash` is that of the directory's path, begun with store_directory_basis. */
const struct directory *store_directory(const struct registry_store *store, uint32_t site,
                                        const char *path, size_t len, uint32_t hash);
/* Parts "host" or "host:port" (normalised): the length without port, `*port` 0 where none is
 * written. Knows "[::1]:8080". */
size_t store_split_host(const char *host, uint16_t *port);

#endif
