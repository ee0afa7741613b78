/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The configuration: every setting, its default, and where it may come from.
 * flag over environment over file over default. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/grant.h"
#include "server/rules/limits.h"
#include "server/rules/source_settings.h"

struct config_alias {
    char *from, *to; /* "/sitemap.xml" -> "/sitemap_index.xml": a 301 */
};

/* How every named section begins. */
struct config_named {
    char *name;
    unsigned line;  /* of its [site "name"] */
    unsigned *seen; /* config's own: the line of each key, to find repeated ones */
};

/* [site "name"]: created at start and managed by the file. Origins and hosts, here and below, are
 * in the normal form of server/rules/url.h. */
struct config_site {
    struct config_named named;
    char *origin;
    size_t index_count;
    const char *const *indexes; /* paths; empty: "/sitemap_index.xml" */
    size_t cross_host_count;
    const char *const *cross_hosts;
    size_t host_alias_count;
    const char *const *host_aliases;
    size_t alias_count;
    struct config_alias *aliases;
    char *robots_file;    /* NULL: none */
    bool robots;          /* false: /robots.txt is left to others (404) */
    uint32_t max_indexes; /* index files over all its indexes */
    char *page_pattern;   /* NULL: the default */
    bool check;           /* sitemaps that the API registers are fetched and checked */
    char *connect;        /* address and port to connect to; NULL: what DNS says */
    bool public_check;    /* compare what polls read (`connect`, `map`) with what crawlers get */
    char *indexnow_key;   /* NULL: no notification */
    char *indexnow_endpoint;
    bool indexnow_bulk; /* notify even if most of a mirrored sitemap changes at once */
    size_t source_root_count;
    const char *const
        *source_roots; /* in these folders the site's own tokens may create folder sources */
};

/* [source "name"]: a folder of sitemap files, or a remote sitemap index (`upstream`), that the
 * server keeps its entries in step with. */
struct config_source {
    struct config_named named;
    struct source_settings is; /* from the file; config_source_settings completes a copy */
    const char *const *map;    /* of an upstream: origins in pairs */
    char *credentials_file;    /* NULL: none */
    size_t pattern_count, exclude_count, map_count, split_count;
};

/* [token "name"]: a token of the API whose hash lies in a file. */
struct config_token {
    struct config_named named;
    char *sha256_file;
    char *site;   /* an origin; NULL: that of `prefix`, or every site if there is none */
    char *prefix; /* as written; NULL: every loc */
    char *role;
    bool own;
    char *expires; /* a date or time; NULL: never */
};

/* [crawler "name"]: a crawler, by product tokens and addresses. */
struct config_crawler {
    struct config_named named;
    size_t match_count;
    const char *const *match;
    size_t range_file_count;
    const char *const *range_files;
};

/* [engine "google"], [engine "bing"]: search engines whose reports on all sites are fetched. */
struct config_engine {
    struct config_named named;
    char *credentials_file, *api_key_file; /* google's; bing's */
    char *endpoint;                        /* NULL: the engine's own */
    size_t property_count;
    const char *const *properties; /* the engine's names of sites; default: a site's origin */
};

struct config {
    atomic_uint references;
    bool no_pipe;                 /* its file must not be a pipe: for a reload and check-config */
    char *file;                   /* that was read; NULL: none */
    struct config_set_by *set_by; /* config's own: where each setting's value came from */

    size_t origin_count; /* SITEMAPD_SITE, --site: sites to create if they are missing */
    const char *const *origins;

    char *user;       /* user to switch to when started as root; NULL: stay root */
    char *listen;     /* [server] listen = 0.0.0.0:8080 */
    uint32_t threads; /* 0: one for each core */
    uint32_t max_connections;
    uint32_t max_connections_per_address; /* 0: no limit */
    uint32_t header_timeout_ms, body_timeout_ms, reply_timeout_ms, idle_timeout_ms;
    uint32_t shutdown_delay_ms;
    bool strict_host;
    bool page_style;
    bool crawlers; /* whether fetches by crawlers are counted */
    char *cache_control;
    char *cdn_cache_control; /* NULL: none */
    char *cache_tag;         /* a header's name, or "off" */
    size_t trusted_proxy_count;
    const char *const *trusted_proxies; /* addresses and ranges whose X-Forwarded-Host counts */
    char *tls_cert, *tls_key;           /* PEM files; NULL, both: no TLS */

