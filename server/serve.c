/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Starts and stops every part in order: signals, watchdog, certificates, health of the catalogue.
 */
#include "server/serve.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "db/catalogue.h"
#include "server/api/auth.h"
#include "server/api/forward.h"
#include "server/api/peer_files.h"
#include "server/api/peer_log.h"
#include "server/base/clock.h"
#include "server/base/memory_limit.h"
#include "server/base/str.h"
#include "server/base/thread.h"
#include "server/configured.h"
#include "server/crawlers/crawlers.h"
#include "server/crypto/token.h"
#include "server/engines/engines.h"
#include "server/following.h"
#include "server/forwarder.h"
#include "server/http/address.h"
#include "server/keepers.h"
#include "server/log/log.h"
#include "server/notify/indexnow.h"
#include "server/pages/publisher.h"
#include "server/pages/workers.h"
#include "server/peering.h"
#include "server/privileges.h"
#include "server/request_log.h"
#include "server/serve_state.h"
#include "server/shared_node.h"
#include "server/sockets.h"
#include "server/sources/sources.h"
#include "server/trace/trace.h"

/* The protocol is one datagram, not worth libsystemd and the dozen libraries that it needs. */
static void send_text(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path == NULL ? 0 : strlen(path);

    if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') /* an abstract address: it has a length and no NUL at its end */
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
    (void)sent; /* if the manager does not listen, only this message is lost */
    close(fd);
}

/* Notifications to the service manager (sd_notify(3)) and its watchdog. Without $NOTIFY_SOCKET
 * nothing is sent. Only for the main thread. */
static void notify_ready(const char *status)
{
    char text[512];
    snprintf(text, sizeof text, "READY=1\nSTATUS=%s\n", status);
    send_text(text);
}

void notify_reloading(void)
{
    char text[96];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu\n",
             (unsigned long long)clock_now_ns() / 1000);
    send_text(text);
}

static void notify_stopping(const char *status)
{
    char text[512];
    snprintf(text, sizeof text, "STOPPING=1\nSTATUS=%s\n", status);
    send_text(text);
}

static void notify_alive(void)
{
    send_text("WATCHDOG=1\n");
}

/* The watchdog's period: the manager expects notify_alive within so many milliseconds; 0: no
 * watchdog. */
