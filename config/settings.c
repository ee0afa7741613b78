/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of settings: for each its section, key, kind, default, bounds and help text. The
 * parser, check-config, the manual page and the default file follow from it. */
#include "config/settings.h"

#include <stdlib.h>
#include <string.h>

#define KIB    1024ull
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)
#define SECOND 1000ull
#define DAY    (86400 * SECOND)

#define WIDTH_OF(type, field) sizeof(((struct type *)NULL)->field)
#define IN(field)             .offset = offsetof(struct config, field), .width = WIDTH_OF(config, field)
#define LIST(field, count)    IN(field), .count_offset = offsetof(struct config, count)
#define IN_SITE(field)                                                                             \
    .offset = offsetof(struct config_site, field), .width = WIDTH_OF(config_site, field)
#define SITE_LIST(field, count) IN_SITE(field), .count_offset = offsetof(struct config_site, count)
#define IN_SOURCE(field)                                                                           \
    .offset = offsetof(struct config_source, field), .width = WIDTH_OF(config_source, field)
#define SOURCE_LIST(field, count)                                                                  \
    IN_SOURCE(field), .count_offset = offsetof(struct config_source, count)
#define FILE_AND(name) .in_file = true, .environment = name
#define LIVE(name)     FILE_AND(name), .live = true

