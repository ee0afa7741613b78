#include "server/source_set.h"

#include <stdlib.h>
#include <string.h>

#include "server/log/log.h"
#include "server/publish/blob_cache.h"
#include "server/source_plan.h"
#include "server/sources/sources.h"

/* Loads of served files; they read and compress. */
#define FILE_THREADS 2u

struct source_set {
    struct catalogue *catalogue;
    uint64_t budget_bytes; /* pages and files, as of the start */
    int compression_level;
    struct sources *sources;
    _Atomic(struct blob_cache *) files; /* a reload may bring it, while scans go on */
};

static bool serves_files(const struct config *config)
{
    bool serves = config->source_folder_count > 0; /* a folder of --source is always served */
    for (size_t i = 0; i < config->source_count; i++)
        serves = serves || config->sources[i].serve;
    return serves;
}

uint64_t source_set_page_budget(const struct source_set *set, const struct config *config)
{
    uint64_t budget = set == NULL ? config->snapshot_budget_bytes : set->budget_bytes;
    return serves_files(config) || (set != NULL && set->files != NULL)
               ? budget - budget / BLOB_CACHE_SNAPSHOT_SHARE
               : budget;
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
    struct blob_cache *files = set->files;
    if (files != NULL)
        blob_cache_invalidate(files, number);
}

static int open_file(void *context, size_t number, const char *path)
{
    struct source_set *set = context;
    return sources_open_file(set->sources, number, path);
}

static bool start_files(struct source_set *set)
{
    struct blob_cache_options options = {
        .budget_bytes = set->budget_bytes / BLOB_CACHE_SNAPSHOT_SHARE,
        .compression_level = set->compression_level,
        .threads = FILE_THREADS,
        .fresh_ms = BLOB_CACHE_FRESH_MS,
        .open = open_file,
        .open_context = set,
    };
    set->files = blob_cache_new(&options);
    if (set->files == NULL)
        log_failure("sources", "out of memory");
    return set->files != NULL;
}

bool source_set_start(const struct config *config, struct catalogue *c, struct source_set **out)
{
    char why[256];
    *out = NULL;
    struct source_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        log_failure("sources", "out of memory");
        return false;
    }
    set->catalogue = c;
    set->budget_bytes = config->snapshot_budget_bytes;
    set->compression_level = (int)config->compression_level;
    struct source_plan *plan = source_plan_new(config, c);
    /* The cache first: the first scan, which begins at once, tells it what moved. */
    if (plan == NULL || (serves_files(config) && !start_files(set)))
        goto failed;
    struct sources_options options = {
        .catalogue = c,
        .count = source_plan_count(plan),
        .settings = source_plan_settings(plan),
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
    for (size_t i = 0; plan != NULL && i < source_plan_count(plan); i++) {
        const struct source_settings *settings = &source_plan_settings(plan)[i];
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
        for (size_t i = 0; !named && i < source_plan_count(plan); i++)
            named = strcmp(source_plan_settings(plan)[i].name, health.name) == 0;
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
        done = sources_reconfigure(set->sources, source_plan_count(plan),
                                   source_plan_settings(plan), why, sizeof why);
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

struct blob_cache *source_set_files(const struct source_set *set)
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
    blob_cache_free(set->files);
    sources_stop(set->sources);
    free(set);
}
