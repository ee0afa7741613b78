/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `engines`: prints what search engines report about the sitemaps. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"

/* A time as the API writes it, to the minute. */
static void print_time(const char *before, const json_t *object, const char *name)
{
    const char *text = member_text(object, name);
    if (strlen(text) < 16)
        printf("%s%-16s", before, "-");
    else
        printf("%s%.10s %.5s", before, text, text + 11);
}

static void print_heading(const char *text)
{
    printf("%s%s%s\n", ink_on(stdout, INK_HEADING), text, ink_off(stdout));
}

static enum ink ink_of(const char *state)
{
    return strcmp(state, "ok") == 0        ? INK_GOOD
           : strcmp(state, "waiting") == 0 ? INK_FAINT
                                           : INK_WRONG;
}

static void print_state(const json_t *object)
{
    const char *state = member_text(object, "state");
    printf("%s%-9s%s", ink_on(stdout, ink_of(state)), state, ink_off(stdout));
}

static void print_reason(const json_t *object, const char *of)
{
    const char *reason = member_text(object, "reason");
    if (*reason == '\0')
        return;
    printf("%s: ", of);
    cli_print_escaped(stdout, reason);
    putchar('\n');
}

static void print_engines(const json_t *engines)
{
    size_t i;
    const json_t *engine;
    print_heading("ENGINE   STATE      QUERIED (UTC)     SITEMAPS  ERRORS  WARNINGS  OLDEST READ");
    json_array_foreach(engines, i, engine)
    {
        printf("%-7s  ", member_text(engine, "name"));
        print_state(engine);
        print_time("  ", engine, "asked_at");
        printf("  %8" PRIu64 "  %6" PRIu64 "  %8" PRIu64, member_number(engine, "sitemaps"),
               member_number(engine, "errors"), member_number(engine, "warnings"));
        print_time("  ", engine, "read_at");
        putchar('\n');
    }
    json_array_foreach(engines, i, engine) print_reason(engine, member_text(engine, "name"));
}

static void print_sitemap(const json_t *sitemap)
{
    const char *state = !json_is_true(json_object_get(sitemap, "listed"))   ? "sent"
                        : json_is_true(json_object_get(sitemap, "pending")) ? "pending"
                        : member_number(sitemap, "errors") > 0              ? "errors"
                        : member_number(sitemap, "warnings") > 0            ? "warnings"
                                                                            : "ok";
    printf("%-8s", state);
    print_time("  ", sitemap,
               *member_text(sitemap, "submitted_at") != '\0' ? "submitted_at" : "sent_at");
    print_time("  ", sitemap, "read_at");
    printf("  %6" PRIu64 "  %8" PRIu64 "  %9" PRIu64 "  %s", member_number(sitemap, "errors"),
           member_number(sitemap, "warnings"), member_number(sitemap, "urls"),
           *member_text(sitemap, "index") != '\0' ? "  " : "");
    cli_print_escaped(stdout, member_text(sitemap, "loc"));
    putchar('\n');
}

static void print_sites(const json_t *sites)
{
    size_t i, k;
    const json_t *site, *sitemap;
    json_array_foreach(sites, i, site)
    {
        if (i > 0)
            putchar('\n');
        printf("%s  ", member_text(site, "site"));
        print_state(site);
        print_time("  queried ", site, "asked_at");
        print_time(", again ", site, "next_at");
        putchar('\n');
        print_reason(site, "  reason");
        if (json_array_size(json_object_get(site, "sitemaps")) == 0)
            continue;
        print_heading(
            "STATE     SUBMITTED (UTC)   READ (UTC)        ERRORS  WARNINGS  PAGE URLS  SITEMAP");
        json_array_foreach(json_object_get(site, "sitemaps"), k, sitemap) print_sitemap(sitemap);
    }
}

int command_engines(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    const char *origin = arguments_value(a, "--site");
    const char *name = a->word_count > 0 ? a->words[0] : NULL;
    const json_t *site = NULL, *row;
    struct str target = STR_INIT;
    json_t *rows;
    size_t i;
    int status = session_open(cli, false);
    if (status == EXIT_DONE && origin != NULL)
        status = names_site(cli, origin, &site);
    if (status != EXIT_DONE)
        return status;
    str_append_text(&target, "/v1/engines");
    if (name != NULL)
        target_segment(&target, name);
    str_append_text(&target, name != NULL ? "/sitemaps" : "");
    target_add(&target, "site", member_text_or_null(site, "origin"));
    rows = name != NULL ? api_get_all(cli->backend, str_text(&target), "sites")
                        : api_get_array(cli->backend, str_text(&target), "engines");
    str_done(&target);
    if (rows == NULL)
        return EXIT_COULD_NOT;
    if (arguments_has(a, "--json"))
        json_array_foreach(rows, i, row) output_json(row);
    else if (json_array_size(rows) == 0)
        cli_warn("engines", name == NULL ? "no search engine is configured; docs/engines.md shows "
                                           "how to add an [engine] section"
                                         : "there is no site yet");
    else if (name == NULL)
        print_engines(rows);
    else
        print_sites(rows);
    json_decref(rows);
    return EXIT_DONE;
}
