/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The configuration: every setting, its default, and its sources. A flag overrides the environment,
 * which overrides the file, which overrides the default. */
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
    unsigned *seen; /* private to config/: the line of each key, to find repeated ones */
};

/* [site "name"]: created at start and managed by the file. Origins and hosts, also in the structs
 * below, are in the normal form of server/rules/url.h. */
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
    bool check;           /* registered sitemaps are fetched and checked */
    char *connect;        /* address and port to connect to; NULL: from DNS */
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
    struct source_settings is; /* as in the file; config_source_settings completes a copy */
    const char *const *map;    /* of a remote source: pairs of origins */
    char *credentials_file;    /* NULL: none */
    size_t pattern_count, exclude_count, map_count, split_count;
};

/* [token "name"]: a token of the API whose hash is in a file. */
struct config_token {
    struct config_named named;
    char *sha256_file;
    char *site;   /* an origin; NULL: the origin of `prefix`, or every site without a prefix */
    char *prefix; /* as in the file; NULL: every loc */
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
    const char *const *properties; /* the engine's names of sites; none: the origin of each site */
};

struct config {
    atomic_uint references;
    bool no_pipe;                 /* for a reload and check-config: the file must not be a pipe */
    char *file;                   /* the file that was read; NULL: none */
    struct config_set_by *set_by; /* private to config/: the source of each setting's value */

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
    const char *const *trusted_proxies; /* whose X-Forwarded-Host and X-Forwarded-For are trusted */
    char *tls_cert, *tls_key;           /* PEM files; NULL, both: no TLS */

    char *admin_listen;                   /* [admin] listen = 127.0.0.1:8081 */
    char *admin_tls_cert, *admin_tls_key; /* as those of [server] */
    bool console;                         /* whether /console/ is served */
    bool metrics_token;                   /* whether /metrics needs a token for all sites */
    char *token;                          /* SITEMAPD_TOKEN; NULL: none */
    size_t allowed_host_count;
    const char *const *allowed_hosts; /* names that the admin listener also answers to */
    uint32_t max_suspended;           /* connections whose request may wait at once */

    char *database; /* [catalogue] database = … */
    uint32_t write_timeout_ms;
    uint32_t max_queued_writes;
    uint32_t shrink_guard_percent;

    char *shared_database; /* [shared] database = postgresql://…; NULL: not shared by PostgreSQL */
    char *shared_follow;   /* instead of `database`: origin of the node to follow; or NULL */
    char *shared_schema;   /* PostgreSQL's */
    char *shared_node;     /* NULL: a random name, kept in the catalogue's file */
    char *shared_upgrade;  /* auto or manual */
    char *shared_advertise; /* origin at which other nodes reach the admin listener; or NULL */
    char *shared_forward;   /* "auto", "no", or the origin of a node */
    char *peer_token_file;  /* NULL: nodes send each other no requests */
    char *shared_ca_file; /* PEM: authority for the other nodes' certificates; NULL: the system's */

    uint64_t history_keep_ms; /* [history]; 0: no history is kept */
    uint64_t history_max_bytes;

    uint64_t snapshot_budget_bytes; /* [cache]; 0: half of the memory limit, at most 1G */
    uint64_t page_store_bytes;      /* 0: pages are not kept on disk */
    uint32_t compression_level;     /* 1 to 9 */

    uint64_t max_body_bytes; /* [limits] single-document bodies */
    uint64_t max_bulk_bytes; /* bulk bodies, decoded */
    uint64_t max_bulk_entries;
    uint64_t max_spool_bytes; /* on disk, of all lists that are being received */
    uint32_t max_header_bytes;
    uint32_t max_rejections; /* rejected entries listed in one reply */

    char *trace_endpoint; /* [trace]; normalised; NULL: no spans are sent */
    uint32_t trace_sample_percent;
    char *notify_url; /* [notify]; normalised; NULL: no notification */
    char *contact;    /* [fetch] NULL: none */
    uint32_t fetch_rate, fetch_per_host;
    uint64_t fetch_store_bytes; /* of all copies of remote sitemaps */
    uint32_t fetch_max_interval_ms, fetch_min_interval_ms;
    size_t allow_address_count;
    const char *const *allow_addresses; /* ranges allowed in addition to the public internet */
    size_t source_root_count;
    const char *const
        *source_roots; /* in these folders tokens for all sites may create folder sources */

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
    const char *const *source_folders; /* SITEMAPD_SOURCE, --source: DIR or DIR=URL */
};

/* Reports one mistake: `file:line: message`. For the environment and flags `line` is 0, `file` is
 * NULL and the message contains the variable or flag. */
typedef void config_report(void *context, const char *file, unsigned line, const char *message);

/* A configuration with the defaults. The default database is catalogue.db in $STATE_DIRECTORY, else
 * /var/lib/sitemapd (root and the owner of that folder), else $XDG_STATE_HOME/sitemapd or
 * ~/.local/state/sitemapd. Reference counted: code that keeps a pointer to the configuration, or to
 * a string in it, beyond a call holds a reference. A reload creates another configuration and
 * leaves this one unchanged. NULL when out of memory. */
