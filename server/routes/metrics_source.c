/* How each source stands, as of its last scan. */
#include "server/routes/exposition.h"
#include "server/routes/metrics_parts.h"
#include "server/sources/sources.h"

/* One family of all sources: a gauge or counter that `value` reads. What is beyond the bound is
 * added up; of times the earliest counts (`earliest`). */
struct family {
    const char *name, *type, *help;
    uint64_t (*value)(const struct source_health *health);
    bool earliest;
};

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

static uint64_t watch_limited_of(const struct source_health *h)
{
    return h->watching == SOURCE_WATCH_LIMIT ? 1 : 0;
}

static uint64_t scans_of(const struct source_health *h)
{
    return h->scans;
}

static uint64_t files_read_of(const struct source_health *h)
{
    return h->files_read;
}

static const struct family families[] = {
    {"sitemapd_source_files", "gauge", "Files that the source knows.", files_of, false},
    {"sitemapd_source_listed", "gauge", "Of these with an entry.", listed_of, false},
    {"sitemapd_source_problems", "gauge", "Of these refused.", problems_of, false},
    {"sitemapd_source_held_removals", "gauge", "Removals that the shrink guard holds back.",
     held_of, false},
    {"sitemapd_source_last_good_scan_seconds", "gauge",
     "When the last scan was applied whole, Unix time; 0: never.", good_at_of, true},
    {"sitemapd_source_failing", "gauge", "1: the last scan could not be made.", failing_of, false},
    {"sitemapd_source_watch_limited", "gauge",
     "1: the kernel's limit of watches is reached, rescans alone find changes.", watch_limited_of,
     false},
    {"sitemapd_source_scans_total", "counter", "Scans since the start.", scans_of, false},
    {"sitemapd_source_files_read_total", "counter", "Files verified.", files_read_of, false},
};

static void append_family(struct str *out, const struct family *family,
                          const struct source_list *list)
{
    size_t count = sources_count(list);
    uint64_t other = family->earliest ? UINT64_MAX : 0;

    metric_family(out, family->name, family->type, family->help);
    for (size_t at = 0; at < count; at++) {
        struct source_health health;

        sources_health(list, at, &health);
        uint64_t value = family->value(&health);
        if (at < METRICS_MAX_SOURCES)
            metric_sample(out, family->name, LABELS("source", health.name), value);
        else if (!family->earliest)
            other += value;
        else if (value < other)
            other = value;
    }
    if (count > METRICS_MAX_SOURCES)
        metric_sample(out, family->name, LABELS("source", "other"), other);
}

void metrics_append_sources(struct str *out, struct sources *sources)
{
    struct source_list *list = sources_hold(sources);
    for (size_t i = 0; sources_count(list) > 0 && i < sizeof families / sizeof families[0]; i++)
        append_family(out, &families[i], list);
    sources_let_go(list);
}
