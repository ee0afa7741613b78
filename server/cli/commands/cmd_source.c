/* sitemapd source: sources that the catalogue keeps, made, changed and removed; and all that there
 * are. A running server has them running within moments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"
#include "server/cli/backend/backend.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"

/* ---- what is asked for ------------------------------------------------------------------- */

struct source_options {
    struct str directory, lists[SOURCE_SETTINGS_COUNT]; /* owned texts */
};

static void source_options_done(struct source_options *o)
{
    str_done(&o->directory);
    for (size_t i = 0; i < SOURCE_SETTINGS_COUNT; i++)
        str_done(&o->lists[i]);
}

/* Each of these reads what `option` says, and says by `bit` that it was given. An exit status. */

static int read_text(struct cli *cli, const char *option, unsigned bit, struct change *change,
                     const char **out)
{
    const char *value = arguments_value(&cli->arguments, option);

    if (value == NULL)
        return EXIT_DONE;
    *out = *value != '\0' ? value : NULL;
    change->made_set |= bit;
    return EXIT_DONE;
}

/* `--watch` and `--no-watch`, and the like. */
static int read_yes_no(struct cli *cli, const char *on, const char *off, unsigned bit,
                       struct change *change, bool *out)
{
    if (!arguments_has(&cli->arguments, on) && !arguments_has(&cli->arguments, off))
        return EXIT_DONE;
    *out = arguments_has(&cli->arguments, on);
    change->made_set |= bit;
    return EXIT_DONE;
}

static int read_span(struct cli *cli, const char *option, unsigned bit, struct change *change,
                     uint32_t *out)
{
    const char *value = arguments_value(&cli->arguments, option);
    uint64_t ms;

    if (value == NULL)
        return EXIT_DONE;
    if (!value_duration(value, &ms) || ms > UINT32_MAX || ms % 1000 != 0)
        return cli_misuse(option,
                          "must be a duration of at least one second, such as 30s, 15m or 3d");
    *out = (uint32_t)ms;
    change->made_set |= bit;
    return EXIT_DONE;
}

/* One a line in `text`, as the catalogue has them. */
static int read_lines(struct cli *cli, const char *option, unsigned bit, struct change *change,
                      struct str *text, const char **out)
{
    const char **values = arguments_values(&cli->arguments, option);
    int status = EXIT_DONE;

    if (values == NULL)
        return cli_fail(option, "out of memory");
    for (size_t i = 0; values[i] != NULL && status == EXIT_DONE; i++) {
        if (strchr(values[i], '\n') != NULL)
            status = cli_misuse(option, "must be without line breaks");
        if (i > 0)
            str_append_char(text, '\n');
        str_append_text(text, values[i]);
        change->made_set |= bit;
    }
    *out = text->len > 0 ? str_text(text) : NULL;
    free(values);
    return status;
}

/* Of this machine, a folder is meant from where the command is given; of a server as it is
 * written. */
static int read_directory(struct cli *cli, struct str *text, const char **out)
{
    const char *value = arguments_value(&cli->arguments, "--directory");
    char *here;

    *out = value;
    if (value == NULL || value[0] == '/' || cli->backend->catalogue == NULL)
        return EXIT_DONE;
    here = realpath(value, NULL);
    if (here == NULL)
        return cli_fail(value, "folder not found");
    str_append_text(text, here);
    free(here);
    *out = str_text(text);
    return EXIT_DONE;
}

#define take_text(bit, number, option, out)   read_text(cli, "--" option, bit, change, out)
#define take_option(bit, number, option, out) read_text(cli, "--" option, bit, change, out)
#define take_lines(bit, number, option, out)                                                       \
    read_lines(cli, "--" option, bit, change, &o->lists[number], out)
#define take_yes_no(bit, number, option, out)                                                      \
    read_yes_no(cli, "--" option, "--no-" option, bit, change, out)
#define take_span(bit, number, option, out) read_span(cli, "--" option, bit, change, out)

static int read_source(struct cli *cli, struct source_options *o, struct change *change)
{
    const char *directory;
    int status = read_directory(cli, &o->directory, &directory);

    change->made.name = cli->arguments.words[0];
#define X(bit, kind, field, member, option, ...)                                                   \
    if (status == EXIT_DONE)                                                                       \
        status = take_##kind(SOURCE_SET_##bit, SOURCE_IS_##bit, option, &change->made.field);
    SOURCE_SETTINGS(X)
#undef X
    change->made.directory = directory;
    return status;
}

