/* /metrics: Prometheus text format 0.0.4, by hand. */
#include <inttypes.h>
#include <string.h>

#include "server/http/listener.h"
#include "server/log/access_log.h"
#include "server/log/log.h"
#include "server/publish/blob_cache.h"
#include "server/routes/handlers.h"
#include "server/routes/routes.h"
#include "server/sources/sources.h"

#ifndef SITEMAPD_VERSION
#define SITEMAPD_VERSION "unknown"
#endif

static void family(struct str *out, const char *name, const char *type, const char *help)
{
    str_append_format(out, "# HELP sitemapd_%s %s\n# TYPE sitemapd_%s %s\n", name, help, name,
                      type);
}

static void sample(struct str *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    family(out, name, type, help);
    str_append_format(out, "sitemapd_%s %" PRIu64 "\n", name, value);
}

/* ---- listeners --------------------------------------------------------------------------- */

struct counting {
    struct str *out;
    const char *listener;
};

static void append_label(struct str *out, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            str_append_text(out, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\')
            str_append_char(out, '\\');
        str_append_char(out, *value);
    }
}

static void append_requests(void *context, const char *route, unsigned status, uint64_t count)
{
    struct counting *counting = context;

    str_append_format(counting->out, "sitemapd_http_requests_total{listener=\"%s\",route=\"",
                      counting->listener);
    append_label(counting->out, route);
    str_append_format(counting->out, "\",status=\"%u\"} %" PRIu64 "\n", status, count);
}

static void append_listeners(struct str *out, const struct app_context *app)
{
    const char *const names[] = {"public", "admin"};
    const struct listener *const listeners[] = {app->public_listener, app->admin_listener};
    uint32_t connections[2] = {0, 0}, suspended[2] = {0, 0};

    family(out, "http_requests_total", "counter", "Requests answered, by listener, route, status.");
    for (size_t i = 0; i < 2; i++) {
        struct counting counting = {.out = out, .listener = names[i]};

        if (listeners[i] == NULL)
            continue;
        listener_counts(listeners[i], append_requests, &counting);
        listener_load(listeners[i], &connections[i], &suspended[i]);
    }
    family(out, "http_connections", "gauge", "Connections now open.");
    for (size_t i = 0; i < 2; i++)
        str_append_format(out, "sitemapd_http_connections{listener=\"%s\"} %" PRIu32 "\n", names[i],
                          connections[i]);
    family(out, "http_suspended", "gauge", "Requests now waiting for an answer.");
    for (size_t i = 0; i < 2; i++)
        str_append_format(out, "sitemapd_http_suspended{listener=\"%s\"} %" PRIu32 "\n", names[i],
                          suspended[i]);
}

/* ---- publisher, catalogue ---------------------------------------------------------------- */

static void append_publisher(struct str *out, const struct publisher_stats *stats)
{
    sample(out, "segments_rendered_total", "counter", "Segments rendered and compressed.",
           stats->segments_rendered);
    sample(out, "pages_published_total", "counter", "Pages published as a new snapshot.",
           stats->pages_published);
    sample(out, "pages_built_cold_total", "counter", "Pages built because a GET asked for them.",
           stats->pages_built_cold);
    sample(out, "publish_failures_total", "counter", "Publications that failed.",
           stats->publish_failures);
    sample(out, "snapshot_evictions_total", "counter", "Snapshots dropped for the budget's sake.",
           stats->evictions);
    sample(out, "snapshots", "gauge", "Pages in memory.", stats->snapshots);
    sample(out, "snapshot_bytes", "gauge", "Bytes of all snapshots in memory.",
           stats->snapshot_bytes);
    sample(out, "catalogue_revision", "gauge", "Revision of the catalogue last read.",
           stats->seen_revision);
    sample(out, "entries", "gauge", "Sitemaps registered.", stats->entries);
    sample(out, "catalogue_readable", "gauge", "1 where the last read of the catalogue succeeded.",
           stats->readable ? 1 : 0);
}

static void append_catalogue(struct str *out, const struct catalogue_stats *stats)
{
    sample(out, "catalogue_commits_total", "counter", "Transactions committed.", stats->commits);
    sample(out, "catalogue_changes_total", "counter",
           "Writes applied; divided by commits, the size of a batch.", stats->batched_changes);
    sample(out, "catalogue_checkpoints_total", "counter", "Checkpoints of the write-ahead log.",
           stats->checkpoints);
    sample(out, "catalogue_queue_depth", "gauge", "Writes now waiting.", stats->queue_depth);
    sample(out, "catalogue_wal_bytes", "gauge", "Bytes of the write-ahead log.", stats->wal_bytes);
    sample(out, "catalogue_writable", "gauge", "1 where the last commit or probe succeeded.",
           stats->writable ? 1 : 0);
}

