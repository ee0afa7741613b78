#include "server/source_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/log/log.h"
#include "server/rules/limits.h"
#include "server/rules/str.h"

struct source_plan {
    size_t count;
    struct source_settings *settings;
    char **owned; /* texts and lists made here */
    size_t owned_count;
    bool told; /* why it fails; else memory is out */
};

/* Takes over `memory`; returns it. */
static void *own(struct source_plan *p, void *memory)
{
    char **grown = reallocarray(p->owned, p->owned_count + 1, sizeof *grown);
    if (grown == NULL || memory == NULL) {
        p->owned = grown != NULL ? grown : p->owned;
        free(memory);
        return NULL;
    }
    p->owned = grown;
    p->owned[p->owned_count++] = memory;
    return memory;
}

/* A NULL-terminated list of borrowed texts; NULL for none (then `*failed` stays). */
static const char *const *terminated(struct source_plan *p, char *const *texts, size_t count,
                                     bool *failed)
{
    if (count == 0)
        return NULL;
    const char **list = own(p, calloc(count + 1, sizeof *list));
    *failed |= list == NULL;
    for (size_t i = 0; list != NULL && i < count; i++)
        list[i] = texts[i];
    return list;
}

static bool add_configured(struct source_plan *p, const struct config_source *from)
{
    bool failed = false;
    struct source_settings *to = &p->settings[p->count++];
    *to = (struct source_settings){
        .name = from->named.name,
        .directory = from->directory,
        .url = from->url,
        .index = from->index,
        .patterns = terminated(p, from->patterns, from->pattern_count, &failed),
        .excludes = terminated(p, from->excludes, from->exclude_count, &failed),
        .watch = from->watch,
        .rescan_ms = from->rescan_ms,
        .settle_ms = from->settle_ms,
        .serve = from->serve,
    };
    return !failed;
}

/* ---- --source DIR[=URL] ---- */

#define FOLDER_RESCAN_MS 3600000u
#define FOLDER_SETTLE_MS 2000u

static bool name_taken(const struct source_plan *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->settings[i].name, name) == 0)
            return true;
    return false;
}

/* A name from the folder's own, the same at every start: it owns the entries. */
static const char *name_of(struct source_plan *p, const char *directory)
{
    char name[NAME_MAX_BYTES + 1];
    size_t len = strlen(directory), at = 0;
    while (len > 1 && directory[len - 1] == '/')
        len--;
    size_t begin = len;
    while (begin > 0 && directory[begin - 1] != '/')
        begin--;
    for (; begin < len && at < sizeof name - 8; begin++) {
        char c = directory[begin];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c != '\0' && strchr("._-", c) != NULL);
        if (!plain)
            c = '-';
        name[at++] = c;
    }
    if (at == 0)
        memcpy(name, "source", at = 6);
    name[at] = '\0';
    for (int n = 2; name_taken(p, name); n++)
        snprintf(name + at, sizeof name - at, "-%d", n);
    return own(p, strdup(name));
}

/* The root of the only site there is. */
static char *only_site_url(struct source_plan *p, struct catalogue *c, const char *directory)
{
    struct catalogue_view *v;
    struct registry *registry = NULL;
    struct str url = STR_INIT;
    enum catalogue_status status = catalogue_view_begin(c, &v);
    if (status == CATALOGUE_OK) {
        status = catalogue_view_registry(v, &registry);
        catalogue_view_end(v);
    }
    if (status != CATALOGUE_OK) {
        log_failure(directory, "the sites cannot be read: %s", catalogue_status_word(status));
        p->told = true;
    }
    if (registry != NULL && registry->site_count == 1) {
        str_append_text(&url, registry->sites[0].origin);
        str_append_char(&url, '/');
    } else if (registry != NULL) {
        log_failure(directory, "a source needs its URL (%s=https://…/) %s", directory,
                    registry->site_count == 0 ? "or a site (--site ORIGIN)"
                                              : "where there are several sites");
        p->told = true;
    }
    registry_unref(registry);
    return url.data;
}

static bool add_folder(struct source_plan *p, struct catalogue *c, const char *text)
{
    const char *equals = strstr(text, "=http://");
    if (equals == NULL)
        equals = strstr(text, "=https://");
    size_t len = equals == NULL ? strlen(text) : (size_t)(equals - text);
    const char *directory = own(p, strndup(text, len));
    if (directory == NULL)
        return false;
    char *url = NULL;
    if (equals == NULL) {
        url = only_site_url(p, c, directory);
    } else {
        struct str given = STR_INIT;
        str_append_text(&given, equals + 1);
        if (!given.failed && given.data[given.len - 1] != '/')
            str_append_char(&given, '/');
        url = given.data;
    }
    const char *name = name_of(p, directory);
    if (own(p, url) == NULL || name == NULL)
        return false;
    p->settings[p->count++] = (struct source_settings){
        .name = name,
        .directory = directory,
        .url = url,
        .watch = true,
        .rescan_ms = FOLDER_RESCAN_MS,
        .settle_ms = FOLDER_SETTLE_MS,
        .serve = true,
    };
    return true;
}

struct source_plan *source_plan_new(const struct config *config, struct catalogue *c)
{
    struct source_plan *p = calloc(1, sizeof *p);
    if (p == NULL) {
        log_failure("sources", "out of memory");
        return NULL;
    }
    p->settings =
        calloc(config->source_count + config->source_folder_count + 1, sizeof *p->settings);
    bool done = p->settings != NULL;
    for (size_t i = 0; done && i < config->source_count; i++)
        done = add_configured(p, &config->sources[i]);
    for (size_t i = 0; done && i < config->source_folder_count; i++)
        done = add_folder(p, c, config->source_folders[i]);
    if (done)
        return p;
    if (!p->told)
        log_failure("sources", "out of memory");
    source_plan_free(p);
    return NULL;
}

size_t source_plan_count(const struct source_plan *p)
{
    return p->count;
}

const struct source_settings *source_plan_settings(const struct source_plan *p)
{
    return p->settings;
}

void source_plan_free(struct source_plan *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->owned_count; i++)
        free(p->owned[i]);
    free(p->owned);
    free(p->settings);
    free(p);
}
