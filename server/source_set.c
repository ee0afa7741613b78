/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Follows the registry and the configuration: starts, changes and stops sources. */
#include "server/source_set.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "db/view.h"
#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/base/thread.h"
#include "server/log/log.h"
#include "server/pages/await.h"
#include "server/pages/publisher.h"
#include "server/pages/served_file.h"
#include "server/rules/limits.h"
#include "server/shared_node.h"
#include "server/source_plan.h"
#include "server/sources/child_store.h"
#include "server/sources/remote/remote.h"
#include "server/sources/roster.h"
#include "server/sources/sources.h"

/* Threads that load served files: they read and compress. */
#define FILE_THREADS 2u

/* How often to try again and to look for a renamed source; and how often to look if there is no
 * reason to: the publisher wakes the thread when the registry has changed. */
#define LOOK_MS       1000
#define REST_MS       60000
#define RETRY_MS      30000 /* after a failure, so that retries do not fill the log */
#define RENAMED_LOOKS 40u   /* longer than the usual time between two polls of a list */

struct waiter {
    struct waiter *next;
    void (*done)(void *context);
    void *context;
};

/* The thread follows the catalogue: when the registry changes, it replaces the sources. A reload
 * does the same with another configuration; `turn` lets only one of them at a time. */
struct source_set {
    struct catalogue *catalogue;
    struct publisher *publisher; /* borrowed; has the current registry */
    struct cache *cache;         /* borrowed */
    struct trace *trace;         /* borrowed */
    int compression_level;
    struct sources *sources;
    struct remote *remote;
    struct roster_place remotes;
    /* under their old names, renamed sources: these may own their entries for a while yet */
    struct roster_place former;
    /* names of removed sources that still own entries */
    struct roster_place orphans;
    struct served_files *files;
    struct child_store *store;
    atomic_bool serves_children;

    pthread_mutex_t turn;
    struct config *config; /* in force; a reference */
    int64_t retry_at;      /* ms; no try before */
    bool misses_url;       /* as in the plan; reported */
    int64_t look_at;       /* ms; for a renamed source, if `looks` is not 0 */
    unsigned looks;
    uint64_t followed; /* registry revision of the current sources */
    char epoch[33];

    pthread_mutex_t lock; /* guards the members below */
    /* the same as `config`, for callers that must not wait for `turn`; a reference */
    struct config *live;
    struct waiter *waiters;
    notify_listener *listener; /* NULL: no listener */
    void *listener_context;
    bool follows; /* the thread answers waiters */
    struct thread thread;
};

static bool serves_children(const struct source_plan *plan)
{
    bool serves = false;
    for (size_t i = 0; i < plan->remote_count; i++)
        serves = serves || plan->remotes[i].serve;
    return serves;
}

static const enum log_level levels[] = {LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO};

static void log_remote_event(void *context, int level, const char *event, const char *detail)
{
    (void)context;
    log_event(level >= 0 && level < 3 ? levels[level] : LOG_LEVEL_DEBUG, event, "%s", detail);
}

static void report_remote(void *context, int level, const char *event, const char *source,
                          const char *detail)
{
    (void)context;
    log_event(level >= 0 && level < 3 ? levels[level] : LOG_LEVEL_DEBUG, event, "%s%s%s",
              source != NULL ? source : "", source != NULL ? ": " : "", detail);
}

/* `lock` is held. */
static void report_if(const struct source_set *set, bool happened, enum notify_word word,
                      const struct remote_moved *moved)
{
    if (happened)
        set->listener(set->listener_context,
                      &(struct notify_sitemap){.word = word,
                                               .site = moved->site,
                                               .source = moved->record->source,
                                               .loc = moved->record->loc,
                                               .at = moved->record->checked_at});
}

