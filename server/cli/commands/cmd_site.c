/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `site`: its options become the body of a request; the API returns a site's settings before and
 * after. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/http/query.h"
#include "server/rules/limits.h"
#include "server/rules/loc.h"
#include "server/rules/robots.h"
#include "server/rules/scope.h"

/* ---- what the options say ------------------------------------------------------------------ */

/* A whole list cannot be combined with options that add or remove: the result would be unclear. */
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

/* Reads the hosts of an option, if given; `none`: the option for an empty list, or NULL. */
static int read_list(const struct arguments *a, const char *option, const char *none,
                     const char *member, json_t *body)
{
    const char **values = arguments_values(a, option);
    json_t *list = json_array();

    if (values == NULL || list == NULL) {
        json_decref(list);
        free((void *)values);
        return cli_fail("site", "out of memory");
    }
    for (size_t i = 0; values[i] != NULL; i++)
        json_array_append_new(list, json_string(values[i]));
    if (json_array_size(list) > 0 || (none != NULL && arguments_has(a, none)))
        json_object_set(body, member, list);
    json_decref(list);
    free((void *)values);
    return EXIT_DONE;
}

static int read_hosts(const struct arguments *a, json_t *body)
{
    static const struct {
        const char *option, *none, *member;
    } lists[] = {
        {"--cross-host", "--no-cross-hosts", "cross_hosts"},
        {"--host-alias", "--no-host-aliases", "host_aliases"},
        {"--add-cross-host", NULL, "add_cross_hosts"},
        {"--remove-cross-host", NULL, "remove_cross_hosts"},
        {"--add-host-alias", NULL, "add_host_aliases"},
        {"--remove-host-alias", NULL, "remove_host_aliases"},
    };
    int status = check_one_way(a, "--cross-host", "--no-cross-hosts", "--add-cross-host",
                               "--remove-cross-host");

    if (status == EXIT_DONE)
        status = check_one_way(a, "--host-alias", "--no-host-aliases", "--add-host-alias",
                               "--remove-host-alias");
    for (size_t i = 0; status == EXIT_DONE && i < sizeof lists / sizeof *lists; i++)
        status = read_list(a, lists[i].option, lists[i].none, lists[i].member, body);
    return status;
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

static int read_robots_file(const char *name, struct str *text)
{
    const char *fault;
    int status = read_file(name, text);

    if (status != EXIT_DONE)
        return status;
    name = strcmp(name, "-") == 0 ? "standard input" : name;
    if (text->len > 0)
        robots_repair_comments(text->data, text->len);
    /* Check it by its length, or the text after a NUL would be lost. */
    fault = robots_fault(str_text(text), text->len);
    if (fault != NULL)
        return cli_fail(name, "%s (%s)", fault, rule_code_word(RULE_ROBOTS));
    /* `curl … | site update` may get an empty text by mistake; --no-robots is explicit. */
    if (text->len == 0)
        return cli_fail(name, "is empty; --no-robots serves only the Sitemap lines");
    return EXIT_DONE;
}

static int read_robots(const struct arguments *a, json_t *body)
{
    const char *name = arguments_value(a, "--robots");
    bool none = arguments_has(a, "--no-robots"), off = arguments_has(a, "--robots-off");
    struct str text = STR_INIT;
    int status = EXIT_DONE;

    if ((name != NULL) + none + off > 1)
        return cli_misuse("--robots", "--robots, --no-robots and --robots-off cannot be combined");
    if (off || none)
        json_object_set_new(body, "robots", off ? json_false() : json_null());
    if (name == NULL)
        return EXIT_DONE;
    status = read_robots_file(name, &text);
    if (status == EXIT_DONE)
        json_object_set_new(body, "robots", json_string(str_text(&text)));
    str_done(&text);
    return status;
}

/* Adds the members for the given options. Returns EXIT_DONE, or an exit status with the error
 * reported. */
static int read_site_options(const struct cli *cli, json_t *body)
{
    const struct arguments *a = &cli->arguments;
    const char *max = arguments_value(a, "--max-indexes");
    int status = read_hosts(a, body);
    uint64_t value;

    if (arguments_has(a, "--check") || arguments_has(a, "--no-check"))
        json_object_set_new(body, "check", json_boolean(arguments_has(a, "--check")));
    if (status == EXIT_DONE)
        status = read_robots(a, body);
    if (status != EXIT_DONE || max == NULL)
        return status;
    if (!query_number(max, LIMIT_SITE_PAGES_MAX, &value) || value == 0)
        return cli_misuse("--max-indexes", "\"%s\" must be a number from 1 to %u", max,
                          LIMIT_SITE_PAGES_MAX);
    json_object_set_new(body, "max_indexes", json_integer((json_int_t)value));
    return EXIT_DONE;
}

/* ---- hosts of several sites ---------------------------------------------------------------- */

/* Whether `host` ("www.example.com", or with a port) means the host of the origin. */
static bool is_host_of(const char *host, const char *origin)
{
    struct url url;
    const char *port;

    if (url_parse_origin(origin, strlen(origin), &url) != RULE_OK ||
        strncmp(host, url.text + url.host_at, url.host_len) != 0)
        return false;
    port = host + url.host_len;
    return *port == '\0' || (*port == ':' && strtoul(port + 1, NULL, 10) == url.port);
}

/* The origin of another site with this host; NULL: none. */
static const char *origin_of_host(const json_t *sites, const char *host, const char *besides)
{
    const json_t *site;
    size_t i;

    json_array_foreach(sites, i, site)
    {
        const char *origin = member_text(site, "origin");

        if (strcmp(origin, besides) != 0 && is_host_of(host, origin))
            return origin;
    }
    return NULL;
}

/* The origin of another site with this host as an alias; NULL: none. */
static const char *origin_of_alias(const json_t *sites, const char *origin)
{
    const json_t *site, *alias;
    size_t i, k;

    json_array_foreach(sites, i, site)
    {
        if (strcmp(member_text(site, "origin"), origin) == 0)
            continue;
        json_array_foreach(json_object_get(site, "host_aliases"), k, alias)
        {
            if (is_host_of(json_string_value(alias), origin))
                return member_text(site, "origin");
        }
    }
    return NULL;
}

/* Warns about hosts that another site has, too, and names the site that answers. */
static void report_hosts(struct cli *cli, const json_t *site)
{
    const json_t *sites = api_sites(cli->backend), *name;
    const char *origin = member_text(site, "origin"), *other = origin_of_alias(sites, origin);
    size_t i;

    if (other != NULL)
        cli_warn(origin, "its host is an alias of %s as well; requests for it go to this site",
                 other);
    json_array_foreach(json_object_get(site, "host_aliases"), i, name)
    {
        const char *host = json_string_value(name);

        if (is_host_of(host, origin))
            cli_warn(host, "is the site's own host; as an alias it has no effect");
        other = origin_of_host(sites, host, origin);
        if (other != NULL)
            cli_warn(host,
                     "conflict: is the host of %s, which still answers for it; the alias takes "
                     "effect once that site is removed",
                     other);
    }
    json_array_foreach(json_object_get(site, "cross_hosts"), i, name)
    {
        other = origin_of_host(sites, json_string_value(name), origin);
        if (other != NULL)
            cli_warn(json_string_value(name),
                     "is the host of %s; entries registered without an index go to that site",
                     other);
    }
}

/* ---- update: shows changed members before and after ---------------------------------------- */

static void append_value(struct str *out, const json_t *value)
{
    const json_t *host;
    size_t i;

    if (json_is_array(value) && json_array_size(value) == 0)
        str_append_text(out, "none");
    json_array_foreach(value, i, host)
        str_append_format(out, "%s%s", i > 0 ? ", " : "", json_string_value(host));
    if (json_is_integer(value))
        str_append_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

static void append_check(struct str *out, const json_t *value)
{
    str_append_text(out, json_is_true(value) ? "yes" : "no");
}

static void append_robots(struct str *out, const json_t *value)
{
    if (json_is_false(value))
        str_append_text(out, "served by another server");
    else if (!json_is_string(value))
        str_append_text(out, "only the Sitemap lines");
    else
        str_append_format(out, "own text of %zu bytes, and the Sitemap lines",
                          json_string_length(value));
}

/* "host aliases: a, b (before: b)", for each member that the body names. */
static void print_changes(const json_t *body, const json_t *before, const json_t *after)
{
    static const struct {
        const char *member, *add, *remove, *name;
        void (*append)(struct str *out, const json_t *value);
    } rows[] = {
        {"cross_hosts", "add_cross_hosts", "remove_cross_hosts", "cross hosts", append_value},
        {"host_aliases", "add_host_aliases", "remove_host_aliases", "host aliases", append_value},
        {"max_indexes", "", "", "limit of index files", append_value},
        {"robots", "", "", "robots.txt", append_robots},
        {"check", "", "", "sitemaps polled", append_check},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str was = STR_INIT, is = STR_INIT;

        if (json_object_get(body, rows[i].member) == NULL &&
            json_object_get(body, rows[i].add) == NULL &&
            json_object_get(body, rows[i].remove) == NULL)
            continue;
        rows[i].append(&was, json_object_get(before, rows[i].member));
        rows[i].append(&is, json_object_get(after, rows[i].member));
        printf("  %s: %s (before: %s)\n", rows[i].name, str_text(&is), str_text(&was));
        str_done(&was);
        str_done(&is);
    }
}

static void append_address(struct str *target, const json_t *site)
{
    str_append_text(target, "/v1/sites");
    target_segment(target, member_text(site, "id"));
}

/* Takes over the body. */
static int update(struct cli *cli, json_t *body)
{
    struct str target = STR_INIT, again = STR_INIT;
    json_t *before = NULL, *after = NULL;
    const json_t *site;
    int status = names_site(cli, cli->arguments.words[0], &site);

    if (status == EXIT_DONE) {
        append_address(&target, site);
        append_address(&again, site);
        before = api_get(cli->backend, &target);
        status = before != NULL ? EXIT_DONE : EXIT_COULD_NOT;
    }
    if (status == EXIT_DONE)
        status = api_write(cli->backend, "PATCH", &again, json_incref(body),
                           member_text(before, "origin"), &after);
    else
        str_done(&again);
    if (status == EXIT_DONE) {
        printf("%s: %s\n", member_text(before, "origin"),
               json_equal(before, after) ? "unchanged" : "updated");
        print_changes(body, before, after);
        report_hosts(cli, after);
    }
    json_decref(before);
    json_decref(after);
    json_decref(body);
    return status;
}

int command_site_update(struct cli *cli)
{
    json_t *body = json_object();
    int status = read_site_options(cli, body);

    if (status == EXIT_DONE && json_object_size(body) == 0)
        status = cli_misuse("site update", "nothing to change; see sitemapd site update --help");
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        return update(cli, body);
    json_decref(body);
    return status;
}

/* ---- add, remove ------------------------------------------------------------------------- */

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

/* Takes over the body. */
static int add(struct cli *cli, const struct url *origin, json_t *body)
{
    bool index = !arguments_has(&cli->arguments, "--no-index");
    struct str target = STR_INIT;
    json_t *site = NULL;
    int status;

    json_object_set_new(body, "origin", json_string(origin->text));
    json_object_set_new(body, "index", index ? json_string(INDEX_PATH_DEFAULT) : json_false());
    str_append_text(&target, "/v1/sites");
    status = api_write(cli->backend, "POST", &target, body, origin->text, &site);
    if (status == EXIT_DONE && !index)
        printf("%s: added\n", origin->text);
    else if (status == EXIT_DONE)
        printf("%s: added, with the index %s%s\n", origin->text, origin->text, INDEX_PATH_DEFAULT);
    if (status == EXIT_DONE)
        report_hosts(cli, site);
    json_decref(site);
    return status;
}

int command_site_add(struct cli *cli)
{
    json_t *body = json_object();
    struct url origin;
    int status = read_origin(cli->arguments.words[0], &origin);

    if (status == EXIT_DONE)
        status = read_site_options(cli, body);
    if (status == EXIT_DONE)
        status = session_open(cli, true);
    if (status == EXIT_DONE)
        return add(cli, &origin, body);
    json_decref(body);
    return status;
}

int command_site_remove(struct cli *cli)
{
    const char *origin = cli->arguments.words[0];
    struct str target = STR_INIT;
    const json_t *site;
    json_t *answer = NULL;
    int64_t max_removed;
    int status = session_max_removed(cli, &max_removed);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = names_site(cli, origin, &site);
    if (status != EXIT_DONE)
        return status;
    append_address(&target, site);
    session_add_set_options(cli, &target);
    status = api_write(cli->backend, "DELETE", &target, NULL, origin, &answer);
    if (status == EXIT_DONE)
        printf("%s: removed; entries removed with it: %" PRIu64 "\n", origin,
               member_number(answer, "removed"));
    json_decref(answer);
    return status;
}

/* ---- list ------------------------------------------------------------------------------ */

/* The lists of both kinds, sorted by origin like the sites, and how many were printed. */
struct site_rows {
    const json_t *lists[2];
    size_t at[2];
};

/* Appends the lists of the site. Returns their number of pages. */
static size_t append_lists(struct str *out, struct site_rows *rows, const json_t *site,
                           enum list_kind kind)
{
    const char *origin = member_text(site, "origin");
    const json_t *list;
    size_t pages = 0;

    while ((list = json_array_get(rows->lists[kind], rows->at[kind])) != NULL &&
           strcmp(member_text(list, "site"), origin) == 0) {
        rows->at[kind]++;
        pages += json_array_size(json_object_get(list, "pages"));
        str_append_format(
            out, "  %-10s  %s%s\n", kind == LIST_URLSET ? "urlset" : "index", names_path(list),
            member_is(list, "frozen") && !member_is(site, "frozen") ? "  (frozen)" : "");
    }
    return pages;
}

static void append_hosts(struct str *out, const json_t *site, const char *member, const char *what)
{
    const json_t *host;
    size_t i;

    json_array_foreach(json_object_get(site, member), i, host)
        str_append_format(out, "  %-10s  %s\n", what, json_string_value(host));
}

static void append_site(struct str *out, const json_t *site, void *context)
{
    uint64_t max = member_number(site, "max_indexes");
    const char *by = member_text(site, "frozen_by");
    const json_t *robots = json_object_get(site, "robots");
    struct str lists = STR_INIT;
    size_t pages = append_lists(&lists, context, site, LIST_INDEX);

    append_lists(&lists, context, site, LIST_URLSET);
    str_append_format(out, "%s  (%zu of %" PRIu64 " index %s%s%s)\n%s", member_text(site, "origin"),
                      pages, max, plural(max, "file", "files"),
                      member_is(site, "managed") ? "; managed by the configuration file" : "",
                      strcmp(by, freeze_word(FREEZE_ALL_SITES)) == 0
                          ? "; frozen by a token for all sites"
                      : member_is(site, "frozen") ? "; frozen by a token of the site"
                                                  : "",
                      str_text(&lists));
    append_hosts(out, site, "cross_hosts", "cross host");
    append_hosts(out, site, "host_aliases", "host alias");
    if (json_is_false(robots))
        str_append_text(out, "  robots.txt  served by another server\n");
    else if (json_is_string(robots))
        str_append_format(out, "  robots.txt  own text of %zu bytes\n", json_string_length(robots));
    str_done(&lists);
}

/* Reads each site by its own address, which returns its robots.txt, too. */
static json_t *read_sites(struct backend *b)
{
    const json_t *sites = api_sites(b), *site;
    json_t *whole = sites != NULL ? json_array() : NULL;
    size_t i;

    json_array_foreach(sites, i, site)
    {
        struct str target = STR_INIT;

        append_address(&target, site);
        if (json_array_append_new(whole, api_get(b, &target)) != 0) {
            json_decref(whole);
            return NULL;
        }
    }
    return whole;
}

int command_site_list(struct cli *cli)
{
    int status = session_open(cli, false);
    json_t *sites = status == EXIT_DONE ? read_sites(cli->backend) : NULL;
    struct site_rows rows = {.at = {0}};

    for (int kind = LIST_INDEX; sites != NULL && kind <= LIST_URLSET; kind++)
        rows.lists[kind] = api_lists(cli->backend, (enum list_kind)kind);
    if (status == EXIT_DONE)
        status = output_table(cli, sites, NULL,
                              "no sites yet; create one with `sitemapd site add ORIGIN`",
                              append_site, &rows);
    json_decref(sites);
    return status;
}
