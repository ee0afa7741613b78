/* /metrics: what the publisher, the catalogue and the cache of files count, and the other parts. */
#include "server/log/access_log.h"
#include "server/log/log.h"
#include "server/publish/blob_cache.h"
#include "server/routes/exposition.h"
#include "server/routes/handlers.h"
#include "server/routes/metrics_parts.h"
#include "server/sources/sources.h"

static void append_histogram(struct str *out, const char *name, const char *help,
                             const struct histogram_bounds *bounds,
                             const struct histogram_values *values)
{
    metric_family(out, name, "histogram", help);
    metric_histogram(out, name, NO_LABELS, bounds, values);
}

static void append_publisher(struct str *out, const struct publisher_stats *stats)
{
    metric_counter(out, "sitemapd_segments_rendered_total", "Segments rendered and compressed.",
                   stats->segments_rendered);
    metric_counter(out, "sitemapd_pages_published_total", "Pages published as a new snapshot.",
                   stats->pages_published);
    metric_counter(out, "sitemapd_pages_built_cold_total",
                   "Pages built because a GET asked for them.", stats->pages_built_cold);
    metric_counter(out, "sitemapd_pages_loaded_total", "Cold pages that the page store had.",
                   stats->pages_loaded);
    metric_gauge(out, "sitemapd_page_store_bytes", "Bytes of pages kept on disk.",
                 stats->page_store_bytes);
    metric_counter(out, "sitemapd_publish_failures_total", "Publications that failed.",
                   stats->publish_failures);
    append_histogram(out, "sitemapd_publish_duration_seconds",
                     "From finding a change of the catalogue until it is served.", &histogram_times,
                     &stats->publish_ns);
    append_histogram(out, "sitemapd_page_build_duration_seconds",
                     "Building a page that a GET asked for.", &histogram_times, &stats->build_ns);
    metric_gauge(out, "sitemapd_page_builds_queued", "Pages that wait for a thread to build them.",
                 stats->builds_queued);
    metric_counter(out, "sitemapd_snapshot_evictions_total",
                   "Snapshots dropped for the budget's sake.", stats->evictions);
    metric_gauge(out, "sitemapd_snapshots", "Pages in memory.", stats->snapshots);
    metric_gauge(out, "sitemapd_snapshot_bytes", "Bytes of all snapshots in memory.",
                 stats->snapshot_bytes);
    metric_family(out, "sitemapd_snapshot_age_seconds", "gauge",
                  "How long ago what is served was known to be all that is committed.");
    metric_sample_ms(out, "sitemapd_snapshot_age_seconds", NO_LABELS, stats->age_ms);
    metric_gauge(out, "sitemapd_catalogue_revision", "Revision of the catalogue last read.",
                 stats->seen_revision);
    metric_gauge(out, "sitemapd_entries", "Sitemaps registered.", stats->entries);
    metric_gauge(out, "sitemapd_catalogue_readable",
                 "1 where the last read of the catalogue succeeded.", stats->readable ? 1 : 0);
}

static void append_writes(struct str *out, const struct catalogue_stats *stats)
{
    metric_counter(out, "sitemapd_catalogue_commits_total", "Transactions committed.",
                   stats->commits);
    metric_counter(out, "sitemapd_catalogue_changes_total", "Writes applied.",
                   stats->batched_changes);
    append_histogram(out, "sitemapd_catalogue_batch_changes", "Writes that share a transaction.",
                     &catalogue_batches, &stats->batch);
    append_histogram(out, "sitemapd_catalogue_transaction_duration_seconds",
                     "Applying and committing a transaction.", &histogram_times, &stats->write_ns);
    append_histogram(out, "sitemapd_catalogue_commit_duration_seconds",
                     "Of it the commit alone, until it is durable.", &histogram_times,
                     &stats->commit_ns);
    metric_family(out, "sitemapd_catalogue_failed_writes_total", "counter",
                  "Writes not applied for the catalogue's sake, by reason.");
    for (size_t i = CATALOGUE_BUSY; i <= CATALOGUE_CANCELLED; i++)
        metric_sample(out, "sitemapd_catalogue_failed_writes_total",
                      LABELS("reason", catalogue_status_word((enum catalogue_status)i)),
                      stats->failed[i]);
    metric_counter(out, "sitemapd_shrink_guard_held_total",
                   "Writes that the shrink guard refused, and scans of which it held removals.",
                   stats->held);
    metric_gauge(out, "sitemapd_catalogue_queue_depth", "Writes now waiting.", stats->queue_depth);
    metric_gauge(out, "sitemapd_catalogue_queue_limit", "Writes that may wait.", stats->max_queued);
}