static void report_moved(void *context, const struct remote_moved *moved)
{
    struct source_set *set = context;
    enum check_state before = moved->before, now = moved->record->state;
    bool is_stale = (moved->record->marks & CHECK_DATE_STALE) != 0;
    pthread_mutex_lock(&set->lock);
    if (set->listener != NULL) {
        report_if(set, now == CHECK_GONE && before != CHECK_GONE, NOTIFY_GONE, moved);
        report_if(set, now == CHECK_GOOD && before == CHECK_GONE, NOTIFY_BACK, moved);
        report_if(set, is_stale && !moved->was_stale, NOTIFY_STALE, moved);
        report_if(set, !is_stale && moved->was_stale, NOTIFY_DATED, moved);
    }
    pthread_mutex_unlock(&set->lock);
}

void source_set_report(struct source_set *set, notify_listener *listener, void *context)
{
    pthread_mutex_lock(&set->lock);
    set->listener = listener;
    set->listener_context = context;
    pthread_mutex_unlock(&set->lock);
}

static void scanned(void *context, size_t number)
{
    struct source_set *set = context;
    served_files_invalidate(set->files, number);
}

/* A negative number means the mirrored sitemaps of the site with that id
 * (server/api/handlers/public.c). */
static int open_file(void *context, size_t number, const char *path, uint64_t *from)
{
    struct source_set *set = context;
    int64_t site_id = -(int64_t)number;
    return site_id > 0 ? child_store_open(set->store, site_id, path, from)
                       : sources_open_file(set->sources, number, path);
}

static bool is_listed(void *context, size_t number, const char *path, int64_t *lastmod)
{
    const struct source_set *set = context;
    return (int64_t)number > 0 && sources_list_file(set->sources, number, path, lastmod);
}

/* ---- callbacks of the child store ---- */

static bool serves_in(struct roster_place *place, const char *source)
{
    struct roster *roster = roster_hold(place);
    const struct source_settings *found = roster_find(roster, source);
    bool serves = found != NULL && found->serve;
    roster_release(roster);
    return serves;
}

static bool source_serves(void *context, const char *source)
{
    struct source_set *set = context;
    return serves_in(&set->remotes, source) || serves_in(&set->former, source);
}

static bool each_serving_in(struct roster_place *place,
                            bool (*each)(void *each_context, const char *source),
                            void *each_context)
{
    struct roster *roster = roster_hold(place);
    bool more = true;
    for (size_t i = 0; more && i < roster_count(roster); i++)
        more = !roster_at(roster, i)->serve || each(each_context, roster_at(roster, i)->name);
    roster_release(roster);
    return more;
}

static void each_serving(void *context, bool (*each)(void *each_context, const char *source),
                         void *each_context)
{
    struct source_set *set = context;
    if (each_serving_in(&set->remotes, each, each_context))
        each_serving_in(&set->former, each, each_context);
}

static void child_changed(void *context, int64_t site_id)
{
    struct source_set *set = context;
    served_files_invalidate(set->files, (size_t)-site_id);
}

static void fetched(void *context)
{
    (void)context;
}

void source_set_fetch_child(void *source_set, int64_t site_id, const char *loc,
                            void (*done)(void *context), void *context)
{
    struct source_set *set = source_set;
    if (set->remote != NULL)
        remote_fetch_copy(set->remote, site_id, loc, done != NULL ? done : fetched, context);
    else if (done != NULL)
        done(context);
}

bool source_set_serves_children(const void *source_set)
{
    const struct source_set *set = source_set;
    return set != NULL && atomic_load(&set->serves_children);
}

struct child_store *source_set_store(const struct source_set *set)
{
    return set == NULL ? NULL : set->store;
}

static struct child_store *make_store(struct source_set *set, const struct config *config)
{
    struct str folder = STR_INIT;
    str_append_format(&folder, "%s.children", config->database);
    struct child_store_options options = {
        .folder = str_text(&folder),
        .max_bytes = config->fetch_store_bytes,
        .catalogue = set->catalogue,
        .serves = source_serves,
        .each_source = each_serving,
        .fetch = source_set_fetch_child,
        .changed = child_changed,
        .event = log_remote_event,
        .context = set,
    };
    struct child_store *store = folder.failed ? NULL : child_store_new(&options);
    str_done(&folder);
    return store;
}