static uint32_t notify_watchdog_ms(void)
{
    const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (period == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
        return 0;
    unsigned long long ms = strtoull(period, NULL, 10) / 1000;
    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

#define LAST_LINES_MS 300 /* for the log's thread to write the last lines */

/* A client that reads slowly must not use up the time to save the ledger and the sizes, which
 * happens after the listeners have stopped. */
_Static_assert(LISTENER_STOP_REPLY_MS + 2000 <= STOP_LIMIT_ABANDON_MS, "a reply cut too late");

static struct {
    struct thread thread;
    pthread_mutex_t lock;
    struct catalogue *catalogue;     /* lock */
    _Atomic(const char *) waits_for; /* for the log: a part of the program */
} stop_limit = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Ends early if the stop completes. */
static void stop_limit_run(void *context)
{
    struct thread *t = context;
    if (!thread_wait(t, STOP_LIMIT_ABANDON_MS))
        return;
    log_event(LOG_LEVEL_WARNING, "stop-slow",
              "timeout: still waiting for %s after %u s; uncommitted writes are "
              "cancelled with 503, those that PostgreSQL may have committed get 504",
              atomic_load(&stop_limit.waits_for), STOP_LIMIT_ABANDON_MS / 1000);
    pthread_mutex_lock(&stop_limit.lock);
    catalogue_abandon(stop_limit.catalogue);
    pthread_mutex_unlock(&stop_limit.lock);
    if (!thread_wait(t, STOP_LIMIT_END_MS))
        return;
    log_event(LOG_LEVEL_ERROR, "stop-forced",
              "timeout: still waiting for %s (is the disk hanging?); the process exits "
              "now, and the next start recovers all committed changes",
              atomic_load(&stop_limit.waits_for));
    thread_wait(t, LAST_LINES_MS);
    _exit(1);
}

/* Starts a thread that limits the time of the stop. Borrows the catalogue (may be NULL) until
 * stop_limit_written. One stop at a time. If the thread cannot be started, there is no limit. */
static void stop_limit_begin(struct catalogue *catalogue)
{
    stop_limit.catalogue = catalogue;
    thread_start(&stop_limit.thread, "stop limit", stop_limit_run, &stop_limit.thread);
}

/* Names what the stop waits for from now on. */
static void stop_limit_step(const char *waits_for)
{
    atomic_store(&stop_limit.waits_for, waits_for);
}

/* The catalogue has no uncommitted writes any more and may be closed. */
static void stop_limit_written(void)
{
    pthread_mutex_lock(&stop_limit.lock);
    stop_limit.catalogue = NULL;
    pthread_mutex_unlock(&stop_limit.lock);
}

#define ADMIN_THREADS 2u
#define SPARE_MOST    256u

static unsigned app_core_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : (unsigned)cores;
}

static struct listener_options common_options(struct app *app, const struct config *config)
{
    return (struct listener_options){
        .header_timeout_ms = config->header_timeout_ms,
        .body_timeout_ms = config->body_timeout_ms,
        .reply_timeout_ms = config->reply_timeout_ms,
        .idle_timeout_ms = config->idle_timeout_ms,
        .max_header_bytes = config->max_header_bytes,
        .max_suspended = config->max_suspended,
        .readers = &app->readers,
        .context = &app->context,
    };
}

static bool start_listener(const struct listener_options *options, struct listener **out)
{
    char why[256];
    if (listener_start(options, out, why, sizeof why))
        return true;
    log_failure(options->name, "cannot listen: %s", why);
    return false;
}

/* Allows fewer suspended requests if few connections are allowed, so that a health check can always
 * connect. */
static void leave_connections(struct listener_options *options)
{
    uint32_t spare = options->max_connections / 4;
    uint32_t most = options->max_connections - (spare < SPARE_MOST ? spare : SPARE_MOST);
    if (options->max_connections > 0 && options->max_suspended > most)
        options->max_suspended = most;
}

/* How many long polls may wait: half of max_suspended, or if leave_connections lowered the limit,
 * most of it. */
static uint32_t count_polls(uint32_t configured, uint32_t may_wait)
{
    uint32_t polls = configured / 2, most = may_wait - may_wait / 16;
    if (polls > most)
        polls = most;
    return polls > 0 ? polls : 1;
}

/* A client that opens connections must not take the descriptors that the catalogue needs. */
static struct descriptor_share share_descriptors(const struct config *config)
{
    unsigned threads = ADMIN_THREADS + (config->threads > 0 ? config->threads : app_core_count());
    uint64_t limit = descriptors_raise(descriptors_wanted(config->max_connections, threads));
    struct descriptor_share share = descriptors_share(limit, config->max_connections, threads);
    if (share.public_connections < config->max_connections)
        log_event(LOG_LEVEL_WARNING, "few-descriptors",
                  "too many open files: the limit (%llu) allows %u connections on the public "
                  "listener and %u on the admin listener; max_connections is %u. Raise the limit "
                  "(ulimit -n, LimitNOFILE in a systemd unit) or lower max_connections",
                  (unsigned long long)limit, share.public_connections, share.admin_connections,
                  config->max_connections);
    return share;
}

/* Starts the admin listener first: publishing clients must be able to connect before crawlers come.
 * False, reported as a failed start, if one cannot listen. */
static bool app_start_listeners(struct app *app)
{
    const struct config *config = app->config;
    struct descriptor_share share = share_descriptors(config);
    struct listener_options admin = common_options(app, config);
    admin.name = "admin";
    admin.max_connections = share.admin_connections;
    leave_connections(&admin);
    app->context.max_polls = count_polls(config->max_suspended, admin.max_suspended);
    admin.address = config->admin_listen;
    admin.socket = &app->sockets.admin;
    admin.threads = ADMIN_THREADS;
    admin.problem_json = true;
    admin.check_host = true;
    admin.request_ids = true;
    admin.completed = request_log_admin;
    admin.spoke_plain = request_log_plain;
    admin.allowed_host_count = config->allowed_host_count;
    admin.allowed_hosts = config->allowed_hosts;
    if (config->shared_advertise != NULL)
        admin.own_host = strstr(config->shared_advertise, "://") + strlen("://");
    admin.routes = routes_admin;
    admin.route_count = config->console ? routes_admin_count : routes_bare_count;
    admin.authorise = forward_authorise;
    admin.tls = config->admin_tls_cert != NULL;
    admin.tls_side = TLS_ADMIN;

    struct listener_options public = common_options(app, config);
    public.name = "public";
    public.max_connections = share.public_connections;
    leave_connections(&public);
    public.address = config->listen;
    public.socket = &app->sockets.public;
    public.threads = config->threads;
    public.max_connections_per_address = config->max_connections_per_address;
    public.trusted_proxy_count = config->trusted_proxy_count;
    public.trusted_proxies = config->trusted_proxies;
    public.fallback = &routes_public;
    bool is_logged = app->context.access_log != NULL || app->context.crawlers != NULL;
    public.spoke_plain = request_log_plain;
    public.completed = is_logged ? request_log_public : NULL;
    public.short_slices = true;
    public.tls = config->tls_cert != NULL;
    public.tls_side = TLS_PUBLIC;

    if (!start_listener(&admin, &app->admin_listener))
        return false;
    app->sockets.admin.fd = -1;
    app->context.admin_listener = app->admin_listener;
    if (!start_listener(&public, &app->public_listener))
        return false;
    app->sockets.public.fd = -1;
    app->context.public_listener = app->public_listener;
    return true;
}

static void report_remark(const char *file, const char *text)
{
    log_event(LOG_LEVEL_WARNING, "tls-warning", "%s: %s", file, text);
}

static bool load_pair(const char *cert, const char *key, struct tls_pair **out)
{
    char why[512];
    *out = NULL;
    if (cert == NULL || tls_pair_load(cert, key, time(NULL), out, report_remark, why, sizeof why))
        return true;
    log_failure("tls", "%s", why);
    return false;
}

bool app_load_tls(const struct config *config, struct tls_pairs *out)
{
    *out = (struct tls_pairs){{NULL}};
    bool good = load_pair(config->tls_cert, config->tls_key, &out->of[TLS_PUBLIC]);
    return load_pair(config->admin_tls_cert, config->admin_tls_key, &out->of[TLS_ADMIN]) && good;
}

void app_free_tls(struct tls_pairs *pairs)
{
    for (int side = 0; side < TLS_SIDES; side++)
        tls_pair_free(pairs->of[side]);
    *pairs = (struct tls_pairs){{NULL}};
}

static void use_pair(struct app *app, enum tls_side side, struct tls_pair *pair)
{
    if (pair == NULL)
        return;
    char when[32];
    struct tm utc;
    time_t expires = (time_t)tls_pair_expires(pair);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&expires, &utc));
    if (expires > time(NULL)) /* else tls-warning is logged */
        log_event(LOG_LEVEL_INFO, "tls", "the certificate of the %s listener expires at %s",
                  side == TLS_ADMIN ? "admin" : "public", when);
    if (side == TLS_ADMIN)
        app->context.admin_certificate_expires = expires;
    else
        app->context.certificate_expires = expires;
    tls_use(side, pair);
}

