/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* sitemapd scan: one pass over a folder of sitemap files, or one poll of an upstream's index,
 * without a server. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/suggest.h"
#include "server/base/text.h"
#include "server/cli/backend/api.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"
#include "server/input/sitemap_file.h"
#include "server/rules/entry.h"
#include "server/sources/remote/remote.h"
#include "server/sources/sources.h"

/* ---- what is scanned ------------------------------------------------------------------- */

struct scan_plan {
    struct source_settings settings;
    struct registry *registry; /* has the texts of a source of the catalogue */
    char secret[CONFIG_CREDENTIALS_SIZE];
    char *map; /* owned */
};

static const struct config_source *configured(const struct cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->config->source_count; i++)
        if (strcmp(cli->config->sources[i].named.name, name) == 0)
            return &cli->config->sources[i];
    return NULL;
}

static int plan_configured(struct cli *cli, const struct config_source *source,
                           struct scan_plan *plan)
{
    char why[256];

    if (arguments_has(&cli->arguments, "--url"))
        return cli_misuse("scan",
                          "--url can only be used with a folder; [source \"%s\"] has its own",
                          source->named.name);
    if (source->is.upstream == NULL && (source->is.directory == NULL || source->is.url == NULL))
        return cli_fail(source->named.name,
                        "directory or url is missing in its section of the configuration");
    if (!config_source_settings(cli->config, source, &plan->settings, &plan->map))
        return cli_fail(source->named.name, "out of memory");
    plan->settings.settle_ms = 0;
    plan->settings.watch = plan->settings.serve = plan->settings.public_check = false;
    if (source->credentials_file == NULL)
        return EXIT_DONE;
    if (config_source_credentials(source, plan->secret, why) != NULL)
        return cli_fail(source->named.name, "%s", why);
    plan->settings.credentials = plan->secret;
    return EXIT_DONE;
}

/* Plans a source of the catalogue. `plan` holds the registry. */
static int plan_made(struct cli *cli, const struct source_settings *made, struct scan_plan *plan)
{
    if (arguments_has(&cli->arguments, "--url"))
        return cli_misuse("scan", "--url can only be used with a folder; the source %s has its own",
                          made->name);
    const struct registry_site *site = registry_site_by_id(plan->registry, made->site_id);
    plan->settings = *made;
    config_open_source(cli->config, site != NULL ? site->origin : NULL, &plan->settings);
    return EXIT_DONE;
}

static int plan_folder(struct cli *cli, const char *directory, struct scan_plan *plan)
{
    const char *url = arguments_value(&cli->arguments, "--url");
    const char *owner = arguments_value(&cli->arguments, "--source");
    struct suggestion near = {0};

    for (size_t i = 0; i < cli->config->source_count; i++)
        suggest_consider(&near, directory, cli->config->sources[i].named.name);
    if (url == NULL && near.word != NULL)
        return cli_misuse("scan", "source not found in the configuration: \"%s\"; did you mean %s?",
                          directory, near.word);
    if (url == NULL)
        return cli_misuse(
            "scan",
            "source not found in the configuration: \"%s\"; for a folder give its URL "
            "with --url",
            directory);
    if (url[0] == '\0' || url[strlen(url) - 1] != '/')
        return cli_misuse("scan", "--url must end in a slash, such as https://www.example.com/");
    if (owner != NULL && entry_check_name(owner, strlen(owner)) != RULE_OK)
        return cli_misuse("scan", "--source must be 1 to %u of A-Z a-z 0-9 . _ -", NAME_MAX_BYTES);
    plan->settings = (struct source_settings){
        .name = owner != NULL ? owner : SOURCE_OF_NO_SECTION,
        .directory = directory,
        .url = url,
    };
    return EXIT_DONE;
}

/* ---- reporting --------------------------------------------------------------------------- */

#define REMARKS_OF_A_CODE 20u /* lines for each code; further ones are counted */

struct reporting {
    struct progress bar;
    bool dry_run;
    bool of_list; /* members of a list, not files */
    uint64_t problems;
    uint64_t remarked;                 /* files */
    uint64_t remarks[RULE_CODE_COUNT]; /* files with each */
};

static void report_place(uint64_t line, uint64_t column)
{
    if (line > 0)
        printf(":%" PRIu64 ":%" PRIu64, line, column);
}

static void report_remarks(struct reporting *t, const struct source_file *file)
{
    struct sitemap_remarks remarks;
    char sentence[SITEMAP_REMARK_SENTENCE];

    sitemap_remarks_read(file->remarks, &remarks);
    t->remarked++;
    for (size_t i = 0; i < remarks.count; i++) {
        const struct sitemap_remark *remark = &remarks.at[i];

        if (t->remarks[remark->code]++ >= REMARKS_OF_A_CODE)
            continue;
        sitemap_remark_report(remark, sentence);
        printf("%-9s ", "remark");
        cli_print_escaped(stdout, file->path);
        report_place(remark->lines[0], remark->column);
        printf(": %s: ", rule_code_word(remark->code));
        cli_print_escaped(stdout, sentence);
        printf("\n");
    }
}