static bool start_files(struct source_set *set)
{
    struct served_files_options options = {
        .cache = set->cache,
        .compression_level = set->compression_level,
        .threads = FILE_THREADS,
        .fresh_ms = SERVED_FILES_FRESH_MS,
        .open = open_file,
        .listed = is_listed,
        .context = set,
    };
    set->files = served_files_new(&options);
    if (set->files == NULL)
        log_failure("sources", "out of memory");
    return set->files != NULL;
}

/* The sites with `connect`, for the caller to free; strings are borrowed from the configuration.
 * NULL when out of memory. */
static struct remote_site *connected_sites(const struct config *config, size_t *count)
{
    struct remote_site *sites = calloc(config->site_count + 1, sizeof *sites);
    *count = 0;
    for (size_t i = 0; sites != NULL && i < config->site_count; i++) {
        const struct config_site *site = &config->sites[i];
        if (site->connect != NULL)
            sites[(*count)++] = (struct remote_site){.origin = site->origin,
                                                     .connect = site->connect,
                                                     .public_check = site->public_check};
    }
    return sites;
}

/* Strings are borrowed from the configuration; the caller frees `agent` and `sites`. */
static struct remote_bounds bounds_of(const struct config *config, struct str *agent,
                                      struct remote_site **sites)
{
    size_t count;
    *sites = connected_sites(config, &count);
    str_append_text(agent, "sitemapd/" SITEMAPD_VERSION);
    if (config->contact != NULL)
        str_append_format(agent, " (+%s)", config->contact);
    return (struct remote_bounds){
        .agent = str_text(agent),
        .rate = config->fetch_rate,
        .per_host = config->fetch_per_host,
        .min_interval_s = config->fetch_min_interval_ms / 1000,
        .max_interval_s = config->fetch_max_interval_ms / 1000,
        .allow_addresses = config->allow_addresses,
        .site_count = count,
        .sites = *sites,
    };
}

/* A source was renamed in the configuration. If the catalogue has the new name already, the old one
 * is only released, as `source remove` does: the first scan under the new name takes the entries
 * over. */
static void rename_source(struct catalogue *c, const char *name, const char *successor)
{
    const struct change change = {.kind = CHANGE_SOURCE_REMOVE,
                                  .source_remove = {.name = name, .successor = successor},
                                  .by = successor,
                                  .via = "source"};
    struct change_result result;
    if (catalogue_apply(c, &change, &result) == CATALOGUE_OK)
        log_event(LOG_LEVEL_INFO, "source-renamed",
                  "%s: source %s now reads the same upstream and takes over its entries", name,
                  successor);
    change_result_done(&result);
}

/* Renames in the catalogue what the plan has found, unless other nodes still have the old name. */
static void rename_sources(struct catalogue *c, const struct source_plan *plan)
{
    for (size_t i = 0; i < plan->renamed_count; i++)
        if (!shared_node_others_want(c, plan->renamed[i].old))
            rename_source(c, plan->renamed[i].old, plan->renamed[i].now->name);
}

/* Looks again later: a scan under the old name may have been under way, or the write failed. Under
 * `turn`. */
static void expect_renamed(struct source_set *set, bool renamed, unsigned looks)
{
    set->looks = renamed ? looks : 0;
    set->look_at = clock_now_ms() + RETRY_MS;
}

static bool list_orphans(struct source_set *set, const struct source_plan *plan)
{
    struct source_settings *names = calloc(plan->orphan_count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < plan->orphan_count; i++)
        names[i].name = plan->orphans[i];
    struct roster *orphans = names != NULL ? roster_new(names, plan->orphan_count) : NULL;
    free(names);
    if (orphans != NULL)
        roster_add(&set->orphans, orphans);
    return orphans != NULL;
}

/* Before the remote sources run: whatever owns an entry is in one of the lists all the time, and
 * the catalogue has a new name before a scan uses it. `looks`: how often to look for late writes
 * under an old name. */
