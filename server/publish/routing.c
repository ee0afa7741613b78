#include "server/publish/routing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "server/rules/scope.h"
#include "server/rules/str.h"

struct routing_entry {
    uint64_t hash;        /* of path, seeded with the site's place */
    uint32_t site;        /* place in registry->sites */
    enum route_kind kind; /* ROUTE_NONE: a free bucket */
    size_t path;          /* offsets into `text` */
    size_t target, target_len;
    struct slot *slot; /* owned reference; pages only */
};

struct routing_robots {
    size_t text, text_len;
    char etag[SNAPSHOT_ETAG_SIZE];
};

struct routing {
    atomic_uint references;
    const struct registry *registry;
    bool any_host;   /* one site and no strict_host */
    size_t capacity; /* buckets: a power of two */
    struct routing_entry *entries;
    struct routing_robots *robots; /* of each site */
    struct str text;               /* every path, target and robots body */
};

void routing_ref(const struct routing *r)
{
    atomic_fetch_add_explicit(&((struct routing *)r)->references, 1, memory_order_relaxed);
}

void publisher_routing_done(const struct routing *shared)
{
    struct routing *r = (struct routing *)shared;
    if (r == NULL || atomic_fetch_sub_explicit(&r->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < r->capacity; i++)
        slot_unref(r->entries[i].slot);
    free(r->entries);
    free(r->robots);
    str_done(&r->text);
    registry_unref(r->registry);
    free(r);
}

const struct registry *routing_registry(const struct routing *r)
{
    return r->registry;
}

static struct routing_entry *bucket(const struct routing *r, uint32_t site, const char *path)
{
    uint64_t hash = XXH3_64bits_withSeed(path, strlen(path), site);
    for (size_t i = hash & (r->capacity - 1);; i = (i + 1) & (r->capacity - 1)) {
        struct routing_entry *e = &r->entries[i];
        if (e->kind == ROUTE_NONE) {
            e->hash = hash; /* a free bucket's hash means nothing to others */
            return e;
        }
        if (e->hash == hash && e->site == site && strcmp(str_text(&r->text) + e->path, path) == 0)
            return e;
    }
}

static size_t keep(struct routing *r, const char *text)
{
    size_t at = r->text.len;
    str_append(&r->text, text, strlen(text) + 1);
    return at;
}

/* The first to claim a path keeps it: pages before aliases. */
static void add(struct routing *r, uint32_t site, const char *path, enum route_kind kind,
                struct slot *slot, const char *target)
{
    struct routing_entry *e = bucket(r, site, path);
    if (e->kind != ROUTE_NONE)
        return;
    e->kind = kind;
    e->site = site;
    e->path = keep(r, path);
    if (target != NULL) {
        e->target = keep(r, target);
        e->target_len = strlen(target);
    }
    if (slot != NULL) {
        slot_ref(slot);
        e->slot = slot;
    }
}

static bool add_pages(struct routing *r, uint32_t place, struct slot_table *slots)
{
    const struct registry_site *site = &r->registry->sites[place];
    for (size_t i = 0; i < site->index_count; i++) {
        const struct registry_index *index = &site->indexes[i];
        for (size_t n = 0; n < index->page_count; n++) {
            struct slot *slot = slot_table_get(slots, index->id, index->pages[n]);
            if (slot == NULL)
                return false;
            slot->seen_in_registry = true;
            char path[PAGE_PATH_SIZE];
            scope_page_path(index->path, index->page_pattern, index->pages[n], false, path);
            add(r, place, path, ROUTE_PAGE, slot, NULL);
            scope_page_path(index->path, index->page_pattern, index->pages[n], true, path);
            add(r, place, path, ROUTE_PAGE_GZ, slot, NULL);
        }
    }
    return true;
}

static const struct publish_site *policy_of(const struct routing_policies *policies,
                                            const char *origin)
{
    for (size_t i = 0; i < policies->count; i++)
        if (strcmp(policies->sites[i].origin, origin) == 0)
            return &policies->sites[i];
    return NULL;
}

static void add_policy(struct routing *r, uint32_t place, const struct publish_site *policy)
{
    const struct registry_site *site = &r->registry->sites[place];
    if (policy == NULL || !policy->robots_off) {
        struct routing_robots *robots = &r->robots[place];
        robots->text = r->text.len;
        robots_render(site, policy == NULL ? NULL : policy->robots_prefix, &r->text);
        robots->text_len = r->text.len - robots->text;
        XXH128_hash_t hash = XXH3_128bits(str_text(&r->text) + robots->text, robots->text_len);
        snprintf(robots->etag, sizeof robots->etag, "\"%016llx%016llx\"",
                 (unsigned long long)hash.high64, (unsigned long long)hash.low64);
        add(r, place, "/robots.txt", ROUTE_ROBOTS, NULL, NULL);
    }
    for (size_t i = 0; policy != NULL && i < policy->alias_count; i++) {
        struct str target = STR_INIT;
        str_append_text(&target, site->origin);
        str_append_text(&target, policy->aliases[i].to);
        add(r, place, policy->aliases[i].from, ROUTE_ALIAS, NULL, str_text(&target));
        r->text.failed |= target.failed;
        str_done(&target);
    }
}

static size_t route_count(const struct registry *registry, const struct routing_policies *policies)
{
    size_t count = registry->site_count;
    for (size_t i = 0; i < registry->site_count; i++)
        for (size_t k = 0; k < registry->sites[i].index_count; k++)
            count += 2 * registry->sites[i].indexes[k].page_count;
    for (size_t i = 0; i < policies->count; i++)
        count += policies->sites[i].alias_count;
    return count;
}

struct routing *routing_new(const struct registry *registry,
                            const struct routing_policies *policies, struct slot_table *slots)
{
    struct routing *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    atomic_init(&r->references, 1);
    r->registry = registry_ref(registry);
    r->any_host = registry->site_count == 1 && !policies->strict_host;
    size_t capacity = 16;
    while (capacity < 2 * route_count(registry, policies))
        capacity *= 2;
    r->entries = calloc(capacity, sizeof *r->entries);
    r->robots = calloc(registry->site_count + 1, sizeof *r->robots);
    if (r->entries == NULL || r->robots == NULL)
        goto no_memory;
    r->capacity = capacity;
    for (uint32_t i = 0; i < registry->site_count; i++) {
        if (!add_pages(r, i, slots))
            goto no_memory;
        add_policy(r, i, policy_of(policies, registry->sites[i].origin));
    }
    if (r->text.failed)
        goto no_memory;
    return r;

no_memory:
    publisher_routing_done(r);
    return NULL;
}

void routing_find(const struct routing *r, const char *host, const char *path,
                  struct route_found *out)
{
    *out = (struct route_found){.kind = ROUTE_NONE};
    const struct registry_site *site = NULL;
    if (r->any_host)
        site = &r->registry->sites[0];
    else if (host != NULL)
        site = registry_site_by_host(r->registry, host);
    if (site == NULL)
        return;
    out->host_known = true;
    out->origin = site->origin;
    uint32_t place = (uint32_t)(site - r->registry->sites);
    uint64_t hash = XXH3_64bits_withSeed(path, strlen(path), place);
    for (size_t i = hash & (r->capacity - 1); r->entries[i].kind != ROUTE_NONE;
         i = (i + 1) & (r->capacity - 1)) {
        const struct routing_entry *e = &r->entries[i];
        if (e->hash != hash || e->site != place || strcmp(r->text.data + e->path, path) != 0)
            continue;
        out->kind = e->kind;
        out->slot = e->slot;
        if (e->kind == ROUTE_ALIAS) {
            out->text = r->text.data + e->target;
            out->text_len = e->target_len;
        } else if (e->kind == ROUTE_ROBOTS) {
            const struct routing_robots *robots = &r->robots[place];
            out->text = r->text.data + robots->text;
            out->text_len = robots->text_len;
            memcpy(out->robots_etag, robots->etag, sizeof out->robots_etag);
        }
        return;
    }
}
