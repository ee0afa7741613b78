/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The handlers: public pages and robots.txt; the admin API under /v1; health, metrics, OpenAPI.
 * They do not see the socket: each takes a struct request and fills its reply. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/engines/report/engine_report.h"
#include "server/http/request.h"
#include "server/pages/publisher.h"
#include "server/pages/workers.h"

struct access_log;
struct child_store;
struct crawlers;
struct forward;
struct served_files;
struct listener;
struct peer_files;
struct peer_log;
struct readers;
struct remote;
struct roster_place;
struct sources;
struct trace;

/* Sources that do not run in this process (inside.h): those of its configuration; the catalogue has
 * the others, and the last state of all of them. */
struct sources_at_rest {
    const struct source_settings *configured;
    size_t count;
};

/* Notifications of search engines about page URLs (server/notify/indexnow.h), for metrics. */
struct indexnow_counts {
    _Atomic uint64_t urls, lost, taken, refused; /* page URLs; requests */
    atomic_int failing; /* sites of which no engine accepts notifications now */
};

/* Sums of the reports of search engines (server/engines/engines.h), for metrics and /readyz; by
 * engine_place. */
struct engine_counts {
    atomic_bool configured;
    atomic_bool refused; /* it does not accept the credentials */
    atomic_bool up;      /* it answers for all sites */
    _Atomic uint64_t errors, warnings, sites[ENGINE_STATES];
    _Atomic int64_t
        read_at; /* of the sitemap that was not read for the longest time; 0: none was read */
};

#define REFUSAL_SIZE 512

/* The context of all handlers. Lives as long as the listeners. */
struct app_context {
    struct catalogue *catalogue;
    struct publisher *publisher;
    struct workers *readers;   /* API reads and parsing run here */
    struct workers *searchers; /* searches run here, so that other reads do not wait */
    struct workers *copiers;   /* long answers are made here (copy.h); NULL in tests */
    /* Numbers of long answers (copy.h): waiting or being made; these and the ones being sent; of
     * the latter those of tokens for one site. */
    struct site_uses copies_made, copies;
    atomic_uint copies_open, copies_sites_open, backups_open;
    atomic_bool draining; /* /readyz makes load balancers choose another node */
    atomic_bool stopping; /* long operations end early */
    const char *database; /* path of the catalogue's file; long answers are written beside it */
    struct spool_room spool_room; /* of all lists together; a reload changes its limit */
    struct cache_fields cache_fields;
    const uint8_t *environment_token_sha256; /* 32 bytes of SITEMAPD_TOKEN, NULL: none */
    const uint8_t *peer_token_sha256;        /* 32 bytes; NULL: nodes send each other no requests */
    struct peer_files *peer_files;           /* likewise; peer_files.h */
    struct forward *forward;                 /* NULL: this node applies its writes; forward.h */
    struct peer_log *peer_log; /* NULL: nodes send each other no requests; peer_log.h */
    bool metrics_token; /* names of indexes and sources of all sites need a token for all sites */
    _Atomic uint64_t max_body_bytes, max_bulk_bytes, max_bulk_entries; /* a reload changes them */
    _Atomic uint32_t max_rejections;
    uint32_t max_polls;     /* long polls that may wait at once; 0: any number */
    struct site_uses polls; /* number of those that wait now */
    /* For metrics; NULL in tests, and until started: a listener answers before the other one is up.
     */
    _Atomic(struct listener *) public_listener, admin_listener;
    struct access_log *access_log; /* NULL: off */
    struct crawlers *crawlers;     /* NULL: off */
    struct readers *slow_readers;  /* NULL in tests */
    /* The configuration: reloads by result, whether the last one was refused and why, and when what
     * is in force was read (Unix seconds). */
    _Atomic uint64_t reloads_applied, reloads_refused;
    atomic_bool reload_refused;
    pthread_mutex_t refusal_lock;
    char refusal[REFUSAL_SIZE]; /* guarded by it; a sentence */
    _Atomic int64_t config_loaded_at;
    struct indexnow_counts indexnow;
    struct trace *trace; /* NULL in tests */
    struct engine_counts engines[ENGINE_COUNT];
    /* Of each listener, Unix seconds; 0: no TLS. */
    _Atomic int64_t certificate_expires, admin_certificate_expires;
    struct auth *auth;                     /* failure limits, see auth.h */
    struct sources *sources;               /* directory sources; NULL: none */
    struct remote *remote;                 /* remote ones; NULL: none */
    const struct sources_at_rest *at_rest; /* replaces both; NULL: sources run */
    struct roster_place *remotes;          /* the remote sources that exist; NULL with `remote` */
    /* Names of removed sources that still own entries; and whether another node has the source.
     * NULL in tests. */
    struct roster_place *orphans;
    bool (*wanted_elsewhere)(struct catalogue *c, const char *source);
    /* Keeps the running sources in step with the registry, and decides what they may read:
     * source_set.h. NULL in tests. */
    void *source_set;
    void (*sources_settle)(void *set, void (*done)(void *context), void *context);
    bool (*sources_may_read)(void *set, const char *origin, bool all_sites, const char *directory);
    _Atomic(struct served_files *) files; /* of sources with `serve`; NULL in tests */
    struct child_store *children;         /* NULL in tests */
    /* For remote sources: whether any serves its listed sitemaps; and a request to fetch a sitemap
     * whose copy is missing. The first argument is source_set. NULL in tests. */
    bool (*serves_children)(const void *set);
    void (*fetch_child)(void *set, int64_t site_id, const char *loc, void (*done)(void *context),
                        void *context);
    /* sources_match; used if there are `files`. */
    bool (*files_match)(struct sources *s, const char *origin, const char *url_path, size_t *number,
                        char *path);
};

/* The public listener's catch-all route, and the admin listener's table. Static. */
extern const struct route routes_public;
extern const struct route routes_admin[];
extern const size_t routes_admin_count;
extern const size_t routes_api_count; /* number of routes of the API, which are the first */
extern const size_t
    routes_bare_count; /* number of these and the routes for nodes; the console's follow */

/* The listener's authorise hook (context: struct app_context). */
bool routes_authorise(void *context, struct request *request);

/* Removes copies of the catalogue that a killed process left beside it. Called with the server's
 * lock: no other process makes any. */
void copies_remove_left(const char *database);
