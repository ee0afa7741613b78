#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/http/query.h"
#include "server/rules/loc.h"
#include "server/rules/robots.h"
#include "server/rules/scope.h"

/* What the options of `site add` and `site update` say of a site. Internal to server/cli/. */

#define SITE_OPTION_LISTS 6

/* What the fields borrow. */
struct site_options {
    const char **lists[SITE_OPTION_LISTS]; /* owned; the strings are the command line's */
    struct str robots;
};

static const char *const list_options[SITE_OPTION_LISTS] = {
    "--cross-host",        "--host-alias",     "--add-cross-host",
    "--remove-cross-host", "--add-host-alias", "--remove-host-alias",
};

/* A whole list, or what is added and removed: both at once could mean anything. */
static int check_one_way(const struct arguments *a, const char *whole, const char *none,
                         const char *add, const char *take)
{
    const char *edits = arguments_has(a, add) ? add : take;

    if (arguments_has(a, whole) && arguments_has(a, none))
        return cli_misuse(none, "cannot be combined with %s", whole);
    if ((arguments_has(a, add) || arguments_has(a, take)) &&
        (arguments_has(a, whole) || arguments_has(a, none)))
        return cli_misuse(edits, "cannot be combined with %s, which replaces the whole list",
                          arguments_has(a, whole) ? whole : none);
    return EXIT_DONE;
}

static int read_hosts(const struct arguments *a, struct site_options *options,
                      struct site_fields *fields)
{
    int status = check_one_way(a, "--cross-host", "--no-cross-hosts", "--add-cross-host",
                               "--remove-cross-host");

    if (status == EXIT_DONE)
        status = check_one_way(a, "--host-alias", "--no-host-aliases", "--add-host-alias",
                               "--remove-host-alias");
    for (size_t i = 0; status == EXIT_DONE && i < SITE_OPTION_LISTS; i++) {
        options->lists[i] = arguments_values(a, list_options[i]);
        if (options->lists[i] == NULL)
            status = cli_fail("site", "out of memory");
    }
    if (status != EXIT_DONE)
        return status;
    fields->cross_hosts = options->lists[0];
    fields->alias_hosts = options->lists[1];
    fields->cross_added = options->lists[2];
    fields->cross_removed = options->lists[3];
    fields->alias_added = options->lists[4];
    fields->alias_removed = options->lists[5];
    if (fields->cross_hosts[0] != NULL || arguments_has(a, "--no-cross-hosts"))
        fields->set |= SITE_SET_CROSS_HOSTS;
    if (fields->alias_hosts[0] != NULL || arguments_has(a, "--no-host-aliases"))
        fields->set |= SITE_SET_ALIAS_HOSTS;
    return EXIT_DONE;
}

/* All of the file, or one byte more than a robots.txt may have. */
static int read_file(const char *name, struct str *out)
{
    bool is_stdin = strcmp(name, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC), error = 0;
    char chunk[16384];
    ssize_t n = 0;

    if (fd < 0)
        return cli_fail(name, "cannot be read: %s", strerror(errno));
    while (out->len <= ROBOTS_MAX_BYTES && (n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            error = errno;
            break;
        }
        str_append(out, chunk, (size_t)n);
    }
    if (!is_stdin)
        close(fd);
    if (error != 0)
        return cli_fail(name, "cannot be read: %s", strerror(error));
    return out->failed ? cli_fail(name, "out of memory") : EXIT_DONE;
}

static int read_robots(const struct arguments *a, struct site_options *options,
                       struct site_fields *fields)
{
    const char *name = arguments_value(a, "--robots"), *fault;
    bool none = arguments_has(a, "--no-robots"), off = arguments_has(a, "--robots-off");
    int status;

