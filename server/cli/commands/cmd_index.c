/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `index`, `urlset`, `freeze` and `thaw`. */
#include <inttypes.h>
#include <string.h>

#include "db/urlset.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/http/query.h"
#include "server/rules/limits.h"
#include "server/rules/page/extension.h"
#include "server/rules/url.h"

static const char *lists_path(enum list_kind kind)
{
    return kind == LIST_URLSET ? "/v1/urlsets" : "/v1/indexes";
}

/* The address of an object in the API's answer: "/v1/indexes/12". */
static void append_address(struct str *target, const char *path, const json_t *object)
{
    str_append_text(target, path);
    target_segment(target, member_text(object, "id"));
}

/* Appends the address of the list that the command's word names. Returns EXIT_DONE, or the status
 * after an error was reported. */
static int find_list(struct cli *cli, enum list_kind kind, struct str *target)
{
    const json_t *list;
    int status = names_list(cli, cli->arguments.words[0], kind, &list);

    if (status == EXIT_DONE)
        append_address(target, lists_path(kind), list);
    return status;
}

/* ---- add --------------------------------------------------------------------------------- */

static int add_list(struct cli *cli, json_t *body)
{
    const char *pattern = arguments_value(&cli->arguments, "--pattern");
    struct str target = STR_INIT;
    char url[LOC_MAX_CHARS + 1];
    int status = session_open(cli, false);
    const char *name =
        status == EXIT_DONE ? names_new_list(cli, cli->arguments.words[0], url) : NULL;

    if (name == NULL) {
        json_decref(body);
        return status == EXIT_DONE ? EXIT_COULD_NOT : status;
    }
    json_object_set_new(body, "url", json_string(name));
    if (pattern != NULL)
        json_object_set_new(body, "page_pattern", json_string(pattern));
    str_append_text(&target, lists_path(names_kind(cli)));
    return session_do(cli, "POST", &target, body, name, "added");
}

int command_index_add(struct cli *cli)
{
    return add_list(cli, json_object());
}

/* Reads the number of an option, if given, from `least` to `most`. */
static int read_number(const struct arguments *a, const char *option, const char *member,
                       uint32_t least, uint32_t most, json_t *body)
{
    const char *text = arguments_value(a, option);
    uint64_t value;

    if (text == NULL)
        return EXIT_DONE;
    if (!query_number(text, most, &value) || value < least)
        return cli_misuse(option, "must be a number from %u to %u", least, most);
    json_object_set_new(body, member, json_integer((json_int_t)value));
    return EXIT_DONE;
}

/* The same for an age. */
static int read_age(const struct arguments *a, const char *option, const char *member, json_t *body)
{
    const char *text = arguments_value(a, option);
    bool never = text != NULL && strcmp(text, "never") == 0;
    int64_t span;

    if (text != NULL && !never && !grant_read_span(text, &span))
        return cli_misuse(option, "must be a duration such as 2d, 12h or 90m, or never");
    if (text != NULL)
        json_object_set_new(body, member, never ? json_null() : json_string(text));
    return EXIT_DONE;
}

#define READ_NUMBER(option, name, least, most) read_number(a, option, name, least, most, body)
#define READ_AGE(option, name, least, most)    read_age(a, option, name, body)
#define READ(kind, bit, c, name, option, least, most, ...)                                         \
    if (status == EXIT_DONE)                                                                       \
        status = READ_##kind(option, #name, least, most);
#define NAMED(kind, bit, c, name, option, ...) ", " option

/* Reads the options for creating or changing a urlset. */
static int read_urlset(const struct arguments *a, json_t *body)
{
    const char *index = arguments_value(a, "--index");
    int status = EXIT_DONE;

    URLSET_SETTINGS(READ)
    if (status == EXIT_DONE && index != NULL)
        json_object_set_new(body, "index", json_string(index));
    return status;
}

/* Reads --with: words with commas between. */
static int read_with(const char *text, json_t *body)
{
    json_t *with = json_array();

    json_object_set_new(body, "with", with);
    for (; text != NULL && *text != '\0'; text += *text == ',') {
        size_t len = strcspn(text, ",");
        char word[16];

        snprintf(word, sizeof word, "%.*s", (int)(len < 15 ? len : 15), text);
        if (extension_named(word) == 0)
            return cli_misuse(
                "--with", "unknown extension \"%s\"; use images, videos, alternates or news", word);
        json_array_append_new(with, json_string(word));
        text += len;
    }
    return EXIT_DONE;
}

int command_urlset_add(struct cli *cli)
{
    json_t *body = json_object();
    int status = read_urlset(&cli->arguments, body);

    if (status == EXIT_DONE)
        status = read_with(arguments_value(&cli->arguments, "--with"), body);
    if (status == EXIT_DONE)
        return add_list(cli, body);
    json_decref(body);
    return status;
}

/* ---- set, remove ------------------------------------------------------------------------- */

/* Sends a change of the list that the command's word names, and frees the body (may be NULL).
 * EXIT_DONE and the response, or the error is reported. */
static int change_list(struct cli *cli, const char *method, json_t *body, json_t **answer)
{
    struct str target = STR_INIT;
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = find_list(cli, names_kind(cli), &target);
    if (status == EXIT_DONE)
        status = session_add_set_options(cli, &target);
    if (status == EXIT_DONE)
        return api_write(cli->backend, method, &target, body, cli->arguments.words[0], answer);
    str_done(&target);
    json_decref(body);
    return status;
}

