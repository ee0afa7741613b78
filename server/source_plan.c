/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Collects the sources of configuration, command line and catalogue. */
#include "server/source_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/catalogue.h"
#include "db/shared.h"
#include "db/view.h"
#include "server/base/str.h"
#include "server/log/log.h"
#include "server/rules/limits.h"
#include "server/sources/sources.h"

void source_plan_free(struct source_plan *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->owned_count; i++)
        free(p->owned[i]);
    for (size_t i = 0; i < p->remote_count; i++)
        if (p->remotes[i].credentials != NULL) {
            explicit_bzero((char *)p->remotes[i].credentials, strlen(p->remotes[i].credentials));
            free((char *)p->remotes[i].credentials);
        }
    free(p->owned);
    free(p->settings);
    free(p->remotes);
    free(p->renamed);
    free(p->orphans);
    registry_unref(p->registry);
    free(p);
}

/* Takes over `memory` and returns it; NULL, with `memory` freed: out of memory. */
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

/* Reads the credentials file, at each start and reload. Only the module that sends the credentials
 * keeps them. */
static bool read_credentials(struct source_plan *p, const struct config_source *from,
                             struct source_settings *to)
{
    char text[CONFIG_CREDENTIALS_SIZE], why[256];
    const char *fault = config_source_credentials(from, text, why);
    if (fault == NULL)
        to->credentials = strdup(text);
    explicit_bzero(text, sizeof text);
    if (fault != NULL) {
        log_failure("sources", "source \"%s\": %s", from->named.name, fault);
        p->reported = true;
    }
    return to->credentials != NULL;
}

static bool add_configured(struct source_plan *p, const struct config_source *from)
{
    char *map;
    bool remote = from->is.upstream != NULL;
    struct source_settings *to = remote ? &p->remotes[p->remote_count++] : &p->settings[p->count++];
    if (!config_source_settings(p->config, from, to, &map) || (map != NULL && own(p, map) == NULL))
        return false;
    return from->credentials_file == NULL || read_credentials(p, from, to);
}

/* ---- --source DIR[=URL] ---- */

#define FOLDER_RESCAN_MS 3600000u
#define FOLDER_SETTLE_MS 2000u

bool source_plan_has(const struct source_plan *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->settings[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < p->remote_count; i++)
        if (strcmp(p->remotes[i].name, name) == 0)
            return true;
    return false;
}

/* Makes the source's name from the folder's name. It must be the same at every start, since it owns
 * the entries. */
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
    for (int n = 2; source_plan_has(p, name); n++)
        snprintf(name + at, sizeof name - at, "-%d", n);
    return own(p, strdup(name));
}

/* The root URL of the catalogue's only site; NULL, reported, if none exists or more than one. */
static char *only_site_url(struct source_plan *p, const char *directory)
{
    struct str url = STR_INIT;
    if (p->registry->site_count == 1) {
        str_append_text(&url, p->registry->sites[0].origin);
        str_append_char(&url, '/');
    } else {
        log_failure(directory, "the source's URL is missing: write %s=https://…/ %s", directory,
                    p->registry->site_count == 0 ? "or create its site (--site ORIGIN)"
                                                 : "since there are several sites");
        p->reported = true;
    }
    return url.data;
}

/* The URL with which the folder is being read; NULL: it is not. It stays until the next start,
 * whatever sites are added or removed. */
static char *running_url(struct source_plan *p, const char *name, const char *directory)
{
    struct str url = STR_INIT;
    struct source_list *list = p->running != NULL ? sources_hold(p->running) : NULL;
    size_t at = list != NULL ? sources_find(list, name) : SIZE_MAX;
    if (at != SIZE_MAX && strcmp(sources_settings(list, at)->directory, directory) == 0)
        str_append_text(&url, sources_settings(list, at)->url);
    sources_release(list);
    if (url.data != NULL && p->registry->site_count > 1) {
        struct str missed = STR_INIT;
        str_append_format(&missed,
                          "%s: keeps its URL until the next start, which will fail without a URL: "
                          "write %s=%s, since there are several sites",
                          name, directory, url.data);
        p->misses_url = own(p, missed.data);
    }
    return url.data;
}

static bool add_folder(struct source_plan *p, const char *text)
{
    const char *equals = strstr(text, "=http://");
    if (equals == NULL)
        equals = strstr(text, "=https://");
    size_t len = equals == NULL ? strlen(text) : (size_t)(equals - text);
    const char *directory = own(p, strndup(text, len));
    if (directory == NULL)
        return false;
    const char *name = name_of(p, directory);
    char *url = NULL;
    if (name == NULL)
        return false;
    if (equals == NULL) {
        url = running_url(p, name, directory);
        url = url != NULL ? url : only_site_url(p, directory);
    } else {
        struct str given = STR_INIT;
        str_append_text(&given, equals + 1);
        if (!given.failed && given.data[given.len - 1] != '/')
            str_append_char(&given, '/');
        url = given.data;
    }
    if (own(p, url) == NULL)
        return false;
    p->settings[p->count++] = (struct source_settings){
        .name = name,
        .directory = directory,
        .url = url,
        .watch = true,
        .rescan_ms = FOLDER_RESCAN_MS,
        .settle_ms = FOLDER_SETTLE_MS,
        .serve = true,
        .managed = true,
    };
    return true;
}

/* ---- sources of the catalogue ---- */

