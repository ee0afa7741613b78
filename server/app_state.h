/* The running server: what its start, its reload and its stop share. Internal to the assembly. */
#ifndef SITEMAPD_APP_STATE_H
#define SITEMAPD_APP_STATE_H

#include "config/config.h"
#include "db/catalogue.h"
#include "server/http/listener.h"
#include "server/http/page_response.h"
#include "server/log/access_log.h"
#include "server/routes/routes.h"
#include "server/sockets.h"
#include "server/source_set.h"
#include "server/tls/tls.h"

struct app {
    struct config *config;     /* of the start: what only a restart changes is as it says */
    const struct config *live; /* as last reloaded; at first the same */
    struct config reloaded;    /* what `live` is after a reload; owned */
    const struct config_reader *again;
    struct catalogue *catalogue;
    struct source_set *sources;
    struct page_response_options pages;
    uint8_t token_sha256[32];
    char *folder; /* the database's */
    struct app_context context;
    struct sockets sockets; /* until the listeners take them */
    struct listener *public_listener, *admin_listener;
};

/* Takes what a reload may change of `config` too: log, limits. */
void app_setup_log(const struct config *config);
void app_set_limits(struct app *app, const struct config *config);
/* Reads the certificate's files; `*out` is NULL without TLS. False is told. */
bool app_load_tls(const struct config *config, struct tls_pair **out);
/* Handshakes use it from now on; takes it over. Takes NULL. */
void app_use_tls(struct app *app, struct tls_pair *pair);
unsigned app_core_count(void);
/* The admin listener first: who registers must not find the door closed once crawlers come. False,
 * told as a failed start, where one cannot listen. */
bool app_start_listeners(struct app *app);
/* Has the listeners take what a reload may change. */
void app_retune_listeners(struct app *app, const struct config *config);
/* The line on stdout that says where, one in the log, and a word to the service manager. */
void app_announce(const struct app *app);
/* What the service manager shows of a server that runs. */
void app_notify_ready(const struct app *app);

#endif
