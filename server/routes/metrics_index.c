/* What the catalogue holds, by index. */
#include <stdio.h>

#include "server/routes/exposition.h"
#include "server/routes/metrics_parts.h"

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

static void append_family(struct str *out, struct str *samples, const char *name, const char *help,
                          const uint64_t *other)
{
    metric_family(out, name, "gauge", help);
    str_append(out, str_text(samples), samples->len);
    if (other != NULL)
        metric_sample(out, name, LABELS("index", "other"), *other);
    out->failed |= samples->failed;
    str_done(samples);
}

void metrics_append_indexes(struct str *out, struct publisher *publisher)
{
    struct census c = {.pages = STR_INIT, .entries = STR_INIT};

    publisher_each_index(publisher, count_index, &c);
    bool others = c.indexes > METRICS_MAX_INDEXES;
    metric_gauge(out, "sitemapd_indexes", "Sitemap indexes.", c.indexes);
    metric_gauge(out, "sitemapd_pages", "Pages with entries, of all indexes.", c.all_pages);
    append_family(out, &c.pages, "sitemapd_index_pages", "Pages with entries, by index.",
                  others ? &c.other_pages : NULL);
    append_family(out, &c.entries, "sitemapd_index_entries", "Sitemaps registered, by index.",
                  others ? &c.other_entries : NULL);
}
