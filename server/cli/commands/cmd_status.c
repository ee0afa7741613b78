/* `status`: what is served, and how it stands, at a glance. */
#include <inttypes.h>
#include <string.h>

#include "server/base/text.h"
#include "server/cli/backend/backend.h"
#include "server/cli/commands/commands.h"
#include "server/cli/commands/shards.h"
#include "server/cli/output.h"
#include "server/rules/lastmod.h"

/* Of all indexes, or of all urlsets. */
struct summary {
    size_t lists;
    uint64_t pages, entries, bytes;
    int64_t changed_at;
    bool untold; /* entries and bytes, to this token */
};

struct sources_told {
    bool json;
    bool any;
    struct str out;
};

static void append_source(void *context, const struct backend_source *source)
{
    struct sources_told *told = context;
    struct str *out = &told->out;
    char good[21] = "never";

    if (source->good_at != 0)
        lastmod_format_utc(source->good_at, good);
    if (!told->json) {
        str_append_format(out,
                          "  %-20s  %" PRIu64 " of %" PRIu64 " %s listed, %" PRIu64
                          " with a problem, %" PRIu64 " held; scanned %s%s%s\n",
                          source->name, source->listed, source->files,
                          source->of_list ? plural(source->files, "sitemap", "sitemaps")
                                          : plural(source->files, "file", "files"),
                          source->quarantined + source->bad, source->held, good,
                          source->failure != NULL ? "; failing: " : "",
                          source->failure != NULL ? source->failure : "");
    } else {
        str_append_text(out, told->any ? ",{\"name\":" : "{\"name\":");
        str_append_json_text(out, source->name);
        str_append_format(out,
                          ",\"files\":%" PRIu64 ",\"listed\":%" PRIu64 ",\"quarantined\":%" PRIu64
                          ",\"bad\":%" PRIu64 ",\"held_removals\":%" PRIu64
                          ",\"remarked\":%" PRIu64,
                          source->files, source->listed, source->quarantined, source->bad,
                          source->held, source->remarked);
        str_append_json_member(out, "last_good_scan_at", source->good_at != 0 ? good : NULL);
        str_append_json_member(out, "failure", source->failure);
        str_append_char(out, '}');
    }
    told->any = true;
}

static int add_list(struct backend *b, const struct registry_index *list, struct summary *out)
{
    out->lists++;
    for (size_t n = 0; n < list->page_count; n++) {
        struct backend_page page;
        int status = b->calls->page(b, list, list->pages[n], &page);

        if (status != EXIT_DONE)
            return status;
        out->pages++;
        out->untold |= page.untold;
        out->entries += page.entries;
        out->bytes += page.bytes;
        if (page.changed_at > out->changed_at)
            out->changed_at = page.changed_at;
    }
    return EXIT_DONE;
}

static int sum_up(struct backend *b, const struct registry *registry, struct summary *indexes,
                  struct summary *urlsets)
{
    const struct registry_index *list;
    int status = EXIT_DONE;

    for (size_t i = 0; i < registry->site_count; i++)
        for (size_t k = 0;
             status == EXIT_DONE && (list = registry_site_list(&registry->sites[i], k)) != NULL;
             k++)
            status = add_list(b, list, list->kind == LIST_URLSET ? urlsets : indexes);
    return status;
}

/* Names and reasons are not this program's own. */
static void print_lines(const char *text, const char *before)
{
    char line[1024];

    for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(len < sizeof line ? len : sizeof line - 1), text);
        fputs(before, stdout);
        cli_print_escaped(stdout, line);
        putchar('\n');
    }
}

/* Ends a line that names how many lists there are. */
static void print_sum(const struct summary *sum, const char *one, const char *many)
{
    char changed[21] = "never";

    if (sum->changed_at != 0)
        lastmod_format_utc(sum->changed_at, changed);
    printf(", %" PRIu64 " %s", sum->pages, plural(sum->pages, "page", "pages"));
    if (!sum->untold)
        printf(", %" PRIu64 " %s, %" PRIu64 " bytes", sum->entries, plural(sum->entries, one, many),
               sum->bytes);
    printf("; changed %s\n", changed);
}

