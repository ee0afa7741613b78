/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The running server: what its start, its reload and its stop share. Internal to the assembly. */
#pragma once

#include <stdint.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/api/routes.h"
#include "server/crypto/tls.h"
#include "server/http/listener.h"
#include "server/http/reply.h"
#include "server/log/access_log.h"
#include "server/sockets.h"
#include "server/source_set.h"

struct app {
    struct config *config; /* of the start: what only a restart changes is as it says */
    struct config *live;   /* as last reloaded, at first the same; owned reference */
    const struct config_reader *again;
    struct catalogue *catalogue;
    struct source_set *sources;
    struct notify *notify;                 /* NULL: no notification */
    struct indexnow *indexnow;             /* NULL: likewise */
    struct engines *engines;               /* NULL: none is asked */
    struct crawler_keeper *crawler_keeper; /* NULL: off */
    struct day_keeper *day_keeper;         /* NULL: no sums are kept */
    struct peering *peering;               /* NULL: nodes ask each other nothing */
    struct forwarder *forwarder;           /* NULL: this node applies its writes */
    struct shared_node *node;              /* NULL: the catalogue is this machine's alone */
    struct readers readers;
    struct cache *cache;
    uint8_t token_sha256[32];
    struct app_context context;
    struct sockets sockets; /* until the listeners take them */
    struct listener *public_listener, *admin_listener;
};

/* Apply the settings of `config` that a reload may change: log, limits. */
void app_setup_log(const struct config *config);
void app_set_limits(struct app *app, const struct config *config);
/* Reads the certificates' files. False is logged; `out` is to be freed by app_free_tls in any case.
 */
bool app_load_tls(const struct config *config, struct tls_pairs *out);
void app_free_tls(struct tls_pairs *pairs);
/* Uses `pairs` for handshakes from now on; takes them over and leaves `pairs` empty. */
void app_use_tls(struct app *app, struct tls_pairs *pairs);
/* Use what `config` names from now on, if it differs: notification targets, engines, traces. */
void app_retune_indexnow(struct app *app, struct config *config);
void app_retune_engines(struct app *app, struct config *config);
void app_retune_trace(struct app *app, const struct config *config);
void app_retune_notify(struct app *app, const struct config *config);
/* Applies to the listeners what a reload may change. */
void app_retune_listeners(struct app *app, const struct config *config);
/* What the service manager shows of a server that runs. */
void app_notify_ready(const struct app *app);
/* A reload begins; notify_ready ends it. */
void notify_reloading(void);

/* SIGHUP: the configuration is read again (reload.c), on the main thread, once the server is up. An
 * invalid one is rejected as a whole, with every mistake logged, and the old one stays. Changes
 * that need a restart are logged. */
void reload(struct app *app);

/* The bound of a stop: whatever the disk or a write does, the process ends. */

/* How long accepted work may take to finish. With the rest of the stop it is less than the 10 s
 * after which Docker kills. */
#define STOP_LIMIT_ABANDON_MS 7000u
/* Then uncommitted writes are given up and answered. After this time the process exits at once,
 * which loses nothing that was acknowledged. */
#define STOP_LIMIT_END_MS 2000u
