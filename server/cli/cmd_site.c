#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/commands.h"
#include "server/cli/entry_text.h"
#include "server/cli/listing.h"
#include "server/cli/names.h"
#include "server/rules/plural.h"
#include "server/rules/query.h"

/* Fills the site's fields from the options; site_fields_done is due all the same. */
static int read_fields(const struct cli *cli, struct site_fields *site)
{
    const struct arguments *a = &cli->arguments;
    const char *max = arguments_value(a, "--max-indexes");
    uint64_t value;

    site->cross_hosts = arguments_values(a, "--cross-host");
    site->alias_hosts = arguments_values(a, "--host-alias");
    if (site->cross_hosts == NULL || site->alias_hosts == NULL)
        return cli_fail("site", "out of memory");
    if (site->cross_hosts[0] != NULL || arguments_has(a, "--no-cross-hosts"))
        site->set |= SITE_SET_CROSS_HOSTS;
    if (site->alias_hosts[0] != NULL || arguments_has(a, "--no-host-aliases"))
        site->set |= SITE_SET_ALIAS_HOSTS;
    if (max != NULL) {
        if (!query_number(max, UINT32_MAX, &value) || value == 0)
            return cli_misuse("--max-indexes", "\"%s\" must be a number from 1 on", max);
        site->max_pages = (uint32_t)value;
        site->set |= SITE_SET_MAX_PAGES;
    }
    return EXIT_DONE;
}

static void site_fields_done(struct site_fields *site)
{
    free((void *)site->cross_hosts);
    free((void *)site->alias_hosts);
}

static int read_origin(const char *text, struct url *out)
{
    enum rule_code code = url_parse_origin(text, strlen(text), out);

    if (code == RULE_OK)
        return EXIT_DONE;
    if (strstr(text, "://") == NULL && strchr(text, '.') != NULL)
        return cli_fail(text, "%s (%s); did you mean https://%s?", rule_code_sentence(code),
                        rule_code_word(code), text);
    return cli_fail(text, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
}

/* The site is there; its first index is a change of its own. */
static int add_first_index(struct cli *cli, const char *origin)
{
    struct change change = {.kind = CHANGE_INDEX_ADD};
    struct change_result result;
    struct str url = STR_INIT;
    int status;

    str_append_text(&url, origin);
    str_append_text(&url, COMMAND_DEFAULT_INDEX);
    change.index_url = str_text(&url);
    status = session_apply(cli, &change, str_text(&url), &result);
    if (status == EXIT_DONE)
        printf("%s: added, with the index %s\n", origin, str_text(&url));
    entry_record_done(&result.entry);
    str_done(&url);
    return status;
}

int command_site_add(struct cli *cli)
{
    struct change change = {.kind = CHANGE_SITE_ADD};
    struct change_result result;
    struct url origin;
    int status = read_origin(cli->arguments.words[0], &origin);

    if (status == EXIT_DONE)
        status = read_fields(cli, &change.site);
    if (status == EXIT_DONE)
        status = session_open(cli, true);
    if (status == EXIT_DONE) {
        change.site.origin = origin.text;
        status = session_apply(cli, &change, origin.text, &result);
        entry_record_done(&result.entry);
        if (status == EXIT_DONE && arguments_has(&cli->arguments, "--no-index"))
            printf("%s: added\n", origin.text);
        else if (status == EXIT_DONE)
            status = add_first_index(cli, origin.text);
    }
    site_fields_done(&change.site);
    return status;
}

/* The id of the site of this origin; told where there is none. */
static int find_site(struct cli *cli, const char *origin, int64_t *out)
{
    struct registry *registry;
    struct catalogue_view *view = session_view(cli, &registry);
    const struct registry_site *site;
    int status;

    if (view == NULL)
        return EXIT_COULD_NOT;
    status = names_site(registry, origin, &site);
    if (status == EXIT_DONE)
        *out = site->id;
    registry_unref(registry);
    catalogue_view_end(view);
    return status;
}

int command_site_update(struct cli *cli)
{
    struct change change = {.kind = CHANGE_SITE_UPDATE};
    struct change_result result;
    const char *origin = cli->arguments.words[0];
    int status = read_fields(cli, &change.site);

    if (status == EXIT_DONE && change.site.set == 0)
        status = cli_misuse("site update", "nothing to change; see sitemapd site update --help");
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = find_site(cli, origin, &change.site_id);
    if (status == EXIT_DONE) {
        status = session_apply(cli, &change, origin, &result);
        if (status == EXIT_DONE)
            printf("%s: %s\n", origin, result.changed ? "updated" : "unchanged");
        entry_record_done(&result.entry);
    }
    site_fields_done(&change.site);
    return status;
}

int command_site_remove(struct cli *cli)
{
    struct change change = {.kind = CHANGE_SITE_REMOVE};
    struct change_result result;
    const char *origin = cli->arguments.words[0];
    int status = session_max_removed(cli, &change.max_removed);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = find_site(cli, origin, &change.site_id);
    if (status != EXIT_DONE)
        return status;
    status = session_apply(cli, &change, origin, &result);
    if (status == EXIT_DONE)
        printf("%s: removed; entries that went with it: %" PRIu64 "\n", origin, result.removed);
    entry_record_done(&result.entry);
    return status;
}

/* ---- list ------------------------------------------------------------------------------ */

static void append_hosts(struct str *out, const char *name, const char *const *hosts, size_t count)
{
    str_append_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            str_append_char(out, ',');
        text_append_json(out, hosts[i]);
    }
    str_append_char(out, ']');
}

static size_t pages_of(const struct registry_site *site)
{
    size_t pages = 0;

    for (size_t i = 0; i < site->index_count; i++)
        pages += site->indexes[i].page_count;
    return pages;
}

static void append_site_json(struct str *out, const struct registry_site *site)
{
    str_append_text(out, "{\"origin\":");
    text_append_json(out, site->origin);
    append_hosts(out, "cross_hosts", site->cross_hosts, site->cross_host_count);
    append_hosts(out, "host_aliases", site->alias_hosts, site->alias_host_count);
    str_append_format(out, ",\"indexes\":%zu,\"pages\":%zu,\"max_indexes\":%u,\"managed\":%s}\n",
                      site->index_count, pages_of(site), site->max_pages,
                      site->managed ? "true" : "false");
}

static void append_site_text(struct str *out, const struct registry_site *site)
{
    str_append_format(out, "%s  (%zu of %u index %s%s)\n", site->origin, pages_of(site),
                      site->max_pages, plural(site->max_pages, "file", "files"),
                      site->managed ? "; of the configuration file" : "");
    for (size_t i = 0; i < site->index_count; i++)
        str_append_format(out, "  index       %s\n", site->indexes[i].path);
    for (size_t i = 0; i < site->cross_host_count; i++)
        str_append_format(out, "  cross host  %s\n", site->cross_hosts[i]);
    for (size_t i = 0; i < site->alias_host_count; i++)
        str_append_format(out, "  host alias  %s\n", site->alias_hosts[i]);
}

static enum catalogue_status append_sites(struct listing *l)
{
    for (size_t i = 0; i < l->registry->site_count; i++) {
        if (l->json)
            append_site_json(&l->out, &l->registry->sites[i]);
        else
            append_site_text(&l->out, &l->registry->sites[i]);
    }
    return CATALOGUE_OK;
}

int command_site_list(struct cli *cli)
{
    return listing_print(cli, NULL, "no sites yet; make one with `sitemapd site add ORIGIN`",
                         append_sites);
}
