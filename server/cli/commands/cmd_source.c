/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `source`: creates, changes and removes sources of the catalogue, and lists all sources. A running
 * server applies changes within moments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"

/* ---- what is asked for ------------------------------------------------------------------- */

/* Each of these adds the value of `option`, if given. They return an exit status. */

static int read_text(struct cli *cli, const char *option, const char *member, json_t *body)
{
    const char *value = arguments_value(&cli->arguments, option);

    if (value != NULL)
        json_object_set_new(body, member, *value != '\0' ? json_string(value) : json_null());
    return EXIT_DONE;
}

/* `--watch` and `--no-watch`, and the like. */
static int read_yes_no(struct cli *cli, const char *on, const char *off, const char *member,
                       json_t *body)
{
    if (arguments_has(&cli->arguments, on) || arguments_has(&cli->arguments, off))
        json_object_set_new(body, member, json_boolean(arguments_has(&cli->arguments, on)));
    return EXIT_DONE;
}

static int read_span(struct cli *cli, const char *option, const char *member, json_t *body)
{
    const char *value = arguments_value(&cli->arguments, option);
    uint64_t ms;

    if (value == NULL)
        return EXIT_DONE;
    if (!value_duration(value, &ms) || ms > UINT32_MAX || ms % 1000 != 0)
        return cli_misuse(option,
                          "must be a duration of at least one second, such as 30s, 15m or 3d");
    json_object_set_new(body, member, json_integer((json_int_t)(ms / 1000)));
    return EXIT_DONE;
}

/* A single empty value: none. */
static int read_lines(struct cli *cli, const char *option, const char *member, json_t *body)
{
    const char **values = arguments_values(&cli->arguments, option);
    json_t *list = json_array();
    int status = EXIT_DONE;

    if (values == NULL || list == NULL)
        status = cli_fail(option, "out of memory");
    for (size_t i = 0; status == EXIT_DONE && values[i] != NULL; i++) {
        if (strchr(values[i], '\n') != NULL)
            status = cli_misuse(option, "must be without line breaks");
        if (*values[i] != '\0')
            json_array_append_new(list, json_string(values[i]));
        json_object_set(body, member, list);
    }
    json_decref(list);
    free((void *)values);
    return status;
}

/* On this machine, a folder is relative to the current directory; on a server it is used as
 * written. */
static int read_directory(struct cli *cli, json_t *body)
{
    const char *value = arguments_value(&cli->arguments, "--directory");
    char *here;

    if (value == NULL || value[0] == '/' || cli->backend->catalogue == NULL)
        return EXIT_DONE;
    here = realpath(value, NULL);
    if (here == NULL)
        return cli_fail(value, "folder not found");
    json_object_set_new(body, "directory", json_string(here));
    free(here);
    return EXIT_DONE;
}

#define add_path(option, member)   read_text(cli, "--" option, member, body)
#define add_url(option, member)    read_text(cli, "--" option, member, body)
#define add_option(option, member) read_text(cli, "--" option, member, body)
#define add_lines(option, member)  read_lines(cli, "--" option, member, body)
#define add_pairs(option, member)  read_lines(cli, "--" option, member, body)
#define add_yes_no(option, member) read_yes_no(cli, "--" option, "--no-" option, member, body)
#define add_span(option, member)   read_span(cli, "--" option, member, body)

static int read_source(struct cli *cli, json_t *body)
{
    int status = EXIT_DONE;

#define X(bit, kind, c, member, option, ...)                                                       \
    if (status == EXIT_DONE)                                                                       \
        status = add_##kind(option, #member);
    SOURCE_SETTINGS(X)
#undef X
    return status == EXIT_DONE ? read_directory(cli, body) : status;
}

static void append_address(struct str *target, const char *name)
{
    str_append_text(target, "/v1/sources");
    target_segment(target, name);
}

