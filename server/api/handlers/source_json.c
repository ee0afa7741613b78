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

#define SHOW_path(value)   value
#define SHOW_url(value)    value
#define SHOW_option(value) value
#define SHOW_lines(value)  json_texts_of(value)
#define SHOW_pairs(value)                                                                          \
    {                                                                                              \
        (value) != NULL ? write_map : NULL, (value)                                                \
    }
#define SHOW_yes_no(value)              value
#define SHOW_span(value)                (value) / 1000
#define SHOW(bit, kind, c, member, ...) .member = SHOW_##kind(s->c),

struct json_folder_settings source_shown_folder(const struct source_settings *s,
                                                const struct registry *registry)
{
    const struct registry_site *site = source_site_of_folder(registry, s);

    return (struct json_folder_settings){
        .source_head = {s->name, "folder", s->managed, site != NULL ? site->origin : NULL},
        SOURCE_SETTINGS_OF_FOLDER(SHOW) SOURCE_INDEX(SHOW) SOURCE_SERVE(SHOW).split = s->splits};
}

struct json_remote_settings source_shown_remote(const struct source_settings *s,
                                                const struct registry *registry)
{
    const struct registry_site *site = source_site_of_remote(registry, s);

    return (struct json_remote_settings){
        .source_head = {s->name, "remote", s->managed, site != NULL ? site->origin : NULL},
        SOURCE_SETTINGS_OF_UPSTREAM(SHOW) SOURCE_INDEX(SHOW) SOURCE_SERVE(SHOW).connect =
            s->connect,
        .split = json_texts_of(s->split)};
}

void source_json_append_made(struct str *out, const struct source_settings *made,
                             const struct registry *registry)
{
    if (made->directory == NULL) {
        struct json_remote_settings shown = source_shown_remote(made, registry);
        json_append_object(out, &json_remote_settings, &shown);
    } else {
        struct json_folder_settings shown = source_shown_folder(made, registry);
        json_append_object(out, &json_folder_settings, &shown);
    }
}
