/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The way without HTTP: the API's handlers run in this process on the catalogue's file
 * (server/api/inside.h), even while a server uses it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/api/inside.h"
#include "server/cli/backend/api.h"
#include "server/cli/backend/file_crawlers.h"
#include "server/crawlers/crawlers.h"
#include "server/engines/report/engine_report.h"
#include "server/rules/limits.h"

#define WHY_SIZE 512

/* The sources of the configuration. */
struct configured_sources {
    struct source_settings *at;
    char **maps; /* texts that the settings borrow and the configuration does not own */
    size_t count;
};

static void sources_free(struct configured_sources *sources)
{
    for (size_t i = 0; sources != NULL && sources->maps != NULL && i < sources->count; i++)
        free(sources->maps[i]);
    if (sources != NULL) {
        free(sources->maps);
        free(sources->at);
    }
    free(sources);
}

static struct configured_sources *sources_of(const struct config *config)
{
    struct configured_sources *sources = calloc(1, sizeof *sources);
    bool failed = sources == NULL;

    if (!failed) {
        sources->count = config->source_count;
        sources->at = calloc(sources->count + 1, sizeof *sources->at);
        sources->maps = calloc(sources->count + 1, sizeof *sources->maps);
        failed = sources->at == NULL || sources->maps == NULL;
    }
    for (size_t i = 0; !failed && i < sources->count; i++)
        failed = !config_source_settings(config, &config->sources[i], &sources->at[i],
                                         &sources->maps[i]);
    if (!failed)
        return sources;
    sources_free(sources);
    return NULL;
}

bool in_process(struct backend *b, const struct api_request *request, struct str *body)
{
    const struct inside_call question = {.method = request->method,
                                         .target = request->target,
                                         .accept = request->accept,
                                         .body = request->body,
                                         .take = request->take,
                                         .context = request->context};

    b->status = inside_request(b->inside, &question, body);
    if (b->status == 0)
        snprintf(b->why, sizeof b->why, "the catalogue cannot be read, or out of memory");
    return b->status != 0;
}

/* As a server's ledger at its start: from the current pages and the stored rows. */
static struct crawlers *make_ledger(void *context)
{
    struct backend *b = context;

    return file_crawlers_ledger(b->catalogue, b->cli->config);
}

static unsigned configured_engines(const struct config *config)
{
    unsigned engines = 0;

    for (size_t i = 0; i < config->engine_count; i++)
        engines |= 1u << engine_place(config->engines[i].named.name);
    return engines;
}

static int open_catalogue(struct backend *b, bool create)
{
    const struct config *config = b->cli->config;
    const struct catalogue_options options = {
        .path = config->database,
        .must_exist = !create,
        .write_timeout_ms = config_write_timeout_ms(config),
        .max_queued = config->max_queued_writes,
        .shrink_percent = config->shrink_guard_percent,
        .default_max_pages = LIMIT_SITE_PAGES,
        .history_keep_ms = config->history_keep_ms,
        .history_max_bytes = config->history_max_bytes,
        .shared = {.database = config->shared_database,
                   .follows = config->shared_follow != NULL,
                   .schema = config->shared_schema,
                   .node = config->shared_node,
                   .release = SITEMAPD_VERSION,
                   .upgrade_by_hand = true,
                   .of_shared_file =
                       b->cli->other_file && !arguments_has(&b->cli->arguments, "--shared")},
    };
    char why[WHY_SIZE];

    if (catalogue_open(&options, &b->catalogue, why, sizeof why) != CATALOGUE_OK)
        return cli_fail_file(config->database, why);
    int to, from = catalogue_upgraded_from(b->catalogue, &to);
    if (from != 0)
        fprintf(stderr,
                "sitemapd: %s: was upgraded from schema %d to schema %d; releases that know only "
                "schema %d reject it now\n",
                config->database, from, to, from);
    return EXIT_DONE;
}

int backend_open_file(struct cli *cli, bool create, struct backend **out)
{
    const struct config *config = cli->config;
    struct backend *b = calloc(1, sizeof *b);
    struct inside_options options = {.database = config->database,
                                     .page_style = config->page_style,
                                     .engines = configured_engines(config),
                                     .ledger = config->crawlers ? make_ledger : NULL,
                                     .context = b};
    int status;

    if (b == NULL || (b->configured = sources_of(config)) == NULL) {
        free(b);
        return cli_fail(config->database, "out of memory");
    }
    options.sources = b->configured->at;
    options.source_count = b->configured->count;
    b->cli = cli;
    b->name = config->database;
    session_user(b->user, sizeof b->user);
    status = open_catalogue(b, create);
    if (status == EXIT_DONE) {
        options.catalogue = b->catalogue;
        options.user = b->user;
        b->inside = inside_new(&options);
        status = b->inside != NULL ? EXIT_DONE : cli_fail(config->database, "out of memory");
    }
    if (status == EXIT_DONE)
        *out = b;
    else
        backend_close(b);
    return status;
}

void in_process_close(struct backend *b)
{
    inside_free(b->inside);
    if (b->catalogue != NULL)
        catalogue_close(b->catalogue);
    sources_free(b->configured);
}