void app_use_tls(struct app *app, struct tls_pairs *pairs)
{
    for (int side = 0; side < TLS_SIDES; side++)
        use_pair(app, (enum tls_side)side, pairs->of[side]);
    *pairs = (struct tls_pairs){{NULL}};
}

void app_retune_listeners(struct app *app, const struct config *config)
{
    struct listener_options options = common_options(app, config);
    listener_retune(app->admin_listener, &options);
    options.max_connections_per_address = config->max_connections_per_address;
    listener_retune(app->public_listener, &options);
}

/* Prints the address as a URL that works on this machine; a wildcard becomes loopback. */
static void print_url(const char *label, const char *scheme, const char *address)
{
    const char *host = "";
    if (strncmp(address, "0.0.0.0:", 8) == 0) {
        host = "127.0.0.1:";
        address += 8;
    } else if (strncmp(address, "[::]:", 5) == 0) {
        host = "[::1]:";
        address += 5;
    }
    printf(" %s=%s://%s%s", label, scheme, host, address);
}

void app_notify_ready(const struct app *app)
{
    char status[2 * ADDRESS_TEXT_SIZE + 64];
    snprintf(status, sizeof status, "serving on %s, API on %s",
             listener_address(app->public_listener), listener_address(app->admin_listener));
    notify_ready(status);
}

/* Prints the URLs to stdout, logs the start, and notifies the service manager. */
static void app_announce(const struct app *app)
{
    log_event(LOG_LEVEL_INFO, "start", "sitemapd %s: catalogue %s, public %s, admin %s",
              SITEMAPD_VERSION, app->config->database, listener_address(app->public_listener),
              listener_address(app->admin_listener));
    const struct page_map *routing = publisher_page_map(app->context.publisher);
    if (page_map_registry(routing)->site_count == 0 && app->node == NULL)
        log_event(LOG_LEVEL_WARNING, "no-site",
                  "there is no site yet, and crawlers get 421: create one with `sitemapd site add "
                  "ORIGIN`, `sitemapd serve --site ORIGIN`, a [site] section, or POST /v1/sites");
    publisher_page_map_done(routing);
    log_flush(); /* the log of the start is complete when the line below is read */
    printf("sitemapd: ready");
    print_url("public", app->config->tls_cert != NULL ? "https" : "http",
              listener_address(app->public_listener));
    print_url("admin", app->config->admin_tls_cert != NULL ? "https" : "http",
              listener_address(app->admin_listener));
    printf("\n");
    fflush(stdout);
    app_notify_ready(app);
}