const struct setting config_settings[] = {
    {"server", "listen", SETTING_ADDRESS, IN(listen), .fallback = "0.0.0.0:8080",
     FILE_AND("SITEMAPD_LISTEN"),
     .doc = "Address and port of the listener for crawlers; port 0 picks a free one."},
    {"server", "user", SETTING_WORD, IN(user), FILE_AND("SITEMAPD_SERVER_USER"),
     .example = "sitemapd",
     .doc = "User to switch to when started as root, once the sockets are bound."},
    {"server", "site", SETTING_ORIGIN, LIST(origins, origin_count), .environment = "SITEMAPD_SITE",
     .doc = "Sites to create at start if they are missing."},
    {"server", "source", SETTING_PATH, LIST(source_folders, source_folder_count),
     .environment = "SITEMAPD_SOURCE", .doc = "Folders of sitemap files, DIR or DIR=URL."},
    {"server", "threads", SETTING_COUNT, IN(threads), .max = 256, .fallback = "0",
     FILE_AND("SITEMAPD_SERVER_THREADS"),
     .doc = "Number of threads that answer requests; 0: one for each core."},
    {"server", "max_connections", SETTING_COUNT, IN(max_connections), .min = 1, .max = 1000000,
     .fallback = "10000", FILE_AND("SITEMAPD_SERVER_MAX_CONNECTIONS"),
     .doc = "Maximum number of open connections, within the limit of open files. When all are in "
            "use, idle and slow ones are closed."},
    {"server", "max_connections_per_address", SETTING_COUNT, IN(max_connections_per_address),
     .max = 1000000, .fallback = "5000", LIVE("SITEMAPD_SERVER_MAX_CONNECTIONS_PER_ADDRESS"),
     .doc = "Maximum number of connections from one address, except trusted proxies; 0: no limit."},
    {"server", "header_timeout", SETTING_DURATION, IN(header_timeout_ms), .min = 100, .max = DAY,
     .fallback = "10s", LIVE("SITEMAPD_SERVER_HEADER_TIMEOUT"),
     .doc = "Longest time for the header of a request to arrive."},
    {"server", "body_timeout", SETTING_DURATION, IN(body_timeout_ms), .min = 100, .max = DAY,
     .fallback = "30s", LIVE("SITEMAPD_SERVER_BODY_TIMEOUT"),
     .doc = "Longest time that a request body may stall or arrive too slowly."},
    {"server", "reply_timeout", SETTING_DURATION, IN(reply_timeout_ms), .min = 100, .max = DAY,
     .fallback = "60s", LIVE("SITEMAPD_SERVER_REPLY_TIMEOUT"),
     .doc = "Longest time for a client to read a reply."},
    {"server", "idle_timeout", SETTING_DURATION, IN(idle_timeout_ms), .min = 100, .max = DAY,
     .fallback = "75s", LIVE("SITEMAPD_SERVER_IDLE_TIMEOUT"),
     .doc = "Longest time that a kept connection may wait for its next request."},
    {"server", "shutdown_delay", SETTING_DURATION, IN(shutdown_delay_ms), .max = 60 * SECOND,
     .fallback = "0", LIVE("SITEMAPD_SERVER_SHUTDOWN_DELAY"),
     .doc =
         "Time between SIGTERM and the closing of the ports. Meanwhile requests are answered, and "
         "/readyz answers 503 (stopping), so that load balancers choose another node. A second "
         "SIGTERM ends the wait. Service managers must wait 10 s longer before they send SIGKILL."},
    {"server", "strict_host", SETTING_BOOL, IN(strict_host), .fallback = "no",
     LIVE("SITEMAPD_SERVER_STRICT_HOST"),
     .doc = "Answer only requests for hosts of sites (421 to others), even if there is only one "
            "site."},
    {"server", "page_style", SETTING_BOOL, IN(page_style), .fallback = "yes",
     LIVE("SITEMAPD_SERVER_PAGE_STYLE"),
     .doc = "Make browsers show indexes and urlsets as tables, by a processing instruction that "
            "crawlers ignore."},
    {"server", "cache_control", SETTING_HEADER, IN(cache_control),
     .fallback = "public, max-age=300, s-maxage=3600, stale-while-revalidate=86400, "
                 "stale-if-error=604800",
     FILE_AND("SITEMAPD_SERVER_CACHE_CONTROL"),
     .doc = "Cache-Control of index pages and robots.txt."},
    {"server", "cdn_cache_control", SETTING_HEADER, IN(cdn_cache_control),
     FILE_AND("SITEMAPD_SERVER_CDN_CACHE_CONTROL"), .example = "max-age=86400",
     .doc = "CDN-Cache-Control of index pages and robots.txt, which CDNs use instead of "
            "Cache-Control (RFC 9213). Default: none is sent."},
    {"server", "cache_tag", SETTING_CHOICE, IN(cache_tag),
     .choices = "off Cache-Tag Surrogate-Key Edge-Cache-Tag", .fallback = "off",
     FILE_AND("SITEMAPD_SERVER_CACHE_TAG"),
     .doc = "Header that names the site and the index of each reply, for purges by tag: Cache-Tag "
            "(Cloudflare, Google), Surrogate-Key (Fastly) or Edge-Cache-Tag (Akamai)."},
    {"server", "trusted_proxies", SETTING_IP_RANGE, LIST(trusted_proxies, trusted_proxy_count),
     FILE_AND("SITEMAPD_SERVER_TRUSTED_PROXIES"), .example = "10.0.0.2 fd00::/8",
     .doc = "Addresses of proxies whose X-Forwarded-Host and X-Forwarded-For are trusted, or "
            "ranges such as 10.0.0.0/8, separated by spaces. Repeatable."},
    {"server", "crawlers", SETTING_BOOL, IN(crawlers), .fallback = "yes",
     FILE_AND("SITEMAPD_SERVER_CRAWLERS"),
     .doc = "Record which crawler has which version of each page (/v1/crawlers)."},
    {"server", "tls_cert", SETTING_PATH, IN(tls_cert), LIVE("SITEMAPD_SERVER_TLS_CERT"),
     .example = "/etc/sitemapd/fullchain.pem",
     .doc = "Certificate of this listener, PEM with its chain; with tls_key the listener serves "
            "HTTPS."},
    {"server", "tls_key", SETTING_PATH, IN(tls_key), LIVE("SITEMAPD_SERVER_TLS_KEY"),
     .example = "/etc/sitemapd/privkey.pem",
     .doc = "Private key of the certificate, PEM; no other user should be able to read it."},

    {"admin", "listen", SETTING_ADDRESS, IN(admin_listen), .fallback = "127.0.0.1:8081",
     FILE_AND("SITEMAPD_ADMIN_LISTEN"),
     .doc = "Address and port of the API, /metrics, /healthz and /readyz."},
    {"admin", "allowed_hosts", SETTING_HOST, LIST(allowed_hosts, allowed_host_count),
     FILE_AND("SITEMAPD_ADMIN_ALLOWED_HOSTS"), .example = "sitemapd.internal",
     .doc = "Host names that the admin listener answers to besides IP addresses and localhost, "
            "separated by spaces. Repeatable."},
    {"admin", "tls_cert", SETTING_PATH, IN(admin_tls_cert), LIVE("SITEMAPD_ADMIN_TLS_CERT"),
     .example = "/etc/sitemapd/admin.pem",
     .doc = "Certificate of this listener, PEM with its chain; with tls_key the listener serves "
            "HTTPS."},
    {"admin", "tls_key", SETTING_PATH, IN(admin_tls_key), LIVE("SITEMAPD_ADMIN_TLS_KEY"),
     .example = "/etc/sitemapd/admin.key",
     .doc = "Private key of the certificate, PEM; no other user should be able to read it."},
    {"admin", "console", SETTING_BOOL, IN(console), .fallback = "yes",
     FILE_AND("SITEMAPD_ADMIN_CONSOLE"),
     .doc = "Serve the console, the pages at /console/ for people with a browser."},
    {"admin", "metrics_token", SETTING_BOOL, IN(metrics_token), .fallback = "no",
     FILE_AND("SITEMAPD_ADMIN_METRICS_TOKEN"),
     .doc = "Require a token for all sites for /metrics and for the details of /readyz, which name "
            "the indexes and sources of every site."},
    {"admin", "token", SETTING_SECRET, IN(token), .environment = "SITEMAPD_TOKEN",
     .doc = "API token in addition to those in the catalogue, at least 32 characters."},
    {"admin", "max_suspended", SETTING_COUNT, IN(max_suspended), .min = 1, .max = 1000000,
     .fallback = "4096", FILE_AND("SITEMAPD_ADMIN_MAX_SUSPENDED"),
     .doc = "Maximum number of requests that may wait on each listener: for a write, for a page "
            "that is not in memory, or for changes (at most half of them)."},

    {"catalogue", "database", SETTING_PATH, IN(database), FILE_AND("SITEMAPD_DATABASE"),
     .example = "/var/lib/sitemapd/catalogue.db",
     .doc = "File of the catalogue. Default: catalogue.db in $STATE_DIRECTORY, /var/lib/sitemapd "
            "(root and its owner) or ~/.local/state/sitemapd."},
    {"catalogue", "write_timeout", SETTING_DURATION, IN(write_timeout_ms), .min = 1, .max = DAY,
     .fallback = "10s", FILE_AND("SITEMAPD_CATALOGUE_WRITE_TIMEOUT"),
     .doc = "Longest time that a write waits for its turn and for other processes before it is "
            "rejected. Default where the catalogue is shared: 30s."},
    {"catalogue", "max_queued_writes", SETTING_COUNT, IN(max_queued_writes), .min = 1,
     .max = 1000000, .fallback = "4096", FILE_AND("SITEMAPD_CATALOGUE_MAX_QUEUED_WRITES"),
     .doc = "Maximum number of writes that may wait for their turn."},
    {"catalogue", "shrink_guard", SETTING_PERCENT, IN(shrink_guard_percent), .max = 100,
     .fallback = "30%", FILE_AND("SITEMAPD_CATALOGUE_SHRINK_GUARD"),
     .doc =
         "Share by which one change may shrink an index, or the part that a replace covers; more "
         "is rejected or held back. 0 turns this off."},

    {"shared", "database", SETTING_POSTGRES, IN(shared_database), FILE_AND("SITEMAPD_SHARED"),
     .example = "postgresql://sitemapd@db1.internal,db2.internal/sitemapd",
     .doc = "PostgreSQL through which several machines share one catalogue; separate several hosts "
            "by commas. Put a password into a file that passfile= names."},
    {"shared", "follow", SETTING_ORIGIN, IN(shared_follow), FILE_AND("SITEMAPD_SHARED_FOLLOW"),
     .example = "https://web1.internal:8081",
     .doc = "Admin listener of the node or follower that this server follows, instead of database: "
            "it serves the same pages and forwards writes there. Both need peer_token_file."},
    {"shared", "schema", SETTING_IDENTIFIER, IN(shared_schema), FILE_AND("SITEMAPD_SHARED_SCHEMA"),
     .fallback = "sitemapd",
     .doc = "Schema of the PostgreSQL database. Catalogues in different schemas share a database "
            "without seeing each other (docs/scale.md)."},
    {"shared", "node", SETTING_WORD, IN(shared_node), FILE_AND("SITEMAPD_SHARED_NODE"),
     .example = "web1",
     .doc = "Name of this node. Default: the host name and eight random digits, generated once."},
    {"shared", "upgrade", SETTING_CHOICE, IN(shared_upgrade), .choices = "auto manual",
     .fallback = "auto", FILE_AND("SITEMAPD_SHARED_UPGRADE"),
     .doc = "auto: migrate the shared catalogue once no node runs an older release; manual: only "
            "by `sitemapd share upgrade`."},
    {"shared", "advertise", SETTING_ORIGIN, IN(shared_advertise),
     FILE_AND("SITEMAPD_SHARED_ADVERTISE"), .example = "https://web1.internal:8081",
     .doc = "Address at which other nodes reach the admin listener of this one. Nodes that join "
            "then copy the catalogue from here. Needs peer_token_file."},
    {"shared", "peer_token_file", SETTING_PATH, IN(peer_token_file),
     FILE_AND("SITEMAPD_SHARED_PEER_TOKEN_FILE"), .example = "/etc/sitemapd/peer-token",
     .doc = "File with a secret of at least 32 characters, the same on all nodes."},
    {"shared", "ca_file", SETTING_PATH, IN(shared_ca_file), FILE_AND("SITEMAPD_SHARED_CA_FILE"),
     .example = "/etc/sitemapd/nodes-ca.pem",
     .doc = "File with CA certificates to trust besides the system's for other nodes' admin "
            "listeners, PEM."},
    {"shared", "forward", SETTING_WORD, IN(shared_forward), .fallback = "auto",
     FILE_AND("SITEMAPD_SHARED_FORWARD"),
     .doc = "Which node applies the writes that this node receives. auto: if PostgreSQL is more "
            "than 5 ms away, a node near it that has advertise (needs peer_token_file); URL: the "
            "node with that admin listener; no: this node. If the other node cannot be reached, "
            "this node applies them. On a follower, auto forwards them to the node that it "
            "follows, no rejects them."},

    {"history", "keep", SETTING_DURATION, IN(history_keep_ms), .max = 3650 * DAY, .fallback = "30d",
     FILE_AND("SITEMAPD_HISTORY_KEEP"),
     .doc = "How long the history of changes is kept, to show and undo them; 0: no history."},
    {"history", "max_bytes", SETTING_SIZE, IN(history_max_bytes), .min = MIB, .max = 1024 * GIB,
     .fallback = "1G", FILE_AND("SITEMAPD_HISTORY_MAX_BYTES"),
     .doc = "Approximate size of the history in the catalogue's file. Beyond it, the site with the "
            "most history loses its oldest changes."},

    {"cache", "snapshot_budget", SETTING_SIZE, IN(snapshot_budget_bytes), .min = MIB,
     .max = 1024 * GIB, .example = "1G", FILE_AND("SITEMAPD_CACHE_SNAPSHOT_BUDGET"),
     .doc =
         "Memory for rendered pages and served files; the least used are dropped and rendered "
         "again on request. Files of sources take at most a quarter and are dropped before pages. "
         "Default: half of the memory limit of the container or unit, at most 1G."},
    {"cache", "page_store", SETTING_SIZE, IN(page_store_bytes), .max = 1024 * GIB,
     .fallback = "256M", FILE_AND("SITEMAPD_CACHE_PAGE_STORE"),
     .doc = "Disk for rendered pages, in the folder <database>.pages, kept across "
            "restarts; 0: none."},
    {"cache", "compression_level", SETTING_COUNT, IN(compression_level), .min = 1, .max = 9,
     .fallback = "7", FILE_AND("SITEMAPD_CACHE_COMPRESSION_LEVEL"),
     .doc = "gzip level of pages, 1 (fast) to 9 (small)."},

    {"limits", "max_body", SETTING_SIZE, IN(max_body_bytes), .min = KIB, .max = GIB,
     .fallback = "1M", LIVE("SITEMAPD_LIMITS_MAX_BODY"),
     .doc = "Largest body of a request with one document."},
    {"limits", "max_bulk", SETTING_SIZE, IN(max_bulk_bytes), .min = KIB, .max = 1024 * GIB,
     .fallback = "2G", LIVE("SITEMAPD_LIMITS_MAX_BULK"),
     .doc = "Largest list in a request, or imported file, uncompressed."},
    {"limits", "max_bulk_entries", SETTING_COUNT, IN(max_bulk_entries), .min = 1, .max = 25000000,
     .fallback = "1000000", LIVE("SITEMAPD_LIMITS_MAX_BULK_ENTRIES"),
     .doc = "Maximum number of entries in one list or import. Other writes wait while a list is "
            "applied."},
    {"limits", "max_spool", SETTING_SIZE, IN(max_spool_bytes), .min = MIB, .max = 4096 * GIB,
     .fallback = "8G", LIVE("SITEMAPD_LIMITS_MAX_SPOOL"),
     .doc =
         "Disk space beside the catalogue for the lists that clients are sending, all together."},
    {"limits", "max_header_bytes", SETTING_SIZE, IN(max_header_bytes), .min = KIB, .max = MIB,
     .fallback = "8K", FILE_AND("SITEMAPD_LIMITS_MAX_HEADER_BYTES"),
     .doc = "Largest request line and header together; a header has at most 100 fields."},
    {"limits", "max_rejections", SETTING_COUNT, IN(max_rejections), .min = 1, .max = 100000,
     .fallback = "100", LIVE("SITEMAPD_LIMITS_MAX_REJECTIONS"),
     .doc = "Maximum number of rejected entries listed in one response; the rest are only counted. "
            "An import lists at least five of each kind."},

    {"notify", "url", SETTING_URL, IN(notify_url), LIVE("SITEMAPD_NOTIFY_URL"),
     .example = "https://hooks.example.com/sitemapd",
     .doc = "URL that receives JSON lines by POST when a problem with a source or a sitemap begins "
            "and when it ends (docs/monitoring.md); chat webhooks need a relay. Default: no "
            "notification."},

    {"trace", "endpoint", SETTING_URL, IN(trace_endpoint), LIVE("SITEMAPD_TRACE_ENDPOINT"),
     .example = "http://127.0.0.1:4318",
     .doc = "URL of an OpenTelemetry collector that receives the spans of API writes and polls "
            "(OTLP over HTTP, JSON); without a path, /v1/traces is added. Default: no spans."},
    {"trace", "sample", SETTING_PERCENT, IN(trace_sample_percent), .max = 100, .fallback = "100%",
     LIVE("SITEMAPD_TRACE_SAMPLE"),
     .doc =
         "Share of traces that is recorded; traces that the caller does not record are left out."},

    {"fetch", "contact", SETTING_WORD, IN(contact), LIVE("SITEMAPD_FETCH_CONTACT"),
     .example = "https://www.example.com/bot",
     .doc = "URL or mail address in the User-Agent, for operators who want to contact you."},
    {"fetch", "rate", SETTING_COUNT, IN(fetch_rate), .min = 1, .max = 1000, .fallback = "8",
     LIVE("SITEMAPD_FETCH_RATE"), .doc = "Maximum number of requests a second to one host."},
    {"fetch", "per_host", SETTING_COUNT, IN(fetch_per_host), .min = 1, .max = 32, .fallback = "2",
     LIVE("SITEMAPD_FETCH_PER_HOST"), .doc = "Maximum number of concurrent requests to one host."},
    {"fetch", "max_interval", SETTING_DURATION, IN(fetch_max_interval_ms), .min = 60 * SECOND,
     .max = 30 * DAY, .fallback = "24h", LIVE("SITEMAPD_FETCH_MAX_INTERVAL"),
     .doc = "Longest interval between polls of a sitemap that does not change."},
    {"fetch", "min_interval", SETTING_DURATION, IN(fetch_min_interval_ms), .min = 60 * SECOND,
     .max = 30 * DAY, .fallback = "15m", LIVE("SITEMAPD_FETCH_MIN_INTERVAL"),
     .doc = "Shortest interval between polls of a sitemap that always changes."},
    {"fetch", "store_bytes", SETTING_SIZE, IN(fetch_store_bytes), .max = 1024 * GIB,
     .fallback = "4G", LIVE("SITEMAPD_FETCH_STORE_BYTES"),
     .doc = "Disk for copies of the sitemaps that sources with serve = yes list; beyond it the "
            "site with the most loses its oldest copies."},
    {"fetch", "allow_address", SETTING_IP_RANGE, LIST(allow_addresses, allow_address_count),
     LIVE("SITEMAPD_FETCH_ALLOW_ADDRESS"), .example = "10.0.0.0/8",
     .doc =
         "Addresses, or ranges such as 10.0.0.0/8, that may be requested besides the public "
         "internet, separated by spaces. Sites created by the API or by commands cannot use them. "
         "Sources of a site in this file can, even those that a token for that site created: "
         "list only addresses that it may read. Repeatable."},
    {"fetch", "source_root", SETTING_PATH, LIST(source_roots, source_root_count),
     LIVE("SITEMAPD_FETCH_SOURCE_ROOT"), .example = "/srv/sitemaps",
     .doc = "Folder below which commands and tokens for all sites may create sources. Repeatable. "
            "Default: none."},

    {"log", "level", SETTING_CHOICE, IN(log_level), .choices = "error warning info debug",
     .fallback = "info", LIVE("SITEMAPD_LOG_LEVEL"),
     .doc = "Least severe level logged on stderr: error, warning, info or debug."},
    {"log", "format", SETTING_CHOICE, IN(log_format), .choices = "text json", .fallback = "text",
     LIVE("SITEMAPD_LOG_FORMAT"), .doc = "text for people or json for collectors."},
    {"log", "access_log", SETTING_OFF_OR_PATH, IN(access_log), .fallback = "off",
     FILE_AND("SITEMAPD_LOG_ACCESS_LOG"),
     .doc = "File of the access log, one line for each request; - for stderr, or off. SIGUSR1 "
            "reopens the file."},
    {"log", "access_format", SETTING_CHOICE, IN(access_format), .choices = "combined json",
     .fallback = "combined", FILE_AND("SITEMAPD_LOG_ACCESS_FORMAT"),
     .doc =
         "combined, as web servers write it, or json, which has more fields (request ids, times)."},
};
const size_t config_settings_count = sizeof config_settings / sizeof *config_settings;