    if ((name != NULL) + none + off > 1)
        return cli_misuse("--robots", "--robots, --no-robots and --robots-off cannot be combined");
    if (name == NULL && !none && !off)
        return EXIT_DONE;
    fields->set |= SITE_SET_ROBOTS;
    fields->robots_off = off;
    if (name == NULL)
        return EXIT_DONE;
    status = read_file(name, &options->robots);
    if (status != EXIT_DONE)
        return status;
    name = strcmp(name, "-") == 0 ? "standard input" : name;
    if (options->robots.len > 0)
        robots_repair_comments(options->robots.data, options->robots.len);
    /* By its length: what stands behind a NUL would be lost. */
    fault = robots_fault(str_text(&options->robots), options->robots.len);
    if (fault != NULL)
        return cli_fail(name, "%s (%s)", fault, rule_code_word(RULE_ROBOTS));
    /* `curl | site update` of what is not there; --no-robots says it on purpose. */
    if (options->robots.len == 0)
        return cli_fail(name, "is empty; --no-robots serves the Sitemap lines alone");
    fields->robots = str_text(&options->robots);
    return EXIT_DONE;
}

/* Fills `fields` from the options. Returns EXIT_DONE, or has told why not. `options` begins zeroed;
 * site_options_done is due whatever came of it. */
static int site_options_read(const struct cli *cli, struct site_options *options,
                             struct site_fields *fields)
{
    const struct arguments *a = &cli->arguments;
    const char *max = arguments_value(a, "--max-indexes");
    int status = read_hosts(a, options, fields);
    uint64_t value;

    if (arguments_has(a, "--check") || arguments_has(a, "--no-check")) {
        fields->check = arguments_has(a, "--check");
        fields->set |= SITE_SET_CHECK;
    }
    if (status == EXIT_DONE)
        status = read_robots(a, options, fields);
    if (status != EXIT_DONE || max == NULL)
        return status;
    if (!query_number(max, LIMIT_SITE_PAGES_MAX, &value) || value == 0)
        return cli_misuse("--max-indexes", "\"%s\" must be a number from 1 to %u", max,
                          LIMIT_SITE_PAGES_MAX);
    fields->max_pages = (uint32_t)value;
    fields->set |= SITE_SET_MAX_PAGES;
    return EXIT_DONE;
}

static void site_options_done(struct site_options *options)
{
    for (size_t i = 0; i < SITE_OPTION_LISTS; i++)
        free(options->lists[i]);
    str_done(&options->robots);
}

/* Tells of hosts that the site names and another has: which of the two answers. */
static void site_options_record_hosts(const struct registry *registry,
                                      const struct registry_site *site)
{
    const char *own = site->origin + site->origin_url.host_at;
    const struct registry_site *other = registry_site_of_alias(registry, own, site);

    if (other != NULL)
        cli_note(site->origin,
                 "its host is an alias of %s as well; requests for it go to this site",
                 other->origin);
    for (size_t i = 0; i < site->alias_host_count; i++) {
        if (strcmp(site->alias_hosts[i], own) == 0)
            cli_note(site->alias_hosts[i], "is the site's own host; as an alias it has no effect");
        other = registry_site_of_host(registry, site->alias_hosts[i], site);
        if (other != NULL)
            cli_note(site->alias_hosts[i],
                     "conflict: is the host of %s, which still answers for it; the alias takes "
                     "effect once that site is removed",
                     other->origin);
    }
    for (size_t i = 0; i < site->cross_host_count; i++) {
        other = registry_site_of_host(registry, site->cross_hosts[i], site);
        if (other != NULL)
            cli_note(site->cross_hosts[i],
                     "is the host of %s; entries registered without an index go to that site",
                     other->origin);
    }
}

/* `site update`: changes what is named, and tells what it was and is now. */

static void list_hosts(struct str *out, const char *const *hosts, size_t count)
{
    if (count == 0)
        str_append_text(out, "none");
    for (size_t i = 0; i < count; i++)
        str_append_format(out, "%s%s", i > 0 ? ", " : "", hosts[i]);
}

static void append_robots(struct str *out, const struct registry_site *site)
{
    if (site->robots_off)
        str_append_text(out, "served by another server");
    else if (site->robots == NULL)
        str_append_text(out, "the Sitemap lines alone");
    else
        str_append_format(out, "%zu bytes of its own, and the Sitemap lines", strlen(site->robots));
}

static void append_field(struct str *out, unsigned field, const struct registry_site *site)
{
    switch (field) {
    case SITE_SET_CROSS_HOSTS:
        list_hosts(out, site->cross_hosts, site->cross_host_count);
        break;
    case SITE_SET_ALIAS_HOSTS:
        list_hosts(out, site->alias_hosts, site->alias_host_count);
        break;
    case SITE_SET_MAX_PAGES:
        str_append_format(out, "%u", site->max_pages);
        break;
    case SITE_SET_CHECK:
        str_append_text(out, site->check ? "yes" : "no");
        break;
    default:
        append_robots(out, site);
        break;
    }
}