/* Threads for API reads and the parsing of bodies. Together with the publisher they never need more
 * than CATALOGUE_VIEWS views at once. */
#define READER_THREADS    2u
#define READER_MAX_QUEUED 4096u
#define COPIER_THREADS    2u
#define COPIER_MAX_QUEUED 64u
/* Replies without gzip that are inflated at once; crawlers accept gzip. */
#define MAX_IDENTITY 64u
/* How long a stop waits for requests under way. STOP_LIMIT_ABANDON_MS cuts this short, unless its
 * thread could not be started. */
#define STOP_TIMEOUT_MS 60000u

/* An older release rejects the file from now on: to go back, restore a backup. */
static void log_upgrade(struct catalogue *c)
{
    int to, from = catalogue_upgraded_from(c, &to);
    if (from != 0)
        log_event(LOG_LEVEL_INFO, "catalogue-upgraded",
                  "the catalogue was upgraded from schema %d to schema %d; earlier releases that "
                  "know only schema %d reject it",
                  from, to, from);
}

static void log_catalogue_event(void *context, const char *event, const char *detail)
{
    const struct app *app = context;
    const char *database = app->config->database;

    if (app->catalogue != NULL) /* the file may have been replaced by another one */
        log_upgrade(app->catalogue);
    if (strncmp(event, "shared-", 7) == 0)
        log_event(strcmp(event, "shared-trouble") == 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, event,
                  "%s", detail);
    else if (strcmp(event, "catalogue-readable") == 0)
        log_event(LOG_LEVEL_INFO, event, "%s can be read again", database);
    else if (strcmp(event, "catalogue-unreadable") == 0)
        log_event(
            LOG_LEVEL_ERROR, event,
            "cannot read %s: %s; pages in memory are still served, writes are rejected with 503. "
            "Put the file back, or check its permissions and its disk; the server retries",
            database, detail);
    else if (strcmp(event, "clock-behind") == 0)
        log_event(LOG_LEVEL_WARNING, event,
                  "clock skew: the newest change in the catalogue is dated %s, which is in the "
                  "future on this machine. Correct the wrong clock: this machine's, or that of the "
                  "node that made the change",
                  detail);
    else if (strcmp(event, "clock-agrees") == 0)
        log_event(LOG_LEVEL_INFO, event,
                  "the clock skew is over: the clock says %s, and no index page is dated in the "
                  "future now",
                  detail);
    else if (strcmp(event, "clock-set") == 0)
        log_event(LOG_LEVEL_WARNING, event, "the clock was set to %s", detail);
    else if (strcmp(event, "page-store-off") == 0)
        log_event(
            LOG_LEVEL_WARNING, event,
            "the page store failed: %s; pages are served, but rendered again after a restart. "
            "Check the folder and its disk; you can delete the folder, or set page_store = 0",
            detail);
    else if (strcmp(event, "page-store-on") == 0 || strcmp(event, "catalogue-changed") == 0)
        log_event(LOG_LEVEL_INFO, event, "%s", detail);
    else
        log_event(LOG_LEVEL_ERROR, event,
                  "a page could not be rendered from %s: %s; the request got 503", database,
                  detail);
}

static bool lack_memory(void)
{
    log_failure("serve", "out of memory");
    return false;
}

/* A node without a file would wait forever for a log that it cannot get, so the start fails; a node
 * with a file serves it. */
static bool is_followable(const struct app *app)
{
    struct shared_state state;
    char why[512];
    catalogue_shared_state(app->catalogue, &state);
    if (state.phase != SHARED_JOINING ||
        following_may(peering_following(app->peering), why, sizeof why))
        return true;
    log_failure("[shared] follow", "%s", why);
    return false;
}