    char *admin_listen;                   /* [admin] listen = 127.0.0.1:8081 */
    char *admin_tls_cert, *admin_tls_key; /* as those of [server] */
    bool console;                         /* whether /console/ is there */
    bool metrics_token;                   /* whether /metrics needs a token for all sites */
    char *token;                          /* SITEMAPD_TOKEN; NULL: none */
    size_t allowed_host_count;
    const char *const *allowed_hosts; /* names that the admin listener also answers to */
    uint32_t max_suspended;           /* connections whose request may wait at once */

    char *database; /* [catalogue] database = … */
    uint32_t write_timeout_ms;
    uint32_t max_queued_writes;
    uint32_t shrink_guard_percent;

    char *shared_database;  /* [shared] database = postgresql://…; NULL: not in PostgreSQL */
    char *shared_follow;    /* origin of the node to follow instead of it; or NULL */
    char *shared_schema;    /* of PostgreSQL */
    char *shared_node;      /* NULL: a random name, kept in the catalogue's file */
    char *shared_upgrade;   /* auto or manual */
    char *shared_advertise; /* origin at which other nodes reach the admin listener; or NULL */
    char *shared_forward;   /* "auto", "no", or the origin of a node */
    char *peer_token_file;  /* NULL: nodes send each other no requests */
    char *shared_ca_file; /* PEM: signs the certificates of other nodes; NULL: the system's trust */

    uint64_t history_keep_ms; /* [history]; 0: none is kept */
    uint64_t history_max_bytes;

    uint64_t snapshot_budget_bytes; /* [cache]; 0: half of the memory limit, at most 1G */
    uint64_t page_store_bytes;      /* 0: pages are not kept on disk */
    uint32_t compression_level;     /* 1 to 9 */

    uint64_t max_body_bytes; /* [limits] single-document bodies */
    uint64_t max_bulk_bytes; /* bulk bodies, decoded */
    uint64_t max_bulk_entries;
    uint64_t max_spool_bytes; /* of all lists that are being received, on disk */
    uint32_t max_header_bytes;
    uint32_t max_rejections; /* listed in one reply */

    char *trace_endpoint; /* [trace]; normalised; NULL: no spans are sent */
    uint32_t trace_sample_percent;
    char *notify_url; /* [notify]; normalised; NULL: no notification */
    char *contact;    /* [fetch] NULL: none */
    uint32_t fetch_rate, fetch_per_host;
    uint64_t fetch_store_bytes; /* of all copies of sitemaps that are served */
    uint32_t fetch_max_interval_ms, fetch_min_interval_ms;
    size_t allow_address_count;
    const char *const *allow_addresses; /* ranges allowed in addition to the public internet */
    size_t source_root_count;
    const char *const
        *source_roots; /* beneath these tokens for all sites may make folder sources */

    char *log_level;     /* [log] error, warning, info, debug */
    char *log_format;    /* text or json */
    char *access_log;    /* NULL: off; "-" stderr; or a path */
    char *access_format; /* combined or json */

    size_t site_count;
    struct config_site *sites;

    size_t source_count;
    struct config_source *sources;
    size_t token_count;
    struct config_token *tokens;
    size_t crawler_count;
    struct config_crawler *crawler_rules;
    size_t engine_count;
    struct config_engine *engines;
    size_t source_folder_count;
    const char *const *source_folders; /* SITEMAPD_SOURCE, --source: DIR or DIR=URL, for this run */
};

/* One mistake found: `file:line: message`; line 0 and file NULL for environment and flags, whose
 * name is then in the message. */
typedef void config_report(void *context, const char *file, unsigned line, const char *message);

/* A configuration with the defaults. The default database is catalogue.db in $STATE_DIRECTORY, else
 * /var/lib/sitemapd (root and the owner of that folder), else $XDG_STATE_HOME/sitemapd or
 * ~/.local/state/sitemapd. Shared by reference: code that keeps a pointer to it, or to any string
 * in it, beyond a call holds a reference. A reload creates another configuration and does not
 * change this one. NULL when out of memory. */
