/* The registry of a server: its sites and indexes, read by the page and put together as the
 * catalogue has them. */
#include <stdlib.h>
#include <string.h>

#include "server/cli/backend/server_parts.h"
#include "server/rules/page/extension.h"

/* Makes each site what its own address tells: with its robots.txt. */
static bool read_robots(struct server *s, json_t *sites)
{
    for (size_t i = 0; i < json_array_size(sites); i++) {
        struct str target = STR_INIT;
        json_t *whole = NULL;

        str_append_text(&target, "/v1/sites");
        target_segment(&target, member_text(json_array_get(sites, i), "id"));
        if (!server_get(s, &target, &whole)) {
            server_report(s, whole);
            return false;
        }
        json_array_set_new(sites, i, whole);
    }
    return true;
}

/* A registry while it is put together: what registry_copy takes, and what owns its arrays. */
struct plain {
    struct registry registry;
    struct registry_site *sites;
    struct registry_index *indexes;
    uint32_t *pages;
    const char **hosts;
    size_t index_count, page_count, host_count;
};

static const char *const *take_hosts(struct plain *p, const json_t *list, size_t *count)
{
    const char **first = &p->hosts[p->host_count];
    json_t *host;
    size_t i;

    *count = 0;
    json_array_foreach(list, i, host) if (json_is_string(host))
    {
        p->hosts[p->host_count++] = json_string_value(host);
        ++*count;
    }
    return first;
}

static enum freeze read_freeze(const json_t *of)
{
    const char *by = json_string_value(json_object_get(of, "frozen_by"));

    if (!json_is_true(json_object_get(of, "frozen")))
        return FREEZE_NONE;
    return by != NULL && strcmp(by, freeze_word(FREEZE_ALL_SITES)) == 0 ? FREEZE_ALL_SITES
                                                                        : FREEZE_SITE;
}

/* What a urlset has more. */
static void take_urlset(const struct registry_site *site, const json_t *urlset,
                        struct registry_index *out)
{
    const char *url = member_text(urlset, "index"), *expires = member_text(urlset, "expires");
    size_t origin_len = strlen(site->origin), i;
    json_t *word;

    for (i = 0; i < site->index_count; i++)
        if (strlen(url) > origin_len && strcmp(site->indexes[i].path, url + origin_len) == 0)
            out->of_index = site->indexes[i].id;
    json_array_foreach(json_object_get(urlset, "with"), i, word) if (json_is_string(word))
        out->with |= extension_named(json_string_value(word));
    out->max_pages = (uint32_t)member_number(urlset, "max_pages");
    out->max_page_urls = (uint32_t)member_number(urlset, "max_page_urls");
    out->max_page_bytes = (uint32_t)member_number(urlset, "max_page_bytes");
    if (!grant_read_span(expires, &out->expires_s))
        out->expires_s = 0;
}

static void take_index(struct plain *p, struct registry_site *site, enum list_kind kind,
                       const json_t *index)
{
    struct registry_index *out = &p->indexes[p->index_count++];
    const json_t *pages = json_object_get(index, "pages");
    size_t origin_len = strlen(site->origin), i;
    const char *url = member_text(index, "url");
    json_t *page;

    *out = (struct registry_index){
        .id = strtoll(member_text(index, "id"), NULL, 10),
        .site_id = site->id,
        .path = strlen(url) > origin_len ? url + origin_len : "",
        .page_pattern = member_text(index, "page_pattern"),
        .frozen = read_freeze(index),
        .pages = &p->pages[p->page_count],
        .kind = kind,
    };
    if (kind == LIST_URLSET)
        take_urlset(site, index, out);
    json_array_foreach(pages, i, page)
    {
        if (json_is_integer(json_object_get(page, "entries")) &&
            member_number(page, "entries") == 0)
            continue;
        p->pages[p->page_count++] = (uint32_t)member_number(page, "number");
        out->page_count++;
    }
    if (kind == LIST_URLSET)
        site->urlset_count++;
    else
        site->index_count++;
}

