/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `crawlers`: up to when each crawler has seen all changes, and which pages one holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"

static void print_time(const json_t *object, const char *name)
{
    const char *text = member_text_or_null(object, name);

    printf("  %-20s", text != NULL ? text : "-");
}

static void print_crawler(const json_t *crawler, bool heading)
{
    const char *name = member_text(crawler, "name");

    if (heading)
        printf("%s%-20s  %-20s  %-20s  %7s  %7s  %7s%s\n", ink_on(stdout, INK_HEADING), "CRAWLER",
               "LAST FETCH", "SEEN UP TO", "CURRENT", "STALE", "NEVER", ink_off(stdout));
    cli_print_escaped(stdout, name);
    printf("%*s", strlen(name) < 20 ? 20 - (int)strlen(name) : 0, "");
    print_time(crawler, "last_fetch_at");
    print_time(crawler, "seen_up_to");
    printf("  %7" PRIu64 "  %7" PRIu64 "  %7" PRIu64 "\n", member_number(crawler, "current"),
           member_number(crawler, "stale"), member_number(crawler, "never"));
}

static void print_page(const json_t *page, bool heading)
{
    if (heading)
        printf("%s%-7s  %-20s  %-20s  %s%s\n", ink_on(stdout, INK_HEADING), "HOLDS", "LAST FETCH",
               "STALE SINCE", "PAGE", ink_off(stdout));
    printf("%-7s", member_text_or_null(page, "held_changed_at") == NULL ? "never"
                   : member_text_or_null(page, "stale_since") != NULL   ? "stale"
                                                                        : "current");
    print_time(page, "fetched_at");
    print_time(page, "stale_since");
    fputs("  ", stdout);
    cli_print_escaped(stdout, member_text(page, "url"));
    putchar('\n');
}

/* Prints the pages of the site (NULL: of all sites) that the crawler holds. */
static int show_pages(struct cli *cli, const char *name, const char *origin)
{
    bool json = arguments_has(&cli->arguments, "--json");
    bool stale = arguments_has(&cli->arguments, "--stale");
    size_t len = origin != NULL ? strlen(origin) : 0, rows = 0, i;
    struct str target = STR_INIT;
    json_t *pages, *page;

    str_append_text(&target, "/v1/crawlers");
    target_segment(&target, name);
    str_append_text(&target, "/pages");
    target_add(&target, "stale", stale ? "1" : NULL);
    pages = api_get_all(cli->backend, str_text(&target), "pages");
    str_done(&target);
    json_array_foreach(pages, i, page)
    {
        const char *url = member_text(page, "url");

        if (origin != NULL && (strncmp(url, origin, len) != 0 || url[len] != '/'))
            continue;
        if (json)
            output_json(page);
        else
            print_page(page, rows == 0);
        rows++;
    }
    if (pages != NULL && rows == 0 && !json)
        cli_warn("crawlers", "%s", stale ? "no crawler is stale" : "it has fetched no page");
    json_decref(pages);
    return pages != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

static void show_crawlers(struct cli *cli, const json_t *crawlers)
{
    bool json = arguments_has(&cli->arguments, "--json");
    bool stale = arguments_has(&cli->arguments, "--stale");
    const json_t *crawler;
    size_t rows = 0, i;

    json_array_foreach(crawlers, i, crawler)
    {
        if (stale && member_number(crawler, "stale") == 0)
            continue;
        if (json)
            output_json(crawler);
        else
            print_crawler(crawler, rows == 0);
        rows++;
    }
    if (rows == 0 && !json)
        cli_warn("crawlers", "%s", stale ? "no crawler is stale" : "no crawler has visited yet");
}

static bool was_seen(const json_t *crawlers, const char *name)
{
    const json_t *crawler;
    size_t i;

    json_array_foreach(crawlers, i, crawler)
    {
        if (strcmp(member_text(crawler, "name"), name) == 0)
            return true;
    }
    return false;
}

int command_crawlers(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    const char *origin = arguments_value(a, "--site");
    const char *name = a->word_count > 0 ? a->words[0] : NULL;
    struct str path = STR_INIT;
    const json_t *site = NULL;
    json_t *crawlers;
    int status = session_open(cli, false);

    if (status == EXIT_DONE && origin != NULL)
        status = names_site(cli, origin, &site);
    if (status != EXIT_DONE)
        return status;
    origin = member_text_or_null(site, "origin");
    str_append_text(&path, "/v1/crawlers");
    target_add(&path, "site", origin);
    crawlers = api_get_array(cli->backend, str_text(&path), "crawlers");
    str_done(&path);
    if (crawlers == NULL)
        return EXIT_COULD_NOT;
    if (name == NULL)
        show_crawlers(cli, crawlers);
    else if (was_seen(crawlers, name))
        status = show_pages(cli, name, origin);
    else
        status = cli_fail(name, "crawler not found; `sitemapd crawlers` shows those that have "
                                "visited");
    if (status == EXIT_DONE && cli->backend->catalogue != NULL && !arguments_has(a, "--json"))
        cli_warn("crawlers", "read from the catalogue, which a running server updates once a "
                             "minute; --server shows the current state");
    json_decref(crawlers);
    return status;
}