#define SITE_SETTING(key_, kind_) .section = "site", .key = key_, .kind = kind_, .in_file = true

static const struct setting site_settings[] = {
    {SITE_SETTING("origin", SETTING_ORIGIN), IN_SITE(origin), .example = "https://www.example.com",
     .doc = "Scheme and host of the site. Required."},
    {SITE_SETTING("index", SETTING_INDEX_PATH), SITE_LIST(indexes, index_count),
     .example = "/sitemap_index.xml",
     .doc = "Path of an index. Repeatable. Default: /sitemap_index.xml."},
    {SITE_SETTING("page_pattern", SETTING_PATTERN), IN_SITE(page_pattern),
     .example = "{stem}-{n}{suffix}",
     .doc = "Names of the second and later pages of an index. Default: {stem}-{n}{suffix}."},
    {SITE_SETTING("cross_host", SETTING_HOST), SITE_LIST(cross_hosts, cross_host_count),
     .example = "cdn.example.com",
     .doc = "Another host whose sitemaps the indexes may list. Repeatable."},
    {SITE_SETTING("host_alias", SETTING_HOST), SITE_LIST(host_aliases, host_alias_count),
     .example = "example.com",
     .doc = "Another host name under which requests may arrive. Repeatable."},
    {SITE_SETTING("alias", SETTING_ALIAS), SITE_LIST(aliases, alias_count),
     .example = "/sitemap.xml -> /sitemap_index.xml",
     .doc = "Path that is redirected (301) to an index. Repeatable."},
    {SITE_SETTING("robots", SETTING_BOOL), IN_SITE(robots), .fallback = "yes",
     .doc = "Serve /robots.txt; no: answer 404 and leave it to another server."},
    {SITE_SETTING("robots_file", SETTING_PATH), IN_SITE(robots_file),
     .example = "/etc/sitemapd/robots.txt",
     .doc = "The site's own robots.txt; it is served with the Sitemap lines after it."},
    /* 500 is Search Console's cap on submissions; server/rules/limits.h has it too. */
    {SITE_SETTING("max_indexes", SETTING_COUNT), IN_SITE(max_indexes), .min = 1,
     .max = LIMIT_SITE_PAGES_MAX, .fallback = "500",
     .doc = "Maximum number of index files of the site: the pages of all its indexes."},
    {SITE_SETTING("check", SETTING_BOOL), IN_SITE(check), .fallback = "no",
     .doc = "Poll the registered sitemaps and report those that are broken."},
    {SITE_SETTING("connect", SETTING_ADDRESS), IN_SITE(connect), .example = "192.0.2.7:443",
     .doc = "Address and port of the web server that has the site's sitemaps, if the site's name "
            "already points to this server; polls of the site's entries and of configured "
            "sources connect there."},
    {SITE_SETTING("public_check", SETTING_BOOL), IN_SITE(public_check), .fallback = "yes",
     .doc = "With connect: also fetch sitemaps, a few of each source a day, from their public "
            "address, and report those that differ (public-differs)."},
    {SITE_SETTING("indexnow_key", SETTING_WORD), IN_SITE(indexnow_key),
     .example = "5f1c6a0e7d2b49c8",
     .doc = "Key of 8 to 128 letters, digits and dashes. It is served as /KEY.txt, and IndexNow is "
            "notified of page URLs that are added, changed or removed in urlsets and in mirrored "
            "sitemaps served here. Default: no notification."},
    {SITE_SETTING("indexnow_endpoint", SETTING_URL), IN_SITE(indexnow_endpoint),
     .fallback = "https://api.indexnow.org/indexnow",
     .doc = "URL of an IndexNow endpoint; participating search engines share the notifications."},
    {SITE_SETTING("indexnow_bulk", SETTING_BOOL), IN_SITE(indexnow_bulk), .fallback = "no",
     .doc = "Also notify if more than a tenth of the page URLs of a mirrored sitemap (and more "
            "than 100) change at once; no: only log it."},
    {SITE_SETTING("source_root", SETTING_PATH), SITE_LIST(source_roots, source_root_count),
     .example = "/srv/sitemaps/main",
     .doc = "Folder below which the site's own admin token may create sources. Repeatable."},
};

