/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* GET /metrics: every metric, from memory. */
#include <stdio.h>
#include <time.h>

#include "server/api/auth.h"
#include "server/api/errors.h"
#include "server/api/exposition.h"
#include "server/api/forward.h"
#include "server/api/handlers/handlers.h"
#include "server/api/routes.h"
#include "server/base/process.h"
#include "server/base/str.h"
#include "server/crawlers/crawlers.h"
#include "server/http/listener.h"
#include "server/http/slow_readers.h"
#include "server/log/access_log.h"
#include "server/log/log.h"
#include "server/pages/served_file.h"
#include "server/sources/child_store.h"
#include "server/sources/remote/remote.h"
#include "server/sources/roster.h"
#include "server/sources/sources.h"
#include "server/trace/trace.h"

/* All of it is from memory: neither disk nor catalogue is read on the HTTP thread. */

/* At most this many indexes and sources have series of their own, the first in their order (by
 * origin and path; by the configuration); all others are added up under the name "other". */
#define METRICS_MAX_INDEXES 200u
#define METRICS_MAX_SOURCES 200u

/* The configuration in force, and the certificate of the public listener. */

static void metrics_append_config(struct str *out, const struct app_context *app)
{
    int64_t expires = app->certificate_expires;
    int64_t admin_expires = app->admin_certificate_expires;

    metric_family(out, "sitemapd_config_reloads_total", "counter",
                  "Reloads of the configuration, by result.");
    metric_sample(out, "sitemapd_config_reloads_total", LABELS("result", "applied"),
                  app->reloads_applied);
    metric_sample(out, "sitemapd_config_reloads_total", LABELS("result", "refused"),
                  app->reloads_refused);
    metric_gauge(
        out, "sitemapd_config_refused",
        "1 if the last reload was rejected as invalid; the previous configuration stays in effect.",
        app->reload_refused ? 1 : 0);
    metric_gauge(out, "sitemapd_config_loaded_seconds",
                 "When the current configuration was loaded, Unix time.",
                 (uint64_t)app->config_loaded_at);
    if (expires > 0)
        metric_gauge(out, "sitemapd_tls_certificate_expires_seconds",
                     "When the certificate of the public listener expires, Unix time.",
                     (uint64_t)expires);
    if (admin_expires > 0)
        metric_gauge(out, "sitemapd_admin_tls_certificate_expires_seconds",
                     "When the certificate of the admin listener expires, Unix time.",
                     (uint64_t)admin_expires);
}

/* The counters of the listeners. */

/* A listener that is up, with its counts, read once, so that the families agree. */
struct one {
    const char *name;
    const struct listener *listener;
    struct listener_totals totals;
    uint32_t connections, suspended;
    uint64_t over_budget; /* connections ended to free the memory of resources */
    uint64_t in_the_way;  /* or for other readers */
    uint64_t own;         /* or to free the memory of their own request and reply */
};

struct all {
    struct str *out;
    size_t count;
    struct one each[2];
    const char *at; /* the listener for which a callback is called */
};

static void collect(struct all *all, const char *name, const struct listener *l)
{
    struct one *one = &all->each[all->count];

    if (l == NULL)
        return;
    all->count++;
    one->name = name;
    one->listener = l;
    listener_totals(l, &one->totals);
    listener_load(l, &one->connections, &one->suspended);
}

static void append_requests(void *context, const char *route, unsigned status, uint64_t count)
{
    const struct all *all = context;
    char text[12];

    snprintf(text, sizeof text, "%u", status);
    metric_sample(all->out, "sitemapd_http_requests_total",
                  LABELS("listener", all->at, "route", route, "status", text), count);
}

static void append_times(void *context, const char *route, const struct histogram_values *took)
{
    const struct all *all = context;

    metric_histogram(all->out, "sitemapd_http_request_duration_seconds",
                     LABELS("listener", all->at, "route", route), &histogram_times, took);
}

static void append_by_route(struct all *all)
{
    metric_family(all->out, "sitemapd_http_requests_total", "counter",
                  "Requests answered, by listener, route and HTTP status.");
    for (size_t i = 0; i < all->count; i++) {
        all->at = all->each[i].name;
        listener_counts(all->each[i].listener, append_requests, all);
    }
    metric_family(all->out, "sitemapd_http_request_duration_seconds", "histogram",
                  "Request duration (latency): from the end of the header until the reply was "
                  "handed to the kernel.");
    for (size_t i = 0; i < all->count; i++) {
        all->at = all->each[i].name;
        listener_times(all->each[i].listener, append_times, all);
    }
}

