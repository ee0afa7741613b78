#include "server/app.h"

#include <errno.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/app_state.h"
#include "server/bootstrap.h"
#include "server/log/log.h"
#include "server/notify.h"
#include "server/policy.h"
#include "server/privileges.h"
#include "server/publish/publisher.h"
#include "server/publish/workers.h"
#include "server/reload.h"
#include "server/request_log.h"
#include "server/routes/auth.h"
#include "server/rules/str.h"
#include "server/sources/sources.h"
#include "server/token/token.h"

/* API reads and the parsing of bodies. With the publisher's builds and its pass they never need
 * more than CATALOGUE_VIEWS views at once. */
#define READER_THREADS    2u
#define READER_MAX_QUEUED 4096u
/* Identity replies that inflate at once; crawlers all take gzip. */
#define MAX_IDENTITY 64u
/* How long a stop waits for the requests under way; a bulk load may take its time. */
#define STOP_TIMEOUT_MS 60000u

static void note(void *context, const char *event, const char *detail)
{
    const struct app *app = context;
    const char *database = app->config->database;

    if (strcmp(event, "catalogue-readable") == 0)
        log_event(LOG_LEVEL_INFO, event, "%s is read again", database);
    else if (strcmp(event, "catalogue-unreadable") == 0)
        log_event(LOG_LEVEL_ERROR, event,
                  "%s: %s; pages in memory are served on, writes answer 503. Put the file back, or "
                  "look at its permissions and its disk: it is opened again by itself",
                  database, detail);
    else if (strcmp(event, "page-store-off") == 0)
        log_event(
            LOG_LEVEL_WARNING, event,
            "%s; pages are served, but rendered again after a restart. Look at the folder and "
            "its disk; it may be deleted, or page_store set to 0",
            detail);
    else if (strcmp(event, "page-store-on") == 0)
        log_event(LOG_LEVEL_INFO, event, "%s", detail);
    else
        log_event(LOG_LEVEL_ERROR, event, "%s: %s; its request was answered 503", database, detail);
}

static bool lack_memory(void)
{
    log_failure("serve", "out of memory");
    return false;
}

static bool open_catalogue(struct app *app, const char *const *sites)
{
    const struct config *config = app->config;
    char why[1024];
    struct catalogue_options options = {
        .path = config->database,
        .server = true,
        .write_timeout_ms = config->write_timeout_ms,
        .max_queued = config->max_queued_writes,
        .shrink_percent = config->shrink_guard_percent,
        .default_max_pages = LIMIT_SITE_PAGES,
    };
    enum catalogue_status status = catalogue_open(&options, &app->catalogue, why, sizeof why);
    if (status != CATALOGUE_OK) {
        size_t len = strlen(config->database); /* most sentences name the file themselves */
        bool named = strncmp(why, config->database, len) == 0 && strncmp(why + len, ": ", 2) == 0;
        log_failure(config->database, "%s", named ? why + len + 2 : why);
        return false;
    }
    return bootstrap_managed_sites(app->catalogue, config) &&
           bootstrap_sites(app->catalogue, sites) && bootstrap_token(app->catalogue, config);
}

static bool start_publisher(struct app *app)
{
    const struct config *config = app->config;
    app->pages.cache_control = config->cache_control;
    app->pages.max_identity = MAX_IDENTITY;
    struct policy *policy = policy_new(config);
    struct str store = STR_INIT;
    if (policy == NULL)
        return lack_memory();
    str_append_format(&store, "%s.pages", config->database);
    struct publisher_options options = {
        .catalogue = app->catalogue,
        .compression_level = (int)config->compression_level,
        .snapshot_budget_bytes = source_set_page_budget(NULL, config),
        .page_store_folder = store.failed ? NULL : str_text(&store),
        .page_store_bytes = config->page_store_bytes,
        .build_threads = app_core_count(),
        .strict_host = config->strict_host,
        .site_count = policy_count(policy),
        .sites = policy_sites(policy),
        .attach = page_response_attach,
        .attach_context = &app->pages,
        .cut_slow_readers = page_response_cut,
        .cut_context = &app->pages,
        .event = note,
        .event_context = app,
    };
    enum catalogue_status status = publisher_start(&options, &app->context.publisher);
    policy_free(policy); /* copied */
    str_done(&store);
    if (status != CATALOGUE_OK)
        log_failure(config->database, "cannot be read: %s", catalogue_status_word(status));
    return status == CATALOGUE_OK;
}

static bool start_sources(struct app *app)
{
    if (!source_set_start(app->config, app->catalogue, &app->sources))
        return false;
    app->context.sources = source_set_sources(app->sources);
    app->context.files = source_set_files(app->sources);
    app->context.files_match = sources_match;
    return true;
}

void app_set_limits(struct app *app, const struct config *config)
{
    struct app_context *context = &app->context;
    context->max_body_bytes = config->max_body_bytes;
    context->max_bulk_bytes = config->max_bulk_bytes;
    context->max_bulk_entries = config->max_bulk_entries;
    context->max_rejections = config->max_rejections;
    context->spool_room.max_bytes = config->max_spool_bytes;
}

static bool start_tls(struct app *app)
{
    struct tls_pair *pair;
    if (!app_load_tls(app->config, &pair))
        return false;
    app_use_tls(app, pair);
    return true;
}