/* A server says so itself. */
static int refuse_configured(struct cli *cli)
{
    const char *name = cli->arguments.words[0];

    for (size_t i = 0; cli->backend->catalogue != NULL && i < cli->config->source_count; i++)
        if (strcmp(cli->config->sources[i].named.name, name) == 0)
            return cli_fail(
                name,
                "is read-only here: it is managed by the configuration file; change it there");
    return EXIT_DONE;
}

static int read_site(struct cli *cli, struct change *change)
{
    const char *origin = arguments_value(&cli->arguments, "--site");

    change->site.origin = origin;
    return origin != NULL ? names_site_id(cli, origin, &change->site_id) : EXIT_DONE;
}

static int apply(struct cli *cli, struct change *change, const char *done)
{
    struct change_result result;
    int status = session_apply(cli, change, change->made.name, &result);

    if (status == EXIT_DONE)
        printf("%s: %s\n", change->made.name, result.changed ? done : "unchanged");
    change_result_done(&result);
    return status;
}

/* What the words and options say, done. An exit status. */
static int write_source(struct cli *cli, enum change_kind kind, const char *done)
{
    struct change change = {.kind = kind};
    struct source_options options = {.directory = STR_INIT};
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = refuse_configured(cli);
    if (status == EXIT_DONE)
        status = read_source(cli, &options, &change);
    if (status == EXIT_DONE && kind == CHANGE_SOURCE_ADD)
        status = read_site(cli, &change);
    if (status == EXIT_DONE && kind == CHANGE_SOURCE_UPDATE && change.made_set == 0)
        status = cli_misuse("source set", "nothing to change; see sitemapd source set --help");
    if (status == EXIT_DONE)
        status = apply(cli, &change, done);
    source_options_done(&options);
    return status;
}

int command_source_add(struct cli *cli)
{
    return write_source(cli, CHANGE_SOURCE_ADD, "added");
}

int command_source_set(struct cli *cli)
{
    return write_source(cli, CHANGE_SOURCE_UPDATE, "updated");
}

int command_source_remove(struct cli *cli)
{
    struct change change = {.kind = CHANGE_SOURCE_REMOVE, .made.name = cli->arguments.words[0]};
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = refuse_configured(cli);
    return status == EXIT_DONE ? apply(cli, &change, "removed; its entries stay") : status;
}

/* ---- list -------------------------------------------------------------------------------- */

static void append_source(void *context, const struct backend_source_made *source)
{
    struct listing *l = context;
    bool remote = source->upstream != NULL || source->remote;

    if (l->json) {
        str_append_text(&l->out, "{\"name\":");
        str_append_json_text(&l->out, source->name);
        str_append_json_member(&l->out, "kind", remote ? "remote" : "folder");
        str_append_json_member(&l->out, "site", source->site);
        str_append_json_member(&l->out, "upstream", source->upstream);
        str_append_json_member(&l->out, "directory", source->directory);
        str_append_json_member(&l->out, "url", source->url);
        str_append_json_member(&l->out, "index", source->index);
        str_append_format(&l->out, ",\"managed\":%s}\n", source->managed ? "true" : "false");
        return;
    }
    str_append_format(
        &l->out, "%-24s  %-6s  %s", source->name, remote ? "remote" : "folder",
        source->undeclared
            ? "not declared here: of a running server (--server URL shows it), or no longer read"
        : source->upstream != NULL ? source->upstream
                                   : source->directory);
    if (source->url != NULL)
        str_append_format(&l->out, " as %s", source->url);
    if (source->index != NULL)
        str_append_format(&l->out, ", listed by %s", source->index);
    str_append_text(&l->out, source->managed ? ", of the configuration\n" : "\n");
}

static int append_sources(struct listing *l)
{
    return l->backend->calls->sources(l->backend, append_source, l);
}

int command_source_list(struct cli *cli)
{
    return listing_print(cli, 0, NULL,
                         "no sources yet; create one with `sitemapd source add NAME` (those of a "
                         "configuration are listed with --config or --server)",
                         append_sources);
}