int command_index_remove(struct cli *cli)
{
    json_t *answer = NULL;
    int64_t max_removed;
    int status = session_max_removed(cli, &max_removed);

    if (status == EXIT_DONE)
        status = change_list(cli, "DELETE", NULL, &answer);
    if (status == EXIT_DONE)
        printf("%s: removed; %s removed with it: %" PRIu64 "\n", cli->arguments.words[0],
               names_kind(cli) == LIST_URLSET ? "page URLs" : "entries",
               member_number(answer, "removed"));
    json_decref(answer);
    return status;
}

int command_urlset_set(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    json_t *body = json_object(), *answer = NULL;
    uint64_t removed;
    int64_t max_removed;
    int status = read_urlset(&cli->arguments, body);

    if (status == EXIT_DONE && json_object_size(body) == 0)
        status = cli_misuse(
            name, "nothing to change; give one or more of --index" URLSET_SETTINGS(NAMED));
    if (status == EXIT_DONE)
        status = session_max_removed(cli, &max_removed);
    if (status != EXIT_DONE) {
        json_decref(body);
        return status;
    }
    status = change_list(cli, "PATCH", body, &answer);
    removed = member_number(answer, "removed");
    if (status == EXIT_DONE && removed > 0)
        printf("%s: changed; page URLs removed: %" PRIu64 "\n", name, removed);
    else if (status == EXIT_DONE)
        printf("%s: changed\n", name);
    json_decref(answer);
    return status;
}

/* ---- freeze and thaw ------------------------------------------------------------------- */

/* Finds a site by its origin, a urlset, or an index by the word. */
static int find_either(struct cli *cli, struct str *target)
{
    const char *name = cli->arguments.words[0];
    const json_t *site;
    struct url origin;
    int status;

    if (url_parse_origin(name, strlen(name), &origin) != RULE_OK)
        return find_list(cli,
                         names_find_list(cli, name, LIST_URLSET) != NULL ? LIST_URLSET : LIST_INDEX,
                         target);
    status = names_site(cli, name, &site);
    if (status == EXIT_DONE)
        append_address(target, "/v1/sites", site);
    return status;
}

static int set_frozen(struct cli *cli, bool frozen)
{
    struct str target = STR_INIT;
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = find_either(cli, &target);
    if (status == EXIT_DONE)
        return session_do(
            cli, "PATCH", &target, json_pack("{s:b}", "frozen", frozen), cli->arguments.words[0],
            frozen ? "frozen (read-only); changes are rejected until it is thawed" : "thawed");
    str_done(&target);
    return status;
}

int command_freeze(struct cli *cli)
{
    return set_frozen(cli, true);
}

int command_thaw(struct cli *cli)
{
    return set_frozen(cli, false);
}

/* ---- list ------------------------------------------------------------------------------ */

/* "news,images": in the order in which the API lists them. "-": none. */
static void append_with(struct str *out, const json_t *urlset)
{
    struct str words = STR_INIT;
    const json_t *word;
    size_t i;

    json_array_foreach(json_object_get(urlset, "with"), i, word)
        str_append_format(&words, "%s%s", i > 0 ? "," : "", json_string_value(word));
    str_append_format(out, "%-22s  ", words.len > 0 ? str_text(&words) : "-");
    str_done(&words);
}

static void append_list(struct str *out, const json_t *list, void *context)
{
    const char *changed = member_text_or_null(list, "changed_at"), *index;
    size_t origin = strlen(member_text(list, "site"));
    bool urlsets = *(bool *)context;
    char entries[24], bytes[24];

    output_count(entries, list, "entries");
    output_count(bytes, list, "bytes");
    str_append_format(out, "%10s  %5zu  %12s  %-20s  ", entries,
                      json_array_size(json_object_get(list, "pages")), bytes,
                      changed != NULL ? changed : "-");
    if (urlsets) {
        const char *expires = member_text_or_null(list, "expires");

        append_with(out, list);
        str_append_format(out, "%-7s  ", expires != NULL ? expires : "-");
    }
    str_append_text(out, member_text(list, "url"));
    index = member_text(list, "index");
    if (urlsets && strlen(index) > origin)
        str_append_format(out, "  (of %s)", index + origin);
    str_append_text(out, member_is(list, "frozen") ? "  (frozen)\n" : "\n");
}

int command_index_list(struct cli *cli)
{
    bool urlsets = names_kind(cli) == LIST_URLSET;
    char heading[120];
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    snprintf(heading, sizeof heading, "%10s  %5s  %12s  %-20s  %s%s", urlsets ? "URLS" : "ENTRIES",
             "PAGES", "BYTES", "CHANGED", urlsets ? "WITH                    EXPIRES  " : "",
             urlsets ? "URL (OF INDEX)" : "URL");
    return output_table(cli, api_lists(cli->backend, names_kind(cli)), heading,
                        urlsets ? "no urlsets yet; create one with `sitemapd urlset add URL`"
                                : "no indexes yet; create one with `sitemapd index add URL`",
                        append_list, &urlsets);
}
