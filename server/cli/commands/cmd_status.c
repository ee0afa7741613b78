/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `status`: prints an overview of what is served, and its health. */
#include <inttypes.h>
#include <string.h>

#include "db/check.h"
#include "db/shared.h"
#include "server/base/text.h"
#include "server/cli/commands/shards.h"
#include "server/cli/output.h"

#define PROBLEMS_SHOWN 5 /* of each source and of the checks */
#define CALLS_MAX      1000

/* The sums of all indexes, or of all urlsets. */
struct summary {
    size_t lists;
    uint64_t pages, entries, bytes;
    const char *changed_at; /* NULL: never; borrowed */
    bool is_unknown;        /* entries and bytes, to this token */
};

/* The responses, all owned. */
struct overview {
    json_t *ready, *api, *sources;
    json_t *forwarding; /* NULL: the server applies its writes */
    json_t *checks;     /* the first bad ones; NULL: not requested */
    const char *state, *version;
    struct summary indexes, urlsets;
};

static void sum_up(const json_t *lists, struct summary *out)
{
    const json_t *list;
    size_t i;

    json_array_foreach(lists, i, list)
    {
        const char *changed = member_text_or_null(list, "changed_at");

        out->lists++;
        out->pages += json_array_size(json_object_get(list, "pages"));
        out->is_unknown |= json_is_null(json_object_get(list, "entries"));
        out->entries += member_number(list, "entries");
        out->bytes += member_number(list, "bytes");
        if (changed != NULL && (out->changed_at == NULL || strcmp(changed, out->changed_at) > 0))
            out->changed_at = changed;
    }
}

/* `*forwarding` (may be NULL) is owned; NULL: the server applies its writes. */
static json_t *fetch_ready(struct backend *b, const char **state, json_t **forwarding)
{
    json_t *ready = NULL, *reasons;

    if (!api_call(b, "GET", "/readyz", NULL, &ready)) {
        api_report(b, ready);
        return NULL;
    }
    *state = b->status == 503                             ? "unavailable"
             : status_is_ok(member_text(ready, "status")) ? "ok"
                                                          : "degraded";
    reasons = json_incref(json_object_get(ready, "reasons"));
    if (forwarding != NULL)
        *forwarding = json_incref(json_object_get(ready, "forwarding"));
    json_decref(ready);
    return reasons != NULL ? reasons : json_array();
}

json_t *status_reasons(struct backend *b, const char **state)
{
    return fetch_ready(b, state, NULL);
}

bool status_is_ok(const char *state)
{
    return strcmp(state, "ok") == 0;
}

/* Whether PostgreSQL answers, of a catalogue that several machines share. */
static void check_shared(const struct cli *cli, struct overview *o)
{
    char why[512] = "";
    const struct catalogue_shared shared = {.database = cli->config->shared_database,
                                            .schema = cli->config->shared_schema};
    struct share_status found;
    struct shared_state state;

    if (cli->backend->catalogue == NULL || shared.database == NULL ||
        !catalogue_shared_state(cli->backend->catalogue, &state) ||
        catalogue_share_status(&shared, &found, NULL, NULL, why, sizeof why) == CATALOGUE_OK)
        return;
    o->state = "degraded";
    json_array_append_new(o->ready, json_pack("{s:s, s:s}", "code", "shared-unavailable", "detail",
                                              why[0] != '\0' ? why : "PostgreSQL does not answer"));
}

/* The first bad ones. A call looks at a bounded part of the sitemaps; the number of calls is
 * bounded so that no server can keep the command waiting forever. */
static json_t *fetch_bad_checks(struct backend *b)
{
    json_t *found = json_array(), *answer = NULL;
    const char *next = NULL;
    unsigned calls = 0;

    do {
        struct str target = STR_INIT;
        str_append_text(&target, "/v1/checks");
        target_add(&target, "state", "bad");
        target_add_number(&target, "limit", (int64_t)(PROBLEMS_SHOWN - json_array_size(found)));
        target_add(&target, "after", next);
        json_decref(answer);
        answer = api_get(b, &target);
        next = member_text_or_null(answer, "next");
        if (answer == NULL || json_array_extend(found, json_object_get(answer, "checks")) != 0) {
            if (answer != NULL)
                cli_fail(b->name, "unexpected response: not from the API of sitemapd");
            json_decref(found);
            found = NULL;
        }
    } while (found != NULL && next != NULL && json_array_size(found) < PROBLEMS_SHOWN &&
             ++calls < CALLS_MAX);
    json_decref(answer);
    return found;
}

