#include "server/source_set.h"

#include <stdlib.h>

#include "server/log/log.h"
#include "server/publish/blob_cache.h"
#include "server/source_plan.h"
#include "server/sources/sources.h"

/* Loads of served files; they read and compress. */
#define FILE_THREADS 2u

struct source_set {
    struct source_plan *plan;
    struct sources *sources;
    struct blob_cache *files;
};

static bool serves_files(const struct config *config)
{
    bool serves = config->source_folder_count > 0; /* a folder of --source is always served */
    for (size_t i = 0; i < config->source_count; i++)
        serves = serves || config->sources[i].serve;
    return serves;
}

uint64_t source_set_page_budget(const struct config *config)
{
    uint64_t budget = config->snapshot_budget_bytes;
    return serves_files(config) ? budget - budget / BLOB_CACHE_SNAPSHOT_SHARE : budget;
}

static void tell(void *context, int level, const char *event, const char *detail)
{
    static const enum log_level levels[] = {LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO};
    (void)context;
    log_event(level >= 0 && level < 3 ? levels[level] : LOG_LEVEL_DEBUG, event, "%s", detail);
}

static void scanned(void *context, size_t at)
{
    struct source_set *set = context;
    if (set->files != NULL)
        blob_cache_invalidate(set->files, at);
}

static int open_file(void *context, size_t source, const char *path)
{
    struct source_set *set = context;
    return sources_open_file(set->sources, source, path);
}

static bool start_files(struct source_set *set, const struct config *config)
{
    struct blob_cache_options options = {
        .budget_bytes = config->snapshot_budget_bytes / BLOB_CACHE_SNAPSHOT_SHARE,
        .compression_level = (int)config->compression_level,
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
    if (config->source_count + config->source_folder_count == 0)
        return true;
    struct source_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return false;
    set->plan = source_plan_new(config, c);
    /* The cache first: the first scan, which begins at once, tells it what moved. */
    if (set->plan == NULL || (serves_files(config) && !start_files(set, config)))
        goto failed;
    struct sources_options options = {
        .catalogue = c,
        .count = source_plan_count(set->plan),
        .settings = source_plan_settings(set->plan),
        .event = tell,
        .event_context = set,
        .scanned = scanned,
        .scanned_context = set,
    };
    if (!sources_start(&options, &set->sources, why, sizeof why)) {
        log_failure("sources", "%s", why);
        goto failed;
    }
    *out = set;
    return true;

failed:
    source_set_free(set);
    return false;
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
    source_plan_free(set->plan);
    free(set);
}