struct config *config_new(void);
struct config *config_ref(struct config *c);
/* The last unref frees the configuration. Accepts NULL. */
void config_unref(struct config *c);
/* Reads `file` and reports every mistake. True if there was none. With c->no_pipe a pipe is a
 * mistake; the call does not wait for its writer. */
bool config_read_file(struct config *c, const char *file, config_report *report, void *context);
/* Reads the environment variables of the settings (config/sitemapd.conf lists their names). An
 * empty variable counts as absent; elements of a list are separated by spaces and replace the
 * file's. */
bool config_read_environment(struct config *c, config_report *report, void *context);
/* Sets one setting from a flag: "server.listen", "admin.listen", "catalogue.database". The first
 * call for a list ("server.site") replaces the list of the file or the environment, each later call
 * adds an element. The four sources may be read in any order: a weaker one never overrides a
 * stronger one. */
bool config_set(struct config *c, const char *name, const char *value, config_report *report,
                void *context);
/* Whether files of a folder source that exceed the limits are split. */
bool config_source_splits(const struct config_source *source);
/* Fills all settings of a source but its credentials, for server/sources. `out` borrows from the
 * configuration and from `*map`, which the caller frees. False when out of memory. */
bool config_source_settings(const struct config *c, const struct config_source *source,
                            struct source_settings *out, char **map);
/* The folder below which a source that API or command line make for the site with this origin
 * (NULL: none) may read `directory`: a source_root of the site, or (`all_sites`) of [fetch];
 * borrowed. NULL: none. Compares names only. */
const char *config_source_root(const struct config *c, const char *origin, bool all_sites,
                               const char *directory);
/* Sets `root` and `closed` of a folder source that API or command line made; leaves a remote source
 * unchanged. */
void config_open_source(const struct config *c, const char *origin, struct source_settings *made);
/* Reads a site's robots_file; the caller frees the text. NULL: it must not be served; `why` gets a
 * static sentence that follows its name. Thread safe. */
char *config_robots_read(const char *path, const char **why);
/* Checks settings against each other. True if the configuration can be served. */
bool config_validate(const struct config *c, config_report *report, void *context);
/* Whether this server is a node of a shared catalogue. */
static inline bool config_is_shared(const struct config *c)
{
    return c->shared_database != NULL || c->shared_follow != NULL;
}

/* How long a write may wait: as configured, else a default. The default is longer for a shared
 * catalogue, where a large list stops the writes of all nodes. */
uint32_t config_write_timeout_ms(const struct config *c);
/* The rights and the hash of a token of the configuration. The site is not an id yet but an origin:
 * `site`, normalised, "" for every site. */
struct config_grant {
    struct grant grant; /* its strings are in this struct or in the configuration */
    char prefix[GRANT_PREFIX_MAX_CHARS + 1];
    char site[LOC_MAX_CHARS + 1];
    uint8_t sha256[32];
    char why[160];
};
/* Fills `out` from the section and from the file with the hash. NULL, or a sentence that says why
 * it cannot. */
const char *config_token_read(const struct config_token *token, struct config_grant *out);

/* Reads the credentials_file of a source, "basic USER:PASS" or "bearer TOKEN", into `out`. NULL, or
 * `why` with a sentence: the file is invalid or cannot be read, or other users can read it. */
#define CONFIG_CREDENTIALS_SIZE 1024u
const char *config_source_credentials(const struct config_source *source,
                                      char out[CONFIG_CREDENTIALS_SIZE], char why[256]);

/* The same for the secret of the nodes ([shared] peer_token_file). */
#define CONFIG_PEER_TOKEN_SIZE 257u
const char *config_peer_token(const struct config *c, char out[CONFIG_PEER_TOKEN_SIZE],
                              char why[256]);

/* Reads the file with the secret of an engine; the caller wipes and frees it. On failure NULL, and
 * `why` gets a sentence without the file's path: tokens of one site see it, too. */
char *config_engine_secret(const struct config_engine *engine, char why[256]);

/* Reads the configuration of this run again (file, environment and flags) for a reload. The caller
 * owns the result; NULL if it cannot be served, and every mistake was reported. */
struct config_reader {
    struct config *(*read)(void *context, config_report *report, void *report_context);
    void *context;
};

/* Calls `each` for every setting that differs and every section that only one has; `live`: a reload
 * may change it. A `section` with a name is given as in the file. Secrets are never compared. */
typedef void config_difference(void *context, const char *section, const char *key, bool live);
void config_compare(const struct config *a, const struct config *b, config_difference *each,
                    void *context);
/* Overwrites the token here and in the environment, whose memory /proc/PID/environ shows; `token`
 * is then "". Call it once the hash is computed, and before another thread reads the environment.
 */
void config_wipe_token(struct config *c);

/* Appends the documented default configuration: every setting as a comment. Thread safe. */
struct str;
void config_document(struct str *out);