static bool list_remotes(struct source_set *set, struct source_plan *plan, unsigned looks)
{
    bool looked = source_plan_find_unread(plan, set->catalogue, set->remote == NULL) &&
                  list_orphans(set, plan);
    struct source_settings *old = calloc(plan->renamed_count + 1, sizeof *old);
    for (size_t i = 0; old != NULL && i < plan->renamed_count; i++) {
        old[i] = *plan->renamed[i].now;
        old[i].name = plan->renamed[i].old;
    }
    struct roster *former = old != NULL ? roster_new(old, plan->renamed_count) : NULL;
    struct roster *now = roster_new(plan->remotes, plan->remote_count);
    bool done = former != NULL && now != NULL;
    /* An old name that was only released owns its entries until the new one has taken them over. */
    bool keeps = plan->renamed_count == 0 && looks > 0 && looks < RENAMED_LOOKS;
    free(old);
    if (done && !keeps) {
        roster_add(&set->former, former);
        former = NULL;
    }
    if (done) {
        roster_add(&set->remotes, now);
        rename_sources(set->catalogue, plan);
    } else {
        roster_release(now);
    }
    roster_release(former);
    expect_renamed(set, !looked || !done || keeps || plan->renamed_count > 0, looks);
    return done;
}

static bool start_remote(struct source_set *set, struct source_plan *plan, char *why,
                         size_t why_size)
{
    struct str agent = STR_INIT;
    struct remote_site *sites;
    struct remote_options options = {
        .catalogue = set->catalogue,
        .bounds = bounds_of(plan->config, &agent, &sites),
        .count = plan->remote_count,
        .settings = plan->remotes,
        .store = set->store,
        .event = report_remote,
        .event_context = set,
        .moved = report_moved,
        .moved_context = set,
        .wanted_elsewhere = shared_node_others_want,
        .trace = set->trace,
    };
    snprintf(why, why_size, "out of memory");
    bool done = sites != NULL && !agent.failed && list_remotes(set, plan, RENAMED_LOOKS) &&
                remote_start(&options, &set->remote, why, why_size);
    str_done(&agent);
    free(sites);
    return done;
}

static bool change_remote(struct source_set *set, struct source_plan *plan, char *why,
                          size_t why_size)
{
    struct str agent = STR_INIT;
    struct remote_site *sites;
    struct remote_bounds bounds = bounds_of(plan->config, &agent, &sites);
    snprintf(why, why_size, "out of memory");
    bool done =
        sites != NULL && !agent.failed && list_remotes(set, plan, RENAMED_LOOKS) &&
        remote_reconfigure(set->remote, &bounds, plan->remote_count, plan->remotes, why, why_size);
    remote_wake(set->remote); /* `check` of a site may be on now */
    str_done(&agent);
    free(sites);
    return done;
}

/* Logs sources that the configuration no longer has, not even under another name; their entries
 * stay, as with sites. Sources that API or command line removed are reported in their responses. */
static void report_unnamed(struct source_set *set, const struct source_plan *plan)
{
    struct source_list *list = sources_hold(set->sources);
    struct roster *roster = roster_hold(&set->remotes);
    size_t folders = sources_count(list), count = folders + roster_count(roster);
    for (size_t at = 0; at < count; at++) {
        bool folder = at < folders;
        const struct source_settings *remote = folder ? NULL : roster_at(roster, at - folders);
        const char *name = folder ? sources_settings(list, at)->name : remote->name;
        bool managed = folder ? sources_settings(list, at)->managed : remote->managed;
        bool serve = folder ? sources_settings(list, at)->serve : remote->serve;
        bool renamed = !folder && source_plan_find_configured(plan, remote->upstream) != NULL;
        if (managed && !renamed && !source_plan_has(plan, name))
            log_event(
                LOG_LEVEL_WARNING, "source-no-longer-configured",
                "%s: was removed from the configuration: %s is no longer read%s; its entries stay; "
                "`sitemapd source remove %s` lets another source take them over%s",
                name, folder ? "the folder" : "the upstream",
                serve ? ", and its sitemaps are no longer served: crawlers get 404" : "", name,
                serve ? " and serve them" : "");
    }
    roster_release(roster);
    sources_release(list);
}