static bool open_catalogue(struct app *app)
{
    const struct config *config = app->config;
    char why[1024];
    if (config->peer_token_file != NULL && (app->peering = peering_new(config)) == NULL)
        return false;
    struct catalogue_options options = {
        .path = config->database,
        .server = true,
        .write_timeout_ms = config_write_timeout_ms(config),
        .max_queued = config->max_queued_writes,
        .shrink_percent = config->shrink_guard_percent,
        .default_max_pages = LIMIT_SITE_PAGES,
        .history_keep_ms = config->history_keep_ms,
        .history_max_bytes = config->history_max_bytes,
        .event = log_catalogue_event,
        .event_context = app,
        .shared = {.database = config->shared_database,
                   .follows = config->shared_follow != NULL,
                   .followed = config->shared_follow != NULL
                                   ? following_calls(peering_following(app->peering))
                                   : NULL,
                   .schema = config->shared_schema,
                   .node = config->shared_node,
                   .release = SITEMAPD_VERSION,
                   .upgrade_by_hand = strcmp(config->shared_upgrade, "manual") == 0,
                   .peers = peering_calls(app->peering),
                   .key = peering_key(app->peering)},
    };
    enum catalogue_status status = catalogue_open(&options, &app->catalogue, why, sizeof why);
    if (status != CATALOGUE_OK) {
        size_t len = strlen(config->database); /* most sentences name the file themselves */
        bool named = strncmp(why, config->database, len) == 0 && strncmp(why + len, ": ", 2) == 0;
        log_failure(config->database, "%s", named ? why + len + 2 : why);
        return false;
    }
    log_upgrade(app->catalogue);
    copies_remove_left(config->database);
    if (config->shared_follow != NULL && config->site_count + config->token_count > 0)
        log_event(LOG_LEVEL_WARNING, "follower-ignores",
                  "the sites and tokens of this configuration are ignored: a follower has those of "
                  "the node that it follows");
    if (config->shared_follow != NULL)
        return is_followable(app);
    if (config->shared_database != NULL) /* shared_node.c declares it once the node has joined */
        return true;
    return bootstrap_sites(app->catalogue, config, true) && bootstrap_token(app->catalogue, config);
}

/* Call it before the listeners start: forwarding must be complete when the first request comes. */
static bool start_forwarding(struct app *app)
{
    const char *to = app->config->shared_forward;
    const char *followed = app->config->shared_follow;
    struct forward_target target = {.why = followed != NULL ? FORWARD_FOLLOWS : FORWARD_FAR};
    struct shared_state state;

    if (strcmp(to, "no") == 0)
        return true;
    catalogue_shared_state(app->catalogue, &state);
    app->context.forward = forward_new(&app->context, state.node);
    if (app->context.forward != NULL)
        app->forwarder = forwarder_new(app->context.forward, app->config->shared_ca_file,
                                       &app->context.stopping);
    if (app->forwarder == NULL)
        return lack_memory();
    if (strcmp(to, "auto") == 0 && followed == NULL) /* shared_node.c sets the target */
        return true;
    snprintf(target.origin, sizeof target.origin, "%s", strcmp(to, "auto") == 0 ? followed : to);
    forward_aim(app->context.forward, &target);
    return true;
}

static bool start_node(struct app *app)
{
    if (!config_is_shared(app->config))
        return true;
    if (!start_forwarding(app))
        return false;
    app->node = shared_node_start(app->catalogue, app->config, app->context.forward);
    return app->node != NULL || lack_memory();
}

#define BUDGET_BYTES       (1ull << 30)
#define BUDGET_LEAST_BYTES (1ull << 20)

/* The rest of the memory limit is for SQLite, changes, bodies, and pages that are being built. */
static uint64_t choose_budget(const struct config *config)
{
    uint64_t limit = memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    uint64_t budget = config->snapshot_budget_bytes;

    if (budget == 0) {
        budget = limit == 0 || limit / 2 > BUDGET_BYTES ? BUDGET_BYTES : limit / 2;
        budget = budget < BUDGET_LEAST_BYTES ? BUDGET_LEAST_BYTES : budget;
    }
    if (limit != 0)
        log_event(budget > limit / 4 * 3 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "memory-limit",
                  "the memory limit of the container or unit is %" PRIu64
                  " MiB; snapshot_budget is %" PRIu64 " MiB%s",
                  limit >> 20, budget >> 20,
                  budget > limit / 4 * 3 ? ": lower it to three quarters of the limit or less, or "
                                           "the kernel may kill the server"
                                         : "");
    return budget;
}

#define OWN_LEAST_BYTES (32ull << 20)