static bool fill_context(struct app *app)
{
    const struct config *config = app->config;
    struct app_context *context = &app->context;
    char *copy = strdup(config->database);
    app->folder = copy == NULL ? NULL : strdup(dirname(copy));
    free(copy);
    context->catalogue = app->catalogue;
    context->readers = workers_new(READER_THREADS, READER_MAX_QUEUED);
    context->auth = auth_new();
    context->spool_folder = app->folder;
    context->cache_control = config->cache_control;
    app_set_limits(app, config);
    context->page_readers = &app->pages.readers;
    context->config_loaded_at = time(NULL);
    context->max_polls = config->max_suspended > 1 ? config->max_suspended / 2 : 1;
    if (config->token != NULL) {
        if (!token_sha256(config->token, strlen(config->token), app->token_sha256))
            return false;
        context->environment_token_sha256 = app->token_sha256;
        config_wipe_token(app->config);
    }
    return (app->folder != NULL && context->readers != NULL && context->auth != NULL) ||
           lack_memory();
}

/* The order loses nothing: no new requests; what was taken is committed, published and answered;
 * then the threads that answer end, then those that publish, then the catalogue. Who hands on ends
 * before whom it hands to: an answer of the writer's may still wait for the publisher. */
static void stop(struct app *app)
{
    if (app->public_listener != NULL)
        listener_quiesce(app->public_listener);
    if (app->admin_listener != NULL)
        listener_quiesce(app->admin_listener);
    if (app->context.publisher != NULL)
        publisher_quiesce(app->context.publisher);
    source_set_end(app->sources);
    listener_stop(app->admin_listener, STOP_TIMEOUT_MS);
    listener_stop(app->public_listener, STOP_TIMEOUT_MS);
    tls_done();
    source_set_free(app->sources);
    catalogue_finish(app->catalogue);
    workers_free(app->context.readers);
    publisher_stop(app->context.publisher);
    catalogue_close(app->catalogue);
    auth_free(app->context.auth);
    config_done(&app->reloaded);
    access_log_close(app->context.access_log);
    free(app->folder);
}

/* Whether the watchdog is to hear of it. Not the publisher: a disk that stands still is no reason
 * to end what is served from memory. */
static bool is_alive(const struct app *app, uint32_t within_ms)
{
    return listener_stale_ms(app->public_listener) < within_ms &&
           listener_stale_ms(app->admin_listener) < within_ms;
}

/* One of the two where it has come, else 0. Takes it. */
static int take_either(int one, int other)
{
    const struct timespec now = {0};
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, one);
    sigaddset(&both, other);
    int number = sigtimedwait(&both, NULL, &now);
    return number < 0 ? 0 : number;
}

/* The next signal; 0: none came within half a watchdog's period. A stop goes before all else that
 * waits: the kernel hands out the lowest number, which is SIGHUP, and whoever sends that faster
 * than it is served would keep the server from ever ending. Of each other kind one waits at most.
 */
static int next_signal(const sigset_t *signals, uint32_t watchdog_ms)
{
    struct timespec half = {.tv_sec = watchdog_ms / 2000,
                            .tv_nsec = (long)(watchdog_ms / 2 % 1000) * 1000000};
    int number = sigtimedwait(signals, NULL, watchdog_ms > 0 ? &half : NULL);
    int stop_number = take_either(SIGTERM, SIGINT);
    if (stop_number != 0)
        return stop_number;
    return number < 0 ? 0 : number;
}

static void wait_for_end(struct app *app, const sigset_t *signals)
{
    uint32_t watchdog_ms = notify_watchdog_ms();
    for (;;) {
        if (watchdog_ms > 0 && is_alive(app, watchdog_ms))
            notify_alive();
        int number = next_signal(signals, watchdog_ms);
        if (number == SIGHUP) {
            reload(app);
            number = take_either(SIGUSR1, SIGUSR1); /* it may be behind SIGHUP for ever, too */
        }
        if (number == SIGUSR1) {
            access_log_reopen(app->context.access_log);
        } else if (number != 0) {
            log_event(LOG_LEVEL_INFO, "stop", "%s: finishing what is in flight", strsignal(number));
            notify_stopping("finishing what is in flight");
            return;
        }
    }
}

void app_setup_log(const struct config *config)
{
    enum log_level level = LOG_LEVEL_INFO;
    log_level_parse(config->log_level, &level);
    log_setup(level, strcmp(config->log_format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
}

int app_serve(struct config *config, const char *const *sites, const struct config_reader *again)
{
    struct app app = {.config = config, .live = config, .again = again};
    sigset_t signals;
    /* Blocked before any thread starts, so that every thread inherits it and only sigwait sees
     * them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* as process 1 we inherit orphans: the kernel buries them */
    page_readers_init(&app.pages.readers);
    umask(077);
    app_setup_log(config);
    /* What root alone may open comes before its rights go, threads and files after it. */
    bool up = sockets_open(config, &app.sockets) && start_tls(&app) &&
              privileges_drop(config->user, config->database);
    log_start();
    up = up && request_log_open(config, &app.context.access_log) && open_catalogue(&app, sites) &&
         fill_context(&app) && start_publisher(&app) && start_sources(&app) &&
         app_start_listeners(&app);
    if (up) {
        privileges_hide_memory();
        app_announce(&app);
        wait_for_end(&app, &signals);
    }
    stop(&app);
    sockets_close(&app.sockets);
    page_readers_done(&app.pages.readers);
    if (up)
        log_event(LOG_LEVEL_INFO, "stopped", "all done");
    log_stop();
    return up ? 0 : 1;
}