/* The lists of a site, from `*at` on, the first that no site before had. */
static void take_lists(struct plain *p, struct registry_site *site, enum list_kind kind,
                       const json_t *lists, size_t *at)
{
    const json_t *list;

    while ((list = json_array_get(lists, *at)) != NULL &&
           strcmp(member_text(list, "site"), site->origin) == 0) {
        take_index(p, site, kind, list);
        ++*at;
    }
}

/* All three arrays go by origin. */
static void take_site(struct plain *p, const json_t *site, const json_t *indexes,
                      const json_t *urlsets, size_t at[2])
{
    struct registry_site *out = &p->sites[p->registry.site_count++];
    const json_t *robots = json_object_get(site, "robots");

    *out = (struct registry_site){
        .id = strtoll(member_text(site, "id"), NULL, 10),
        .origin = member_text(site, "origin"),
        .managed = json_is_true(json_object_get(site, "managed")),
        .frozen = read_freeze(site),
        .check = json_is_true(json_object_get(site, "check")),
        .max_pages = (uint32_t)member_number(site, "max_indexes"),
        .robots = json_string_value(robots),
        .robots_off = json_is_false(robots),
        .indexes = &p->indexes[p->index_count],
    };
    out->cross_hosts = take_hosts(p, json_object_get(site, "cross_hosts"), &out->cross_host_count);
    out->alias_hosts = take_hosts(p, json_object_get(site, "host_aliases"), &out->alias_host_count);
    take_lists(p, out, LIST_INDEX, indexes, &at[0]);
    out->urlsets = &p->indexes[p->index_count];
    take_lists(p, out, LIST_URLSET, urlsets, &at[1]);
}

static struct registry *build(const json_t *sites, const json_t *indexes, const json_t *urlsets)
{
    struct plain p = {0};
    struct registry *made = NULL;
    size_t hosts = 0, pages = 0, at[2] = {0}, i;
    json_t *item;

    json_array_foreach(sites, i, item) hosts +=
        json_array_size(json_object_get(item, "cross_hosts")) +
        json_array_size(json_object_get(item, "host_aliases"));
    json_array_foreach(indexes, i, item) pages += json_array_size(json_object_get(item, "pages"));
    json_array_foreach(urlsets, i, item) pages += json_array_size(json_object_get(item, "pages"));
    p.sites = calloc(json_array_size(sites) + 1, sizeof *p.sites);
    p.indexes = calloc(json_array_size(indexes) + json_array_size(urlsets) + 1, sizeof *p.indexes);
    p.pages = calloc(pages + 1, sizeof *p.pages);
    p.hosts = calloc(hosts + 1, sizeof *p.hosts);
    if (p.sites != NULL && p.indexes != NULL && p.pages != NULL && p.hosts != NULL) {
        json_array_foreach(sites, i, item) take_site(&p, item, indexes, urlsets, at);
        p.registry.sites = p.sites;
        made = registry_copy(&p.registry);
    }
    free(p.sites);
    free(p.indexes);
    free(p.pages);
    free((void *)p.hosts);
    return made;
}

struct registry *server_registry(struct server *s, bool with_robots, json_t **indexes)
{
    json_t *sites = server_get_all(s, "/v1/sites", "sites");
    struct registry *registry = NULL;
    json_t *urlsets = NULL;

    *indexes = sites != NULL ? server_get_all(s, "/v1/indexes", "indexes") : NULL;
    if (*indexes != NULL)
        urlsets = server_get_all(s, "/v1/urlsets", "urlsets");
    if (urlsets != NULL && (!with_robots || read_robots(s, sites))) {
        registry = build(sites, *indexes, urlsets);
        json_array_extend(*indexes, urlsets);
        if (registry == NULL)
            cli_fail(s->origin.text, "cannot read its sites and indexes");
    }
    json_decref(urlsets);
    json_decref(sites);
    return registry;
}