static bool make_cache(struct app *app)
{
    uint64_t budget = choose_budget(app->config), own = budget / 4;
    app->readers.own_most = own < OWN_LEAST_BYTES    ? OWN_LEAST_BYTES
                            : own > READERS_OWN_MOST ? READERS_OWN_MOST
                                                     : own;
    const struct cache_options options = {
        .budget_bytes = budget,
        .cut_slow_readers = resource_cut,
        .cut_context = &app->readers,
    };
    app->cache = cache_new(&options);
    return app->cache != NULL || lack_memory();
}

/* The publisher's hook. */
static void record_page(void *context, const char *epoch, const struct page_record *page)
{
    if (page == NULL)
        crawlers_catalogue_is(context, epoch);
    else if (page->removed)
        crawlers_page_removed(context, page->index_id, page->number);
    else
        crawlers_page_is(context, page->site_id, page->index_id, page->number, page->revision,
                         page->stamp, page->changed_at);
}

static bool start_crawlers(struct app *app)
{
    if (!app->config->crawlers)
        return true;
    struct crawler_names *names = configured_crawlers(app->config);
    if (names == NULL)
        return false;
    app->context.crawlers = crawlers_new(names, (int64_t)time(NULL));
    if (app->context.crawlers == NULL) {
        crawler_names_free(names);
        return lack_memory();
    }
    return true;
}

static bool start_publisher(struct app *app)
{
    struct config *config = app->config;
    struct publish_policies *policies = configured_policies(config);
    struct str store = STR_INIT;
    if (policies == NULL)
        return false;
    str_append_format(&store, "%s.pages", config->database);
    struct publisher_options options = {
        .catalogue = app->catalogue,
        .cache = app->cache,
        .compression_level = (int)config->compression_level,
        .page_store_folder = store.failed ? NULL : str_text(&store),
        .page_store_bytes = config->page_store_bytes,
        .build_threads = app_core_count(),
        .policies = policies,
        .attach = page_response_attach,
        .attach_context = &app->context.cache_fields,
        .page_is = app->context.crawlers == NULL ? NULL : record_page,
        .page_is_context = app->context.crawlers,
        .event = log_catalogue_event,
        .event_context = app,
    };
    enum catalogue_status status = publisher_start(&options, &app->context.publisher);
    str_done(&store);
    if (status != CATALOGUE_OK)
        log_failure(config->database, "cannot be read: %s", catalogue_status_word(status));
    if (status == CATALOGUE_OK && app->context.crawlers != NULL)
        app->crawler_keeper = crawler_keeper_start(app->catalogue, app->context.crawlers);
    if (status == CATALOGUE_OK)
        app->day_keeper = day_keeper_start(app->catalogue, DAY_KEEPER_MS);
    return status == CATALOGUE_OK;
}

static void start_notify(struct app *app, const struct config *config)
{
    struct notify_options options = {
        .url = config->notify_url,
        .agent = "sitemapd/" SITEMAPD_VERSION,
        .allow_addresses = config->allow_addresses,
        .look = source_set_look,
        .context = app->sources,
    };
    if (config->notify_url != NULL)
        app->notify = notify_start(&options);
    if (app->notify != NULL)
        source_set_report(app->sources, notify_sitemap, app->notify);
}

static void stop_notify(struct app *app)
{
    if (app->notify != NULL)
        source_set_report(app->sources, NULL, NULL);
    notify_stop(app->notify);
    app->notify = NULL;
}

static bool is_reported_alike(const struct config *a, const struct config *b)
{
    return text_equal(a->notify_url, b->notify_url) &&
           texts_equal(a->allow_addresses, b->allow_addresses);
}

void app_retune_notify(struct app *app, const struct config *config)
{
    if (is_reported_alike(app->live, config))
        return;
    stop_notify(app);
    start_notify(app, config);
}

void app_retune_indexnow(struct app *app, struct config *config)
{
    if (indexnow_is_same(app->live, config))
        return;
    indexnow_stop(app->indexnow);
    app->indexnow = indexnow_start(config, app->catalogue, app->context.children,
                                   app->context.trace, &app->context.indexnow);
}

void app_retune_engines(struct app *app, struct config *config)
{
    if (engines_are_same(app->live, config))
        return;
    engines_stop(app->engines);
    app->engines = engines_start(config, app->catalogue, app->context.engines);
}

static void configure_trace(struct app *app, const struct config *config)
{
    trace_configure(app->context.trace, config->trace_endpoint, config->trace_sample_percent,
                    config->shared_node);
}

void app_retune_trace(struct app *app, const struct config *config)
{
    if (!text_equal(app->live->trace_endpoint, config->trace_endpoint) ||
        app->live->trace_sample_percent != config->trace_sample_percent)
        configure_trace(app, config);
}