/* "host aliases: a, b (before: b)", for each field that was named. */
static void print_fields(unsigned set, const struct registry_site *before,
                         const struct registry_site *after)
{
    static const struct {
        unsigned field;
        const char *name;
    } fields[] = {
        {SITE_SET_CROSS_HOSTS, "cross hosts"},       {SITE_SET_ALIAS_HOSTS, "host aliases"},
        {SITE_SET_MAX_PAGES, "index files at most"}, {SITE_SET_ROBOTS, "robots.txt"},
        {SITE_SET_CHECK, "sitemaps polled"},
    };

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct str was = STR_INIT, is = STR_INIT;

        if ((set & fields[i].field) == 0)
            continue;
        append_field(&was, fields[i].field, before);
        append_field(&is, fields[i].field, after);
        printf("  %s: %s (before: %s)\n", fields[i].name, str_text(&is), str_text(&was));
        str_done(&was);
        str_done(&is);
    }
}

static unsigned named_fields(const struct site_fields *fields)
{
    unsigned set = fields->set;

    if (fields->cross_added[0] != NULL || fields->cross_removed[0] != NULL)
        set |= SITE_SET_CROSS_HOSTS;
    if (fields->alias_added[0] != NULL || fields->alias_removed[0] != NULL)
        set |= SITE_SET_ALIAS_HOSTS;
    return set;
}

static int read_site(struct cli *cli, const char *origin, struct registry **registry,
                     const struct registry_site **site)
{
    *registry = session_registry(cli, REGISTRY_ROBOTS);
    return *registry == NULL ? EXIT_COULD_NOT : names_site(*registry, origin, site);
}

static int update(struct cli *cli, const char *origin, struct change *change)
{
    struct registry *before = NULL, *after = NULL;
    const struct registry_site *was, *is = NULL;
    struct change_result result;
    int status = read_site(cli, origin, &before, &was);

    if (status == EXIT_DONE) {
        change->site_id = was->id;
        status = session_apply(cli, change, was->origin, &result);
        change_result_done(&result);
    }
    if (status == EXIT_DONE) {
        printf("%s: %s\n", was->origin, result.changed ? "updated" : "unchanged");
        /* Applied it is; what cannot be read again is not told. */
        if (read_site(cli, origin, &after, &is) == EXIT_DONE)
            print_fields(named_fields(&change->site), was, is);
        if (is != NULL)
            site_options_record_hosts(after, is);
    }
    registry_unref(after);
    registry_unref(before);
    return status;
}

int command_site_update(struct cli *cli)
{
    struct change change = {.kind = CHANGE_SITE_UPDATE};
    struct site_options options = {0};
    int status = site_options_read(cli, &options, &change.site);

    if (status == EXIT_DONE && named_fields(&change.site) == 0)
        status = cli_misuse("site update", "nothing to change; see sitemapd site update --help");
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = update(cli, cli->arguments.words[0], &change);
    site_options_done(&options);
    return status;
}