static void append_file(struct str *out, const struct catalogue_stats *stats)
{
    metric_gauge(out, "sitemapd_catalogue_committed_revision",
                 "Revision of this process's last commit; 0: none yet.", stats->revision);
    metric_gauge(out, "sitemapd_catalogue_writable", "1 where the last commit or probe succeeded.",
                 stats->writable ? 1 : 0);
    metric_counter(out, "sitemapd_catalogue_checkpoints_total",
                   "Checkpoints of the write-ahead log.", stats->checkpoints);
    append_histogram(out, "sitemapd_catalogue_checkpoint_duration_seconds",
                     "Bringing the write-ahead log back into the file.", &histogram_times,
                     &stats->checkpoint_ns);
    metric_gauge(out, "sitemapd_catalogue_wal_bytes",
                 "Bytes of the write-ahead log that are not back in the file yet.",
                 stats->wal_bytes);
    metric_gauge(out, "sitemapd_catalogue_wal_file_bytes", "Bytes of the write-ahead log's file.",
                 stats->wal_file_bytes);
    metric_gauge(out, "sitemapd_catalogue_file_bytes", "Bytes of the catalogue's file.",
                 stats->file_bytes);
    if (stats->disk_bytes == 0)
        return;
    metric_gauge(out, "sitemapd_catalogue_disk_bytes", "Size of the file system it is on.",
                 stats->disk_bytes);
    metric_gauge(out, "sitemapd_catalogue_disk_free_bytes", "What is free there for this user.",
                 stats->disk_free_bytes);
}

static void append_blobs(struct str *out, const struct blob_cache_stats *stats)
{
    metric_gauge(out, "sitemapd_files", "Served files in memory.", stats->files);
    metric_gauge(out, "sitemapd_file_bytes",
                 "Bytes of served files in memory, loading and being sent.", stats->bytes);
    metric_counter(out, "sitemapd_file_checks_total", "Times a served file was looked at.",
                   stats->checks);
    metric_counter(out, "sitemapd_file_loads_total", "Times a served file was read.", stats->loads);
    metric_counter(out, "sitemapd_file_evictions_total", "Files dropped for the budget's sake.",
                   stats->evictions);
    metric_counter(out, "sitemapd_file_failures_total",
                   "Files that could not be read now: 503, or the last one was served on.",
                   stats->failures);
}

static void append_log(struct str *out, const struct app_context *app)
{
    metric_counter(out, "sitemapd_access_log_dropped_total",
                   "Lines of the access log that found no room.",
                   access_log_dropped(app->access_log));
    metric_counter(out, "sitemapd_log_dropped_total", "Lines of the log that found no room.",
                   log_dropped());
}

enum handled metrics_get(void *context, struct request *request)
{
    struct app_context *app = context;
    struct reply *reply = &request->reply;
    struct str *out = &reply->body;
    struct publisher_stats publisher;
    struct catalogue_stats catalogue;

    publisher_stats_get(app->publisher, &publisher);
    catalogue_stats_get(app->catalogue, &catalogue);

    metrics_append_process(out);
    metrics_append_config(out, app);
    metrics_append_listeners(out, app);
    append_publisher(out, &publisher);
    metrics_append_indexes(out, app->publisher);
    append_writes(out, &catalogue);
    append_file(out, &catalogue);
    metric_gauge(out, "sitemapd_reads_queued", "API reads that wait for a thread.",
                 workers_queued(app->readers));
    metric_gauge(out, "sitemapd_long_polls", "Calls of /v1/changes that wait for a change.",
                 atomic_load(&app->polls));
    append_log(out, app);
    if (app->sources != NULL)
        metrics_append_sources(out, app->sources);
    if (app->files != NULL) {
        struct blob_cache_stats files;

        blob_cache_stats_get(app->files, &files);
        append_blobs(out, &files);
    }

    reply->status = 200;
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply_header(reply, "Cache-Control", "no-store");
    return HANDLED;
}