static bool start_sources(struct app *app)
{
    configure_trace(app, app->config);
    if (!source_set_start(app->config, app->catalogue, app->context.publisher, app->cache,
                          app->context.trace, &app->sources))
        return false;
    app->context.sources = source_set_sources(app->sources);
    app->context.files = source_set_files(app->sources);
    app->context.files_match = sources_match;
    app->context.children = source_set_store(app->sources);
    app->context.serves_children = source_set_serves_children;
    app->context.fetch_child = source_set_fetch_child;
    app->context.remote = source_set_remote(app->sources);
    app->context.remotes = source_set_roster(app->sources);
    app->context.orphans = source_set_orphans(app->sources);
    app->context.wanted_elsewhere = shared_node_others_want;
    app->context.source_set = app->sources;
    app->context.sources_settle = source_set_settle;
    app->context.sources_may_read = source_set_may_read;
    start_notify(app, app->config);
    app->indexnow = indexnow_start(app->config, app->catalogue, app->context.children,
                                   app->context.trace, &app->context.indexnow);
    app->engines = engines_start(app->config, app->catalogue, app->context.engines);
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
    struct tls_pairs pairs;
    bool good = app_load_tls(app->config, &pairs);
    if (good)
        app_use_tls(app, &pairs);
    app_free_tls(&pairs);
    return good;
}

static bool fill_context(struct app *app)
{
    const struct config *config = app->config;
    struct app_context *context = &app->context;
    context->catalogue = app->catalogue;
    context->readers = workers_new(READER_THREADS, READER_MAX_QUEUED);
    context->searchers = workers_new(1, READER_MAX_QUEUED);
    context->copiers = workers_new(COPIER_THREADS, COPIER_MAX_QUEUED);
    context->database = config->database;
    context->auth = auth_new();
    context->trace = trace_new();
    context->cache_fields = (struct cache_fields){
        .cache_control = config->cache_control,
        .cdn_cache_control = config->cdn_cache_control,
        .tag = strcmp(config->cache_tag, "off") != 0 ? config->cache_tag : NULL,
    };
    context->metrics_token = config->metrics_token;
    app_set_limits(app, config);
    context->slow_readers = &app->readers;
    pthread_mutex_init(&context->refusal_lock, NULL);
    context->config_loaded_at = time(NULL);
    if (config->token != NULL) {
        if (!token_sha256(config->token, strlen(config->token), app->token_sha256))
            return false;
        context->environment_token_sha256 = app->token_sha256;
        config_wipe_token(app->config);
    }
    if (app->peering != NULL) {
        context->peer_token_sha256 = peering_token_sha256(app->peering);
        context->peer_files = peer_files_new(context);
        context->peer_log = peer_log_new(context);
        if (context->peer_files == NULL || context->peer_log == NULL)
            return lack_memory();
    }
    return (context->readers != NULL && context->searchers != NULL && context->copiers != NULL &&
            context->auth != NULL && context->trace != NULL) ||
           lack_memory();
}

/* In this order nothing is lost: accept no new requests; commit, publish and answer the accepted
 * ones; then end the threads that answer, those that publish, and the catalogue. A part that passes
 * work on ends before the part that receives it: a reply to a write may still wait for the
 * publisher. */
static void stop(struct app *app)
{
    stop_limit_step("new connections");
    stop_limit_begin(app->catalogue);
    atomic_store(&app->context.stopping, true);
    if (app->public_listener != NULL)
        listener_quiesce(app->public_listener);
    if (app->admin_listener != NULL)
        listener_quiesce(app->admin_listener);
    stop_limit_step("pages that are being built");
    if (app->context.publisher != NULL)
        publisher_quiesce(app->context.publisher);
    peer_log_quiesce(app->context.peer_log);
    stop_limit_step("notifications");
    stop_notify(app);
    indexnow_stop(app->indexnow);
    stop_limit_step("search engines");
    engines_stop(app->engines);
    stop_limit_step("sources");
    source_set_end(app->sources);
    stop_limit_step("requests of the admin listener");
    listener_stop(app->admin_listener, STOP_TIMEOUT_MS);
    stop_limit_step("requests of the public listener");
    listener_stop(app->public_listener, STOP_TIMEOUT_MS);
    tls_done();
    stop_limit_step("other nodes");
    shared_node_stop(app->node);
    forwarder_free(app->forwarder);
    peer_files_free(app->context.peer_files);
    peer_log_free(app->context.peer_log);
    stop_limit_step("counts of crawlers and days to be saved");
    crawler_keeper_stop(app->crawler_keeper);
    day_keeper_stop(app->day_keeper);
    source_set_free(app->sources);
    stop_limit_step("writes to the catalogue");
    catalogue_finish(app->catalogue);
    stop_limit_written();
    stop_limit_step("reads of the catalogue");
    workers_free(app->context.readers);
    workers_free(app->context.searchers);
    workers_free(app->context.copiers);
    stop_limit_step("pages to be saved");
    publisher_stop(app->context.publisher);
    cache_free(app->cache);
    stop_limit_step("the catalogue to be closed");
    catalogue_close(app->catalogue);
    peering_free(app->peering);
    forward_free(app->context.forward);
    auth_free(app->context.auth);
    trace_free(app->context.trace);
    crawlers_free(app->context.crawlers);
    config_unref(app->live);
    access_log_close(app->context.access_log);
    thread_stop(&stop_limit.thread);
}