static int read_origin(const char *text, struct url *out)
{
    enum rule_code code = url_parse_origin(text, strlen(text), out);

    if (code == RULE_OK)
        return EXIT_DONE;
    if (explain_may_lack_scheme(text))
        return cli_fail(text, "%s (%s); did you mean https://%s?", rule_code_sentence(code),
                        rule_code_word(code), text);
    return cli_fail(text, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
}

/* Applied it is; what cannot be read again is not told. */
static void record_hosts(struct cli *cli, const char *origin)
{
    struct registry *registry = session_registry(cli, REGISTRY_ROBOTS);
    const struct registry_site *site =
        registry != NULL ? registry_site_by_origin(registry, origin) : NULL;

    if (site != NULL)
        site_options_record_hosts(registry, site);
    registry_unref(registry);
}

int command_site_add(struct cli *cli)
{
    struct change change = {.kind = CHANGE_SITE_ADD};
    struct change_result result;
    struct site_options options = {0};
    struct url origin;
    int status = read_origin(cli->arguments.words[0], &origin);

    if (status == EXIT_DONE)
        status = site_options_read(cli, &options, &change.site);
    if (status == EXIT_DONE)
        status = session_open(cli, true);
    if (status == EXIT_DONE) {
        struct str url = STR_INIT;

        str_append_text(&url, origin.text);
        str_append_text(&url, INDEX_PATH_DEFAULT);
        change.site.origin = origin.text;
        if (!arguments_has(&cli->arguments, "--no-index"))
            change.index_url = str_text(&url);
        status = session_apply(cli, &change, origin.text, &result);
        change_result_done(&result);
        if (status == EXIT_DONE && change.index_url == NULL)
            printf("%s: added\n", origin.text);
        else if (status == EXIT_DONE)
            printf("%s: added, with the index %s\n", origin.text, change.index_url);
        if (status == EXIT_DONE)
            record_hosts(cli, origin.text);
        str_done(&url);
    }
    site_options_done(&options);
    return status;
}

/* The id of the site of this origin; told where there is none. */
static int find_site(struct cli *cli, const char *origin, int64_t *out)
{
    struct registry *registry;
    const struct registry_site *site;
    int status = read_site(cli, origin, &registry, &site);

    if (status == EXIT_DONE)
        *out = site->id;
    registry_unref(registry);
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
        printf("%s: removed; entries removed with it: %" PRIu64 "\n", origin, result.removed);
    change_result_done(&result);
    return status;
}

/* ---- list ------------------------------------------------------------------------------ */

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
    str_append_json_text(out, site->origin);
    str_append_json_texts(out, "cross_hosts", site->cross_hosts, site->cross_host_count);
    str_append_json_texts(out, "host_aliases", site->alias_hosts, site->alias_host_count);
    str_append_format(out, ",\"indexes\":%zu,\"pages\":%zu,\"max_indexes\":%u,\"managed\":%s",
                      site->index_count, pages_of(site), site->max_pages,
                      site->managed ? "true" : "false");
    str_append_format(out, ",\"frozen\":%s", site->frozen ? "true" : "false");
    str_append_json_member(out, "frozen_by", freeze_word(site->frozen));
    str_append_text(out, ",\"robots\":");
    if (site->robots_off)
        str_append_text(out, "false");
    else
        str_append_json_text(out, site->robots);
    str_append_text(out, "}\n");
}

static void append_site_text(struct str *out, const struct registry_site *site)
{
    str_append_format(out, "%s  (%zu of %u index %s%s%s)\n", site->origin, pages_of(site),
                      site->max_pages, plural(site->max_pages, "file", "files"),
                      site->managed ? "; of the configuration file" : "",
                      site->frozen == FREEZE_ALL_SITES ? "; frozen by a token for all sites"
                      : site->frozen                   ? "; frozen by a token of the site"
                                                       : "");
    for (size_t i = 0; i < site->index_count; i++)
        str_append_format(out, "  index       %s%s\n", site->indexes[i].path,
                          site->indexes[i].frozen ? "  (frozen)" : "");
    for (size_t i = 0; i < site->urlset_count; i++)
        str_append_format(out, "  urlset      %s%s\n", site->urlsets[i].path,
                          site->urlsets[i].frozen ? "  (frozen)" : "");
    for (size_t i = 0; i < site->cross_host_count; i++)
        str_append_format(out, "  cross host  %s\n", site->cross_hosts[i]);
    for (size_t i = 0; i < site->alias_host_count; i++)
        str_append_format(out, "  host alias  %s\n", site->alias_hosts[i]);
    if (site->robots_off)
        str_append_text(out, "  robots.txt  served by another server\n");
    else if (site->robots != NULL)
        str_append_format(out, "  robots.txt  %zu bytes of its own\n", strlen(site->robots));
}

static int append_sites(struct listing *l)
{
    for (size_t i = 0; i < l->registry->site_count; i++) {
        if (l->json)
            append_site_json(&l->out, &l->registry->sites[i]);
        else
            append_site_text(&l->out, &l->registry->sites[i]);
    }
    return EXIT_DONE;
}

int command_site_list(struct cli *cli)
{
    return listing_print(cli, REGISTRY_ROBOTS, NULL,
                         "no sites yet; create one with `sitemapd site add ORIGIN`", append_sites);
}