static void append_by_encoding(const struct all *all)
{
    static const char *const names[COUNTS_ENCODINGS] = {"none", "identity", "gzip"};

    metric_family(all->out, "sitemapd_http_responses_total", "counter",
                  "Replies by the content coding of their body; none: without a body.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t e = 0; e < COUNTS_ENCODINGS; e++)
            metric_sample(all->out, "sitemapd_http_responses_total",
                          LABELS("listener", all->each[i].name, "encoding", names[e]),
                          all->each[i].totals.sums.answers[e]);
    metric_family(all->out, "sitemapd_http_response_bytes_total", "counter",
                  "Bytes of bodies in replies, as encoded, without headers.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t e = COUNTS_NONE + 1; e < COUNTS_ENCODINGS; e++)
            metric_sample(all->out, "sitemapd_http_response_bytes_total",
                          LABELS("listener", all->each[i].name, "encoding", names[e]),
                          all->each[i].totals.sums.bytes[e]);
}

static const char *const coding_names[CODINGS] = {[CODING_IDENTITY] = "identity",
                                                  [CODING_GZIP] = "gzip",
                                                  [CODING_ZSTD] = "zstd",
                                                  [CODING_BR] = "br"};

static void append_by_coding(const struct all *all)
{
    static const char name[] = "sitemapd_http_accept_coding_total";

    metric_family(all->out, name, "counter",
                  "Requests for pages by the best content coding that the client accepts.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t o = CODING_IDENTITY; o < CODINGS; o++)
            metric_sample(all->out, name,
                          LABELS("listener", all->each[i].name, "best", coding_names[o]),
                          all->each[i].totals.sums.offered[o]);
}

/* One value of each listener: those of `values`, in the order of this table. */
static const struct {
    const char *name, *type, *help;
} listener_families[] = {
    {"sitemapd_http_request_body_bytes_total", "counter", "Bytes of bodies in answered requests."},
    {"sitemapd_http_requests_aborted_total", "counter",
     "Requests aborted before their reply was sent: the client disconnected or was cut off."},
    {"sitemapd_http_connections", "gauge", "Connections now open."},
    {"sitemapd_http_connections_limit", "gauge", "Limit of open connections."},
    {"sitemapd_http_suspended", "gauge", "Requests now waiting for an answer."},
    {"sitemapd_http_suspended_limit", "gauge", "Limit of requests that may wait."},
    {"sitemapd_http_connections_accepted_total", "counter", "Connections accepted."},
    {"sitemapd_http_accept_failures_total", "counter",
     "Connections that could not be accepted: too many open files, or out of memory."},
    {"sitemapd_http_full_total", "counter",
     "Times that new connections had to wait because the connection limit was reached."},
};

static void append_values(const struct all *all)
{
    for (size_t f = 0; f < sizeof listener_families / sizeof listener_families[0]; f++) {
        const char *name = listener_families[f].name;

        metric_family(all->out, name, listener_families[f].type, listener_families[f].help);
        for (size_t i = 0; i < all->count; i++) {
            const struct one *one = &all->each[i];
            const struct listener_totals *t = &one->totals;
            const uint64_t values[] = {
                t->sums.received,   t->aborted,     one->connections,
                t->max_connections, one->suspended, t->max_suspended,
                t->accepted,        t->failed,      t->full,
            };
            metric_sample(all->out, name, LABELS("listener", one->name), values[f]);
        }
    }
}

static void append_cut(const struct all *all)
{
    metric_family(all->out, "sitemapd_http_connections_cut_total", "counter",
                  "Connections that the server closed, by reason.");
    for (size_t i = 0; i < all->count; i++) {
        const struct listener_totals *totals = &all->each[i].totals;
        const struct {
            const char *reason;
            uint64_t count;
        } cut[] = {
            {"address-limit", totals->over_limit},
            {"make-room", totals->evicted},
            {"header-timeout", totals->late[LISTENER_WAIT_HEADER]},
            {"body-timeout", totals->late[LISTENER_WAIT_BODY]},
            {"reply-timeout", totals->late[LISTENER_WAIT_REPLY]},
            {"snapshot-budget", all->each[i].over_budget},
            {"slow-readers", all->each[i].in_the_way},
            {"request-memory", all->each[i].own},
        };
        for (size_t r = 0; r < sizeof cut / sizeof cut[0]; r++)
            metric_sample(all->out, "sitemapd_http_connections_cut_total",
                          LABELS("listener", all->each[i].name, "reason", cut[r].reason),
                          cut[r].count);
    }
}

static void metrics_append_listeners(struct str *out, const struct app_context *app)
{
    struct all all = {.out = out};

    collect(&all, "public", app->public_listener);
    collect(&all, "admin", app->admin_listener); /* only these have large bodies */
    if (all.count > 0 && app->slow_readers != NULL)
        readers_count_cut(app->slow_readers, &all.each[0].over_budget, &all.each[0].in_the_way,
                          &all.each[all.count - 1].own);
    append_by_route(&all);
    append_by_encoding(&all);
    append_by_coding(&all);
    append_values(&all);
    append_cut(&all);
}

/* The contents of the catalogue, by index. */

struct census {
    struct str pages, entries; /* the samples of both families, written in one walk */
    uint64_t indexes, all_pages;
    uint64_t other_pages, other_entries;
};

static void count_index(void *context, const char *origin, const char *path, uint64_t pages,
                        uint64_t entries)
{
    struct census *c = context;
    struct str url = STR_INIT;

    c->all_pages += pages;
    if (c->indexes++ >= METRICS_MAX_INDEXES) {
        c->other_pages += pages;
        c->other_entries += entries;
        return;
    }
    str_append_text(&url, origin);
    str_append_text(&url, path);
    struct labels labels = LABELS("index", str_text(&url));
    metric_sample(&c->pages, "sitemapd_index_pages", labels, pages);
    metric_sample(&c->entries, "sitemapd_index_entries", labels, entries);
    c->pages.failed |= url.failed;
    str_done(&url);
}

static void append_index_family(struct str *out, struct str *samples, const char *name,
                                const char *help, const uint64_t *other)
{
    metric_family(out, name, "gauge", help);
    str_append(out, str_text(samples), samples->len);
    if (other != NULL)
        metric_sample(out, name, LABELS("index", "other"), *other);
    out->failed |= samples->failed;
    str_done(samples);
}

static uint64_t count_frozen(struct publisher *publisher)
{
    const struct page_map *routing = publisher_page_map(publisher);
    const struct registry *registry = page_map_registry(routing);
    uint64_t frozen = 0;

    for (size_t i = 0; i < registry->site_count; i++)
        for (size_t k = 0; k < registry->sites[i].index_count; k++)
            frozen += registry_is_frozen(registry, &registry->sites[i].indexes[k]);
    publisher_page_map_done(routing);
    return frozen;
}

static void metrics_append_indexes(struct str *out, struct publisher *publisher)
{
    struct census c = {.pages = STR_INIT, .entries = STR_INIT};

    publisher_each_index(publisher, count_index, &c);
    bool others = c.indexes > METRICS_MAX_INDEXES;
    metric_gauge(out, "sitemapd_indexes", "Sitemap indexes.", c.indexes);
    metric_gauge(out, "sitemapd_frozen_indexes", "Frozen (read-only) indexes.",
                 count_frozen(publisher));
    metric_gauge(out, "sitemapd_pages", "Pages with entries, of all indexes.", c.all_pages);
    append_index_family(out, &c.pages, "sitemapd_index_pages", "Pages with entries, by index.",
                        others ? &c.other_pages : NULL);
    append_index_family(out, &c.entries, "sitemapd_index_entries", "Sitemaps registered, by index.",
                        others ? &c.other_entries : NULL);
}

/* The process_ family that every Prometheus client has. */

#ifndef SITEMAPD_VERSION
#define SITEMAPD_VERSION "unknown"
#endif

static void metrics_append_process(struct str *out)
{
    struct process_usage usage;

    metric_family(out, "sitemapd_build_info", "gauge", "Always 1; the version is in the label.");
    metric_sample(out, "sitemapd_build_info", LABELS("version", SITEMAPD_VERSION), 1);
    if (!process_usage_read(&usage))
        return;
    metric_gauge(out, "process_resident_memory_bytes", "Resident memory.", usage.resident_bytes);
    metric_gauge(out, "process_virtual_memory_bytes", "Virtual memory.", usage.virtual_bytes);
    metric_family(out, "process_cpu_seconds_total", "counter", "CPU time, user and system.");
    metric_sample_ms(out, "process_cpu_seconds_total", NO_LABELS, usage.cpu_ms);
    metric_family(out, "process_start_time_seconds", "gauge", "Start of the process, Unix time.");
    metric_sample_ms(out, "process_start_time_seconds", NO_LABELS, usage.started_ms);
    metric_gauge(out, "process_threads", "Threads.", usage.threads);
    metric_gauge(out, "process_open_fds", "Open file descriptors.", usage.open_fds);
    if (usage.max_fds != UINT64_MAX)
        metric_gauge(out, "process_max_fds", "Limit of open file descriptors.", usage.max_fds);
}

/* The state of each folder source after its last scan. */

/* One value of each source: those of source_value, in the order of this table. Sources beyond
 * METRICS_MAX_SOURCES are added up; for times the earliest one is used. */
static const struct {
    const char *name, *type, *help;
    bool earliest;
} source_families[] = {
    {"sitemapd_source_files", "gauge", "Files found by the source.", false},
    {"sitemapd_source_listed", "gauge", "Valid files of the source that have an entry.", false},
    {"sitemapd_source_problems", "gauge", "Files of the source rejected as invalid.", false},
    {"sitemapd_source_remarked", "gauge", "Listed files of the source that have warnings.", false},
    {"sitemapd_source_held_removals", "gauge", "Removals that the shrink guard holds back.", false},
    {"sitemapd_source_last_good_scan_seconds", "gauge",
     "When the last complete scan was applied, Unix time; 0: never.", true},
    {"sitemapd_source_failing", "gauge", "1 if the last scan failed.", false},
    {"sitemapd_source_watch_limited", "gauge",
     "1 if a limit of inotify is reached; some changes are found only by rescans.", false},
    {"sitemapd_source_scans_total", "counter", "Scans since the start.", false},
    {"sitemapd_source_files_read_total", "counter", "Files read and validated.", false},
};

static uint64_t source_value(const struct source_health *h, size_t family)
{
    const uint64_t values[] = {
        h->state.files,
        h->state.listed,
        h->state.quarantined,
        h->state.remarked,
        h->state.held,
        h->state.good_at < 0 ? 0 : (uint64_t)h->state.good_at,
        h->failing,
        h->watching == SOURCE_WATCH_LIMIT,
        h->scans,
        h->files_read,
    };
    return values[family];
}

static void append_family(struct str *out, size_t family, const struct source_list *list)
{
    size_t count = sources_count(list);
    const char *name = source_families[family].name;
    bool earliest = source_families[family].earliest;
    uint64_t other = earliest ? UINT64_MAX : 0;

    metric_family(out, name, source_families[family].type, source_families[family].help);
    for (size_t at = 0; at < count; at++) {
        struct source_health health;

        sources_health(list, at, &health);
        uint64_t value = source_value(&health, family);
        if (at < METRICS_MAX_SOURCES)
            metric_sample(out, name, LABELS("source", health.name), value);
        else if (!earliest)
            other += value;
        else if (value < other)
            other = value;
    }
    if (count > METRICS_MAX_SOURCES)
        metric_sample(out, name, LABELS("source", "other"), other);
}

static void metrics_append_sources(struct str *out, struct sources *sources)
{
    struct source_list *list = sources_hold(sources);
    size_t families = sizeof source_families / sizeof source_families[0];
    for (size_t i = 0; sources_count(list) > 0 && i < families; i++)
        append_family(out, i, list);
    sources_release(list);
}

static void append_histogram(struct str *out, const char *name, const char *help,
                             const struct histogram_bounds *bounds,
                             const struct histogram_values *values)
{
    metric_family(out, name, "histogram", help);
    metric_histogram(out, name, NO_LABELS, bounds, values);
}

/* Remote sources and polled sitemaps. No label has a host or URL. */

static const struct {
    const char *name, *type, *help;
} remote_families[] = {
    {"sitemapd_source_members", "gauge", "Sitemaps that the upstream listed at the last poll."},
    {"sitemapd_source_upstream_failing", "gauge",
     "1 if the upstream could not be read or is invalid."},
    {"sitemapd_source_upstream_held_removals", "gauge",
     "Removals from the upstream's index that the shrink guard holds back."},
    {"sitemapd_source_upstream_problems", "gauge",
     "Sitemaps of the upstream's index rejected as invalid."},
    {"sitemapd_source_polls_total", "counter", "Polls of the upstream."},
    {"sitemapd_source_next_poll_seconds", "gauge", "When the upstream is polled next, Unix time."},
};

static uint64_t remote_value(const struct remote_status *status, size_t family)
{
    const uint64_t values[] = {
        status->members, status->failing,
        status->held,    status->refused,
        status->polls,   status->next_poll_at < 0 ? 0 : (uint64_t)status->next_poll_at};
    return values[family];
}

static void append_upstreams(struct str *out, struct remote *remote, const struct roster *roster)
{
    size_t families = sizeof remote_families / sizeof *remote_families;

    for (size_t f = 0; roster_count(roster) > 0 && f < families; f++) {
        metric_family(out, remote_families[f].name, remote_families[f].type,
                      remote_families[f].help);
        for (size_t at = 0; at < roster_count(roster) && at < METRICS_MAX_SOURCES; at++) {
            struct remote_status status;
            const char *name = roster_at(roster, at)->name;

            if (remote_status(remote, name, &status))
                metric_sample(out, remote_families[f].name, LABELS("source", name),
                              remote_value(&status, f));
        }
    }
}

static void append_polls(struct str *out, struct remote *remote)
{
    struct remote_counts counts;

    remote_counts_get(remote, &counts);
    metric_family(out, "sitemapd_checks", "gauge", "Watched sitemaps, by state.");
    for (unsigned i = 0; i < CHECK_STATES; i++)
        metric_sample(out, "sitemapd_checks", LABELS("state", check_state_word(i)),
                      counts.states[i]);
    metric_gauge(out, "sitemapd_check_lateness_seconds",
                 "How long the most overdue sitemap has waited for its poll.", counts.lateness_s);
    metric_family(out, "sitemapd_fetches_total", "counter", "Polls of sitemaps, by result.");
    for (unsigned i = 0; i < REMOTE_RESULTS; i++)
        metric_sample(out, "sitemapd_fetches_total", LABELS("result", remote_result_word(i)),
                      counts.results[i]);
    append_histogram(out, "sitemapd_fetch_duration_seconds", "Duration of polls of sitemaps.",
                     &histogram_times, &counts.duration_ns);
    metric_counter(out, "sitemapd_fetch_bytes_total", "Bytes of bodies received by polls, as sent.",
                   counts.bytes);
    metric_gauge(out, "sitemapd_fetch_hosts_resting",
                 "Hosts not polled for a while after 429, 503 or a failed connection.",
                 counts.hosts_resting);
    metric_family(
        out, "sitemapd_fetch_pressure", "gauge",
        "Polls of the busiest host relative to its rate limit; above 1, polls are less frequent.");
    metric_sample_ms(out, "sitemapd_fetch_pressure", NO_LABELS, (uint64_t)(counts.pressure * 1000));
}

static void metrics_append_remote(struct str *out, const struct app_context *app)
{
    struct roster *roster = roster_hold(app->remotes);

    append_upstreams(out, app->remote, roster);
    roster_release(roster);
    append_polls(out, app->remote);
}

/* Notifications of search engines about page URLs. */

static void metrics_append_indexnow(struct str *out, const struct indexnow_counts *c)
{
    metric_family(out, "sitemapd_indexnow_urls_total", "counter",
                  "Page URLs to be sent to IndexNow, by result.");
    metric_sample(out, "sitemapd_indexnow_urls_total", LABELS("result", "told"), c->urls);
    metric_sample(out, "sitemapd_indexnow_urls_total", LABELS("result", "given-up"), c->lost);
    metric_family(out, "sitemapd_indexnow_requests_total", "counter",
                  "Requests to IndexNow endpoints, by result.");
    metric_sample(out, "sitemapd_indexnow_requests_total", LABELS("result", "taken"), c->taken);
    metric_sample(out, "sitemapd_indexnow_requests_total", LABELS("result", "refused"), c->refused);
    metric_gauge(out, "sitemapd_indexnow_failing",
                 "Sites whose page URLs IndexNow currently rejects.", (uint64_t)c->failing);
}

static void append_trace(struct str *out, struct trace *trace)
{
    struct trace_counts c;

    trace_counts_get(trace, &c);
    metric_family(out, "sitemapd_trace_spans_total", "counter", "Trace spans recorded, by result.");
    metric_sample(out, "sitemapd_trace_spans_total", LABELS("result", "sent"), c.sent);
    metric_sample(out, "sitemapd_trace_spans_total", LABELS("result", "dropped"), c.dropped);
    metric_gauge(out, "sitemapd_trace_failing",
                 "1 if the collector of traces did not accept the last spans.", c.failing);
}

/* Reports of search engines about the sitemaps of all sites. */

static void metrics_append_engines(struct str *out, const struct app_context *app)
{
    static const struct {
        const char *name, *help;
    } rows[] = {
        {"sitemapd_engine_up", "1 if the search engine answers, and no request for a site failed."},
        {"sitemapd_engine_errors", "Errors that the search engine found in sitemaps."},
        {"sitemapd_engine_warnings", "Warnings of the search engine about sitemaps."},
        {"sitemapd_engine_last_read_age_seconds",
         "Time since the search engine last read the sitemap that it has not read for the longest "
         "time."},
    };
    int64_t now = (int64_t)time(NULL);

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        bool begun = false;
        for (size_t i = 0; i < ENGINE_COUNT; i++) {
            const struct engine_counts *c = &app->engines[i];
            int64_t read_at = atomic_load(&c->read_at);
            const uint64_t values[] = {atomic_load(&c->up), atomic_load(&c->errors),
                                       atomic_load(&c->warnings),
                                       read_at < now ? (uint64_t)(now - read_at) : 0};
            if (!atomic_load(&c->configured) || (row == 3 && read_at == 0))
                continue;
            if (!begun)
                metric_family(out, rows[row].name, "gauge", rows[row].help);
            begun = true;
            metric_sample(out, rows[row].name, LABELS("engine", engine_names[i]), values[row]);
        }
    }
    bool begun = false;
    for (size_t i = 0; i < ENGINE_COUNT * ENGINE_STATES; i++) {
        const struct engine_counts *c = &app->engines[i / ENGINE_STATES];
        enum engine_state state = (enum engine_state)(i % ENGINE_STATES);
        if (!atomic_load(&c->configured))
            continue;
        if (!begun)
            metric_family(out, "sitemapd_engine_sites", "gauge",
                          "Sites by the result of the last request about them.");
        begun = true;
        metric_sample(
            out, "sitemapd_engine_sites",
            LABELS("engine", engine_names[i / ENGINE_STATES], "state", engine_state_word(state)),
            atomic_load(&c->sites[state]));
    }
}

/* Counts of the publisher, the catalogue, the cache of files and the other parts. */

static void append_publisher(struct str *out, const struct publisher_stats *stats)
{
    metric_counter(out, "sitemapd_segments_rendered_total", "Segments rendered and compressed.",
                   stats->segments_rendered);
    metric_counter(out, "sitemapd_pages_published_total", "Pages published as a new snapshot.",
                   stats->pages_published);
    metric_counter(out, "sitemapd_pages_built_cold_total",
                   "Pages that were not in memory and were rendered for a GET.",
                   stats->pages_built_cold);
    metric_counter(out, "sitemapd_pages_loaded_total",
                   "Pages that were not in memory and were loaded from the page store.",
                   stats->pages_loaded);
    metric_gauge(out, "sitemapd_page_store_bytes", "Bytes of pages kept on disk.",
                 stats->page_store_bytes);
    metric_counter(out, "sitemapd_publish_failures_total", "Publications that failed.",
                   stats->publish_failures);
    append_histogram(out, "sitemapd_publish_duration_seconds",
                     "Time from detecting a change of the catalogue until it is served.",
                     &histogram_times, &stats->publish_ns);
    append_histogram(out, "sitemapd_page_build_duration_seconds", "Time to build a page for a GET.",
                     &histogram_times, &stats->build_ns);
    metric_gauge(out, "sitemapd_page_builds_queued", "Pages that wait for a thread to build them.",
                 stats->builds_queued);
    metric_counter(out, "sitemapd_snapshot_evictions_total",
                   "Snapshots evicted because snapshot_budget was exceeded.", stats->evictions);
    metric_gauge(out, "sitemapd_snapshots", "Pages in memory.", stats->snapshots);
    metric_gauge(out, "sitemapd_snapshot_bytes", "Bytes of all snapshots in memory.",
                 stats->snapshot_bytes);
    metric_family(
        out, "sitemapd_snapshot_age_seconds", "gauge",
        "Time since the served pages were last known to be up to date with the catalogue.");
    metric_sample_ms(out, "sitemapd_snapshot_age_seconds", NO_LABELS, stats->age_ms);
    metric_gauge(out, "sitemapd_catalogue_revision", "Revision of the catalogue last read.",
                 stats->seen_revision);
    metric_gauge(out, "sitemapd_entries", "Sitemaps registered.", stats->entries);
    metric_gauge(out, "sitemapd_catalogue_readable",
                 "1 if the last read of the catalogue succeeded.", stats->readable ? 1 : 0);
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
                     "Time to apply and commit a transaction.", &histogram_times, &stats->write_ns);
    append_histogram(out, "sitemapd_catalogue_commit_duration_seconds",
                     "Time to commit a transaction durably.", &histogram_times, &stats->commit_ns);
    metric_family(out, "sitemapd_catalogue_failed_writes_total", "counter",
                  "Writes that failed in the catalogue, by reason.");
    for (size_t i = CATALOGUE_BUSY; i <= CATALOGUE_CANCELLED; i++)
        metric_sample(out, "sitemapd_catalogue_failed_writes_total",
                      LABELS("reason", catalogue_status_word((enum catalogue_status)i)),
                      stats->failed[i]);
    metric_gauge(out, "sitemapd_history_bytes",
                 "Approximate size of the history in the catalogue file.", stats->history_bytes);
    metric_gauge(out, "sitemapd_history_from_revision", "The oldest revision in the history.",
                 stats->history_from);
    metric_counter(out, "sitemapd_history_dropped_total",
                   "Changes dropped from the history because of age or size.",
                   stats->history_dropped);
    metric_counter(out, "sitemapd_shrink_guard_held_total",
                   "Writes that the shrink guard rejected, and scans whose removals it held back.",
                   stats->held);
    metric_gauge(out, "sitemapd_catalogue_queue_depth", "Writes now waiting.", stats->queue_depth);
    metric_gauge(out, "sitemapd_catalogue_queue_limit", "Limit of writes that may wait.",
                 stats->max_queued);
}

/* changed_at is from the catalogue and outlasts this process. registered_at is of this process
 * alone, and includes registrations that changed nothing. */
static void append_registration(struct str *out, const struct publisher_stats *publisher,
                                const struct catalogue_stats *catalogue)
{
    int64_t now = (int64_t)time(NULL), at = catalogue->registered_at;
    if (publisher->changed_at > at)
        at = publisher->changed_at;
    metric_gauge(out, "sitemapd_last_registration_seconds",
                 "When entries were last registered, replaced or removed, Unix time; 0: never.",
                 (uint64_t)(at < now ? at : now));
}

static void append_file(struct str *out, const struct catalogue_stats *stats)
{
    metric_gauge(out, "sitemapd_catalogue_committed_revision",
                 "Revision of this process's last commit; 0: none yet.", stats->revision);
    metric_gauge(out, "sitemapd_catalogue_writable",
                 "1 if the last commit or write probe succeeded; 0: read-only.",
                 stats->writable ? 1 : 0);
    metric_counter(out, "sitemapd_catalogue_checkpoints_total",
                   "Checkpoints of the write-ahead log.", stats->checkpoints);
    append_histogram(out, "sitemapd_catalogue_checkpoint_duration_seconds",
                     "Time of a checkpoint of the write-ahead log.", &histogram_times,
                     &stats->checkpoint_ns);
    metric_gauge(out, "sitemapd_catalogue_wal_bytes",
                 "Bytes of the write-ahead log (WAL) not yet checkpointed.", stats->wal_bytes);
    metric_gauge(out, "sitemapd_catalogue_wal_file_bytes", "Bytes of the write-ahead log's file.",
                 stats->wal_file_bytes);
    metric_gauge(out, "sitemapd_catalogue_file_bytes", "Bytes of the catalogue's file.",
                 stats->file_bytes);
    if (stats->disk_bytes == 0)
        return;
    metric_gauge(out, "sitemapd_catalogue_disk_bytes", "Size of the catalogue's file system.",
                 stats->disk_bytes);
    metric_gauge(out, "sitemapd_catalogue_disk_free_bytes",
                 "Free space on the catalogue's file system for this user.",
                 stats->disk_free_bytes);
}

static void append_blobs(struct str *out, const struct served_files_stats *stats)
{
    metric_gauge(out, "sitemapd_files", "Served files in memory.", stats->files);
    metric_gauge(out, "sitemapd_file_bytes",
                 "Bytes of served files in memory, loading and being sent.", stats->bytes);
    metric_counter(out, "sitemapd_file_checks_total",
                   "Times a served file was checked for changes.", stats->checks);
    metric_counter(out, "sitemapd_file_loads_total", "Times a served file was read.", stats->loads);
    metric_counter(out, "sitemapd_file_evictions_total",
                   "Served files evicted because snapshot_budget was exceeded.", stats->evictions);
    metric_counter(out, "sitemapd_file_failures_total",
                   "Reads of served files that failed: 503, or the previous version was served.",
                   stats->failures);
}

static void append_children(struct str *out, const struct child_store_stats *stats)
{
    metric_gauge(out, "sitemapd_child_copies", "Copies of sitemaps that remote sources serve.",
                 stats->copies);
    metric_gauge(out, "sitemapd_child_bytes", "Disk space that these copies use.", stats->bytes);
    metric_gauge(out, "sitemapd_children_missing",
                 "Sitemaps of sources with serve = yes that have no copy here.", stats->missing);
    metric_gauge(out, "sitemapd_child_store_failing", "1 if the last copy could not be written.",
                 stats->failing);
}

/* One family for all crawlers that made requests. */
static void append_crawlers_each(struct str *out, const struct crawlers *crawlers,
                                 const struct crawlers_totals *totals, const char *name,
                                 const char *type, const char *help,
                                 uint64_t (*value)(const struct crawler_counts *counts))
{
    metric_family(out, name, type, help);
    for (size_t i = 0; i < crawlers_count(crawlers); i++)
        if (totals->of[i].last_fetch_at != 0 || totals->of[i].impostors != 0)
            metric_sample(out, name, LABELS("crawler", crawlers_name(crawlers, i)),
                          value(&totals->of[i]));
}

static uint64_t impostors_of(const struct crawler_counts *counts)
{
    return counts->impostors;
}

static uint64_t last_fetch_of(const struct crawler_counts *counts)
{
    return (uint64_t)counts->last_fetch_at;
}

static uint64_t stale_pages_of(const struct crawler_counts *counts)
{
    return counts->stale_pages;
}

static uint64_t oldest_stale_of(const struct crawler_counts *counts)
{
    int64_t age = counts->oldest_stale == 0 ? 0 : (int64_t)time(NULL) - counts->oldest_stale;
    return age > 0 ? (uint64_t)age : 0;
}

static void append_fetches(struct str *out, const char *crawler,
                           const struct crawler_counts *counts)
{
    static const char name[] = "sitemapd_crawler_fetches_total";

    metric_sample(out, name, LABELS("crawler", crawler, "status", "200"), counts->ok);
    metric_sample(out, name, LABELS("crawler", crawler, "status", "304"), counts->not_modified);
    metric_sample(out, name, LABELS("crawler", crawler, "status", "other"), counts->other);
}

static void metrics_append_crawlers(struct str *out, struct crawlers *crawlers)
{
    struct crawlers_totals totals;

    crawlers_totals(crawlers, &totals);
    metric_family(out, "sitemapd_crawler_fetches_total", "counter",
                  "Requests of crawlers by result; other: HEAD, errors, aborted.");
    for (size_t i = 0; i < crawlers_count(crawlers); i++)
        if (totals.of[i].last_fetch_at != 0)
            append_fetches(out, crawlers_name(crawlers, i), &totals.of[i]);
    metric_family(out, "sitemapd_crawler_accept_coding_total", "counter",
                  "Requests of crawlers for pages by the best content coding that they accept.");
    for (size_t i = 0; i < crawlers_count(crawlers); i++)
        for (size_t o = CODING_IDENTITY; o < CODINGS && totals.of[i].last_fetch_at != 0; o++)
            metric_sample(out, "sitemapd_crawler_accept_coding_total",
                          LABELS("crawler", crawlers_name(crawlers, i), "best", coding_names[o]),
                          totals.of[i].offered[o]);
    append_crawlers_each(out, crawlers, &totals, "sitemapd_crawler_impostors_total", "counter",
                         "Requests under a crawler's name from other addresses than its own.",
                         impostors_of);
    append_crawlers_each(out, crawlers, &totals, "sitemapd_crawler_last_fetch_seconds", "gauge",
                         "When the crawler last made a request, Unix time.", last_fetch_of);
    metric_family(out, "sitemapd_crawler_verified", "gauge",
                  "1 if the crawler's addresses are configured, so that clients from other "
                  "addresses are counted as impostors.");
    for (size_t i = 1; i < crawlers_count(crawlers); i++)
        if (totals.of[i].last_fetch_at != 0 || totals.of[i].impostors != 0)
            metric_sample(out, "sitemapd_crawler_verified",
                          LABELS("crawler", crawlers_name(crawlers, i)),
                          crawlers_is_verified(crawlers, i) ? 1 : 0);
    append_crawlers_each(out, crawlers, &totals, "sitemapd_crawler_stale_pages", "gauge",
                         "Stale pages: changed since the crawler fetched them.", stale_pages_of);
    append_crawlers_each(out, crawlers, &totals, "sitemapd_crawler_oldest_stale_seconds", "gauge",
                         "Age of the oldest change that the crawler has not fetched.",
                         oldest_stale_of);
    metric_family(out, "sitemapd_crawler_lag_seconds", "histogram",
                  "Time from a page's change until a crawler fetched it.");
    for (size_t i = 1; i < crawlers_count(crawlers); i++)
        if (totals.of[i].last_fetch_at != 0)
            metric_histogram(out, "sitemapd_crawler_lag_seconds",
                             LABELS("crawler", crawlers_name(crawlers, i)), &crawler_lag_bounds,
                             &totals.of[i].lag);
    metric_gauge(out, "sitemapd_crawler_rows",
                 "Rows of the crawler ledger: one for each page and crawler that fetched it.",
                 totals.rows);
    metric_counter(out, "sitemapd_crawler_untracked_total",
                   "Fetches not tracked: no room, or the page no longer exists.", totals.untracked);
}

/* All are 0 if the catalogue is not shared. */
static void append_shared(struct str *out, struct catalogue *c)
{
    struct shared_state s;

    catalogue_shared_state(c, &s);
    metric_gauge(out, "sitemapd_shared_joined", "1 if the node has joined the shared catalogue.",
                 s.phase == SHARED_JOINED);
    metric_gauge(out, "sitemapd_shared_diverged",
                 "1 if the node has diverged from the others, or runs an older release.",
                 s.phase == SHARED_LEFT || s.phase == SHARED_TOO_OLD);
    metric_gauge(out, "sitemapd_shared_applied_record",
                 "The last record of the log applied on this node.", s.applied);
    metric_gauge(out, "sitemapd_shared_head_record", "The last known record of the log.", s.head);
    metric_gauge(out, "sitemapd_shared_lag_seconds",
                 "How long this node has lagged behind the log; 0: it is in sync.",
                 (uint64_t)(s.behind_ms / 1000));
    metric_gauge(
        out, "sitemapd_shared_standby_wait_seconds",
        "How long a commit of PostgreSQL has waited for a synchronous standby; 0: none waits.",
        (uint64_t)(s.waiting_ms / 1000));
    metric_gauge(out, "sitemapd_shared_away_seconds",
                 "How long the connection to PostgreSQL has failed; 0: it works.",
                 (uint64_t)((s.away_ms + 999) / 1000));
    metric_family(out, "sitemapd_shared_failing_seconds", "gauge",
                  "How long PostgreSQL has rejected this node's writes, its reports to the other "
                  "nodes, or its snapshots, although it answers; 0: it does not reject them.");
    metric_sample(out, "sitemapd_shared_failing_seconds", LABELS("what", "write"),
                  (uint64_t)(s.refused_ms / 1000));
    metric_sample(out, "sitemapd_shared_failing_seconds", LABELS("what", "report"),
                  (uint64_t)(s.report.ms / 1000));
    metric_sample(out, "sitemapd_shared_failing_seconds", LABELS("what", "snapshot"),
                  (uint64_t)(s.snapshot.ms / 1000));
    metric_family(out, "sitemapd_shared_round_trip_seconds", "gauge",
                  "Shortest of the last five round trips to PostgreSQL; a write needs two.");
    metric_sample_ms(out, "sitemapd_shared_round_trip_seconds", NO_LABELS,
                     (uint64_t)((s.trip_us + 500) / 1000));
    metric_gauge(out, "sitemapd_shared_upgrade_pending",
                 "1 if the upgrade of the catalogue waits for nodes with an older release.",
                 s.upgrade_pending);
    metric_counter(out, "sitemapd_shared_appended_total", "Records that this node wrote.",
                   s.appended);
    metric_counter(out, "sitemapd_shared_applied_total",
                   "Records of other nodes that this node applied.", s.applied_records);
    metric_counter(
        out, "sitemapd_shared_notified_total",
        "Records of other nodes received in the PostgreSQL notification itself, without a query.",
        s.notified);
    metric_family(out, "sitemapd_shared_outcomes_total", "counter",
                  "Records by outcome: refused by the log; unknown at first (timeout); settled: "
                  "unknown ones whose outcome was found later.");
    metric_sample(out, "sitemapd_shared_outcomes_total", LABELS("outcome", "refused"), s.refused);
    metric_sample(out, "sitemapd_shared_outcomes_total", LABELS("outcome", "unknown"), s.unknown);
    metric_sample(out, "sitemapd_shared_outcomes_total", LABELS("outcome", "settled"), s.settled);
    metric_counter(out, "sitemapd_shared_replaced_total",
                   "Times that this node's file was replaced by a snapshot.", s.replaced);
    metric_counter(out, "sitemapd_shared_snapshots_total",
                   "Snapshots of the log that this node made.", s.snapshots);
    metric_counter(out, "sitemapd_shared_digest_mismatches_total",
                   "Times that this node's rows differed from the other nodes' (diverged).",
                   s.digest_mismatches);
}

/* All are 0 on a node that applies its writes itself. */
static void append_forwarding(struct str *out, struct forward *forward)
{
    static const struct forward_counts none;
    const struct forward_counts *c = forward != NULL ? forward_counts_get(forward) : &none;
    struct forward_target target;
    const struct {
        const char *outcome;
        uint64_t count;
    } outcomes[] = {{"answered", atomic_load(&c->answered)}, {"direct", atomic_load(&c->direct)},
                    {"failed", atomic_load(&c->failed)},     {"unknown", atomic_load(&c->unknown)},
                    {"unseen", atomic_load(&c->unseen)},     {"loop", atomic_load(&c->loops)}};

    forward_target_get(forward, &target);
    metric_gauge(out, "sitemapd_forwarding", "1 if another node applies the writes of this one.",
                 target.why != FORWARD_NOT);
    metric_gauge(out, "sitemapd_forwards_under_way", "Writes being forwarded now.",
                 atomic_load(&c->under_way));
    metric_family(out, "sitemapd_forwarded_writes_total", "counter",
                  "Writes for another node by outcome: answered there; unseen: of these, answered "
                  "before this node had applied them; direct: applied here; failed: 503; unknown: "
                  "504; loop: 508.");
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        metric_sample(out, "sitemapd_forwarded_writes_total",
                      LABELS("outcome", outcomes[i].outcome), outcomes[i].count);
}

static void append_log(struct str *out, const struct app_context *app)
{
    metric_counter(out, "sitemapd_access_log_dropped_total",
                   "Lines of the access log dropped because its buffer was full.",
                   access_log_dropped(app->access_log));
    metric_counter(out, "sitemapd_log_dropped_total",
                   "Lines of the log dropped because its buffer was full.", log_dropped());
}

enum handled metrics_get(void *context, struct request *request)
{
    struct app_context *app = context;
    struct reply *reply = &request->reply;
    struct str *out = &reply->body;
    struct publisher_stats publisher;
    struct catalogue_stats catalogue;
    bool allowed;

    if (!auth_sees_all(app, request, &allowed))
        return HANDLED;
    if (!allowed && request->token_name == NULL)
        errors_reply_unauthorised(
            reply,
            "the token is missing: /metrics covers every site and needs a token for all sites");
    else if (!allowed)
        errors_reply_rule(
            reply, RULE_ALL_SITES, NULL,
            "permission denied: /metrics covers every site and needs a token for all sites");
    if (!allowed)
        return HANDLED;
    publisher_stats_get(app->publisher, &publisher);
    catalogue_stats_get(app->catalogue, &catalogue);

    metrics_append_process(out);
    metrics_append_config(out, app);
    metrics_append_listeners(out, app);
    append_publisher(out, &publisher);
    metrics_append_indexes(out, app->publisher);
    append_writes(out, &catalogue);
    append_registration(out, &publisher, &catalogue);
    append_file(out, &catalogue);
    append_shared(out, app->catalogue);
    append_forwarding(out, app->forward);
    metric_gauge(out, "sitemapd_reads_queued", "API reads waiting for a thread.",
                 workers_queued(app->readers));
    metric_gauge(out, "sitemapd_long_polls", "Calls of /v1/changes that wait for a change.",
                 site_uses_taken(&app->polls));
    append_log(out, app);
    if (app->crawlers != NULL)
        metrics_append_crawlers(out, app->crawlers);
    if (app->sources != NULL)
        metrics_append_sources(out, app->sources);
    if (app->remote != NULL)
        metrics_append_remote(out, app);
    metrics_append_indexnow(out, &app->indexnow);
    metrics_append_engines(out, app);
    append_trace(out, app->trace);
    if (app->files != NULL) {
        struct served_files_stats files;

        served_files_stats_get(app->files, &files);
        append_blobs(out, &files);
    }
    if (app->children != NULL) {
        struct child_store_stats children;

        child_store_stats_get(app->children, &children);
        append_children(out, &children);
    }

    reply->status = 200;
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply_header(reply, "Cache-Control", "no-store");
    return HANDLED;
}
