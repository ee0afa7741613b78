/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Builds the crawlers' ledger from the current pages and the stored rows, as a server does at its
 * start. */
#include "server/cli/backend/file_crawlers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/cli/backend/session.h"
#include "server/crawlers/kept.h"

static void report_line(void *context, const char *file, unsigned line, const char *message)
{
    char what[PATH_MAX + 16] = "crawlers";

    (void)context;
    if (file != NULL)
        snprintf(what, sizeof what, "%s:%u", file, line);
    cli_fail(what, "%s", message);
}

/* The names and ranges of the configuration. NULL: an error was reported. */
static struct crawler_names *read_names(const struct config *config, config_report *report,
                                        void *context)
{
    struct crawler_rule *rules = calloc(config->crawler_count + 1, sizeof *rules);
    struct crawler_names *names = NULL;
    const char *which = NULL;
    char why[512] = "out of memory", sentence[sizeof why + 80];
    unsigned line = 0;

    for (size_t i = 0; rules != NULL && i < config->crawler_count; i++) {
        rules[i].name = config->crawler_rules[i].named.name;
        rules[i].match_count = config->crawler_rules[i].match_count;
        rules[i].match = (const char *const *)config->crawler_rules[i].match;
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
    snprintf(sentence, sizeof sentence, "[crawler \"%s\"]: %s", which != NULL ? which : "", why);
    report(context, config->file, line, sentence);
    return NULL;
}

struct crawlers *file_crawlers_new(const struct config *config, config_report *report,
                                   void *context)
{
    struct crawler_names *names =
        read_names(config, report != NULL ? report : report_line, context);
    struct crawlers *c = names != NULL ? crawlers_new(names, (int64_t)time(NULL)) : NULL;

    if (c == NULL && names != NULL) {
        cli_fail("crawlers", "%s", catalogue_status_row(CATALOGUE_NO_MEMORY)->sentence);
        crawler_names_free(names);
    }
    return c;
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

static enum catalogue_status fill(struct crawlers *c, struct catalogue_view *view)
{
    struct registry *registry = NULL;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    for (size_t i = 0; status == CATALOGUE_OK && i < registry->site_count; i++) {
        const struct registry_index *list;
        for (size_t k = 0;
             status == CATALOGUE_OK && (list = registry_site_list(&registry->sites[i], k)) != NULL;
             k++)
            status = put_pages(c, view, list);
    }
    registry_unref(registry);
    if (status == CATALOGUE_OK)
        status = crawlers_restore(c, view, NULL);
    if (status == CATALOGUE_OK)
        status = crawlers_learn_all(c, view);
    return status == CATALOGUE_OK ? crawlers_merge_imported(c, view, &(int64_t){0}) : status;
}

struct crawlers *file_crawlers_ledger(struct catalogue *catalogue, const struct config *config)
{
    struct crawlers *c = file_crawlers_new(config, NULL, NULL);
    struct catalogue_view *view = NULL;
    enum catalogue_status status = CATALOGUE_NO_MEMORY;

    if (c != NULL)
        status = catalogue_view_begin(catalogue, &view);
    if (status == CATALOGUE_OK)
        status = fill(c, view);
    catalogue_view_end(view);
    if (status == CATALOGUE_OK)
        return c;
    crawlers_free(c);
    return NULL;
}