#define SOURCE_SETTING(key_, kind_)   .section = "source", .key = key_, .kind = kind_, .in_file = true
#define FOLDER_SETTING(key_, kind_)   SOURCE_SETTING(key_, kind_), .of = "a directory"
#define UPSTREAM_SETTING(key_, kind_) SOURCE_SETTING(key_, kind_), .of = "an upstream"

static const struct setting source_settings[] = {
    {SOURCE_SETTING("directory", SETTING_PATH), IN_SOURCE(is.directory), .example = "/srv/sitemaps",
     .doc = "Folder to read, with all folders below it. This or upstream is required."},
    {FOLDER_SETTING("url", SETTING_FOLDER_URL), IN_SOURCE(is.url),
     .example = "https://www.example.com/sitemaps/",
     .doc = "URL of the folder; the URL of a file is this and its path. Required with directory."},
    {SOURCE_SETTING("index", SETTING_INDEX_NAME), IN_SOURCE(is.index),
     .example = "/sitemap_index.xml",
     .doc = "Index that lists the files. Default: the deepest index whose directory holds them."},
    {FOLDER_SETTING("pattern", SETTING_WORDS), SOURCE_LIST(is.patterns, pattern_count),
     .example = "*.xml *.xml.gz",
     .doc = "Names of files to read, separated by spaces; with a slash, paths below the folder. "
            "Repeatable. Default: *.xml *.xml.gz *.txt *.txt.gz, in upper or lower case."},
    {FOLDER_SETTING("exclude", SETTING_WORDS), SOURCE_LIST(is.excludes, exclude_count),
     .example = "drafts/*", .doc = "Names or paths to ignore. Repeatable."},
    {FOLDER_SETTING("watch", SETTING_BOOL), IN_SOURCE(is.watch), .fallback = "yes",
     .doc = "Notice changes at once (inotify); no: rely on rescans."},
    {FOLDER_SETTING("rescan", SETTING_DURATION), IN_SOURCE(is.rescan_ms), .min = 100,
     .max = 30 * DAY, .fallback = "1h",
     .doc = "Interval between scans of the whole folder (network file systems need them)."},
    {FOLDER_SETTING("settle", SETTING_DURATION), IN_SOURCE(is.settle_ms), .max = DAY,
     .fallback = "10s",
     .doc = "How long nothing in the folder may change before its changes are published, all at "
            "once."},
    {SOURCE_SETTING("serve", SETTING_BOOL), IN_SOURCE(is.serve), .fallback = "no",
     .doc = "Serve the source's sitemaps on the public listener: the files of a folder, or copies "
            "of an upstream's sitemaps, also while it is down (docs/remote.md)."},
    {SOURCE_SETTING("split", SETTING_WORDS), SOURCE_LIST(is.split, split_count), .example = "yes",
     .doc = "Split a file that exceeds the limits of a sitemap: its page URLs become a urlset at "
            "its URL (docs/urls.md); without it the file is rejected. With an upstream: the URLs "
            "of the sitemaps that may be split, separated by spaces. Repeatable."},
    {SOURCE_SETTING("upstream", SETTING_URL), IN_SOURCE(is.upstream),
     .example = "https://www.example.com/sitemap_index.xml",
     .doc = "URL of a remote sitemap index to follow, instead of a folder."},
    {UPSTREAM_SETTING("map", SETTING_WORDS), SOURCE_LIST(map, map_count),
     .example = "https://cms.example.com https://www.example.com",
     .doc =
         "Two origins: the second replaces the first in the index and, with serve = yes, in served "
         "sitemaps. The server reads from the origin of upstream. Repeatable."},
    {UPSTREAM_SETTING("connect", SETTING_ADDRESS), IN_SOURCE(is.connect),
     .example = "192.0.2.7:443",
     .doc = "Address and port of the upstream, if its name already points to this server."},
    {UPSTREAM_SETTING("poll", SETTING_DURATION), IN_SOURCE(is.poll_ms), .min = 60 * SECOND,
     .max = DAY, .fallback = "15m", .doc = "Interval between reads of the upstream's index."},
    {UPSTREAM_SETTING("check", SETTING_BOOL), IN_SOURCE(is.check), .fallback = "yes",
     .doc = "Poll the sitemaps that the upstream's index lists, for true dates and for errors."},
    {UPSTREAM_SETTING("drop_after", SETTING_DURATION), IN_SOURCE(is.drop_after_ms), .max = 30 * DAY,
     .fallback = "3d",
     .doc = "How long a sitemap may be gone, empty or invalid before it is removed from the index; "
            "0: never."},
    {UPSTREAM_SETTING("ca_file", SETTING_PATH), IN_SOURCE(is.ca_file),
     .example = "/etc/ssl/certs/shop.pem",
     .doc = "File with CA certificates to trust besides the system's, PEM."},
    {UPSTREAM_SETTING("credentials_file", SETTING_PATH), IN_SOURCE(credentials_file),
     .example = "/etc/sitemapd/shop.secret",
     .doc = "File with one line, \"basic USER:PASSWORD\" or \"bearer TOKEN\", that is sent to the "
            "upstream's host. It is rejected if other users can read it."},
};

