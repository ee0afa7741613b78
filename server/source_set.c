#include "server/source_set.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/log/log.h"
#include "server/pages/await.h"
#include "server/pages/served_file.h"
#include "server/rules/limits.h"
#include "server/sources/sources.h"

/* The sources of this run: those of the configuration and those of `--source`, in the form that
 * server/sources takes. */

struct source_plan {
    size_t count;
    struct source_settings *settings;
    char **owned; /* texts and lists made here */
    size_t owned_count;
    bool told; /* why it fails; else memory is out */
};

/* Takes NULL. */
static void source_plan_free(struct source_plan *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->owned_count; i++)
        free(p->owned[i]);
    free(p->owned);
    free(p->settings);
    free(p);
}

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

/* NULL: a folder cannot be given a URL, or no memory; told as a failed start. `config` must outlive
 * it. The catalogue tells which site is the only one. */
static struct source_plan *source_plan_new(const struct config *config, struct catalogue *c)
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
        done = config->sources[i].upstream != NULL || add_configured(p, &config->sources[i]);
    for (size_t i = 0; done && i < config->source_folder_count; i++)
        done = add_folder(p, c, config->source_folders[i]);
    if (done)
        return p;
    if (!p->told)
        log_failure("sources", "out of memory");
    source_plan_free(p);
    return NULL;
}

/* Loads of served files; they read and compress. */
#define FILE_THREADS 2u

struct source_set {
    struct catalogue *catalogue;
    struct cache *cache; /* borrowed */
    int compression_level;
    struct sources *sources;
    _Atomic(struct served_files *) files; /* a reload may bring it, while scans go on */
};

static bool serves_files(const struct config *config)
{
    bool serves = config->source_folder_count > 0; /* a folder of --source is always served */
    for (size_t i = 0; i < config->source_count; i++)
        serves = serves || config->sources[i].serve;
    return serves;
}

static void tell(void *context, int level, const char *event, const char *detail)
{
    static const enum log_level levels[] = {LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO};
    (void)context;
    log_event(level >= 0 && level < 3 ? levels[level] : LOG_LEVEL_DEBUG, event, "%s", detail);
}

static void scanned(void *context, size_t number)
{
    struct source_set *set = context;
    struct served_files *files = set->files;
    if (files != NULL)
        served_files_invalidate(files, number);
}

static int open_file(void *context, size_t number, const char *path)
{
    struct source_set *set = context;
    return sources_open_file(set->sources, number, path);
}

static bool start_files(struct source_set *set)
{
    struct served_files_options options = {
        .cache = set->cache,
        .compression_level = set->compression_level,
        .threads = FILE_THREADS,
        .fresh_ms = SERVED_FILES_FRESH_MS,
        .open = open_file,
        .open_context = set,
    };
    set->files = served_files_new(&options);
    if (set->files == NULL)
        log_failure("sources", "out of memory");
    return set->files != NULL;
}

bool source_set_start(const struct config *config, struct catalogue *c, struct cache *cache,
                      struct source_set **out)
{
    char why[256];
    *out = NULL;
    struct source_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        log_failure("sources", "out of memory");
        return false;
    }
    set->catalogue = c;
    set->cache = cache;
    set->compression_level = (int)config->compression_level;
    struct source_plan *plan = source_plan_new(config, c);
    /* The files first: the first scan, which begins at once, tells it what moved. */
    if (plan == NULL || (serves_files(config) && !start_files(set)))
        goto failed;
    struct sources_options options = {
        .catalogue = c,
        .count = plan->count,
        .settings = plan->settings,
        .event = tell,
        .event_context = set,
        .scanned = scanned,
        .scanned_context = set,
    };
    if (!sources_start(&options, &set->sources, why, sizeof why)) {
        log_failure("sources", "%s", why);
        goto failed;
    }
    source_plan_free(plan);
    *out = set;
    return true;

failed:
    source_plan_free(plan);
    source_set_free(set);
    return false;
}

bool source_set_check(const struct source_set *set, const struct config *config)
{
    char why[256];
    struct source_plan *plan = source_plan_new(config, set->catalogue);
    bool good = plan != NULL;
    for (size_t i = 0; plan != NULL && i < plan->count; i++) {
        const struct source_settings *settings = &plan->settings[i];
        if (!source_settings_check(settings, why, sizeof why)) {
            log_failure("sources", "source \"%s\": %s", settings->name, why);
            good = false;
        }
    }
    source_plan_free(plan);
    return good;
}

/* Its entries are not the file's to throw away: as with sites, so it is told. */
static void tell_unnamed(const struct source_set *set, const struct source_plan *plan)
{
    struct source_list *list = sources_hold(set->sources);
    for (size_t at = 0; at < sources_count(list); at++) {
        struct source_health health;
        bool named = false;
        sources_health(list, at, &health);
        for (size_t i = 0; !named && i < plan->count; i++)
            named = strcmp(plan->settings[i].name, health.name) == 0;
        if (!named)
            log_event(LOG_LEVEL_WARNING, "source-no-longer-configured",
                      "%s: the folder is not read any more; its entries stay", health.name);
    }
    sources_let_go(list);
}

bool source_set_reconfigure(struct source_set *set, const struct config *config)
{
    char why[256];
    struct source_plan *plan = source_plan_new(config, set->catalogue);
    bool done = plan != NULL && (set->files != NULL || !serves_files(config) || start_files(set));
    if (done) {
        tell_unnamed(set, plan);
        done = sources_reconfigure(set->sources, plan->count, plan->settings, why, sizeof why);
        if (!done)
            log_failure("sources", "%s", why);
    }
    source_plan_free(plan);
    return done;
}

struct sources *source_set_sources(const struct source_set *set)
{
    return set == NULL ? NULL : set->sources;
}

struct served_files *source_set_files(const struct source_set *set)
{
    return set == NULL ? NULL : set->files;
}

void source_set_end(struct source_set *set)
{
    if (set != NULL)
        sources_end(set->sources);
}

void source_set_free(struct source_set *set)
{
    if (set == NULL)
        return;
    sources_end(set->sources);
    served_files_free(set->files);
    sources_stop(set->sources);
    free(set);
}
