/* A ledger is made of the pages as they are now and of what is kept, as a server does at its start,
 * and says the same of them. */
#include "server/cli/backend/file_crawlers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/crawlers/kept.h"
#include "server/crawlers/summary.h"
#include "server/rules/scope.h"

static void tell(void *context, const char *file, unsigned line, const char *message)
{
    char what[PATH_MAX + 16] = "crawlers";

    (void)context;
    if (file != NULL)
        snprintf(what, sizeof what, "%s:%u", file, line);
    cli_fail(what, "%s", message);
}

/* The names of the configuration; without their ranges where impostors do not matter. NULL: an
 * error was reported. */
static struct crawler_names *read_names(const struct config *config, bool ranges,
                                        config_report *report, void *context)
{
    struct crawler_rule *rules = calloc(config->crawler_count + 1, sizeof *rules);
    struct crawler_names *names = NULL;
    const char *which = NULL;
    char why[512] = "out of memory", told[sizeof why + 80];
    unsigned line = 0;

    for (size_t i = 0; rules != NULL && i < config->crawler_count; i++) {
        rules[i].name = config->crawler_rules[i].named.name;
        rules[i].match_count = config->crawler_rules[i].match_count;
        rules[i].match = (const char *const *)config->crawler_rules[i].match;
        if (!ranges)
            continue;
        rules[i].range_file_count = config->crawler_rules[i].range_file_count;
        rules[i].range_files = (const char *const *)config->crawler_rules[i].range_files;
    }
    if (rules != NULL)
        names = crawler_names_new(rules, config->crawler_count, &which, why, sizeof why);
    free(rules);
    if (names != NULL)
        return names;
    for (size_t i = 0; which != NULL && i < config->crawler_count; i++)
        if (strcmp(config->crawler_rules[i].named.name, which) == 0)
            line = config->crawler_rules[i].named.line;
    snprintf(told, sizeof told, "[crawler \"%s\"]: %s", which != NULL ? which : "", why);
    report(context, config->file, line, told);
    return NULL;
}

struct crawlers *file_crawlers_new(const struct config *config, config_report *report,
                                   void *context)
{
    struct crawler_names *names = read_names(config, true, report != NULL ? report : tell, context);
    struct crawlers *c = names != NULL ? crawlers_new(names, (int64_t)time(NULL)) : NULL;

    if (c == NULL && names != NULL) {
        cli_fail("crawlers", "%s", catalogue_status_row(CATALOGUE_NO_MEMORY)->sentence);
        crawler_names_free(names);
    }
    return c;
}

static bool is_verified(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->crawler_count; i++)
        if (strcmp(config->crawler_rules[i].named.name, name) == 0)
            return config->crawler_rules[i].range_file_count > 0;
    return false;
}

static enum catalogue_status put_pages(struct crawlers *c, struct catalogue_view *view,
                                       const struct registry_index *list)
{
    enum catalogue_status status = CATALOGUE_OK;

    for (size_t i = 0; i < list->page_count && status == CATALOGUE_OK; i++) {
        struct page_record page;

        status = catalogue_view_page(view, list->id, list->pages[i], &page);
        if (status == CATALOGUE_OK && !page.removed)
            crawlers_page_is(c, page.site_id, list->id, page.number, page.revision, page.stamp,
                             page.changed_at);
        if (status == CATALOGUE_NOT_FOUND)
            status = CATALOGUE_OK;
    }
    return status;
}

/* The caller frees both, whatever the status. */
static enum catalogue_status make_ledger(struct catalogue_view *view, const struct config *config,
                                         struct registry **registry, struct crawlers **out)
{
    struct crawler_names *names = read_names(config, false, tell, NULL);
    enum catalogue_status status = catalogue_view_registry(view, registry);

    *out = names != NULL ? crawlers_new(names, (int64_t)time(NULL)) : NULL;
    if (*out == NULL) {
        crawler_names_free(names);
        return CATALOGUE_NO_MEMORY;
    }
    for (size_t i = 0; status == CATALOGUE_OK && i < (*registry)->site_count; i++) {
        const struct registry_index *list;
        for (size_t k = 0; status == CATALOGUE_OK &&
                           (list = registry_site_list(&(*registry)->sites[i], k)) != NULL;
             k++)
            status = put_pages(*out, view, list);
    }
    if (status == CATALOGUE_OK)
        status = crawlers_restore(*out, view, NULL);
    if (status == CATALOGUE_OK)
        status = crawlers_learn_all(*out, view);
    return status == CATALOGUE_OK ? crawlers_merge_imported(*out, view, &(int64_t){0}) : status;
}