static void print_text(const struct backend *b, const struct backend_status *status, size_t sites,
                       const struct summary *indexes, const struct summary *urlsets,
                       const struct sources_told *sources)
{
    printf("%s%s%s: sitemapd %s, %s%s%s\n", ink_on(stdout, INK_HEADING), b->name, ink_off(stdout),
           status->version, ink_on(stdout, status->healthy ? INK_GOOD : INK_WARNING),
           status->healthy ? "well" : "not well", ink_off(stdout));
    print_lines(str_text(&status->reasons), "  ");
    printf("%zu %s, %zu %s", sites, plural(sites, "site", "sites"), indexes->lists,
           plural(indexes->lists, "index", "indexes"));
    print_sum(indexes, "entry", "entries");
    if (urlsets->lists > 0) {
        printf("%zu %s", urlsets->lists, plural(urlsets->lists, "urlset", "urlsets"));
        print_sum(urlsets, "page URL", "page URLs");
    }
    if (sources->any) {
        printf("sources:\n");
        print_lines(str_text(&sources->out), "");
    }
}

static void print_json(const struct backend *b, const struct backend_status *status, size_t sites,
                       const struct summary *sum, const struct summary *urlsets,
                       const struct sources_told *sources)
{
    const char *reason = str_text(&status->reasons);
    struct str out = STR_INIT;
    char changed[21];

    str_append_text(&out, "{\"catalogue\":");
    str_append_json_text(&out, b->name);
    str_append_json_member(&out, "version", status->version);
    str_append_format(&out, ",\"healthy\":%s,\"reasons\":[", status->healthy ? "true" : "false");
    for (size_t len; *reason != '\0'; reason += len + 1) {
        len = strcspn(reason, "\n");
        if (reason != str_text(&status->reasons))
            str_append_char(&out, ',');
        str_append_json(&out, reason, len);
    }
    str_append_format(&out, "],\"sites\":%zu,\"indexes\":%zu,\"pages\":%" PRIu64, sites, sum->lists,
                      sum->pages);
    output_append_json_count(&out, "entries", sum->entries, sum->untold);
    output_append_json_count(&out, "bytes", sum->bytes, sum->untold);
    if (sum->changed_at != 0)
        lastmod_format_utc(sum->changed_at, changed);
    str_append_json_member(&out, "changed_at", sum->changed_at != 0 ? changed : NULL);
    str_append_format(&out, ",\"urlsets\":%zu", urlsets->lists);
    output_append_json_count(&out, "urls", urlsets->entries, urlsets->untold);
    str_append_format(&out, ",\"sources\":[%s]}\n", str_text(&sources->out));
    fputs(str_text(&out), stdout);
    str_done(&out);
}

int command_status(struct cli *cli)
{
    bool json = arguments_has(&cli->arguments, "--json");
    struct sources_told sources = {.json = json, .out = STR_INIT};
    struct backend_status health = {
        .reasons = STR_INIT, .source = append_source, .context = &sources};
    struct summary indexes = {0}, urlsets = {0};
    struct registry *registry = NULL;
    size_t servers = 0;

    for (size_t i = 0; i < cli->arguments.given_count; i++)
        servers += strcmp(cli->arguments.given[i].name, "--server") == 0;
    if (servers > 1)
        return shards_status(cli);
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    registry = session_registry(cli, REGISTRY_HELD);
    status = registry == NULL ? EXIT_COULD_NOT : sum_up(cli->backend, registry, &indexes, &urlsets);
    if (status == EXIT_DONE)
        status = cli->backend->calls->status(cli->backend, &health);
    if (status == EXIT_DONE)
        (json ? print_json : print_text)(cli->backend, &health, registry->site_count, &indexes,
                                         &urlsets, &sources);
    if (status == EXIT_DONE && !health.healthy)
        status = EXIT_COULD_NOT;
    registry_unref(registry);
    str_done(&health.reasons);
    str_done(&sources.out);
    return status;
}