int command_source_add(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    const char *origin = arguments_value(&cli->arguments, "--site");
    struct str target = STR_INIT;
    json_t *body = json_object();
    const json_t *site = NULL;
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = read_source(cli, body);
    if (status == EXIT_DONE && origin != NULL)
        status = names_site(cli, origin, &site);
    if (status != EXIT_DONE) {
        json_decref(body);
        return status;
    }
    json_object_set_new(body, "name", json_string(name));
    if (site != NULL)
        json_object_set_new(body, "site", json_string(member_text(site, "origin")));
    str_append_text(&target, "/v1/sources");
    return session_do(cli, "POST", &target, body, name, "added");
}

/* Whether a setting changed, without the state that the API returns with them. */
static bool differs(const json_t *before, json_t *after)
{
    bool differ = false;
    const char *name;
    json_t *value;

    json_object_foreach(after, name, value)
    {
        differ = differ || !json_equal(json_object_get(before, name), value);
    }
    return differ;
}

/* Frees the body. */
static int change(struct cli *cli, json_t *body)
{
    const char *name = cli->arguments.words[0];
    struct str target = STR_INIT, again = STR_INIT;
    json_t *before = NULL, *after = NULL;
    int status = EXIT_DONE;

    append_address(&target, name);
    append_address(&again, name);
    if (!api_call(cli->backend, "GET", str_text(&target), NULL, &before) ||
        !api_is_good(cli->backend)) {
        status = api_refused(cli->backend, NULL, name, json_incref(before));
        str_done(&again);
        json_decref(body);
    } else {
        status = api_write(cli->backend, "PATCH", &again, body, name, &after);
    }
    if (status == EXIT_DONE)
        printf("%s: %s\n", name, differs(before, after) ? "updated" : "unchanged");
    str_done(&target);
    json_decref(before);
    json_decref(after);
    return status;
}

int command_source_set(struct cli *cli)
{
    json_t *body = json_object();
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = read_source(cli, body);
    if (status == EXIT_DONE && json_object_size(body) == 0)
        status = cli_misuse("source set", "nothing to change; see sitemapd source set --help");
    if (status == EXIT_DONE)
        return change(cli, body);
    json_decref(body);
    return status;
}

int command_source_remove(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct str target = STR_INIT;
    int status = session_open(cli, false);

    append_address(&target, name);
    if (status == EXIT_DONE)
        return session_do(cli, "DELETE", &target, NULL, name,
                          "removed; its entries stay; sitemaps served for it are 404 until another "
                          "source serves them");
    str_done(&target);
    return status;
}

/* ---- list -------------------------------------------------------------------------------- */

static void append_source(struct str *out, const json_t *source, void *context)
{
    const char *upstream = member_text_or_null(source, "upstream");
    const char *directory = member_text_or_null(source, "directory");
    const char *url = member_text_or_null(source, "url");
    const char *index = member_text_or_null(source, "index");

    (void)context;
    str_append_format(
        out, "%-24s  %-6s  %s", member_text(source, "name"), member_text(source, "kind"),
        upstream == NULL && directory == NULL
            ? "not declared here: either a running server reads it (--server URL shows it), or it "
              "is no longer read (`sitemapd source remove` removes it)"
        : upstream != NULL ? upstream
                           : directory);
    if (url != NULL)
        str_append_format(out, " as %s", url);
    if (index != NULL)
        str_append_format(out, ", listed by %s", index);
    str_append_text(out,
                    member_is(source, "managed") ? ", managed by the configuration file\n" : "\n");
}

int command_source_list(struct cli *cli)
{
    int status = session_open(cli, false);
    json_t *sources =
        status == EXIT_DONE ? api_get_array(cli->backend, "/v1/sources", "sources") : NULL;

    if (status == EXIT_DONE)
        status =
            output_table(cli, sources, NULL,
                         "no sources yet; create one with `sitemapd source add NAME` (those of "
                         "a configuration are listed with --config or --server)",
                         append_source, NULL);
    json_decref(sources);
    return status;
}
