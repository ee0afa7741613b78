/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Builds the tables of hosts and paths of all sites from a registry, and robots.txt. */
#include "server/pages/page_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "server/base/map.h"
#include "server/base/str.h"
#include "server/rules/robots.h"
#include "server/rules/scope.h"

/* True if `path` (with query, if any) is a page of the current site, or an alias of one. */
typedef bool robots_has_page(void *context, const char *path);

/* With or without www., whatever the scheme and port: the site may have moved. */
static bool is_host_of(const struct url *site, const struct url *url)
{
    const char *a = site->text + site->host_at, *b = url->text + url->host_at;
    size_t a_len = site->host_len, b_len = url->host_len;
    if (strncmp(a, "www.", 4) == 0)
        a += 4, a_len -= 4;
    if (strncmp(b, "www.", 4) == 0)
        b += 4, b_len -= 4;
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* Whether to drop a Sitemap line: its URL is invalid, or is a page of this site under any scheme
 * and host of it. */
static bool is_useless(const struct registry_site *site, const struct robots_sitemap *sitemap,
                       robots_has_page *has_page, void *context)
{
    const char *code, *why;
    struct url url;
    return !robots_sitemap_url(sitemap, &url, &code, &why) ||
           (is_host_of(&site->origin_url, &url) && has_page(context, url.text + url.origin_len));
}

/* Appends the operator's text without Sitemap lines that are useless: many a robots.txt was written
 * for an earlier program's index, and a URL that occurs twice is a mistake to some tools. */
static void append_own(const struct registry_site *site, const char *own, struct str *out,
                       robots_has_page *has_page, void *context)
{
    struct robots_cursor at = {0};
    struct robots_sitemap sitemap;
    const char *kept = own; /* the text from here on is not copied yet */
    size_t len = strlen(own);
    while (robots_next_sitemap(own, len, &at, &sitemap))
        if (at.line.text >= kept && is_useless(site, &sitemap, has_page, context)) {
            str_append(out, kept, (size_t)(at.line.text - kept));
            kept = at.line.text + at.line.len;
        }
    str_append_text(out, kept);
}

/* The robots.txt of a site: the operator's text (NULL: none), then a Sitemap line for every page
 * of every index (sitemaps.org "Specifying the Sitemap location in your robots.txt file"). */
static void robots_render(const struct registry_site *site, const char *own,
                          robots_has_page *has_page, void *context, struct str *out)
{
    size_t begin = out->len;
    if (own != NULL)
        append_own(site, own, out, has_page, context);
    if (!out->failed && out->len > begin && out->data[out->len - 1] != '\n')
        str_append_char(out, '\n');
    for (size_t i = 0; i < site->index_count; i++) {
        const struct registry_index *index = &site->indexes[i];
        for (size_t n = 0; n < index->page_count; n++) {
            char path[PAGE_PATH_SIZE];
            scope_page_path(index->path, index->page_pattern, index->pages[n], false, path);
            str_append_text(out, "Sitemap: ");
            str_append_text(out, site->origin);
            str_append_text(out, path);
            str_append_char(out, '\n');
        }
    }
}

struct page_map_entry {
    uint32_t site; /* place in registry->sites */
    enum route_kind kind;
    size_t path; /* offsets into `text` */
    size_t target, target_len;
    struct place *page; /* owned reference; pages only */
};

struct page_map {
    atomic_uint references;
    const struct registry *registry;
    char epoch[EPOCH_SIZE];
    uint64_t era;
    bool any_host; /* one site and no strict_host */
    size_t count;
    struct page_map_entry *entries; /* room for all, see route_count */
    uint32_t *aliases;              /* places in `entries`; room for all */
    size_t alias_count;
    struct map by_path;       /* places in `entries` by site and path */
    struct resource **robots; /* of each site, a reference; NULL: none */
    struct resource **keys;   /* likewise, of IndexNow */
    struct str text;          /* every path and target */
    uint64_t policies;        /* as in struct page_map_of */
};

void page_map_ref(const struct page_map *r)
{
    atomic_fetch_add_explicit(&((struct page_map *)r)->references, 1, memory_order_relaxed);
}

void publisher_page_map_done(const struct page_map *shared)
{
    struct page_map *r = (struct page_map *)shared;
    if (r == NULL || atomic_fetch_sub_explicit(&r->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < r->count; i++)
        place_unref(r->entries[i].page);
    free(r->entries);
    free(r->aliases);
    map_done(&r->by_path);
    for (size_t i = 0; r->robots != NULL && i < r->registry->site_count; i++)
        resource_unref(r->robots[i]);
    free(r->robots);
    for (size_t i = 0; r->keys != NULL && i < r->registry->site_count; i++)
        resource_unref(r->keys[i]);
    free(r->keys);
    str_done(&r->text);
    registry_unref(r->registry);
    free(r);
}

const struct registry *page_map_registry(const struct page_map *r)
{
    return r->registry;
}

struct place_key page_map_key(const struct page_map *r, int64_t index_id, uint32_t number)
{
    return (struct place_key){
        .kind = HELD_PAGE, .number = number, .of = index_id, .era = r->era, .name = r->epoch};
}

uint64_t page_map_list_hash(const struct registry *r, const struct registry_index *list)
{
    const struct registry_site *site = registry_site_by_id(r, list->site_id);
    uint64_t hash = XXH3_64bits_withSeed(site->origin, strlen(site->origin), list->kind);
    hash = XXH3_64bits_withSeed(list->path, strlen(list->path), hash);
    return XXH3_64bits_withSeed(list->page_pattern, strlen(list->page_pattern), hash);
}

static uint32_t hash_of(uint32_t site, const char *path)
{
    return (uint32_t)XXH3_64bits_withSeed(path, strlen(path), site);
}

static const struct page_map_entry *find_entry(const struct page_map *r, uint32_t site,
                                               const char *path)
{
    struct map_probe probe = map_probe(&r->by_path, hash_of(site, path));
    for (uint32_t at; map_next(&probe, &at);) {
        const struct page_map_entry *e = &r->entries[at];
        if (e->site == site && strcmp(str_text(&r->text) + e->path, path) == 0)
            return e;
    }
    return NULL;
}

static size_t copy_path(struct page_map *r, const char *text)
{
    size_t at = r->text.len;
    str_append(&r->text, text, strlen(text) + 1);
    return at;
}

/* The first claim of a path wins: pages before aliases. */
static void add_route(struct page_map *r, uint32_t site, const char *path, enum route_kind kind,
                      struct place *page, const char *target)
{
    if (find_entry(r, site, path) != NULL)
        return;
    map_add(&r->by_path, hash_of(site, path), (uint32_t)r->count);
    struct page_map_entry *e = &r->entries[r->count++];
    e->kind = kind;
    e->site = site;
    e->path = copy_path(r, path);
    if (target != NULL) {
        e->target = copy_path(r, target);
        e->target_len = strlen(target);
    }
    if (page != NULL) {
        place_ref(page);
        e->page = page;
    }
}

static bool add_pages(struct page_map *r, uint32_t place, struct cache *cache, uint64_t mark)
{
    const struct registry_site *site = &r->registry->sites[place];
    const struct registry_index *index;
    for (size_t i = 0; (index = registry_site_list(site, i)) != NULL; i++) {
        uint64_t list = page_map_list_hash(r->registry, index);
        for (size_t n = 0; n < index->page_count; n++) {
            struct place_key key = page_map_key(r, index->id, index->pages[n]);
            struct place *page = cache_place(cache, &key, sizeof(struct page_place));
            if (page == NULL)
                return false;
            atomic_store(&((struct page_place *)page)->mark, mark);
            atomic_store(&((struct page_place *)page)->list, list);
            char path[PAGE_PATH_SIZE];
            scope_page_path(index->path, index->page_pattern, index->pages[n], false, path);
            add_route(r, place, path, ROUTE_PAGE, page, NULL);
            scope_page_path(index->path, index->page_pattern, index->pages[n], true, path);
            add_route(r, place, path, ROUTE_PAGE_GZ, page, NULL);
            place_unref(page);
        }
    }
    return true;
}

static const struct publish_site *policy_of(const struct publish_policies *policies,
                                            const char *origin)
{
    for (size_t i = 0; policies != NULL && i < policies->count; i++)
        if (strcmp(policies->sites[i].origin, origin) == 0)
            return &policies->sites[i];
    return NULL;
}

struct place_in {
    const struct page_map *routing;
    uint32_t site;
    const struct publish_site *policy; /* NULL: none */
};

static bool has_page(void *context, const char *path)
{
    const struct place_in *in = context;
    const struct page_map_entry *e = find_entry(in->routing, in->site, path);
    bool found = e != NULL && (e->kind == ROUTE_PAGE || e->kind == ROUTE_PAGE_GZ);
    for (size_t i = 0; in->policy != NULL && !found && i < in->policy->alias_count; i++)
        found = strcmp(in->policy->aliases[i].from, path) == 0;
    return found;
}

/* Takes `text` over. */
static struct resource *text_new(struct str *text)
{
    struct resource *robots = text->failed ? NULL : resource_new(HELD_FILE);
    if (robots == NULL) {
        str_done(text);
        return NULL;
    }
    robots->bytes = (uint8_t *)text->data;
    robots->raw_len = text->len;
    robots->content_type = "text/plain; charset=utf-8";
    XXH128_hash_t hash = XXH3_128bits(text->data, text->len);
    snprintf(robots->etag_identity, sizeof robots->etag_identity, "\"%016llx%016llx\"",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    return robots;
}

/* Urlsets count: their pages drop Sitemap lines from the operator's text. */
static bool same_pages(const struct registry_site *a, const struct registry_site *b)
{
    if (a->index_count != b->index_count || a->urlset_count != b->urlset_count)
        return false;
    const struct registry_index *x, *y;
    for (size_t i = 0; (x = registry_site_list(a, i)) != NULL; i++) {
        y = registry_site_list(b, i);
        if (x->page_count != y->page_count || strcmp(x->path, y->path) != 0 ||
            strcmp(x->page_pattern, y->page_pattern) != 0 ||
            (x->page_count > 0 &&
             memcmp(x->pages, y->pages, x->page_count * sizeof *x->pages) != 0))
            return false;
    }
    return true;
}

/* The robots.txt of the previous map, if it was made of the same text: those of all sites are up to
 * 16 MiB, and a change of one site need not rebuild them. */
static struct resource *robots_of_before(const struct page_map *r, uint32_t place,
                                         const struct page_map *before)
{
    const struct registry_site *site = &r->registry->sites[place];
    const struct registry_site *was = before == NULL || before->policies != r->policies
                                          ? NULL
                                          : registry_site_by_id(before->registry, site->id);
    if (was == NULL || strcmp(was->origin, site->origin) != 0 || was->robots != site->robots ||
        !same_pages(was, site))
        return NULL;
    struct resource *robots = before->robots[was - before->registry->sites];
    if (robots != NULL)
        resource_ref(robots);
    return robots;
}

/* A robots.txt in the configuration takes precedence over that of the catalogue. */
static void add_robots(struct page_map *r, uint32_t place, const struct publish_site *policy,
                       const struct page_map *before)
{
    const struct registry_site *site = &r->registry->sites[place];
    struct place_in in = {r, place, policy};
    struct str text = STR_INIT;
    if (policy == NULL ? site->robots_off : policy->robots_off)
        return;
    r->robots[place] = robots_of_before(r, place, before);
    if (r->robots[place] == NULL) {
        str_reserve(&text, 1); /* even an empty text needs a buffer */
        robots_render(site, policy == NULL ? site->robots : policy->robots_prefix, has_page, &in,
                      &text);
        r->robots[place] = text_new(&text);
    }
    r->text.failed |= r->robots[place] == NULL;
    add_route(r, place, "/robots.txt", ROUTE_ROBOTS, NULL, NULL);
}

/* Adds the key file of IndexNow, which proves to search engines that a notification is from the
 * site. */
static void add_key(struct page_map *r, uint32_t place, const char *key)
{
    struct str text = STR_INIT, path = STR_INIT;
    str_append_text(&text, key);
    str_append_format(&path, "/%s.txt", key);
    r->keys[place] = text_new(&text);
    r->text.failed |= r->keys[place] == NULL || path.failed;
    add_route(r, place, str_text(&path), ROUTE_KEY, NULL, NULL);
    str_done(&path);
}

static void add_policy(struct page_map *r, uint32_t place, const struct publish_site *policy,
                       const struct page_map *before)
{
    const struct registry_site *site = &r->registry->sites[place];
    add_robots(r, place, policy, before);
    if (policy != NULL && policy->indexnow_key != NULL)
        add_key(r, place, policy->indexnow_key);
    for (size_t i = 0; policy != NULL && i < policy->alias_count; i++) {
        struct str target = STR_INIT;
        str_append_text(&target, site->origin);
        str_append_text(&target, policy->aliases[i].to);
        size_t before_it = r->count;
        add_route(r, place, policy->aliases[i].from, ROUTE_ALIAS, NULL, str_text(&target));
        if (r->count > before_it)
            r->aliases[r->alias_count++] = (uint32_t)before_it;
        r->text.failed |= target.failed;
        str_done(&target);
    }
}

static size_t alias_count(const struct publish_policies *policies)
{
    size_t count = 0;
    for (size_t i = 0; policies != NULL && i < policies->count; i++)
        count += policies->sites[i].alias_count;
    return count;
}

static size_t route_count(const struct registry *registry, const struct publish_policies *policies)
{
    size_t count = registry->site_count + alias_count(policies);
    const struct registry_index *list;
    for (size_t i = 0; i < registry->site_count; i++)
        for (size_t k = 0; (list = registry_site_list(&registry->sites[i], k)) != NULL; k++)
            count += 2 * list->page_count;
    for (size_t i = 0; policies != NULL && i < policies->count; i++)
        count += policies->sites[i].indexnow_key != NULL;
    return count;
}

struct page_map *page_map_new(const struct page_map_of *of, const struct publish_policies *policies,
                              struct cache *cache, const struct page_map *before)
{
    const struct registry *registry = of->registry;
    struct page_map *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    atomic_init(&r->references, 1);
    r->registry = registry_ref(registry);
    snprintf(r->epoch, sizeof r->epoch, "%s", of->epoch);
    r->era = of->era;
    r->policies = of->policies;
    r->any_host = registry->site_count == 1 && (policies == NULL || !policies->strict_host);
    size_t most = route_count(registry, policies);
    r->entries = calloc(most + 1, sizeof *r->entries);
    r->aliases = calloc(alias_count(policies) + 1, sizeof *r->aliases);
    r->robots = calloc(registry->site_count + 1, sizeof *r->robots);
    r->keys = calloc(registry->site_count + 1, sizeof *r->keys);
    if (r->entries == NULL || r->aliases == NULL || r->robots == NULL || r->keys == NULL ||
        !map_reserve(&r->by_path, most))
        goto no_memory;
    for (uint32_t i = 0; i < registry->site_count; i++) {
        if (!add_pages(r, i, cache, of->mark))
            goto no_memory;
        add_policy(r, i, policy_of(policies, registry->sites[i].origin), before);
    }
    if (r->text.failed)
        goto no_memory;
    return r;

no_memory:
    publisher_page_map_done(r);
    return NULL;
}

bool page_map_alias(const struct page_map *r, size_t i, struct page_map_alias *out)
{
    if (i >= r->alias_count)
        return false;
    const struct page_map_entry *e = &r->entries[r->aliases[i]];
    const struct registry_site *site = &r->registry->sites[e->site];
    const char *to = str_text(&r->text) + e->target + strlen(site->origin);
    *out = (struct page_map_alias){.site = site,
                                   .from = str_text(&r->text) + e->path,
                                   .to = to,
                                   .leads = find_entry(r, e->site, to) != NULL};
    return true;
}

bool page_map_keeps(const struct page_map *r, const struct page_map *old)
{
    const struct registry_site *site = NULL;
    uint32_t of = UINT32_MAX; /* the old place of `site`; entries of a site are contiguous */
    for (size_t i = 0; i < old->registry->site_count; i++)
        if (registry_site_by_origin(r->registry, old->registry->sites[i].origin) == NULL)
            return false;
    for (size_t i = 0; i < old->count; i++) {
        const struct page_map_entry *was = &old->entries[i];
        if (was->kind != ROUTE_PAGE && was->kind != ROUTE_PAGE_GZ)
            continue;
        if (was->site != of)
            site = registry_site_by_origin(r->registry, old->registry->sites[was->site].origin);
        of = was->site;
        const struct page_map_entry *is =
            find_entry(r, (uint32_t)(site - r->registry->sites), str_text(&old->text) + was->path);
        if (is == NULL || is->kind != was->kind)
            return false;
    }
    return true;
}

void page_map_find(const struct page_map *r, const char *host, const char *path,
                   struct site_target *out)
{
    *out = (struct site_target){.kind = ROUTE_NONE};
    const struct registry_site *site = NULL;
    if (r->any_host)
        site = &r->registry->sites[0];
    else if (host != NULL)
        site = registry_site_by_host(r->registry, host);
    if (site == NULL)
        return;
    out->host_known = true;
    out->origin = site->origin;
    out->site_id = site->id;
    uint32_t place = (uint32_t)(site - r->registry->sites);
    const struct page_map_entry *e = find_entry(r, place, path);
    if (e == NULL)
        return;
    out->kind = e->kind;
    out->page = e->page;
    if (e->kind == ROUTE_ALIAS) {
        out->text = r->text.data + e->target;
        out->text_len = e->target_len;
    } else if (e->kind == ROUTE_ROBOTS) {
        out->robots = r->robots[place];
    } else if (e->kind == ROUTE_KEY) {
        out->robots = r->keys[place];
    }
}