#define TOKEN_SETTING(key_, kind_) .section = "token", .key = key_, .kind = kind_, .in_file = true
#define IN_TOKEN(field_)                                                                           \
    .offset = offsetof(struct config_token, field_),                                               \
    .width = sizeof((struct config_token *)0)->field_

static const struct setting token_settings[] = {
    {TOKEN_SETTING("sha256_file", SETTING_PATH), IN_TOKEN(sha256_file),
     .example = "/etc/sitemapd/blog.sha256",
     .doc = "File with the token's SHA-256 in hexadecimal, as sha256sum prints it. Required."},
    {TOKEN_SETTING("site", SETTING_ORIGIN), IN_TOKEN(site), .example = "https://www.example.com",
     .doc = "The only site that the token is valid for. Default: the site of the prefix, else "
            "every site."},
    {TOKEN_SETTING("prefix", SETTING_WORD), IN_TOKEN(prefix),
     .example = "https://www.example.com/blog/",
     .doc = "Prefix of the locs that it may change; ends with a slash, or with - _ or a dot."},
    {TOKEN_SETTING("role", SETTING_CHOICE), IN_TOKEN(role), .choices = "read write admin",
     .fallback = "write", .doc = "read, write or admin; each includes the one before."},
    {TOKEN_SETTING("own", SETTING_BOOL), IN_TOKEN(own), .fallback = "no",
     .doc = "Allow the token to change only entries that it registered itself."},
    {TOKEN_SETTING("expires", SETTING_WORD), IN_TOKEN(expires), .example = "2099-12-31",
     .doc = "Expiry date, or date and time; the token is rejected after it. Default: never."},
};

