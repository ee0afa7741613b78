#include "server/api/handlers/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                                                  const struct remote_settings *settings)
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

static void text(struct str *out, const char *name, const char *value)
{
    str_append_format(out, ",\"%s\":", name);
    str_append_json_text(out, value);
}

static void yes_no(struct str *out, const char *name, bool value)
{
    str_append_format(out, ",\"%s\":%s", name, value ? "true" : "false");
}

static void number(struct str *out, const char *name, uint32_t value)
{
    str_append_format(out, ",\"%s\":%u", name, value);
}

static void list(struct str *out, const char *name, const char *const *values)
{
    str_append_format(out, ",\"%s\":%s", name, values != NULL ? "[" : "null");
    for (size_t i = 0; values != NULL && values[i] != NULL; i++) {
        str_append_text(out, i > 0 ? "," : "");
        str_append_json_text(out, values[i]);
    }
    str_append_text(out, values != NULL ? "]" : "");
}

/* A pair of origins in each. */
static void map(struct str *out, const char *text)
{
    char why[128];
    struct host_map *map = text != NULL ? host_map_new(text, why, sizeof why) : NULL;
    out->failed = out->failed || (text != NULL && map == NULL);
    str_append_text(out, map != NULL ? ",\"map\":[" : ",\"map\":null");
    for (size_t i = 0; map != NULL && i < map->count; i++) /* origins need no escapes */
        str_append_format(out, "%s\"%s %s\"", i > 0 ? "," : "", map->pairs[i].from,
                          map->pairs[i].to);
    str_append_text(out, map != NULL ? "]" : "");
    host_map_free(map);
}

static void begin(struct str *out, const char *name, const char *kind, bool managed,
                  const struct registry_site *site)
{
    str_append_text(out, "{\"name\":");
    str_append_json_text(out, name);
    text(out, "kind", kind);
    yes_no(out, "managed", managed);
    text(out, "site", site != NULL ? site->origin : NULL);
}

void source_json_begin_folder(struct str *out, const struct source_settings *s,
                              const struct registry *registry)
{
    begin(out, s->name, "folder", s->managed, source_site_of_folder(registry, s));
    text(out, "directory", s->directory);
    text(out, "url", s->url);
    text(out, "index", s->index);
    list(out, "patterns", s->patterns);
    list(out, "excludes", s->excludes);
    yes_no(out, "watch", s->watch);
    number(out, "rescan", s->rescan_ms / 1000);
    number(out, "settle", s->settle_ms / 1000);
    yes_no(out, "serve", s->serve);
    yes_no(out, "split", s->split);
}

void source_json_begin_remote(struct str *out, const struct remote_settings *s,
                              const struct registry *registry)
{
    begin(out, s->name, "remote", s->managed, source_site_of_remote(registry, s));
    text(out, "upstream", s->upstream);
    map(out, s->map);
    text(out, "connect", s->connect);
    text(out, "index", s->index);
    number(out, "poll", s->poll_s);
    yes_no(out, "check", s->check);
    number(out, "drop_after", s->drop_after_s);
    yes_no(out, "serve", s->serve);
    static const char *const none[] = {NULL};
    list(out, "split", s->splits != NULL ? s->splits : none);
}

void source_json_begin_made(struct str *out, const struct source_made *made,
                            const struct registry *registry)
{
    if (made->directory == NULL) {
        const struct remote_settings remote = remote_settings_of(made);
        source_json_begin_remote(out, &remote, registry);
        return;
    }
    struct source_settings folder;
    void *lists;
    if (source_settings_of(made, &folder, &lists))
        source_json_begin_folder(out, &folder, registry);
    else
        out->failed = true;
    free(lists);
}
