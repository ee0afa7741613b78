/* `crawlers`: up to when each crawler has seen all changes, and which pages one holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/cli/backend/backend.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/lastmod.h"

struct telling {
    bool json, stale;
    const char *name;   /* the crawler whose pages are wanted; NULL: the crawlers */
    const char *origin; /* NULL: every site */
    bool came;          /* `name` did */
    uint64_t rows;
};

static void append_time(struct str *out, const char *name, int64_t at)
{
    char text[21];

    if (at != 0)
        lastmod_format_utc(at, text);
    str_append_json_member(out, name, at != 0 ? text : NULL);
}

static void print_time(int64_t at)
{
    char text[21] = "-";

    if (at != 0)
        lastmod_format_utc(at, text);
    printf("  %-20s", text);
}

static void append_lag(struct str *out, const struct backend_crawler *crawler)
{
    if (crawler->lagged == 0)
        str_append_text(out,
                        ",\"lag\":{\"p50_s\":null,\"p90_s\":null,\"max_s\":null,\"changes\":0}");
    else
        str_append_format(out,
                          ",\"lag\":{\"p50_s\":%" PRIu64 ",\"p90_s\":%" PRIu64 ",\"max_s\":%" PRIu64
                          ",\"changes\":%" PRIu64 "}",
                          crawler->lag_p50, crawler->lag_p90, crawler->lag_max, crawler->lagged);
}

/* As the API tells it, with the sums of its days. */
static void print_crawler_json(const struct backend_crawler *crawler)
{
    struct str out = STR_INIT;

    str_append_text(&out, "{\"name\":");
    str_append_json_text(&out, crawler->name);
    str_append_format(&out, ",\"verified\":%s", crawler->verified ? "true" : "null");
    append_time(&out, "last_fetch_at", crawler->last_fetch_at);
    append_time(&out, "seen_up_to", crawler->seen_up_to);
    str_append_format(&out,
                      ",\"pages\":%" PRIu64 ",\"current\":%" PRIu64 ",\"stale\":%" PRIu64
                      ",\"never\":%" PRIu64,
                      crawler->pages, crawler->current, crawler->stale, crawler->never);
    append_time(&out, "stale_since", crawler->stale_since);
    append_lag(&out, crawler);
    str_append_format(&out,
                      ",\"ok\":%" PRIu64 ",\"not_modified\":%" PRIu64 ",\"other\":%" PRIu64
                      ",\"impostors\":%" PRIu64 "}\n",
                      crawler->ok, crawler->not_modified, crawler->other, crawler->impostors);
    fputs(str_text(&out), stdout);
    str_done(&out);
}

static void print_crawler(const struct backend_crawler *crawler, bool heading)
{
    if (heading)
        printf("%s%-20s  %-20s  %-20s  %7s  %7s  %7s%s\n", ink_on(stdout, INK_HEADING), "CRAWLER",
               "LAST FETCH", "SEEN UP TO", "CURRENT", "STALE", "NEVER", ink_off(stdout));
    cli_print_escaped(stdout, crawler->name);
    printf("%*s", strlen(crawler->name) < 20 ? 20 - (int)strlen(crawler->name) : 0, "");
    print_time(crawler->last_fetch_at);
    print_time(crawler->seen_up_to);
    printf("  %7" PRIu64 "  %7" PRIu64 "  %7" PRIu64 "\n", crawler->current, crawler->stale,
           crawler->never);
}

static void report_crawler(void *context, const struct backend_crawler *crawler)
{
    struct telling *t = context;

    if (t->name != NULL) {
        t->came |= strcmp(t->name, crawler->name) == 0;
        return;
    }
    if (t->stale && crawler->stale == 0)
        return;
    if (t->json)
        print_crawler_json(crawler);
    else
        print_crawler(crawler, t->rows == 0);
    t->rows++;
}

static void print_page_json(const struct backend_crawler_page *page)
{
    struct str out = STR_INIT;

    str_append_text(&out, "{\"url\":");
    str_append_json_text(&out, page->url);
    append_time(&out, "fetched_at", page->fetched_at);
    if (page->status != 0)
        str_append_format(&out, ",\"status\":%u", page->status);
    else
        str_append_text(&out, ",\"status\":null");
    append_time(&out, "held_changed_at", page->held_changed_at);
    append_time(&out, "changed_at", page->changed_at);
    append_time(&out, "stale_since", page->stale_since);
    str_append_text(&out, "}\n");
    fputs(str_text(&out), stdout);
    str_done(&out);
}

static void print_page(const struct backend_crawler_page *page, bool heading)
{
    if (heading)
        printf("%s%-7s  %-20s  %-20s  %s%s\n", ink_on(stdout, INK_HEADING), "HOLDS", "LAST FETCH",
               "STALE SINCE", "PAGE", ink_off(stdout));
    printf("%-7s", page->held_changed_at == 0 ? "never"
                   : page->stale_since != 0   ? "stale"
                                              : "current");
    print_time(page->fetched_at);
    print_time(page->stale_since);
    fputs("  ", stdout);
    cli_print_escaped(stdout, page->url);
    putchar('\n');
}

static void report_page(void *context, const struct backend_crawler_page *page)
{
    struct telling *t = context;
    size_t len = t->origin != NULL ? strlen(t->origin) : 0;

    if (t->origin != NULL && (strncmp(page->url, t->origin, len) != 0 || page->url[len] != '/'))
        return;
    if (t->json)
        print_page_json(page);
    else
        print_page(page, t->rows == 0);
    t->rows++;
}

static int show(struct cli *cli, const struct registry_site *site, struct telling *t)
{
    int status = cli->backend->calls->crawlers(cli->backend, site, report_crawler, t);

    if (status == EXIT_DONE && t->name != NULL && !t->came)
        return cli_fail(t->name,
                        "crawler not found; `sitemapd crawlers` shows those that have visited");
    if (status == EXIT_DONE && t->name != NULL)
        status =
            cli->backend->calls->crawler_pages(cli->backend, t->name, t->stale, report_page, t);
    if (status != EXIT_DONE || t->json)
        return status;
    if (t->rows == 0)
        cli_note("crawlers", t->stale          ? "no crawler is stale"
                             : t->name != NULL ? "it has fetched no page"
                                               : "no crawler has visited yet");
    if (cli->backend->catalogue != NULL)
        cli_note("crawlers", "read from the catalogue, which a running server updates once a "
                             "minute; --server shows the current state");
    return status;
}

int command_crawlers(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    const char *origin = arguments_value(a, "--site");
    struct telling t = {.json = arguments_has(a, "--json"),
                        .stale = arguments_has(a, "--stale"),
                        .name = a->word_count > 0 ? a->words[0] : NULL};
    const struct registry_site *site = NULL;
    struct registry *registry;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    registry = session_registry(cli, REGISTRY_HELD);
    if (registry == NULL)
        return EXIT_COULD_NOT;
    if (origin != NULL)
        status = names_site(registry, origin, &site);
    t.origin = site != NULL ? site->origin : NULL;
    if (status == EXIT_DONE)
        status = show(cli, site, &t);
    registry_unref(registry);
    return status;
}