static int fetch_overview(struct cli *cli, struct overview *out)
{
    struct backend *b = cli->backend;
    const json_t *indexes = api_sites(b) != NULL ? api_lists(b, LIST_INDEX) : NULL;
    const json_t *urlsets = indexes != NULL ? api_lists(b, LIST_URLSET) : NULL;
    struct str target = STR_INIT;

    if (urlsets == NULL || (out->ready = fetch_ready(b, &out->state, &out->forwarding)) == NULL)
        return EXIT_COULD_NOT;
    check_shared(cli, out);
    str_append_text(&target, "/openapi.json");
    out->api = api_get(b, &target);
    if (out->api == NULL || (out->sources = api_get_array(b, "/v1/sources", "sources")) == NULL)
        return EXIT_COULD_NOT;
    if (!arguments_has(&cli->arguments, "--json") && (out->checks = fetch_bad_checks(b)) == NULL)
        return EXIT_COULD_NOT;
    out->version = member_text(json_object_get(out->api, "info"), "version");
    sum_up(indexes, &out->indexes);
    sum_up(urlsets, &out->urlsets);
    return EXIT_DONE;
}

/* ---- as text --------------------------------------------------------------------------- */

static uint64_t count_bad(const json_t *checks)
{
    uint64_t counts[CHECK_STATES];

    for (unsigned i = 0; i < CHECK_STATES; i++)
        counts[i] = member_number(checks, check_state_word((enum check_state)i));
    return check_count_bad(counts);
}

/* Names and reasons may come from users: escape them. */
static void print_source(const json_t *source)
{
    uint64_t files = member_number(source, "files");
    uint64_t bad =
        member_number(source, "quarantined") + count_bad(json_object_get(source, "checks"));
    bool remote = strcmp(member_text(source, "kind"), "remote") == 0;
    const char *good = member_text_or_null(source, "last_good_scan_at");
    const char *failure = member_text_or_null(source, "failure");

    fputs("  ", stdout);
    cli_print_escaped(stdout, member_text(source, "name"));
    printf("%*s  %" PRIu64 " of %" PRIu64 " %s listed, %" PRIu64 " with a problem, %" PRIu64
           " held; scanned %s",
           strlen(member_text(source, "name")) < 20 ? 20 - (int)strlen(member_text(source, "name"))
                                                    : 0,
           "", member_number(source, "listed"), files,
           remote ? plural(files, "sitemap", "sitemaps") : plural(files, "file", "files"), bad,
           member_number(source, "held_removals"), good != NULL ? good : "never");
    if (member_number(source, "held_removals") > 0 &&
        json_is_true(json_object_get(source, "serve")) && !remote)
        fputs("; of held files that are gone, crawlers get the last version in memory, else 503",
              stdout);
    if (member_text_or_null(source, "directory") == NULL &&
        member_text_or_null(source, "upstream") == NULL)
        fputs("; not declared here: --config FILE or --server URL shows whether a server reads it; "
              "if none does, remove it with `sitemapd source remove`",
              stdout);
    if (failure != NULL) {
        fputs("; failing: ", stdout);
        cli_print_escaped(stdout, failure);
    }
    putchar('\n');
}

/* `what` (NULL: nothing) is a source's name before a path. */
static void print_problem(const char *what, const char *name, const json_t *problem)
{
    fputs("  ", stdout);
    if (what != NULL) {
        cli_print_escaped(stdout, what);
        fputs(": ", stdout);
    }
    cli_print_escaped(stdout, name);
    fputs(": ", stdout);
    if (member_number(problem, "line") > 0)
        printf("line %" PRIu64 ": ", member_number(problem, "line"));
    cli_print_escaped(stdout, member_text(problem, "detail"));
    printf(" (%s)\n", member_text(problem, "code"));
}

/* The first problems of each source's list and files, and of sitemaps that are polled. */
static void print_problems(const struct overview *o)
{
    const json_t *source, *problem, *check;
    size_t i, j;

    json_array_foreach(o->sources, i, source)
    {
        json_array_foreach(json_object_get(source, "problems"), j, problem)
        {
            if (j == PROBLEMS_SHOWN)
                break;
            print_problem(member_text(source, "name"), member_text(problem, "path"), problem);
        }
    }
    json_array_foreach(o->checks, i, check)
        print_problem(NULL, member_text(check, "loc"), json_object_get(check, "check"));
}