/* Whether the listeners' threads run, for the watchdog. The publisher does not count: if the disk
 * hangs, pages are still served from memory. */
static bool is_alive(const struct app *app, uint32_t within_ms)
{
    return listener_stale_ms(app->public_listener) < within_ms &&
           listener_stale_ms(app->admin_listener) < within_ms;
}

/* Takes one of the two signals if it is pending; else returns 0. */
static int poll_signal(int one, int other)
{
    const struct timespec now = {0};
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, one);
    sigaddset(&both, other);
    int number = sigtimedwait(&both, NULL, &now);
    return number < 0 ? 0 : number;
}

/* The next signal; 0: none came within half a watchdog period. SIGTERM and SIGINT go before all
 * others: the kernel delivers the lowest number first, which is SIGHUP, so a sender that repeats
 * SIGHUP fast enough could keep the server from ever stopping. */
static int next_signal(const sigset_t *signals, uint32_t watchdog_ms)
{
    struct timespec half = {.tv_sec = watchdog_ms / 2000,
                            .tv_nsec = (long)(watchdog_ms / 2 % 1000) * 1000000};
    int number = sigtimedwait(signals, NULL, watchdog_ms > 0 ? &half : NULL);
    int stop_number = poll_signal(SIGTERM, SIGINT);
    if (stop_number != 0)
        return stop_number;
    return number < 0 ? 0 : number;
}

/* /readyz shows load balancers that this node is about to stop; until then it answers the requests
 * that they still send. */
static void wait_for_balancers(struct app *app)
{
    uint32_t ms = app->live->shutdown_delay_ms;
    struct timespec delay = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    sigset_t again;

    sigemptyset(&again);
    sigaddset(&again, SIGTERM);
    sigaddset(&again, SIGINT);
    atomic_store(&app->context.draining, true);
    if (ms > 0)
        sigtimedwait(&again, NULL, &delay);
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
            /* repeated SIGHUPs could delay it forever, too */
            number = poll_signal(SIGUSR1, SIGUSR1);
        }
        if (number == SIGUSR1) {
            access_log_reopen(app->context.access_log);
        } else if (number != 0) {
            log_event(LOG_LEVEL_INFO, "stop", "%s: finishing requests in flight",
                      strsignal(number));
            notify_stopping("finishing requests in flight");
            wait_for_balancers(app);
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

int app_serve(struct config *config, const struct config_reader *again)
{
    struct app app = {.config = config, .live = config_ref(config), .again = again};
    sigset_t signals;
    /* Block them before any thread starts, so that every thread inherits that and only sigtimedwait
     * gets them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* as process 1 we inherit orphans: the kernel reaps them */
    readers_init(&app.readers, MAX_IDENTITY);
    umask(077);
    app_setup_log(config);
    /* Open what only root may open before dropping its rights; start threads and create files after
     * that. */
    bool up = sockets_open(config, &app.sockets) && start_tls(&app) &&
              privileges_drop(config->user, config->database);
    log_start();
    up = up && request_log_open(config, &app.context.access_log) && open_catalogue(&app) &&
         fill_context(&app) && make_cache(&app) && start_crawlers(&app) && start_publisher(&app) &&
         start_sources(&app) && start_node(&app) && app_start_listeners(&app);
    if (up) {
        privileges_hide_memory();
        app_announce(&app);
        wait_for_end(&app, &signals);
    }
    stop(&app);
    sockets_close(&app.sockets);
    readers_done(&app.readers);
    if (up)
        log_event(LOG_LEVEL_INFO, "stopped", "all requests finished");
    log_stop();
    return up ? 0 : 1;
}
