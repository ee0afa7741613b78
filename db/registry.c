#include "db/registry.h"

#include <stdlib.h>
#include <string.h>

#include "db/registry_store.h"

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
    /* Release: what this thread read is read before another one frees it; acquire: the freeing. */
    if (atomic_fetch_sub_explicit(&store->references, 1, memory_order_acq_rel) == 1)
        registry_store_free(store);
}

const struct registry_site *registry_site_by_origin(const struct registry *r, const char *origin)
{
    return store_site_by_origin(registry_store_of(r), origin, strlen(origin));
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

const struct registry_index *registry_index_by_id(const struct registry *r, int64_t id)
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

const struct registry_site *registry_site_by_host(const struct registry *r, const char *host)
{
    const struct registry_store *store = registry_store_of(r);
    const struct host_claim *claims, *best = NULL;
    char normal[HOST_MAX_CHARS + 7];
    uint16_t port;
    size_t count, len;

    if (url_parse_host(host, strlen(host), normal) != RULE_OK)
        return NULL;
    len = store_split_host(normal, &port);
    claims = store_claims(store, normal, len, &count);
    /* The first that fits, but one that writes the very port before one that fits any. */
    for (size_t i = 0; i < count && claims[i].kind != CLAIM_CROSS; i++) {
        if (claims[i].port != 0 && claims[i].port != port)
            continue;
        if (best == NULL ||
            (claims[i].kind == best->kind && best->port == 0 && claims[i].port != 0))
            best = &claims[i];
    }
    return best != NULL ? &r->sites[best->site] : NULL;
}

static const struct registry_index *index_by_path(const struct registry_site *site,
                                                  const char *path)
{
    size_t low = 0, high = site->index_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(site->indexes[middle].path, path);
        if (order == 0)
            return &site->indexes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* `name` as it stands, which is the normal form as a rule: a bulk names its index in every row. */
static const struct registry_index *index_by_text(const struct registry *r, const char *name,
                                                  const struct registry_site **site)
{
    const char *path = name;

    if (name[0] == '/') {
        *site = r->site_count == 1 ? &r->sites[0] : NULL;
    } else {
        const char *slashes = strstr(name, "://");
        path = slashes != NULL ? strchr(slashes + 3, '/') : NULL;
        *site = path != NULL
                    ? store_site_by_origin(registry_store_of(r), name, (size_t)(path - name))
                    : NULL;
    }
    return *site != NULL ? index_by_path(*site, path) : NULL;
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

const struct registry_index *registry_index_by_name(const struct registry *r, const char *name,
                                                    const struct registry_site **site)
{
    const struct registry_site *found_site;
    const struct registry_index *index = index_by_text(r, name, &found_site);
    struct url url;

    if (index == NULL && normalise_name(r, name, strlen(name), &url))
        index = index_by_text(r, url.text, &found_site);
    if (index != NULL && site != NULL)
        *site = found_site;
    return index;
}