/* True: there is nothing to look for later. */
static bool look_again(struct source_set *set)
{
    pthread_mutex_lock(&set->turn);
    if (set->looks > 0 && clock_now_ms() >= set->look_at) {
        struct source_plan *plan = source_plan_new(set->config, set->catalogue, set->sources);
        if (plan == NULL)
            expect_renamed(set, true, set->looks - 1);
        else
            list_remotes(set, plan, set->looks - 1);
        source_plan_free(plan);
    }
    bool settled = set->looks == 0;
    pthread_mutex_unlock(&set->turn);
    return settled;
}

static void record_followed(struct source_set *set, const struct registry *registry)
{
    set->followed = registry->registry_revision;
    memcpy(set->epoch, registry->epoch, sizeof set->epoch);
}

/* Under `turn`. */
static bool source_set_apply(struct source_set *set, const struct config *config)
{
    char why[256];
    struct source_plan *plan = source_plan_new(config, set->catalogue, set->sources);
    bool done = plan != NULL;
    if (done) {
        report_unnamed(set, plan);
        if (plan->misses_url != NULL && !set->misses_url)
            log_event(LOG_LEVEL_WARNING, "source-url-missing", "%s", plan->misses_url);
        set->misses_url = plan->misses_url != NULL;
        done = sources_reconfigure(set->sources, plan->count, plan->settings, why, sizeof why) &&
               change_remote(set, plan, why, sizeof why);
        if (!done)
            log_failure("sources", "%s", why);
    }
    if (done) {
        record_followed(set, plan->registry);
        atomic_store(&set->serves_children, serves_children(plan));
        child_store_retune(set->store, config->fetch_store_bytes);
    }
    source_plan_free(plan);
    return done;
}

/* ---- following the catalogue ---- */

static bool is_behind(struct source_set *set)
{
    const struct page_map *map = publisher_page_map(set->publisher);
    const struct registry *now = page_map_registry(map);
    bool behind = now->registry_revision != set->followed || strcmp(now->epoch, set->epoch) != 0;
    publisher_page_map_done(map);
    return behind;
}

/* False: the sources are still those of an older registry. */
static bool follow(struct source_set *set)
{
    pthread_mutex_lock(&set->turn);
    bool behind = is_behind(set);
    if (behind && clock_now_ms() >= set->retry_at) {
        behind = !source_set_apply(set, set->config);
        if (behind) {
            set->retry_at = clock_now_ms() + RETRY_MS;
            log_event(LOG_LEVEL_ERROR, "sources-incomplete",
                      "not all sources of the catalogue could be started; the server retries");
        }
    }
    pthread_mutex_unlock(&set->turn);
    return !behind;
}

static void answer(struct waiter *waiters)
{
    while (waiters != NULL) {
        struct waiter *next = waiters->next;
        waiters->done(waiters->context);
        free(waiters);
        waiters = next;
    }
}

static void set_run(void *context)
{
    struct source_set *set = context;
    bool settled;
    do {
        pthread_mutex_lock(&set->lock);
        struct waiter *waiters = set->waiters;
        set->waiters = NULL;
        pthread_mutex_unlock(&set->lock);
        settled = follow(set);
        settled = look_again(set) && settled;
        answer(waiters);
    } while (thread_wait(&set->thread, settled ? REST_MS : LOOK_MS));
}

static void wake_set(void *source_set)
{
    struct source_set *set = source_set;
    thread_wake(&set->thread);
}

void source_set_settle(void *source_set, void (*done)(void *context), void *context)
{
    struct source_set *set = source_set;
    struct waiter *waiter = set != NULL ? malloc(sizeof *waiter) : NULL;
    bool waits = false;
    if (waiter != NULL) {
        pthread_mutex_lock(&set->lock);
        waits = set->follows;
        if (waits) {
            *waiter = (struct waiter){set->waiters, done, context};
            set->waiters = waiter;
            thread_wake(&set->thread);
        }
        pthread_mutex_unlock(&set->lock);
    }
    if (waits)
        return;
    free(waiter);
    done(context);
}

static struct source_set *set_new(struct config *config, struct catalogue *c,
                                  struct publisher *publisher, struct cache *cache)
{
    struct source_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return NULL;
    set->catalogue = c;
    set->publisher = publisher;
    set->cache = cache;
    set->compression_level = (int)config->compression_level;
    set->config = config_ref(config);
    set->live = config_ref(config);
    pthread_mutex_init(&set->turn, NULL);
    pthread_mutex_init(&set->lock, NULL);
    roster_place_init(&set->remotes);
    roster_place_init(&set->former);
    roster_place_init(&set->orphans);
    set->store = make_store(set, config);
    return set;
}

