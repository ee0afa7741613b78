/* The process_ family that every Prometheus client has. */
#include "server/measure/process.h"
#include "server/routes/exposition.h"
#include "server/routes/metrics_parts.h"

#ifndef SITEMAPD_VERSION
#define SITEMAPD_VERSION "unknown"
#endif

void metrics_append_process(struct str *out)
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
    metric_gauge(out, "process_open_fds", "Descriptors now open.", usage.open_fds);
    if (usage.max_fds != UINT64_MAX)
        metric_gauge(out, "process_max_fds", "Descriptors that may be open.", usage.max_fds);
}
