#include "server/cli/names.h"

#include <stdio.h>
#include <string.h>

#include "config/suggest.h"
#include "server/base/str.h"
#include "server/cli/backend/backend.h"
#include "server/cli/output.h"

int names_unknown(const char *name, const char *what, const char *near, const char *shown_by)
{
    if (near != NULL && *near != '\0')
        return cli_fail(name, "%s; did you mean %s?", what, near);
    return cli_fail(name, "%s; `sitemapd %s` shows them", what, shown_by);
}

int names_site(const struct registry *registry, const char *origin,
               const struct registry_site **out)
{
    struct suggestion near = {0};
    struct url url;
    enum rule_code code = url_parse_origin(origin, strlen(origin), &url);

    *out = NULL;
    if (code != RULE_OK && strstr(origin, "://") == NULL) {
        for (size_t i = 0; i < registry->site_count; i++)
            if (strcmp(strstr(registry->sites[i].origin, "://") + 3, origin) == 0)
                return cli_fail(origin, "%s (%s); did you mean %s?", rule_code_sentence(code),
                                rule_code_word(code), registry->sites[i].origin);
    }
    if (code != RULE_OK)
        return cli_fail(origin, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    *out = registry_site_by_origin(registry, url.text);
    if (*out != NULL)
        return EXIT_DONE;
    for (size_t i = 0; i < registry->site_count; i++)
        suggest_consider(&near, url.text, registry->sites[i].origin);
    return names_unknown(url.text, "site not found in this catalogue", near.word, "site list");
}

int names_site_id(const struct cli *cli, const char *origin, int64_t *out)
{
    const struct registry_site *site;
    struct registry *registry = session_registry(cli, 0);
    int status;

    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = names_site(registry, origin, &site);
    if (status == EXIT_DONE)
        *out = site->id;
    registry_unref(registry);
    return status;
}

enum list_kind names_kind(const struct cli *cli)
{
    return cli->arguments.command->pages ? LIST_URLSET : LIST_INDEX;
}

const struct registry_index *names_lists(const struct registry_site *site, enum list_kind kind,
                                         size_t *count)
{
    *count = kind == LIST_URLSET ? site->urlset_count : site->index_count;
    return kind == LIST_URLSET ? site->urlsets : site->indexes;
}

/* The list whose URL, or path where `name` is one, is nearest; "" where none is near. */
static void nearest_index(const struct registry *registry, const char *name, enum list_kind kind,
                          struct str *out)
{
    struct str url = STR_INIT;
    size_t nearest = SIZE_MAX;

    for (size_t i = 0; i < registry->site_count; i++)
        for (size_t j = 0, count; j < (names_lists(&registry->sites[i], kind, &count), count);
             j++) {
            const struct registry_index *index = &names_lists(&registry->sites[i], kind, &count)[j];

            str_clear(&url);
            if (name[0] == '/')
                str_append_text(&url, index->path);
            else
                text_append_index_url(&url, &registry->sites[i], index);
            if (!suggest_is_close(name, str_text(&url)) ||
                suggest_distance(name, str_text(&url)) >= nearest)
                continue;
            nearest = suggest_distance(name, str_text(&url));
            str_clear(out);
            str_append_text(out, str_text(&url));
        }
    str_done(&url);
}

int names_list(const struct registry *registry, const char *name, enum list_kind kind,
               const struct registry_index **out)
{
    bool urlset = kind == LIST_URLSET;
    struct str near = STR_INIT;
    int status;

    *out = registry_list_by_name(registry, name, kind, NULL);
    if (*out != NULL)
        return EXIT_DONE;
    if (name[0] == '/' && registry->site_count > 1)
        return cli_fail(name, "a path is only valid with exactly one site; give the URL of %s",
                        urlset ? "a urlset" : "an index");
    nearest_index(registry, name, kind, &near);
    status = names_unknown(
        name, urlset ? "urlset not found in this catalogue" : "index not found in this catalogue",
        str_text(&near), urlset ? "urlset list" : "index list");
    str_done(&near);
    return status;
}

const char *names_new_list(const struct cli *cli, const char *name, char out[LOC_MAX_CHARS + 1])
{
    struct registry *registry;

    if (name[0] != '/')
        return name;
    registry = session_registry(cli, 0);
    if (registry == NULL)
        return NULL;
    if (registry->site_count == 1)
        snprintf(out, LOC_MAX_CHARS + 1, "%s%s", registry->sites[0].origin, name);
    else
        cli_fail(name, "%s",
                 registry->site_count == 0
                     ? "there is no site yet; create one with `sitemapd site add ORIGIN`"
                     : "a path is only valid with exactly one site; give the URL");
    name = registry->site_count == 1 ? out : NULL;
    registry_unref(registry);
    return name;
}

int names_index_option(const struct cli *cli, const struct registry *registry,
                       const struct registry_index **out)
{
    const char *urlset = arguments_value(&cli->arguments, "--urlset");
    const char *name = urlset != NULL ? urlset : arguments_value(&cli->arguments, "--index");

    *out = NULL;
    return name == NULL
               ? EXIT_DONE
               : names_list(registry, name, urlset != NULL ? LIST_URLSET : LIST_INDEX, out);
}

int names_no_page(const struct registry_site *site, const char *name, const char *path)
{
    struct suggestion near = {0};

    for (size_t i = 0; i < site->index_count; i++)
        suggest_consider(&near, path, site->indexes[i].path);
    for (size_t i = 0; i < site->urlset_count; i++)
        suggest_consider(&near, path, site->urlsets[i].path);
    return names_unknown(name, "no page of an index or urlset", near.word, "index list");
}