/* How many inotify watches this user may have; 0: unknown. */
static uint64_t read_max_watches(void)
{
    FILE *file = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
    char text[32] = "";
    if (file == NULL)
        return 0;
    char *got = fgets(text, sizeof text, file);
    fclose(file);
    return got != NULL ? strtoull(text, NULL, 10) : 0;
}

bool source_set_start(struct config *config, struct catalogue *c, struct publisher *publisher,
                      struct cache *cache, struct trace *trace, struct source_set **out)
{
    char why[256];
    *out = NULL;
    struct source_set *set = set_new(config, c, publisher, cache);
    if (set == NULL) {
        log_failure("sources", "out of memory");
        return false;
    }
    set->trace = trace;
    struct source_plan *plan = source_plan_new(config, c, NULL);
    /* Start the files first: the first scan begins at once and reports changed files to them. */
    if (plan == NULL || set->store == NULL || !start_files(set))
        goto failed;
    atomic_store(&set->serves_children, serves_children(plan));
    struct sources_options options = {
        .catalogue = c,
        .count = plan->count,
        .settings = plan->settings,
        .max_watches = read_max_watches(),
        .event = log_remote_event,
        .event_context = set,
        .scanned = scanned,
        .scanned_context = set,
    };
    record_followed(set, plan->registry);
    if (!sources_start(&options, &set->sources, why, sizeof why) ||
        !start_remote(set, plan, why, sizeof why)) {
        log_failure("sources", "%s", why);
        goto failed;
    }
    publisher_on_page_map(publisher, wake_set, set);
    set->follows =
        child_store_start(set->store) && thread_start(&set->thread, "source set", set_run, set);
    if (!set->follows) {
        log_failure("sources", "cannot start the thread that follows the catalogue's sources");
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
    struct source_plan *plan = source_plan_new(config, set->catalogue, set->sources);
    bool good = plan != NULL;
    for (size_t i = 0; plan != NULL && i < plan->count; i++) {
        const struct source_settings *settings = &plan->settings[i];
        if (settings->managed && !source_settings_check(settings, why, sizeof why)) {
            log_failure("sources", "source \"%s\": %s", settings->name, why);
            good = false;
        }
    }
    for (size_t i = 0; plan != NULL && i < plan->remote_count; i++)
        if (!remote_settings_check(&plan->remotes[i], why, sizeof why)) {
            log_failure("sources", "source \"%s\": %s", plan->remotes[i].name, why);
            good = false;
        }
    source_plan_free(plan);
    return good;
}

bool source_set_reconfigure(struct source_set *set, struct config *config)
{
    pthread_mutex_lock(&set->turn);
    bool done = source_set_apply(set, config);
    config_unref(set->config);
    set->config = config_ref(config);
    pthread_mutex_lock(&set->lock);
    config_unref(set->live);
    set->live = config_ref(config);
    pthread_mutex_unlock(&set->lock);
    pthread_mutex_unlock(&set->turn);
    return done;
}

struct sources *source_set_sources(const struct source_set *set)
{
    return set == NULL ? NULL : set->sources;
}

struct remote *source_set_remote(const struct source_set *set)
{
    return set == NULL ? NULL : set->remote;
}

struct roster_place *source_set_roster(struct source_set *set)
{
    return set == NULL ? NULL : &set->remotes;
}

struct roster_place *source_set_orphans(struct source_set *set)
{
    return set == NULL ? NULL : &set->orphans;
}

static void report_folder(const struct source_list *list, size_t at, notify_each *each,
                          void *context)
{
    char origin[LOC_MAX_CHARS + 1] = "";
    struct source_health health;
    struct url url;

    sources_health(list, at, &health);
    if (url_split(sources_url(list, at), strlen(sources_url(list, at)), &url))
        snprintf(origin, sizeof origin, "%.*s", url.origin_len, url.text);
    each(context, &(struct notify_state){
                      .name = health.name,
                      .site = origin[0] != '\0' ? origin : NULL,
                      .failure = health.failing ? health.failure : NULL,
                      .held = health.state.held,
                      .bad = health.state.quarantined,
                  });
}

static void add_remote_reasons(struct remote *remote, const struct registry *registry,
                               const struct source_settings *settings, notify_each *each,
                               void *context)
{
    bool placed = settings->index != NULL && strstr(settings->index, "://") != NULL;
    const struct registry_site *owner =
        settings->site_id != 0 ? registry_site_by_id(registry, settings->site_id) : NULL;
    const char *text = owner != NULL ? owner->origin
                       : placed      ? settings->index
                                     : settings->upstream;
    char origin[LOC_MAX_CHARS + 1] = "";
    struct remote_status status;
    struct url url;

    if (!remote_status(remote, settings->name, &status))
        return;
    if (url_parse(text, strlen(text), &url, NULL) == RULE_OK)
        snprintf(origin, sizeof origin, "%.*s", url.origin_len, url.text);
    each(context, &(struct notify_state){
                      .name = settings->name,
                      .site = origin[0] != '\0' ? origin : NULL,
                      .failure = status.failing ? status.failure : NULL,
                      .failed_at = status.failed_at,
                      .held = status.held,
                      .bad = check_count_bad(status.states),
                  });
}

struct bad_sites {
    const struct registry *registry;
    notify_each *each;
    void *context;
};

static void report_registered(void *context, int64_t site_id, uint64_t bad)
{
    struct bad_sites *b = context;
    const struct registry_site *site = registry_site_by_id(b->registry, site_id);

    if (site != NULL)
        b->each(b->context, &(struct notify_state){.name = "", .site = site->origin, .bad = bad});
}

void source_set_look(void *source_set, notify_each *each, void *each_context)
{
    struct source_set *set = source_set;
    struct source_list *list = sources_hold(set->sources);
    struct roster *roster = roster_hold(&set->remotes);
    const struct page_map *map = publisher_page_map(set->publisher);
    struct bad_sites sites = {page_map_registry(map), each, each_context};

    for (size_t at = 0; at < sources_count(list); at++)
        report_folder(list, at, each, each_context);
    for (size_t at = 0; set->remote != NULL && at < roster_count(roster); at++)
        add_remote_reasons(set->remote, sites.registry, roster_at(roster, at), each, each_context);
    if (set->remote != NULL)
        remote_bad_sites(set->remote, report_registered, &sites);
    publisher_page_map_done(map);
    roster_release(roster);
    sources_release(list);
}

struct served_files *source_set_files(const struct source_set *set)
{
    return set == NULL ? NULL : set->files;
}

bool source_set_may_read(void *context, const char *origin, bool all_sites, const char *directory)
{
    struct source_set *set = context;
    pthread_mutex_lock(&set->lock);
    bool may = config_source_root(set->live, origin, all_sites, directory) != NULL;
    pthread_mutex_unlock(&set->lock);
    return may;
}

void source_set_end(struct source_set *set)
{
    if (set == NULL)
        return;
    publisher_on_page_map(set->publisher, NULL, NULL);
    pthread_mutex_lock(&set->lock);
    set->follows = false;
    struct waiter *waiters = set->waiters;
    set->waiters = NULL;
    pthread_mutex_unlock(&set->lock);
    thread_stop(&set->thread);
    answer(waiters);
    sources_end(set->sources);
    remote_end(set->remote);
    child_store_stop(set->store); /* remote_end has answered the calls that its thread waits for */
}

void source_set_free(struct source_set *set)
{
    if (set == NULL)
        return;
    source_set_end(set);
    served_files_free(set->files);
    sources_stop(set->sources);
    remote_stop(set->remote);
    child_store_free(set->store);
    roster_place_done(&set->remotes);
    roster_place_done(&set->former);
    roster_place_done(&set->orphans);
    config_unref(set->config);
    config_unref(set->live);
    pthread_mutex_destroy(&set->lock);
    pthread_mutex_destroy(&set->turn);
    free(set);
}