static bool add_made(struct source_plan *p, const struct source_settings *from)
{
    if (source_plan_has(p, from->name)) {
        log_event(LOG_LEVEL_WARNING, "source-put-aside",
                  "%s: conflict: the configuration has a source of this name; the one created by "
                  "API or command line is ignored",
                  from->name);
        return true;
    }
    bool remote = from->directory == NULL;
    struct source_settings *to = remote ? &p->remotes[p->remote_count] : &p->settings[p->count];
    const struct registry_site *site = registry_site_by_id(p->registry, from->site_id);
    *to = *from;
    config_open_source(p->config, site != NULL ? site->origin : NULL, to);
    *(remote ? &p->remote_count : &p->count) += 1;
    return true;
}

/* NULL, with the error reported, where the catalogue cannot be read. */
static struct registry *read_registry(struct catalogue *c)
{
    struct registry *registry;
    enum catalogue_status status = catalogue_registry(c, &registry);
    if (status != CATALOGUE_OK)
        log_failure("sources", "the catalogue cannot be read: %s", catalogue_status_word(status));
    return registry;
}

struct source_plan *source_plan_new(const struct config *config, struct catalogue *c,
                                    struct sources *running)
{
    struct source_plan *p = calloc(1, sizeof *p);
    if (p == NULL) {
        log_failure("sources", "out of memory");
        return NULL;
    }
    p->config = config;
    p->running = running;
    p->registry = read_registry(c);
    p->reported = p->registry == NULL;
    size_t made = p->registry != NULL ? p->registry->source_count : 0;
    p->settings =
        calloc(config->source_count + config->source_folder_count + made + 1, sizeof *p->settings);
    p->remotes = calloc(config->source_count + made + 1, sizeof *p->remotes);
    bool done = p->settings != NULL && p->remotes != NULL && p->registry != NULL;
    for (size_t i = 0; done && i < config->source_count; i++)
        done = add_configured(p, &config->sources[i]);
    for (size_t i = 0; done && i < config->source_folder_count; i++)
        done = add_folder(p, config->source_folders[i]);
    for (size_t i = 0; done && i < made; i++)
        done = add_made(p, &p->registry->sources[i]);
    if (done)
        return p;
    if (!p->reported)
        log_failure("sources", "out of memory");
    source_plan_free(p);
    return NULL;
}

/* ---- sources that are no longer read ---- */

const struct source_settings *source_plan_find_configured(const struct source_plan *plan,
                                                          const char *upstream)
{
    for (size_t i = 0; i < plan->remote_count; i++)
        if (plan->remotes[i].managed && strcmp(plan->remotes[i].upstream, upstream) == 0)
            return &plan->remotes[i];
    return NULL;
}

struct unread {
    struct source_plan *plan;
    bool shared, starts, failed;
};

static bool add_renamed(struct source_plan *plan, const char *name,
                        const struct source_settings *now)
{
    const char *old = own(plan, strdup(name));
    struct renamed *grown =
        old == NULL ? NULL : reallocarray(plan->renamed, plan->renamed_count + 1, sizeof *grown);
    if (grown == NULL)
        return false;
    plan->renamed = grown;
    grown[plan->renamed_count++] = (struct renamed){old, now};
    return true;
}

static bool add_orphan(struct source_plan *plan, const char *name)
{
    const char *copy = own(plan, strdup(name));
    const char **grown =
        copy == NULL ? NULL : reallocarray(plan->orphans, plan->orphan_count + 1, sizeof *grown);
    if (grown == NULL)
        return false;
    plan->orphans = grown;
    grown[plan->orphan_count++] = copy;
    return true;
}

static bool look_at_unread(void *context, const char *name, bool remote, const char *list)
{
    struct unread *u = context;
    if (source_plan_has(u->plan, name) || strcmp(name, SOURCE_OF_NO_SECTION) == 0)
        return true;
    const struct source_settings *now =
        list != NULL ? source_plan_find_configured(u->plan, list) : NULL;
    if (now != NULL) {
        u->failed = !add_renamed(u->plan, name, now);
        return !u->failed;
    }
    if (u->starts)
        log_event(u->shared ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "source-not-read",
                  "%s: no source has this name any more: %s is no longer read; its entries stay; "
                  "`sitemapd source remove %s` lets another source take them over",
                  name, remote ? "its upstream" : "its folder", name);
    if (remote || !u->shared)
        u->failed = !add_orphan(u->plan, name);
    return !u->failed;
}

/* A view answers one query at a time, so this comes after the query that found them. */
static enum catalogue_status drop_empty_orphans(struct source_plan *plan,
                                                struct catalogue_view *view)
{
    enum catalogue_status status = CATALOGUE_OK;
    size_t count = plan->orphan_count;
    plan->orphan_count = 0;
    for (size_t i = 0; i < count && status == CATALOGUE_OK; i++) {
        bool owns;
        status = catalogue_view_source_owns(view, plan->orphans[i], &owns);
        if (status == CATALOGUE_OK && owns)
            plan->orphans[plan->orphan_count++] = plan->orphans[i];
    }
    return status;
}

bool source_plan_find_unread(struct source_plan *plan, struct catalogue *c, bool starts)
{
    struct shared_state shared;
    struct unread u = {
        .plan = plan, .shared = catalogue_shared_state(c, &shared), .starts = starts};
    struct catalogue_view *view;
    if (catalogue_view_begin(c, &view) != CATALOGUE_OK)
        return false;
    enum catalogue_status status = catalogue_view_sources_scanned(view, look_at_unread, &u);
    if (status == CATALOGUE_OK)
        status = drop_empty_orphans(plan, view);
    catalogue_view_end(view);
    return status == CATALOGUE_OK && !u.failed;
}