struct config *config_new(void);
struct config *config_ref(struct config *c);
/* The last unref frees all. Accepts NULL. */
void config_unref(struct config *c);
/* Reads `file`; reports every mistake that it finds and continues. True if there was none. With
 * c->no_pipe a pipe is a mistake and is not waited for. */
bool config_read_file(struct config *c, const char *file, config_report *report, void *context);
/* Reads SITEMAPD_… of the environment (all settings: SITEMAPD_LISTEN, SITEMAPD_ADMIN_LISTEN,
 * SITEMAPD_DATABASE, SITEMAPD_SITE, SITEMAPD_TOKEN, SITEMAPD_<SECTION>_<KEY> for the rest). An
 * empty variable counts as absent; lists are separated by spaces and replace the file's. */
bool config_read_environment(struct config *c, config_report *report, void *context);
/* Sets one setting from a flag: "server.listen", "admin.listen", "catalogue.database". A list
 * ("server.site") grows with each call; its first call replaces what file or environment gave.
 * Order among the four sources does not matter: a weaker one never overrides a stronger. */
bool config_set(struct config *c, const char *name, const char *value, config_report *report,
                void *context);
/* Of a folder: whether files past the limits are split. */
bool config_source_splits(const struct config_source *source);
/* Fills the settings of a source as server/sources takes them, but for its credentials: `out`
 * borrows from the configuration and from `*map`, which is the caller's. False when out of memory.
 */
bool config_source_settings(const struct config *c, const struct config_source *source,
                            struct source_settings *out, char **map);
/* Checks the whole (what no single line can show). True where it is fit to serve. */
bool config_validate(const struct config *c, config_report *report, void *context);
/* Whether this server is a node of a shared catalogue. */
static inline bool config_is_shared(const struct config *c)
{
    return c->shared_database != NULL || c->shared_follow != NULL;
}

/* How long a write may wait: what is set, else what the kind of catalogue needs. In a shared one a
 * large list stops the writes of all nodes for its time. */
uint32_t config_write_timeout_ms(const struct config *c);
/* What a token of the configuration is: fills `declared` (its site is not an id yet but the origin
 * in `site`, normalised, "" for every one) and its hash, which the file holds. NULL, or a sentence
 * of what is wrong. Reads the file. */
struct config_grant {
    struct grant grant; /* its texts are here or the configuration's */
    char prefix[GRANT_PREFIX_MAX_CHARS + 1];
    char site[LOC_MAX_CHARS + 1];
    uint8_t sha256[32];
    char why[160];
};
const char *config_token_read(const struct config_token *token, struct config_grant *out);

/* What the credentials_file of a source holds, "basic USER:PASS" or "bearer TOKEN", into `out`.
 * NULL, or a sentence of what is wrong, which is `why`: with the file, or with who may read it.
 * Reads the file. */
#define CONFIG_CREDENTIALS_SIZE 1024u
const char *config_source_credentials(const struct config_source *source,
                                      char out[CONFIG_CREDENTIALS_SIZE], char why[256]);

/* The secret of the nodes ([shared] peer_token_file), into `out`. As above. */
#define CONFIG_PEER_TOKEN_SIZE 257u
const char *config_peer_token(const struct config *c, char out[CONFIG_PEER_TOKEN_SIZE],
                              char why[256]);

/* What the secret's file of an engine holds; the caller frees it, wiped. NULL, and `why` is a
 * sentence of what is wrong: with the file, or with who may read it. Reads the file. */
char *config_engine_secret(const struct config_engine *engine, char why[256]);

/* How this run's configuration is read again, file, environment and flags: what serve is given
 * for a reload. The caller's, where it is fit to serve; else NULL, and every mistake was reported.
 */
struct config_reader {
    struct config *(*read)(void *context, config_report *report, void *report_context);
    void *context;
};

/* Calls `each` for every setting outside named sections that is not the same in both; `live`: a
 * reload may change it in a running server. Secrets are never compared. */
typedef void config_difference(void *context, const char *section, const char *key, bool live);
void config_compare(const struct config *a, const struct config *b, config_difference *each,
                    void *context);
/* Overwrites the token here and in the environment (/proc/PID/environ shows that memory), once its
 * hash is taken. `token` is then an empty text. Before any thread reads the environment. */
void config_wipe_token(struct config *c);

/* Appends the documented default configuration: every setting as a comment. Thread safe. */
struct str;
void config_document(struct str *out);