/* Prints the rest of the line after the number of lists. */
static void print_sum(const struct summary *sum, const char *one, const char *many)
{
    printf(", %" PRIu64 " %s", sum->pages, plural(sum->pages, "page", "pages"));
    if (!sum->is_unknown)
        printf(", %" PRIu64 " %s, %" PRIu64 " bytes", sum->entries, plural(sum->entries, one, many),
               sum->bytes);
    printf("; changed %s\n", sum->changed_at != NULL ? sum->changed_at : "never");
}

static void print_forwarding(const json_t *forwarding)
{
    if (forwarding == NULL)
        return;
    fputs("forwards writes to ", stdout);
    cli_print_escaped(stdout, member_text(forwarding, "to"));
    printf(" (%s): %" PRIu64 " answered, %" PRIu64 " applied here, %" PRIu64 " failed, %" PRIu64
           " unknown\n",
           member_text(forwarding, "reason"), member_number(forwarding, "answered"),
           member_number(forwarding, "direct"), member_number(forwarding, "failed"),
           member_number(forwarding, "unknown"));
}

static void print_text(struct backend *b, const struct overview *o)
{
    size_t sites = json_array_size(api_sites(b)), i;
    const struct summary *indexes = &o->indexes, *urlsets = &o->urlsets;
    const json_t *reason, *source;
    size_t problems = json_array_size(o->checks);
    bool is_served = b->catalogue == NULL || catalogue_is_served(b->catalogue);
    enum ink ink = status_is_ok(o->state) && is_served ? INK_GOOD : INK_WARNING;

    printf("%s%s%s: sitemapd %s, %s%s%s%s\n", ink_on(stdout, INK_HEADING), b->name, ink_off(stdout),
           o->version, ink_on(stdout, ink), o->state,
           is_served ? "" : "; no server runs on this catalogue", ink_off(stdout));
    json_array_foreach(o->ready, i, reason)
    {
        fputs("  ", stdout);
        cli_print_escaped(stdout, member_text(reason, "detail"));
        printf(" (%s)\n", member_text(reason, "code"));
    }
    print_forwarding(o->forwarding);
    printf("%zu %s, %zu %s", sites, plural(sites, "site", "sites"), indexes->lists,
           plural(indexes->lists, "index", "indexes"));
    print_sum(indexes, "entry", "entries");
    if (urlsets->lists > 0) {
        printf("%zu %s", urlsets->lists, plural(urlsets->lists, "urlset", "urlsets"));
        print_sum(urlsets, "page URL", "page URLs");
    }
    if (json_array_size(o->sources) > 0)
        printf("sources:\n");
    json_array_foreach(o->sources, i, source)
    {
        print_source(source);
        problems += json_array_size(json_object_get(source, "problems"));
    }
    if (problems > 0) {
        printf("the first problems (docs/remote.md#codes explains the codes):\n");
        print_problems(o);
    }
}

/* ---- as JSON --------------------------------------------------------------------------- */

static void print_json(struct backend *b, const struct overview *o)
{
    const struct summary *indexes = &o->indexes;
    json_t *object = json_pack(
        "{s:s, s:s, s:b, s:O, s:I, s:I, s:I, s:o, s:o, s:s?, s:I, s:o, s:O}", "catalogue", b->name,
        "version", o->version, "healthy", status_is_ok(o->state), "reasons", o->ready, "sites",
        (json_int_t)json_array_size(api_sites(b)), "indexes", (json_int_t)indexes->lists, "pages",
        (json_int_t)indexes->pages, "entries",
        output_json_count(indexes->entries, indexes->is_unknown), "bytes",
        output_json_count(indexes->bytes, indexes->is_unknown), "changed_at", indexes->changed_at,
        "urlsets", (json_int_t)o->urlsets.lists, "urls",
        output_json_count(o->urlsets.entries, o->urlsets.is_unknown), "sources", o->sources);

    if (o->forwarding != NULL)
        json_object_set(object, "forwarding", o->forwarding);
    output_json(object);
    json_decref(object);
}

int command_status(struct cli *cli)
{
    struct overview overview = {0};
    size_t servers = 0;

    for (size_t i = 0; i < cli->arguments.given_count; i++)
        servers += strcmp(cli->arguments.given[i].name, "--server") == 0;
    if (servers > 1)
        return shards_status(cli);
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = fetch_overview(cli, &overview);
    if (status == EXIT_DONE)
        (arguments_has(&cli->arguments, "--json") ? print_json : print_text)(cli->backend,
                                                                             &overview);
    if (status == EXIT_DONE && !status_is_ok(overview.state))
        status = EXIT_COULD_NOT;
    json_decref(overview.ready);
    json_decref(overview.forwarding);
    json_decref(overview.api);
    json_decref(overview.sources);
    json_decref(overview.checks);
    return status;
}
