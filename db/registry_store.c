#include "db/registry_store.h"

#include <stdlib.h>
#include <string.h>

#include "server/rules/scope.h"

/* ---- memory ---------------------------------------------------------------------------- */

/* calloc of 0 members may give NULL, which is no failure here. */
static void *new_array(size_t count, size_t size, bool *failed)
{
    void *array = calloc(count > 0 ? count : 1, size);

    if (array == NULL)
        *failed = true;
    return array;
}

struct registry_store *registry_store_new(const struct registry_sizes *sizes)
{
    struct registry_store *store = calloc(1, sizeof *store);
    bool failed = false;

    if (store == NULL)
        return NULL;
    atomic_init(&store->references, 1);
    store->site_capacity = sizes->sites;
    store->index_capacity = sizes->indexes;
    store->token_capacity = sizes->tokens;
    store->page_capacity = sizes->pages;
    store->host_capacity = sizes->hosts;
    store->string_capacity = sizes->string_bytes;
    store->sites = new_array(sizes->sites, sizeof *store->sites, &failed);
    store->indexes = new_array(sizes->indexes, sizeof *store->indexes, &failed);
    store->tokens = new_array(sizes->tokens, sizeof *store->tokens, &failed);
    store->pages = new_array(sizes->pages, sizeof *store->pages, &failed);
    store->hosts = new_array(sizes->hosts, sizeof *store->hosts, &failed);
    store->strings = new_array(sizes->string_bytes, 1, &failed);
    store->sites_by_id = new_array(sizes->sites, sizeof *store->sites_by_id, &failed);
    store->indexes_by_id = new_array(sizes->indexes, sizeof *store->indexes_by_id, &failed);
    if (failed) {
        registry_store_free(store);
        return NULL;
    }
    store->pub.sites = store->sites;
    store->pub.tokens = store->tokens;
    return store;
}

void registry_store_free(struct registry_store *store)
{
    if (store == NULL)
        return;
    free(store->sites);
    free(store->indexes);
    free(store->tokens);
    free(store->pages);
    free((void *)store->hosts);
    free(store->strings);
    free((void *)store->sites_by_id);
    free((void *)store->indexes_by_id);
    free((void *)store->by_directory);
    free(store->directories);
    free(store->claims);
    free(store->origin_table.slots);
    free(store->host_table.slots);
    free(store->directory_table.slots);
    free(store);
}

const char *registry_store_text(struct registry_store *store, const char *text, size_t len)
{
    char *at = store->strings + store->string_len;

    if (store->string_capacity - store->string_len < len + 1)
        return NULL;
    memcpy(at, text, len);
    at[len] = '\0';
    store->string_len += len + 1;
    return at;
}

/* ---- order ----------------------------------------------------------------------------- */

