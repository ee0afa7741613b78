#include <assert.h>
#include <string.h>

#include "server/base/str.h"
#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/rules/scope.h"

struct page_name {
    const struct registry_index *index;
    uint32_t number;
};

static bool find_in_site(const struct registry *registry, const struct registry_site *site,
                         const char *path, struct page_name *out)
{
    const struct registry_index *index;

    for (size_t i = 0; (index = registry_site_list(site, i)) != NULL; i++) {
        uint32_t number =
            scope_page_number(index->path, index->page_pattern, registry_max_pages(registry, index),
                              path, strlen(path));

        if (number != 0) {
            *out = (struct page_name){index, number};
            return true;
        }
    }
    return false;
}

/* The site of `name` and its path behind the origin. Aliases of hosts do not count: the URL is the
 * page's own. Told where it names none. */
static int find_site(const struct registry *registry, const char *name, struct url *url,
                     const struct registry_site **site, const char **path)
{
    char origin[LOC_MAX_CHARS + 1];
    enum rule_code code;

    if (name[0] == '/') {
        if (registry->site_count != 1)
            return cli_fail(name, "a path names a page only where there is one site; give its URL");
        *site = &registry->sites[0];
        *path = name;
        return EXIT_DONE;
    }
    code = url_parse(name, strlen(name), url, NULL);
    if (code != RULE_OK)
        return cli_fail(name, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    memcpy(origin, url->text, url->origin_len);
    origin[url->origin_len] = '\0';
    *path = url->text + url->origin_len;
    return names_site(registry, origin, site);
}

/* The page that `name` names; told where it names none. */
static int find_page(const struct registry *registry, const char *name, struct page_name *out)
{
    const struct registry_site *site = NULL;
    const char *path = "";
    struct url url;
    size_t len;
    int status = find_site(registry, name, &url, &site, &path);

    if (status != EXIT_DONE)
        return status;
    assert(site != NULL);
    if (strcmp(path, "/robots.txt") == 0)
        return cli_fail(name, "robots.txt is no page; ask a running server for it");
    if (!find_in_site(registry, site, path, out))
        return names_no_page(site, name, path);
    len = strlen(path);
    if (len > 3 && strcmp(path + len - 3, ".gz") == 0)
        return cli_fail(name, "its bytes are made by the server; leave the .gz off for the XML");
    return EXIT_DONE;
}

int command_render(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct str out = STR_INIT;
    struct page_name page = {0};
    struct registry *registry;
    bool found = false;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    registry = backend_registry(cli->backend, REGISTRY_HELD);
    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = find_page(registry, name, &page);
    if (status == EXIT_DONE) {
        assert(page.index != NULL);
        status = backend_render(cli->backend, page.index, page.number, &found, &out);
        if (status == EXIT_DONE && !found)
            status = cli_fail(name, "has no entries; the server answers 404");
        else if (status == EXIT_DONE)
            fwrite(out.data, 1, out.len, stdout);
    }
    str_done(&out);
    registry_unref(registry);
    return status;
}
