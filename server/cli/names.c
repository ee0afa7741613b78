/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds sites, indexes and urlsets by what a user typed, with suggestions. */
#include "server/cli/names.h"

#include <stdio.h>
#include <string.h>

#include "config/suggest.h"
#include "server/cli/output.h"

int names_unknown(const char *name, const char *what, const char *near, const char *shown_by)
{
    if (near != NULL && *near != '\0')
        return cli_fail(name, "%s; did you mean %s?", what, near);
    return cli_fail(name, "%s; `sitemapd %s` shows them", what, shown_by);
}

int names_site(struct cli *cli, const char *origin, const json_t **out)
{
    const json_t *sites = api_sites(cli->backend), *site;
    struct suggestion near = {0};
    struct url url;
    enum rule_code code = url_parse_origin(origin, strlen(origin), &url);
    bool bare = code != RULE_OK && strstr(origin, "://") == NULL;
    size_t i;

    *out = NULL;
    if (sites == NULL)
        return EXIT_COULD_NOT;
    json_array_foreach(sites, i, site)
    {
        const char *known = member_text(site, "origin"), *host = strstr(known, "://");

        if (bare && host != NULL && strcmp(host + 3, origin) == 0)
            return cli_fail(origin, "%s (%s); did you mean %s?", rule_code_sentence(code),
                            rule_code_word(code), known);
        if (code == RULE_OK && strcmp(known, url.text) == 0)
            *out = site;
        else if (code == RULE_OK)
            suggest_consider(&near, url.text, known);
    }
    if (code != RULE_OK)
        return cli_fail(origin, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    if (*out != NULL)
        return EXIT_DONE;
    return names_unknown(url.text, "site not found in this catalogue", near.word, "site list");
}

enum list_kind names_kind(const struct cli *cli)
{
    return cli->arguments.command->pages ? LIST_URLSET : LIST_INDEX;
}

const char *names_path(const json_t *list)
{
    const char *url = member_text(list, "url");
    size_t origin = strlen(member_text(list, "site"));

    return strlen(url) > origin ? url + origin : "";
}

/* The origin of the only site; "": none exists or more than one. */
static const char *only_origin(struct cli *cli)
{
    const json_t *sites = api_sites(cli->backend);

    return json_array_size(sites) == 1 ? member_text(json_array_get(sites, 0), "origin") : "";
}

const json_t *names_find_list(struct cli *cli, const char *name, enum list_kind kind)
{
    const json_t *lists = api_lists(cli->backend, kind), *list;
    char text[LOC_MAX_CHARS + 1];
    struct url url = {.len = 0};
    size_t i;

    if (snprintf(text, sizeof text, "%s%s", name[0] == '/' ? only_origin(cli) : "", name) <
        (int)sizeof text)
        url_parse(text, strlen(text), &url, NULL);
    json_array_foreach(lists, i, list)
    {
        const char *known = member_text(list, "url");

        if (strcmp(known, text) == 0 || (url.len > 0 && strcmp(known, url.text) == 0))
            return list;
    }
    return NULL;
}

int names_list(struct cli *cli, const char *name, enum list_kind kind, const json_t **out)
{
    const json_t *lists = api_lists(cli->backend, kind), *list;
    bool urlset = kind == LIST_URLSET;
    const char *nearest = NULL;
    size_t i;

    if (lists == NULL || api_sites(cli->backend) == NULL)
        return EXIT_COULD_NOT;
    *out = names_find_list(cli, name, kind);
    if (*out != NULL)
        return EXIT_DONE;
    if (name[0] == '/' && json_array_size(api_sites(cli->backend)) > 1)
        return cli_fail(name, "a path is only valid with exactly one site; give the URL of %s",
                        urlset ? "a urlset" : "an index");
    json_array_foreach(lists, i, list)
    {
        const char *known = name[0] == '/' ? names_path(list) : member_text(list, "url");

        if (suggest_is_close(name, known) &&
            (nearest == NULL || suggest_distance(name, known) < suggest_distance(name, nearest)))
            nearest = known;
    }
    return names_unknown(
        name, urlset ? "urlset not found in this catalogue" : "index not found in this catalogue",
        nearest, urlset ? "urlset list" : "index list");
}

int names_list_option(struct cli *cli, const json_t **out)
{
    const char *urlset = arguments_value(&cli->arguments, "--urlset");
    const char *name = urlset != NULL ? urlset : arguments_value(&cli->arguments, "--index");

    *out = NULL;
    return name == NULL ? EXIT_DONE
                        : names_list(cli, name, urlset != NULL ? LIST_URLSET : LIST_INDEX, out);
}

const char *names_new_list(struct cli *cli, const char *name, char out[LOC_MAX_CHARS + 1])
{
    const json_t *sites;

    if (name[0] != '/')
        return name;
    sites = api_sites(cli->backend);
    if (sites == NULL)
        return NULL;
    if (json_array_size(sites) == 1) {
        snprintf(out, LOC_MAX_CHARS + 1, "%s%s", only_origin(cli), name);
        return out;
    }
    cli_fail(name, "%s",
             json_array_size(sites) == 0
                 ? "there is no site yet; create one with `sitemapd site add ORIGIN`"
                 : "a path is only valid with exactly one site; give the URL");
    return NULL;
}

int names_no_page(struct cli *cli, const json_t *site, const char *name, const char *path)
{
    struct suggestion near = {0};
    const json_t *list;
    size_t i;

    for (int kind = LIST_INDEX; kind <= LIST_URLSET; kind++)
        json_array_foreach(api_lists(cli->backend, (enum list_kind)kind), i, list)
        {
            if (strcmp(member_text(list, "site"), member_text(site, "origin")) == 0)
                suggest_consider(&near, path, names_path(list));
        }
    return names_unknown(name, "no page of an index or urlset", near.word, "index list");
}
