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
#include "server/sources/child_store.h"
#include "server/sources/remote/remote.h"
#include "server/sources/roster.h"
#include "server/sources/sources.h"

/* All sources of the server: those of the configuration, of `--source` and of the catalogue, as
 * settings for server/sources. If two have the same name, that of the configuration wins. */

struct source_plan {
    size_t count;
    struct source_settings *settings;
    size_t remote_count;
    struct source_settings *remotes;
    /* owns the texts of the catalogue's sources; NULL: it cannot be read */
    struct registry *registry;
    const struct config *config;
    char **owned; /* texts and lists made here */
    size_t owned_count;
    bool reported; /* a failure was logged; if not, it is a lack of memory */
};

/* Takes NULL. */
static void source_plan_free(struct source_plan *p)
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

static bool name_taken(const struct source_plan *p, const char *name)
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
    for (int n = 2; name_taken(p, name); n++)
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

static bool add_folder(struct source_plan *p, const char *text)
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
        url = only_site_url(p, directory);
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
        .managed = true,
    };
    return true;
}

/* ---- sources of the catalogue ---- */

static bool is_beneath(const char *root, const char *directory)
{
    size_t len = strlen(root);
    while (len > 0 && root[len - 1] == '/')
        len--;
    return strncmp(root, directory, len) == 0 && (directory[len] == '/' || directory[len] == '\0');
}

static const char *source_set_root(const struct config *config, const char *origin, bool all_sites,
                                   const char *directory)
{
    for (size_t i = 0; origin != NULL && i < config->site_count; i++)
        for (size_t k = 0; k < config->sites[i].source_root_count; k++)
            if (strcmp(config->sites[i].origin, origin) == 0 &&
                is_beneath(config->sites[i].source_roots[k], directory))
                return config->sites[i].source_roots[k];
    for (size_t i = 0; all_sites && i < config->source_root_count; i++)
        if (is_beneath(config->source_roots[i], directory))
            return config->source_roots[i];
    return NULL;
}