static void report_crawler(const struct config *config, const char *name,
                           const struct crawler_summary *summary, int64_t now,
                           backend_crawler_each *each, void *context)
{
    struct backend_crawler told = {
        .name = name,
        .verified = is_verified(config, name),
        .last_fetch_at = summary->last_fetch_at,
        .seen_up_to = crawler_seen_up_to(summary, now),
        .stale_since = summary->stale_since,
        .pages = summary->pages,
        .current = summary->current,
        .stale = summary->stale,
        .never = summary->never,
        .lagged = crawler_lags_count(&summary->lags),
        .lag_p50 = crawler_lags_percentile(&summary->lags, 50),
        .lag_p90 = crawler_lags_percentile(&summary->lags, 90),
        .lag_max = summary->lags.max_s,
    };

    for (size_t i = 0; i < DAYS_KEPT; i++) {
        told.ok += summary->days[i].ok;
        told.not_modified += summary->days[i].not_modified;
        told.other += summary->days[i].other;
        told.impostors += summary->days[i].impostors;
    }
    each(context, &told);
}

enum catalogue_status file_crawlers(struct catalogue_view *view, const struct config *config,
                                    const struct registry_site *site, backend_crawler_each *each,
                                    void *context)
{
    if (!config->crawlers) /* as a server says that counts none: what is kept is of before */
        return CATALOGUE_OK;

    struct crawlers_summary *sums = malloc(sizeof *sums);
    struct registry *registry = NULL;
    struct crawlers *c = NULL;
    int64_t now = (int64_t)time(NULL);
    enum catalogue_status status = make_ledger(view, config, &registry, &c);

    if (sums == NULL)
        status = CATALOGUE_NO_MEMORY;
    if (status == CATALOGUE_OK) {
        crawlers_sum_up(c, registry, site != NULL ? registry_site_by_id(registry, site->id) : NULL,
                        now, sums);
        for (size_t i = 1; i < crawlers_count(c); i++)
            if (sums->of[i].met)
                report_crawler(config, crawlers_name(c, i), &sums->of[i], now, each, context);
    }
    crawlers_free(c);
    registry_unref(registry);
    free(sums);
    return status;
}

static void report_list(struct crawlers *c, size_t crawler, const struct registry_site *site,
                        const struct registry_index *list, bool stale,
                        backend_crawler_page_each *each, void *context)
{
    for (size_t i = 0; i < list->page_count; i++) {
        struct crawler_row rows[CRAWLERS_MAX];
        struct backend_crawler_page page = {0};
        size_t count = crawlers_page(c, list->id, list->pages[i], &page.changed_at, rows);
        const struct crawler_row *row = crawler_row_of(rows, count, crawler);
        char path[PAGE_PATH_SIZE];
        struct str url = STR_INIT;

        if (page.changed_at == 0 || (stale && (row == NULL || row->stale_since == 0)))
            continue;
        scope_page_path(list->path, list->page_pattern, list->pages[i], false, path);
        str_append_format(&url, "%s%s", site->origin, path);
        page.url = str_text(&url);
        if (row != NULL) {
            page.status = row->status;
            page.fetched_at = row->fetched_at;
            page.held_changed_at = row->held ? row->held_changed_at : 0;
            page.stale_since = row->stale_since;
        }
        each(context, &page);
        str_done(&url);
    }
}

enum catalogue_status file_crawler_pages(struct catalogue_view *view, const struct config *config,
                                         const char *name, bool stale,
                                         backend_crawler_page_each *each, void *context)
{
    struct registry *registry = NULL;
    struct crawlers *c = NULL;
    enum catalogue_status status = make_ledger(view, config, &registry, &c);
    size_t crawler = status == CATALOGUE_OK ? crawlers_find(c, name) : 0;

    for (size_t i = 0; crawler != 0 && i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];
        struct registry_list_at at = {0};
        const struct registry_index *list;
        while ((list = registry_next_list(site, &at)) != NULL)
            if (crawlers_reads(c, list, crawler))
                report_list(c, crawler, site, list, stale, each, context);
    }
    crawlers_free(c);
    registry_unref(registry);
    return status;
}
