#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/app_state.h"
#include "server/descriptors.h"
#include "server/http/address.h"
#include "server/log/log.h"
#include "server/notify.h"
#include "server/request_log.h"

#define ADMIN_THREADS 2u

unsigned app_core_count(void)
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

/* A client that opens connections must not take the descriptors that the catalogue needs. */
static struct descriptor_share share_descriptors(const struct config *config)
{
    unsigned threads = ADMIN_THREADS + (config->threads > 0 ? config->threads : app_core_count());
    uint64_t limit = descriptors_raise(descriptors_wanted(config->max_connections, threads));
    struct descriptor_share share = descriptors_share(limit, config->max_connections, threads);
    if (share.public_connections < config->max_connections)
        log_event(LOG_LEVEL_WARNING, "few-descriptors",
                  "the limit of open files (%llu) allows %u connections on the public listener and "
                  "%u on the admin listener; max_connections is %u. Raise the one (ulimit -n, "
                  "LimitNOFILE in a systemd unit) or lower the other",
                  (unsigned long long)limit, share.public_connections, share.admin_connections,
                  config->max_connections);
    return share;
}

bool app_start_listeners(struct app *app)
{
    const struct config *config = app->config;
    struct descriptor_share share = share_descriptors(config);
    struct listener_options admin = common_options(app, config);
    admin.name = "admin";
    admin.max_connections = share.admin_connections;
    admin.address = config->admin_listen;
    admin.socket = &app->sockets.admin;
    admin.threads = ADMIN_THREADS;
    admin.problem_json = true;
    admin.check_host = true;
    admin.request_ids = true;
    admin.completed = request_log_admin;
    admin.allowed_host_count = config->allowed_host_count;
    admin.allowed_hosts = (const char *const *)config->allowed_hosts;
    admin.routes = routes_admin;
    admin.route_count = routes_admin_count;
    admin.authorise = routes_authorise;

    struct listener_options public = common_options(app, config);
    public.name = "public";
    public.max_connections = share.public_connections;
    public.address = config->listen;
    public.socket = &app->sockets.public;
    public.threads = config->threads;
    public.max_connections_per_address = config->max_connections_per_address;
    public.trusted_proxy_count = config->trusted_proxy_count;
    public.trusted_proxies = (const char *const *)config->trusted_proxies;
    public.fallback = &routes_public;
    public.completed = app->context.access_log == NULL ? NULL : request_log_public;
    public.short_slices = true;
    public.tls = config->tls_cert != NULL;

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

static void tell_remark(void *context, const char *file, const char *text)
{
    (void)context;
    log_event(LOG_LEVEL_WARNING, "tls-warning", "%s: %s", file, text);
}

bool app_load_tls(const struct config *config, struct tls_pair **out)
{
    char why[512];
    *out = NULL;
    if (config->tls_cert == NULL || tls_pair_load(config->tls_cert, config->tls_key, time(NULL),
                                                  out, tell_remark, NULL, why, sizeof why))
        return true;
    log_failure("tls", "%s", why);
    return false;
}

void app_use_tls(struct app *app, struct tls_pair *pair)
{
    if (pair == NULL)
        return;
    char when[32];
    struct tm utc;
    time_t expires = (time_t)tls_pair_expires(pair);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&expires, &utc));
    log_event(LOG_LEVEL_INFO, "tls", "the certificate is good until %s", when);
    app->context.certificate_expires = expires;
    tls_use(pair);
}

void app_retune_listeners(struct app *app, const struct config *config)
{
    struct listener_options options = common_options(app, config);
    listener_retune(app->admin_listener, &options);
    options.max_connections_per_address = config->max_connections_per_address;
    listener_retune(app->public_listener, &options);
}

/* The address as a URL that works on this machine: a wildcard is named as loopback. */
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

void app_announce(const struct app *app)
{
    log_event(LOG_LEVEL_INFO, "start", "sitemapd %s: catalogue %s, public %s, admin %s",
              SITEMAPD_VERSION, app->config->database, listener_address(app->public_listener),
              listener_address(app->admin_listener));
    log_flush(); /* the log of a start is whole where the line below is read */
    printf("sitemapd: ready");
    print_url("public", app->config->tls_cert != NULL ? "https" : "http",
              listener_address(app->public_listener));
    print_url("admin", "http", listener_address(app->admin_listener));
    printf("\n");
    fflush(stdout);
    app_notify_ready(app);
}