static bool add_made(struct source_plan *p, const struct source_settings *from)
{
    if (name_taken(p, from->name)) {
        log_event(LOG_LEVEL_WARNING, "source-put-aside",
                  "%s: conflict: the configuration has a source of this name; the one made by API "
                  "or command line is ignored",
                  from->name);
        return true;
    }
    bool remote = from->directory == NULL;
    struct source_settings *to = remote ? &p->remotes[p->remote_count] : &p->settings[p->count];
    *to = *from;
    if (!remote) {
        const struct registry_site *site = registry_site_by_id(p->registry, from->site_id);
        to->root =
            source_set_root(p->config, site != NULL ? site->origin : NULL, true, from->directory);
        to->closed = to->root == NULL;
    }
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

/* NULL: a folder cannot be given a URL, the catalogue cannot be read, or no memory; reported as a
 * failed start. `config` must outlive it. */
static struct source_plan *source_plan_new(const struct config *config, struct catalogue *c)
{
    struct source_plan *p = calloc(1, sizeof *p);
    if (p == NULL) {
        log_failure("sources", "out of memory");
        return NULL;
    }
    p->config = config;
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

/* Threads that load served files: they read and compress. */
#define FILE_THREADS 2u

/* How often to check whether another process changed the catalogue's sources. */
#define LOOK_MS  1000
#define RETRY_MS 30000 /* after a failure, so that retries do not fill the log */

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
    struct served_files *files;
    struct child_store *store;
    atomic_bool serves_children;

    pthread_mutex_t turn;
    struct config *config; /* in force; a reference */
    int64_t retry_at;      /* ms; no try before */
    uint64_t followed;     /* registry revision of the current sources */
    char epoch[33];

    pthread_mutex_t lock; /* for what follows */
    /* the same as `config`, for callers that must not wait for `turn`; a reference */
    struct config *live;
    struct waiter *waiters;
    notify_listener *listener; /* NULL: nobody */
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

/* ---- callbacks of the child store ---- */

static bool source_serves(void *context, const char *source)
{
    struct source_set *set = context;
    struct roster *roster = roster_hold(&set->remotes);
    const struct source_settings *found = roster_find(roster, source);
    bool serves = found != NULL && found->serve;
    roster_release(roster);
    return serves;
}

static void each_serving(void *context, bool (*each)(void *each_context, const char *source),
                         void *each_context)
{
    struct source_set *set = context;
    struct roster *roster = roster_hold(&set->remotes);
    bool more = true;
    for (size_t i = 0; more && i < roster_count(roster); i++)
        more = !roster_at(roster, i)->serve || each(each_context, roster_at(roster, i)->name);
    roster_release(roster);
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
        .open_context = set,
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

static bool start_remote(struct source_set *set, const struct source_plan *plan, char *why,
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
    struct roster *roster = roster_new(plan->remotes, plan->remote_count);
    snprintf(why, why_size, "out of memory");
    bool done = roster != NULL && sites != NULL && !agent.failed &&
                remote_start(&options, &set->remote, why, why_size);
    if (done)
        roster_add(&set->remotes, roster);
    else
        roster_release(roster);
    str_done(&agent);
    free(sites);
    return done;
}

static bool change_remote(struct source_set *set, const struct source_plan *plan, char *why,
                          size_t why_size)
{
    struct str agent = STR_INIT;
    struct remote_site *sites;
    struct remote_bounds bounds = bounds_of(plan->config, &agent, &sites);
    struct roster *roster = roster_new(plan->remotes, plan->remote_count);
    snprintf(why, why_size, "out of memory");
    bool done =
        roster != NULL && sites != NULL && !agent.failed &&
        remote_reconfigure(set->remote, &bounds, plan->remote_count, plan->remotes, why, why_size);
    if (done)
        roster_add(&set->remotes, roster);
    else
        roster_release(roster);
    remote_wake(set->remote); /* `check` of a site may be on now */
    str_done(&agent);
    free(sites);
    return done;
}

/* Logs sources that the configuration no longer has; their entries stay, as with sites. Sources
 * that API or command line removed are reported in their responses. */
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
        if (managed && !name_taken(plan, name))
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

static bool report_unread_source(void *context, const char *name, bool remote)
{
    if (!name_taken(context, name))
        log_event(LOG_LEVEL_INFO, "source-not-read",
                  "%s: was read before, and no source has this name now: %s is not watched; its "
                  "entries stay; `sitemapd source remove %s` lets another source take them over",
                  name, remote ? "its upstream" : "its folder", name);
    return true;
}

/* At the start: logs sources of the catalogue that no longer exist, above all after a restore
 * without the configuration. */
static void report_unread(struct source_plan *plan, struct catalogue *c)
{
    struct catalogue_view *view;
    if (catalogue_view_begin(c, &view) != CATALOGUE_OK)
        return;
    catalogue_view_sources_scanned(view, report_unread_source, plan);
    catalogue_view_end(view);
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
    struct source_plan *plan = source_plan_new(config, set->catalogue);
    bool done = plan != NULL;
    if (done) {
        report_unnamed(set, plan);
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
    const struct site_map *map = publisher_site_map(set->publisher);
    const struct registry *now = site_map_registry(map);
    bool behind = now->registry_revision != set->followed || strcmp(now->epoch, set->epoch) != 0;
    publisher_site_map_done(map);
    return behind;
}

static void follow(struct source_set *set)
{
    pthread_mutex_lock(&set->turn);
    if (is_behind(set) && clock_now_ms() >= set->retry_at && !source_set_apply(set, set->config)) {
        set->retry_at = clock_now_ms() + RETRY_MS;
        log_event(LOG_LEVEL_ERROR, "sources-incomplete",
                  "not all sources of the catalogue could be started; retry in a while");
    }
    pthread_mutex_unlock(&set->turn);
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
    do {
        pthread_mutex_lock(&set->lock);
        struct waiter *waiters = set->waiters;
        set->waiters = NULL;
        pthread_mutex_unlock(&set->lock);
        follow(set);
        answer(waiters);
    } while (thread_wait(&set->thread, LOOK_MS));
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
    set->store = make_store(set, config);
    return set;
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
    struct source_plan *plan = source_plan_new(config, c);
    /* Start the files first: the first scan begins at once and reports changed files to them. */
    if (plan == NULL || set->store == NULL || !start_files(set))
        goto failed;
    atomic_store(&set->serves_children, serves_children(plan));
    struct sources_options options = {
        .catalogue = c,
        .count = plan->count,
        .settings = plan->settings,
        .event = log_remote_event,
        .event_context = set,
        .scanned = scanned,
        .scanned_context = set,
    };
    record_followed(set, plan->registry);
    report_unread(plan, c);
    if (!sources_start(&options, &set->sources, why, sizeof why) ||
        !start_remote(set, plan, why, sizeof why)) {
        log_failure("sources", "%s", why);
        goto failed;
    }
    set->follows =
        child_store_start(set->store) && thread_start(&set->thread, "source set", set_run, set);
    if (!set->follows) {
        log_failure("sources", "no thread");
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

static void add_remote_reasons(struct remote *remote, const struct source_settings *settings,
                               notify_each *each, void *context, uint64_t *bad)
{
    bool placed = settings->index != NULL && strstr(settings->index, "://") != NULL;
    const char *text = placed ? settings->index : settings->upstream;
    char origin[LOC_MAX_CHARS + 1] = "";
    struct remote_status status;
    struct url url;

    if (!remote_status(remote, settings->name, &status))
        return;
    if (url_parse(text, strlen(text), &url, NULL) == RULE_OK)
        snprintf(origin, sizeof origin, "%.*s", url.origin_len, url.text);
    *bad += check_count_bad(status.states);
    each(context, &(struct notify_state){
                      .name = settings->name,
                      .site = origin[0] != '\0' ? origin : NULL,
                      .failure = status.failing ? status.failure : NULL,
                      .failed_at = status.failed_at,
                      .held = status.held,
                      .bad = check_count_bad(status.states),
                  });
}

void source_set_look(void *source_set, notify_each *each, void *each_context)
{
    struct source_set *set = source_set;
    struct source_list *list = sources_hold(set->sources);
    struct roster *roster = roster_hold(&set->remotes);
    struct remote_counts counts;
    uint64_t bad = 0, all;

    for (size_t at = 0; at < sources_count(list); at++)
        report_folder(list, at, each, each_context);
    for (size_t at = 0; set->remote != NULL && at < roster_count(roster); at++)
        add_remote_reasons(set->remote, roster_at(roster, at), each, each_context, &bad);
    roster_release(roster);
    sources_release(list);
    if (set->remote == NULL)
        return;
    remote_counts_get(set->remote, &counts);
    all = check_count_bad(counts.states);
    each(each_context, &(struct notify_state){.name = "", .bad = all > bad ? all - bad : 0});
}

struct served_files *source_set_files(const struct source_set *set)
{
    return set == NULL ? NULL : set->files;
}

bool source_set_may_read(void *context, const char *origin, bool all_sites, const char *directory)
{
    struct source_set *set = context;
    pthread_mutex_lock(&set->lock);
    bool may = source_set_root(set->live, origin, all_sites, directory) != NULL;
    pthread_mutex_unlock(&set->lock);
    return may;
}

void source_set_end(struct source_set *set)
{
    if (set == NULL)
        return;
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
    config_unref(set->config);
    config_unref(set->live);
    pthread_mutex_destroy(&set->lock);
    pthread_mutex_destroy(&set->turn);
    free(set);
}