static void append_files(struct str *out, const struct blob_cache_stats *stats)
{
    sample(out, "files", "gauge", "Served files in memory.", stats->files);
    sample(out, "file_bytes", "gauge", "Bytes of served files in memory, loading and being sent.",
           stats->bytes);
    sample(out, "file_checks_total", "counter", "Times a served file was looked at.",
           stats->checks);
    sample(out, "file_loads_total", "counter", "Times a served file was read.", stats->loads);
    sample(out, "file_evictions_total", "counter", "Files dropped for the budget's sake.",
           stats->evictions);
    sample(out, "file_failures_total", "counter",
           "Files that could not be read now: 503, or the last one was served on.",
           stats->failures);
}

static void append_log(struct str *out, const struct app_context *app)
{
    sample(out, "access_log_dropped_total", "counter",
           "Lines of the access log that found no room.", access_log_dropped(app->access_log));
    sample(out, "log_dropped_total", "counter", "Lines of the log that found no room.",
           log_dropped());
}

/* One family of all sources: a gauge or counter that `value` reads. */
static void source_family(struct str *out, struct sources *sources, const char *name,
                          const char *type, const char *help,
                          uint64_t (*value)(const struct source_health *health))
{
    family(out, name, type, help);
    for (size_t at = 0; at < sources_count(sources); at++) {
        struct source_health health;

        if (!sources_has(sources, at))
            continue;
        sources_health(sources, at, &health);
        str_append_format(out, "sitemapd_%s{source=\"", name);
        append_label(out, health.name);
        str_append_format(out, "\"} %" PRIu64 "\n", value(&health));
    }
}

static uint64_t files_of(const struct source_health *h)
{
    return h->state.files;
}

static uint64_t listed_of(const struct source_health *h)
{
    return h->state.listed;
}

static uint64_t problems_of(const struct source_health *h)
{
    return h->state.quarantined;
}

static uint64_t held_of(const struct source_health *h)
{
    return h->state.held;
}

static uint64_t good_at_of(const struct source_health *h)
{
    return h->state.good_at < 0 ? 0 : (uint64_t)h->state.good_at;
}

static uint64_t failing_of(const struct source_health *h)
{
    return h->failing ? 1 : 0;
}

static uint64_t scans_of(const struct source_health *h)
{
    return h->scans;
}

static uint64_t files_read_of(const struct source_health *h)
{
    return h->files_read;
}

static void append_sources(struct str *out, struct sources *sources)
{
    source_family(out, sources, "source_files", "gauge", "Files that the source knows.", files_of);
    source_family(out, sources, "source_listed", "gauge", "Of these with an entry.", listed_of);
    source_family(out, sources, "source_problems", "gauge", "Of these refused.", problems_of);
    source_family(out, sources, "source_held_removals", "gauge",
                  "Removals that the shrink guard holds back.", held_of);
    source_family(out, sources, "source_last_good_scan_seconds", "gauge",
                  "When the last scan was applied whole, Unix time; 0: never.", good_at_of);
    source_family(out, sources, "source_failing", "gauge", "1: the last scan could not be made.",
                  failing_of);
    source_family(out, sources, "source_scans_total", "counter", "Scans since the start.",
                  scans_of);
    source_family(out, sources, "source_files_read_total", "counter", "Files verified.",
                  files_read_of);
}

enum handled metrics_get(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct reply *reply = &request->reply;
    struct publisher_stats publisher;
    struct catalogue_stats catalogue;

    publisher_stats_get(app->publisher, &publisher);
    catalogue_stats_get(app->catalogue, &catalogue);

    family(&reply->body, "build_info", "gauge", "Always 1; the version is in the label.");
    str_append_text(&reply->body, "sitemapd_build_info{version=\"" SITEMAPD_VERSION "\"} 1\n");
    append_listeners(&reply->body, app);
    append_publisher(&reply->body, &publisher);
    append_catalogue(&reply->body, &catalogue);
    append_log(&reply->body, app);
    if (app->sources != NULL && sources_count(app->sources) > 0)
        append_sources(&reply->body, app->sources);
    if (app->files != NULL) {
        struct blob_cache_stats files;

        blob_cache_stats_get(app->files, &files);
        append_files(&reply->body, &files);
    }

    reply->status = 200;
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply_header(reply, "Cache-Control", "no-store");
    return HANDLED;
}