#define CRAWLER_LIST(field_, count_)                                                               \
    .section = "crawler", .in_file = true, .offset = offsetof(struct config_crawler, field_),      \
    .width = sizeof((struct config_crawler *)0)->field_,                                           \
    .count_offset = offsetof(struct config_crawler, count_)

static const struct setting crawler_settings[] = {
    {.key = "match",
     .kind = SETTING_WORDS,
     CRAWLER_LIST(match, match_count),
     .example = "Googlebot Google-InspectionTool",
     .doc = "Product tokens of its User-Agent, separated by spaces. Repeatable. Default: those "
            "built in under this name."},
    {.key = "ranges",
     .kind = SETTING_PATH,
     CRAWLER_LIST(range_files, range_file_count),
     .example = "/etc/sitemapd/crawlers/googlebot.json",
     .doc = "File of its addresses: JSON as search engines publish it, or one range on each line. "
            "A client that uses its name from another address is an impostor. Repeatable."},
};

#define ENGINE_SETTING(key_, kind_) .section = "engine", .key = key_, .kind = kind_, .in_file = true
#define IN_ENGINE(field)                                                                           \
    .offset = offsetof(struct config_engine, field), .width = WIDTH_OF(config_engine, field)

static const struct setting engine_settings[] = {
    {ENGINE_SETTING("credentials_file", SETTING_PATH), IN_ENGINE(credentials_file), .of = "google",
     .example = "/etc/sitemapd/google.json",
     .doc = "JSON key of a service account that is an owner or full user of the property in Search "
            "Console. It is rejected if other users can read it. Required for google."},
    {ENGINE_SETTING("api_key_file", SETTING_PATH), IN_ENGINE(api_key_file), .of = "bing",
     .example = "/etc/sitemapd/bing.key",
     .doc = "File with the API key of Bing Webmaster Tools. It is rejected if other users can read "
            "it. Required for bing."},
    {ENGINE_SETTING("property", SETTING_WORD), IN_ENGINE(properties),
     .count_offset = offsetof(struct config_engine, property_count),
     .example = "sc-domain:example.com",
     .doc = "Domain property that covers the sites of its domain, or a URL property of an origin. "
            "Repeatable. Default: for each site the URL of its origin."},
    {ENGINE_SETTING("endpoint", SETTING_URL), IN_ENGINE(endpoint),
     .example = "https://www.googleapis.com/",
     .doc = "Base URL of requests instead of the engine's own; http only to an IP address that "
            "[fetch] allow_address contains."},
};