/* Reports the result of a split. For a list, the server that split it reports that. */
static void report_split(struct reporting *t, const struct source_file *file)
{
    printf("  %" PRIu64 " page %s", file->urls, plural(file->urls, "URL", "URLs"));
    if (file->detail != NULL && *file->detail != '\0') {
        printf(": %s", t->dry_run ? "would be: " : "");
        cli_print_escaped(stdout, file->detail);
    }
}

static void report_change(void *context, const char *what, const struct source_file *file)
{
    struct reporting *t = context;

    progress_end(&t->bar);
    if (file->problem != NULL) {
        t->problems++;
        printf("%-9s ", "problem");
        cli_print_escaped(stdout, file->path);
        report_place(file->line, file->column);
        printf(": %s", file->problem);
        if (file->detail != NULL && *file->detail != '\0') {
            printf(": ");
            cli_print_escaped(stdout, file->detail);
        }
    } else if (strcmp(what, "remarked") != 0) {
        printf("%-9s ", what);
        cli_print_escaped(stdout, file->path);
        if (file->state == SOURCE_FILE_LISTED)
            printf("  %s  %" PRIu64 " %s", file->lastmod != NULL ? file->lastmod : "-", file->urls,
                   plural(file->urls, "URL", "URLs"));
        if (file->state == SOURCE_FILE_IGNORED && file->urls > 0)
            report_split(t, file);
    } else {
        report_remarks(t, file);
        return;
    }
    printf("\n");
    if (file->state == SOURCE_FILE_LISTED && file->remarks != NULL)
        report_remarks(t, file);
}

/* Reports known problems again; otherwise a folder with problems would look like one without. */
static void report_still(void *context, const struct source_file *file)
{
    report_change(context, file->problem != NULL ? "problem" : "remarked", file);
}

static void report_progress(void *context, uint64_t files_seen, uint64_t files_read)
{
    struct reporting *t = context;

    (void)files_read;
    progress_update(&t->bar, files_seen);
}

static void report_remark_sums(const struct reporting *t)
{
    for (size_t code = 0; code < RULE_CODE_COUNT; code++)
        if (t->remarks[code] > REMARKS_OF_A_CODE)
            printf("%-9s %" PRIu64 " files in all: %s\n", "remark", t->remarks[code],
                   rule_code_word((enum rule_code)code));
}

static void report_sum(const struct reporting *t, const struct change_result *result)
{
    report_remark_sums(t);
    printf("%s%" PRIu64 " added, %" PRIu64 " updated, %" PRIu64 " removed, %" PRIu64
           " %s with a problem",
           t->dry_run ? "would be: " : "", result->created, result->updated, result->removed,
           t->problems,
           t->of_list ? plural(t->problems, "sitemap", "sitemaps")
                      : plural(t->problems, "file", "files"));
    if (t->remarked > 0)
        printf(", %" PRIu64 " with remarks", t->remarked);
    if (result->splits.files > 0)
        printf(", %" PRIu64 " split into page URLs (%" PRIu64 " added, %" PRIu64
               " updated, %" PRIu64 " removed)",
               result->splits.files, result->splits.created, result->splits.updated,
               result->splits.removed);
    printf("\n");
    if (result->would_remove > 0)
        fprintf(stderr,
                "sitemapd: scan: %" PRIu64 " %s held back (shrink guard); "
                "--max-removed %" PRIu64 " removes %s\n",
                result->would_remove,
                t->of_list
                    ? plural(result->would_remove, "entry that the upstream no longer lists is",
                             "entries that the upstream no longer lists are")
                    : plural(result->would_remove, "entry of a file that is gone is",
                             "entries of files that are gone are"),
                result->would_remove, plural(result->would_remove, "it", "them"));
}

/* `why` may begin with the folder's name, which is printed only once. */
static int report_failed(const char *name, const char *why)
{
    size_t len = strlen(name);

    if (strncmp(why, name, len) == 0 && strncmp(why + len, ": ", 2) == 0)
        why += len + 2;
    return cli_fail(name, "%s", why);
}

static enum catalogue_status poll_upstream(struct cli *cli, const struct scan_plan *plan,
                                           struct scan_once *scan)
{
    const struct config *config = cli->config;
    char agent[256];
    const struct remote_bounds bounds = {.agent = agent,
                                         .rate = config->fetch_rate,
                                         .per_host = config->fetch_per_host,
                                         .min_interval_s = config->fetch_min_interval_ms / 1000,
                                         .max_interval_s = config->fetch_max_interval_ms / 1000,
                                         .allow_addresses = config->allow_addresses};

    snprintf(agent, sizeof agent, config->contact != NULL ? "sitemapd/%s (+%s)" : "sitemapd/%s",
             SITEMAPD_VERSION, config->contact);
    return remote_scan_once(&plan->settings, &bounds, scan);
}

