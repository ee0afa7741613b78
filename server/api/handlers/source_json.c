/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* JSON of a source's settings. */
#include "server/api/handlers/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/rules/host_map.h"
#include "server/rules/limits.h"
#include "server/sources/remote/remote.h"
#include "server/sources/sources.h"

static const struct registry_site *site_of_origin(const struct registry *registry, const char *text,
                                                  struct url *url)
{
    char origin[LOC_MAX_CHARS + 1];
    if (text == NULL || url_parse(text, strlen(text), url, NULL) != RULE_OK)
        return NULL;
    snprintf(origin, sizeof origin, "%.*s", (int)url->origin_len, url->text);
    return registry_site_by_origin(registry, origin);
}

const struct registry_site *source_site_of_folder(const struct registry *registry,
                                                  const struct source_settings *settings)
{
    struct url url;
    if (settings->site_id != 0)
        return registry_site_by_id(registry, settings->site_id);
    return site_of_origin(registry, settings->url, &url);
}

const struct registry_site *source_site_of_remote(const struct registry *registry,
                                                  const struct source_settings *settings)
{
    struct url url;
    const struct registry_site *site = NULL;
    if (settings->site_id != 0)
        return registry_site_by_id(registry, settings->site_id);
    if (settings->index != NULL && registry_index_by_name(registry, settings->index, &site) != NULL)
        return site;
    site = site_of_origin(registry, settings->upstream, &url);
    if (site == NULL &&
        url_parse(settings->upstream, strlen(settings->upstream), &url, NULL) == RULE_OK)
        site = registry_next_cross_site(registry, &url, 0, NULL);
    return site;
}

/* A pair of origins in each. */
static void write_map(struct str *out, const void *text)
{
    char why[128];
    struct host_map *map = host_map_new(text, why, sizeof why);

    out->failed = out->failed || map == NULL;
    str_append_char(out, '[');
    for (size_t i = 0; map != NULL && i < map->count; i++) /* origins need no escapes */
        str_append_format(out, "%s\"%s %s\"", i > 0 ? "," : "", map->pairs[i].from,
                          map->pairs[i].to);
    str_append_char(out, ']');
    host_map_free(map);
}

struct json_folder_settings source_shown_folder(const struct source_settings *s,
                                                const struct registry *registry)
{
    const struct registry_site *site = source_site_of_folder(registry, s);

    return (struct json_folder_settings){
        .source_head = {s->name, "folder", s->managed, site != NULL ? site->origin : NULL},
        .directory = s->directory,
        .url = s->url,
        .index = s->index,
        .patterns = json_texts_of(s->patterns),
        .excludes = json_texts_of(s->excludes),
        .watch = s->watch,
        .rescan = s->rescan_ms / 1000,
        .settle = s->settle_ms / 1000,
        .serve = s->serve,
        .split = s->splits};
}

struct json_remote_settings source_shown_remote(const struct source_settings *s,
                                                const struct registry *registry)
{
    const struct registry_site *site = source_site_of_remote(registry, s);

    return (struct json_remote_settings){
        .source_head = {s->name, "remote", s->managed, site != NULL ? site->origin : NULL},
        .upstream = s->upstream,
        .map = {s->map != NULL ? write_map : NULL, s->map},
        .connect = s->connect,
        .index = s->index,
        .poll = s->poll_ms / 1000,
        .check = s->check,
        .drop_after = s->drop_after_ms / 1000,
        .serve = s->serve,
        .split = json_texts_of(s->split)};
}

void source_json_append_made(struct str *out, const struct source_made *made,
                             const struct registry *registry)
{
    struct source_settings settings;
    void *lists;
    if (!source_settings_of(made, &settings, &lists)) {
        out->failed = true;
    } else if (made->directory == NULL) {
        struct json_remote_settings shown = source_shown_remote(&settings, registry);
        json_append_object(out, &json_remote_settings, &shown);
    } else {
        struct json_folder_settings shown = source_shown_folder(&settings, registry);
        json_append_object(out, &json_folder_settings, &shown);
    }
    free(lists);
}
