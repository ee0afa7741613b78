/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of the running server, shared by start, reload and stop. Internal to the assembly. */
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
    struct config *config; /* of the start, for settings that only a restart changes */
    struct config *live;   /* of the last reload, or of the start; owned reference */
    const struct config_reader *again;
    struct catalogue *catalogue;
    struct source_set *sources;
    struct notify *notify;                 /* NULL: off */
    struct indexnow *indexnow;             /* NULL: off */
    struct engines *engines;               /* NULL: off */
    struct crawler_keeper *crawler_keeper; /* NULL: off */
    struct day_keeper *day_keeper;         /* NULL: off */
    struct peering *peering;               /* NULL: no requests between nodes */
    struct forwarder *forwarder;           /* NULL: this node applies all writes itself */
    struct shared_node *node;              /* NULL: the catalogue is not shared */
    struct readers readers;
    struct cache *cache;
    uint8_t token_sha256[32];
    struct app_context context;
    struct sockets sockets; /* until the listeners take them */
    struct listener *public_listener, *admin_listener;
};

/* Apply settings of `config` that a reload may change: log, limits. */
void app_setup_log(const struct config *config);
void app_set_limits(struct app *app, const struct config *config);
/* Reads the certificate files. False is logged. Free `out` with app_free_tls in any case. */
bool app_load_tls(const struct config *config, struct tls_pairs *out);
void app_free_tls(struct tls_pairs *pairs);
/* Uses `pairs` for handshakes from now on. Takes them over and leaves `pairs` empty. */
void app_use_tls(struct app *app, struct tls_pairs *pairs);
/* Restart a part if its settings in `config` differ: IndexNow, engines, traces, notifications. */
void app_retune_indexnow(struct app *app, struct config *config);
void app_retune_engines(struct app *app, struct config *config);
void app_retune_trace(struct app *app, const struct config *config);
void app_retune_notify(struct app *app, const struct config *config);
/* Applies the settings of the listeners that a reload may change. */
void app_retune_listeners(struct app *app, const struct config *config);
/* Sends the state of the running server to the service manager. */
void app_notify_ready(const struct app *app);
/* Reports to the service manager that a reload begins; app_notify_ready ends it. */
void notify_reloading(void);

/* Reads the configuration again after SIGHUP (reload.c), on the main thread, once the server is up.
 * An invalid configuration is rejected as a whole, with every mistake logged, and the old one
 * stays. Logs changes that need a restart. */
void reload(struct app *app);

/* The time limit of a stop: the process ends even if the disk hangs. */

/* How long accepted work may take to finish. The whole stop takes less than the 10 s after which
 * Docker kills a container. */
#define STOP_LIMIT_ABANDON_MS 7000u
/* After that, uncommitted writes are cancelled and answered. After this time the process exits at
 * once, which loses nothing that was acknowledged. */
#define STOP_LIMIT_END_MS 2000u