/* Reports problems of single files as a local scan does. */
static void report_files(const json_t *source, const char *member, const char *what)
{
    json_t *file;
    size_t i;

    json_array_foreach(json_object_get(source, member), i, file)
    {
        printf("%-9s ", what);
        cli_print_escaped(stdout, member_text(file, "path"));
        if (member_number(file, "line") > 0)
            printf(":%" PRIu64 ":%" PRIu64, member_number(file, "line"),
                   member_number(file, "column"));
        printf(": %s", member_text(file, "code"));
        if (*member_text(file, "detail") != '\0') {
            printf(": ");
            cli_print_escaped(stdout, member_text(file, "detail"));
        }
        putchar('\n');
    }
}

static void parse_counts(const json_t *answer, struct change_result *out)
{
    const json_t *splits = json_object_get(answer, "splits");

    out->created = member_number(answer, "created");
    out->updated = member_number(answer, "updated");
    out->removed = member_number(answer, "removed");
    out->would_remove = member_number(answer, "held_removals");
    out->splits.files = member_number(splits, "files");
    out->splits.created = member_number(splits, "created");
    out->splits.updated = member_number(splits, "updated");
    out->splits.removed = member_number(splits, "removed");
}

/* Scans a source on the server; problems are reported with the source. */
static int scan_on_server(struct cli *cli, const char *name)
{
    static const char *const local[] = {"--url", "--index", "--source"};
    struct reporting reporting = {.dry_run = arguments_has(&cli->arguments, "--dry-run")};
    struct backend *b = cli->backend;
    struct str target = STR_INIT, again = STR_INIT;
    struct change_result result = {0};
    json_t *answer = NULL, *source;

    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (arguments_has(&cli->arguments, local[i]))
            return cli_misuse(
                local[i], "cannot be combined with --server; run the scan on the server's machine");
    str_append_text(&target, "/v1/sources");
    target_segment(&target, name);
    str_append_text(&again, str_text(&target));
    str_append_text(&target, "/scan");
    session_add_set_options(cli, &target);
    bool good = api_call(b, "POST", str_text(&target), NULL, &answer) && api_is_good(b);
    str_done(&target);
    if (!good)
        str_done(&again);
    if (!good && strcmp(member_text(answer, "code"), "not-found") == 0) {
        json_decref(answer);
        return cli_misuse("scan", "source not found on the server: \"%s\"", name);
    }
    if (!good)
        return api_report(b, answer);
    parse_counts(answer, &result);
    json_decref(answer);
    source = api_get(b, &again);
    if (source == NULL)
        return EXIT_COULD_NOT;
    reporting.problems = member_number(source, "problems_total");
    reporting.remarked = member_number(source, "remarked");
    reporting.of_list = member_text_or_null(source, "upstream") != NULL;
    report_files(source, "problems", "problem");
    report_files(source, "remarks", "remark");
    json_decref(source);
    report_sum(&reporting, &result);
    return result.would_remove > 0 ? EXIT_COULD_NOT : EXIT_DONE;
}

int command_scan(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct scan_plan plan = {0};
    struct reporting reporting = {.dry_run = arguments_has(&cli->arguments, "--dry-run")};
    struct scan_progress progress = {report_change, report_still, report_progress, &reporting};
    struct scan_once scan = {.dry_run = reporting.dry_run, .progress = &progress};
    const struct config_source *source;
    const struct source_settings *made;
    int status = session_max_removed(cli, &scan.max_removed);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    scan.catalogue = cli->backend->catalogue;
    if (scan.catalogue == NULL)
        return scan_on_server(cli, name);
    source = configured(cli, name);
    plan.registry = api_registry(cli->backend);
    if (plan.registry == NULL)
        return EXIT_COULD_NOT;
    made = registry_source(plan.registry, name);
    status = source != NULL ? plan_configured(cli, source, &plan)
             : made != NULL ? plan_made(cli, made, &plan)
                            : plan_folder(cli, name, &plan);
    if (status == EXIT_DONE) {
        if (arguments_has(&cli->arguments, "--index"))
            plan.settings.index = arguments_value(&cli->arguments, "--index");
        reporting.of_list = plan.settings.upstream != NULL;
        progress_start(&reporting.bar, name, reporting.of_list ? "sitemaps" : "files", 0);
        enum catalogue_status scanned = plan.settings.upstream != NULL
                                            ? poll_upstream(cli, &plan, &scan)
                                            : source_scan_once(&plan.settings, &scan);
        progress_end(&reporting.bar);
        if (scanned == CATALOGUE_OK)
            report_sum(&reporting, &scan.result);
        else
            status = report_failed(name,
                                   scan.why[0] != '\0' ? scan.why : catalogue_status_word(scanned));
        if (scanned == CATALOGUE_OK && scan.result.would_remove > 0)
            status = EXIT_COULD_NOT;
        change_result_done(&scan.result);
    }
    explicit_bzero(plan.secret, sizeof plan.secret);
    free(plan.map);
    registry_unref(plan.registry);
    return status;
}