static int compare_site_ids(const void *a, const void *b)
{
    const struct registry_site *const *x = a, *const *y = b;

    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static int compare_index_ids(const void *a, const void *b)
{
    const struct registry_index *const *x = a, *const *y = b;

    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

void registry_store_sort_sites(struct registry_store *store)
{
    for (size_t i = 0; i < store->pub.site_count; i++)
        store->sites_by_id[i] = &store->sites[i];
    qsort((void *)store->sites_by_id, store->pub.site_count, sizeof *store->sites_by_id,
          compare_site_ids);
}

void registry_store_sort_indexes(struct registry_store *store)
{
    for (size_t i = 0; i < store->index_count; i++)
        store->indexes_by_id[i] = &store->indexes[i];
    qsort((void *)store->indexes_by_id, store->index_count, sizeof *store->indexes_by_id,
          compare_index_ids);
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_claims(const void *a, const void *b)
{
    const struct host_claim *x = a, *y = b;
    int order = compare_bytes(x->host, x->host_len, y->host, y->host_len);

    if (order == 0)
        order = (x->kind > y->kind) - (x->kind < y->kind);
    if (order == 0)
        order = (int)y->managed - (int)x->managed;
    /* Ordinals follow the origins, so that http stands before https: turned round, since a host
     * that has both is asked for by https as a rule. */
    if (order == 0)
        order = (x->site < y->site) - (x->site > y->site);
    return order;
}

/* ---- tables ---------------------------------------------------------------------------- */

static bool table_init(struct slot_table *table, size_t count)
{
    size_t size = 4;

    while (size < 2 * count)
        size *= 2;
    table->slots = calloc(size, sizeof *table->slots);
    table->mask = (uint32_t)(size - 1);
    return table->slots != NULL;
}

static void table_add(struct slot_table *table, uint32_t hash, size_t ordinal)
{
    uint32_t at = hash & table->mask;

    while (table->slots[at] != 0)
        at = (at + 1) & table->mask;
    table->slots[at] = (uint32_t)ordinal + 1;
}

static bool build_origins(struct registry_store *store)
{
    if (!table_init(&store->origin_table, store->pub.site_count))
        return false;
    for (size_t i = 0; i < store->pub.site_count; i++) {
        const struct registry_site *site = &store->sites[i];
        table_add(&store->origin_table,
                  store_hash(STORE_HASH_BASIS, site->origin, strlen(site->origin)), i);
    }
    return true;
}

size_t store_split_host(const char *host, uint16_t *port)
{
    const char *bracket = strrchr(host, ']');
    const char *colon = strrchr(bracket != NULL ? bracket : host, ':');

    *port = colon != NULL ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
    return colon != NULL ? (size_t)(colon - host) : strlen(host);
}

static void claim(struct registry_store *store, enum claim_kind kind, size_t site, const char *host)
{
    struct host_claim *out = &store->claims[store->claim_count++];

    out->host = host;
    out->host_len = (uint32_t)store_split_host(host, &out->port);
    out->kind = kind;
    out->site = (uint32_t)site;
    out->managed = kind == CLAIM_ALIAS && store->sites[site].managed;
}

static bool build_claims(struct registry_store *store)
{
    bool failed = false;
    size_t most = store->pub.site_count + store->host_count;

    store->claims = new_array(most, sizeof *store->claims, &failed);
    if (failed || !table_init(&store->host_table, most))
        return false;
    for (size_t s = 0; s < store->pub.site_count; s++) {
        const struct registry_site *site = &store->sites[s];
        /* What follows the scheme of an origin is "host[:port]". */
        claim(store, CLAIM_ORIGIN, s, site->origin + site->origin_url.host_at);
        for (size_t i = 0; i < site->alias_host_count; i++)
            claim(store, CLAIM_ALIAS, s, site->alias_hosts[i]);
        for (size_t i = 0; i < site->cross_host_count; i++)
            claim(store, CLAIM_CROSS, s, site->cross_hosts[i]);
    }
    qsort(store->claims, store->claim_count, sizeof *store->claims, compare_claims);
    for (size_t i = 0, first = 0; i < store->claim_count; i++) {
        const struct host_claim *c = &store->claims[i];
        if (i == 0 || compare_bytes(c->host, c->host_len, c[-1].host, c[-1].host_len) != 0) {
            table_add(&store->host_table, store_hash(STORE_HASH_BASIS, c->host, c->host_len), i);
            first = i;
        }
        store->claims[first].same_host++;
    }
    return true;
}

static int compare_directories(const void *a, const void *b)
{
    const struct registry_index *x = *(const struct registry_index *const *)a;
    const struct registry_index *y = *(const struct registry_index *const *)b;
    int order = (x->site_id > y->site_id) - (x->site_id < y->site_id);

    if (order == 0)
        order = compare_bytes(x->path, scope_directory_len(x->path, strlen(x->path)), y->path,
                              scope_directory_len(y->path, strlen(y->path)));
    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

/* Groups the indexes by site and directory: what holds a loc, and what could have a page of its
 * name, is then found by the directories of the loc, however many indexes there are. */
static bool build_directories(struct registry_store *store)
{
    bool failed = false;

    store->by_directory = new_array(store->index_count, sizeof *store->by_directory, &failed);
    store->directories = new_array(store->index_count, sizeof *store->directories, &failed);
    if (failed || !table_init(&store->directory_table, store->index_count))
        return false;
    for (size_t i = 0; i < store->index_count; i++)
        store->by_directory[i] = &store->indexes[i];
    qsort((void *)store->by_directory, store->index_count, sizeof *store->by_directory,
          compare_directories);

    for (size_t i = 0; i < store->index_count; i++) {
        const struct registry_index *index = store->by_directory[i];
        const struct registry_site *site = registry_site_by_id(&store->pub, index->site_id);
        size_t len = scope_directory_len(index->path, strlen(index->path));
        struct directory *last = &store->directories[store->directory_count];
        uint32_t ordinal = (uint32_t)(site - store->sites);

        if (store->directory_count > 0 && last[-1].site == ordinal &&
            compare_bytes(last[-1].path, last[-1].path_len, index->path, len) == 0) {
            last[-1].count++;
            continue;
        }
        *last = (struct directory){index->path, (uint32_t)len, ordinal, (uint32_t)i, 1};
        table_add(&store->directory_table,
                  store_hash(store_directory_basis(ordinal), index->path, len),
                  store->directory_count++);
    }
    return true;
}

bool registry_store_seal(struct registry_store *store)
{
    return build_origins(store) && build_claims(store) && build_directories(store);
}

/* ---- lookups --------------------------------------------------------------------------- */

const struct registry_site *store_site_by_origin(const struct registry_store *store,
                                                 const char *origin, size_t len)
{
    const struct slot_table *table = &store->origin_table;
    uint32_t at = store_hash(STORE_HASH_BASIS, origin, len) & table->mask;

    for (; table->slots[at] != 0; at = (at + 1) & table->mask) {
        const struct registry_site *site = &store->sites[table->slots[at] - 1];
        if (site->origin_url.origin_len == len && memcmp(site->origin, origin, len) == 0)
            return site;
    }
    return NULL;
}

const struct host_claim *store_claims(const struct registry_store *store, const char *host,
                                      size_t len, size_t *count)
{
    const struct slot_table *table = &store->host_table;
    uint32_t at = store_hash(STORE_HASH_BASIS, host, len) & table->mask;

    for (*count = 0; table->slots[at] != 0; at = (at + 1) & table->mask) {
        const struct host_claim *c = &store->claims[table->slots[at] - 1];
        if (compare_bytes(c->host, c->host_len, host, len) != 0)
            continue;
        *count = c->same_host;
        return c;
    }
    return NULL;
}

const struct directory *store_directory(const struct registry_store *store, uint32_t site,
                                        const char *path, size_t len, uint32_t hash)
{
    const struct slot_table *table = &store->directory_table;

    for (uint32_t at = hash & table->mask; table->slots[at] != 0; at = (at + 1) & table->mask) {
        const struct directory *d = &store->directories[table->slots[at] - 1];
        if (d->site == site && d->path_len == len && memcmp(d->path, path, len) == 0)
            return d;
    }
    return NULL;
}