/* Sections that may be repeated, each with a name: [site "…"], [source "…"]. */

#define SECTION(word, named, array, count)                                                         \
    {                                                                                              \
#word, named, word##_settings, sizeof word##_settings / sizeof *word##_settings,           \
            sizeof(struct config_##word), offsetof(struct config, array),                          \
            offsetof(struct config, count)                                                         \
    }

const struct section_table config_sections[] = {
    SECTION(site, "main", sites, site_count),
    SECTION(source, "products", sources, source_count),
    SECTION(token, "blog", tokens, token_count),
    SECTION(crawler, "googlebot", crawler_rules, crawler_count),
    SECTION(engine, "google", engines, engine_count),
};
const size_t config_sections_count = sizeof config_sections / sizeof *config_sections;

const struct section_table *section_find(const char *section, size_t len)
{
    for (size_t i = 0; i < config_sections_count; i++)
        if (strlen(config_sections[i].section) == len &&
            strncmp(config_sections[i].section, section, len) == 0)
            return &config_sections[i];
    return NULL;
}

const struct setting *section_setting(const struct section_table *t, const char *key)
{
    for (size_t i = 0; i < t->setting_count; i++)
        if (strcmp(t->settings[i].key, key) == 0)
            return &t->settings[i];
    return NULL;
}

size_t section_count(const struct config *c, const struct section_table *t)
{
    return *(const size_t *)(const void *)((const char *)c + t->count_offset);
}

struct config_named *section_at(const struct config *c, const struct section_table *t, size_t at)
{
    char *const *array = (char *const *)(const void *)((const char *)c + t->array_offset);

    return (struct config_named *)(void *)(*array + at * t->size);
}

static void section_done(const struct section_table *t, struct config_named *section)
{
    for (size_t i = 0; i < t->setting_count; i++)
        setting_clear(&t->settings[i], section);
    free(section->name);
    free(section->seen);
    memset(section, 0, t->size);
}

struct config_named *section_new(struct config *c, const struct section_table *t, const char *name,
                                 unsigned line)
{
    void **array = (void **)(void *)((char *)c + t->array_offset);
    size_t *count = (size_t *)(void *)((char *)c + t->count_offset);
    void *grown = reallocarray(*array, *count + 1, t->size);
    struct mistakes m = {0};

    if (grown == NULL)
        return NULL;
    *array = grown;
    struct config_named *section = section_at(c, t, *count);
    memset(section, 0, t->size);
    section->line = line;
    section->name = strdup(name);
    section->seen = calloc(t->setting_count, sizeof *section->seen);
    for (size_t i = 0; i < t->setting_count; i++)
        if (t->settings[i].fallback != NULL)
            setting_assign(&t->settings[i], section, t->settings[i].fallback, &m);
    if (section->name == NULL || section->seen == NULL || m.count > 0) {
        section_done(t, section);
        return NULL;
    }
    ++*count;
    return section;
}

void sections_done(struct config *c, const struct section_table *t)
{
    for (size_t i = 0; i < section_count(c, t); i++)
        section_done(t, section_at(c, t, i));
    free(*(void **)(void *)((char *)c + t->array_offset));
}

const struct setting *setting_find(const char *section, const char *key)
{
    for (size_t i = 0; i < config_settings_count; i++)
        if (strcmp(config_settings[i].section, section) == 0 &&
            strcmp(config_settings[i].key, key) == 0)
            return &config_settings[i];
    return NULL;
}
