/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands add, remove, list, export and render, for sitemaps and page URLs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/str.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"
#include "server/rules/page/fragment.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* `add` and `remove`: one entry. */

/* Parses a loc, or reports what is wrong with it. */
static int read_loc(const char *text, struct url *out, rule_set *remarks)
{
    size_t len = strlen(text);
    enum rule_code code = url_parse(text, len, out, remarks);
    char punycode[HOST_MAX_CHARS + 1];

    /* Percent-encoded, it would be an invisible part of the path. */
    if (code == RULE_OK && explain_blank_back(text, len) > 0)
        code = RULE_LOC_SPACE;
    if (code == RULE_OK)
        return EXIT_DONE;
    if (code == RULE_LOC_HOST_IDN && url_punycode_hint(text, len, punycode, sizeof punycode))
        return cli_fail(text, "%s: %s (%s)", rule_code_sentence(code), punycode,
                        rule_code_word(code));
    if (code == RULE_LOC_RELATIVE && explain_loc(code, text, len) == rule_code_sentence(code) &&
        explain_may_lack_scheme(text))
        return cli_fail(text, "%s (%s); did you mean https://%s?", rule_code_sentence(code),
                        rule_code_word(code), text);
    return cli_fail(text, "%s (%s)", explain_loc(code, text, len), rule_code_word(code));
}

/* Fills the entry's lastmod; a date in the future, or too old, is dropped and remarked, like
 * everywhere. */
static int read_lastmod(const char *text, struct lastmod *lastmod, struct entry *entry)
{
    enum rule_code code;

    if (text == NULL)
        return EXIT_DONE;
    code = lastmod_parse(text, strlen(text), (int64_t)time(NULL), lastmod, &entry->remarks);
    if (code == RULE_OK && lastmod_is_too_old(lastmod->text))
        code = RULE_LASTMOD_OLD;
    if (code == RULE_LASTMOD_FUTURE || code == RULE_LASTMOD_OLD) {
        entry->remarks |= RULE_BIT(code);
        return EXIT_DONE;
    }
    if (code != RULE_OK)
        return cli_fail("--lastmod", "\"%s\" %s (%s)", text, rule_code_sentence(code),
                        rule_code_word(code));
    entry->lastmod = lastmod->text;
    entry->lastmod_state = FIELD_SET;
    return EXIT_DONE;
}

static int read_digest(const char *text, struct entry *entry)
{
    enum rule_code code;

    if (text == NULL)
        return EXIT_DONE;
    code = entry_check_digest(text, strlen(text));
    if (code != RULE_OK)
        return cli_fail("--digest", "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    entry->digest = text;
    entry->digest_state = FIELD_SET;
    return EXIT_DONE;
}

static bool has_word(const json_t *words, const char *word)
{
    const json_t *each;
    size_t i;

    json_array_foreach(words, i, each)
    {
        if (strcmp(json_string_value(each), word) == 0)
            return true;
    }
    return false;
}

static void warn(const char *loc, const json_t *warnings, bool future)
{
    const json_t *word;
    size_t i;

    json_array_foreach(warnings, i, word)
    {
        enum rule_code code = api_rule(json_string_value(word));

        /* The stored date stays; the remark on it is not about the given one. */
        if (code == RULE_OK ||
            (future && (code == RULE_LASTMOD_DATE_ONLY || code == RULE_LASTMOD_COARSE)))
            continue;
        text_warn(loc, RULE_BIT(code));
    }
}

/* `remarks`: on what was given, besides those on what is stored. */
static void print_outcome(struct cli *cli, json_t *answer, rule_set remarks)
{
    bool pages = names_kind(cli) == LIST_URLSET;
    json_t *entry = json_object_get(answer, pages ? "url" : "sitemap");
    json_t *warnings = json_object_get(entry, "warnings");
    const char *done = member_number(answer, "created") > 0   ? "added"
                       : member_number(answer, "updated") > 0 ? "updated"
                                                              : "unchanged";

    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if ((remarks & RULE_BIT(code)) != 0 && !has_word(warnings, rule_code_word(code)))
            json_array_append_new(warnings, json_string(rule_code_word(code)));
    if (arguments_has(&cli->arguments, "--json")) {
        output_json(entry);
        return;
    }
    printf("%s: %s in %s, page %" PRIu64 "\n", member_text(entry, "loc"), done,
           member_text(entry, pages ? "urlset" : "index"), member_number(entry, "page"));
    warn(member_text(entry, "loc"), warnings, (remarks & RULE_BIT(RULE_LASTMOD_FUTURE)) != 0);
}

/* The options about news, in the order of enum news_field. */
static const char *const news_options[NEWS_FIELD_COUNT] = {"--news-name", "--news-language",
                                                           "--news-date", "--news-title"};

/* `*given`: there are such options. */
static enum rule_code read_news(const struct arguments *a, struct fragment *fragment, bool *given)
{
    enum rule_code code = RULE_OK;
    bool begun = false;

    for (size_t i = 0; code == RULE_OK && i < NEWS_FIELD_COUNT; i++) {
        const char *text = arguments_value(a, news_options[i]);

        if (text == NULL)
            continue;
        if (!begun)
            fragment_begin_news(fragment);
        begun = *given = true;
        code = fragment_add_news(fragment, (enum news_field)i, text, strlen(text), time(NULL));
    }
    return code;
}

/* Reads --image, --alternate and the options about news into `fragment`, and sets the entry's
 * extensions from it; they replace all stored ones. */
static int read_extensions(const struct arguments *a, struct fragment *fragment,
                           struct entry *entry)
{
    const char **images = arguments_values(a, "--image");
    const char **alternates = arguments_values(a, "--alternate");
    bool given = arguments_has(a, "--image") || arguments_has(a, "--alternate");
    enum rule_code code = RULE_OK;
    int status = EXIT_DONE;

    fragment_begin(fragment, false);
    code = read_news(a, fragment, &given);
    if (images == NULL || alternates == NULL) {
        status = cli_fail("--image", "out of memory");
        given = false;
    }
    for (size_t i = 0; given && code == RULE_OK && images[i] != NULL; i++)
        code = fragment_add_image(fragment, images[i], strlen(images[i]));
    for (size_t i = 0; given && code == RULE_OK && alternates[i] != NULL; i++) {
        size_t len = strcspn(alternates[i], "=");
        const char *url = alternates[i] + len + (alternates[i][len] == '=');

        code = fragment_add_alternate(fragment, alternates[i], len, url, strlen(url));
    }
    if (given && code == RULE_OK)
        code = fragment_end(fragment);
    if (code != RULE_OK)
        status = cli_fail(a->words[0], "%s (%s)", fragment->why, rule_code_word(code));
    else if (fragment->text.failed)
        status = cli_fail(a->words[0], "out of memory");
    else if (given)
        entry->extensions = str_text(&fragment->text);
    entry->extensions_state = given ? FIELD_SET : FIELD_ABSENT;
    entry->remarks |= fragment->remarks;
    free((void *)images);
    free((void *)alternates);
    return status;
}

/* Adds the members of a fragment to the body; NULL: removes all extensions. */
static void add_extensions(json_t *body, const char *fragment)
{
    struct str text = STR_INIT;
    json_t *members;

    str_append_text(&text, "{\"images\":null");
    fragment_append_json(&text, fragment);
    str_append_char(&text, '}');
    members = json_loads(str_text(&text), 0, NULL); /* the last member of a name counts */
    json_object_update(body, members);
    json_decref(members);
    str_done(&text);
}

static json_t *entry_body(const struct cli *cli, const struct entry *entry, bool pages)
{
    const char *list = arguments_value(&cli->arguments, pages ? "--urlset" : "--index");
    json_t *body = json_pack("{s:s, s:s*}", "loc", entry->loc, pages ? "urlset" : "index", list);

    if (entry->extensions_state != FIELD_ABSENT)
        add_extensions(body, entry->extensions);
    if (entry->lastmod_state != FIELD_ABSENT)
        json_object_set_new(body, "lastmod", json_string(entry->lastmod));
    if (entry->digest_state != FIELD_ABSENT)
        json_object_set_new(body, "digest", json_string(entry->digest));
    return body;
}

static const char *entries_path(bool pages)
{
    return pages ? "/v1/urls" : "/v1/sitemaps";
}

static int put_entry(struct cli *cli, const struct entry *entry, const char *source, bool pages)
{
    struct backend *b = cli->backend;
    struct str target = STR_INIT;
    json_t *body = entry_body(cli, entry, pages), *answer = NULL;
    int status = EXIT_DONE;

    str_append_text(&target, entries_path(pages));
    target_add(&target, "source", source);
    if (api_call(b, "POST", str_text(&target), body, &answer) && api_is_good(b)) {
        print_outcome(cli, answer, entry->remarks);
        json_decref(answer);
    } else {
        status = api_refused(b, entry->loc, entry->loc, answer);
    }
    str_done(&target);
    json_decref(body);
    return status;
}

static int add_entry(struct cli *cli, struct fragment *fragment)
{
    const struct arguments *a = &cli->arguments;
    const char *source = arguments_value(a, "--source");
    bool pages = names_kind(cli) == LIST_URLSET;
    struct entry entry = {.remarks = 0};
    struct lastmod lastmod;
    struct url url;
    int status = read_loc(a->words[0], &url, &entry.remarks);

    if (status == EXIT_DONE)
        status = read_lastmod(arguments_value(a, "--lastmod"), &lastmod, &entry);
    if (status == EXIT_DONE)
        status = read_digest(arguments_value(a, "--digest"), &entry);
    if (status == EXIT_DONE && pages)
        status = read_extensions(a, fragment, &entry);
    if (status == EXIT_DONE && source != NULL &&
        entry_check_name(source, strlen(source)) != RULE_OK)
        return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    if (source == NULL && (source = api_owner(cli->backend)) == NULL)
        return EXIT_COULD_NOT;
    if (pages && !arguments_has(a, "--urlset"))
        return cli_misuse("--urlset", "is required: the urlset's URL, or its path with one site");
    entry.loc = url.text;
    return put_entry(cli, &entry, source, pages);
}

int command_add(struct cli *cli)
{
    struct fragment *fragment = calloc(1, sizeof *fragment);
    int status = fragment != NULL ? add_entry(cli, fragment) : cli_fail("add", "out of memory");

    if (fragment != NULL)
        fragment_done(fragment);
    free(fragment);
    return status;
}

int command_remove(struct cli *cli)
{
    const char *urlset = arguments_value(&cli->arguments, "--urlset");
    bool pages = names_kind(cli) == LIST_URLSET;
    struct str target = STR_INIT;
    struct url url;
    int status = read_loc(cli->arguments.words[0], &url, NULL);

    if (status == EXIT_DONE && pages && urlset == NULL)
        return cli_misuse("--urlset", "is required: the urlset's URL, or its path with one site");
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    str_append_text(&target, entries_path(pages));
    target_add(&target, "loc", url.text);
    target_add(&target, pages ? "urlset" : "index",
               pages ? urlset : arguments_value(&cli->arguments, "--index"));
    return session_do(cli, "DELETE", &target, NULL, url.text, "removed");
}

/* `list` and `export`: entries, streamed from one view. */

struct entry_listing {
    struct str line;
    int width; /* of the column for the index, or for the extensions; 0: JSON or export */
    bool export;
    bool warned; /* print remarks after the loc */
    bool pages;  /* page URLs */
    bool headed;
};

/* Column widths are fixed before the first row, so that rows can stream; the loc is last. */
#define LASTMOD_WIDTH 25

static void print_warnings(rule_set remarks)
{
    const char *before = "  (";

    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if ((remarks & RULE_BIT(code)) != 0) {
            printf("%s%s", before, rule_code_word((enum rule_code)code));
            before = ", ";
        }
    putchar(')');
}

static void print_row(struct entry_listing *l, const struct entry_shown *entry)
{
    char has[EXTENSION_WORDS_SIZE] = "";
    struct str row = STR_INIT;

    if (!l->headed)
        printf("%s%-*s  %4s  %-*s  %s%s\n", ink_on(stdout, INK_HEADING), LASTMOD_WIDTH, "LASTMOD",
               "PAGE", l->width, l->pages ? "HAS" : "INDEX", l->warned ? "LOC (WARNINGS)" : "LOC",
               ink_off(stdout));
    l->headed = true;
    if (l->pages)
        extension_words(entry->extensions != NULL ? extensions_of(entry->extensions) : 0, has);
    else
        str_append_format(&l->line, "%s%s", entry->origin != NULL ? entry->origin : "",
                          entry->path != NULL ? entry->path : "");
    str_append_format(&row, "%-*s  %4u  %-*s  %s", LASTMOD_WIDTH,
                      entry->lastmod != NULL ? entry->lastmod : "-", entry->page, l->width,
                      has[0] != '\0' ? has
                      : l->pages     ? "-"
                                     : str_text(&l->line),
                      entry->loc);
    cli_print_escaped(stdout, str_text(&row));
    str_done(&row);
    if (l->warned)
        print_warnings((l->pages ? entry_lint_page_url : entry_lint)(entry->loc, entry->lastmod,
                                                                     entry->origin));
    putchar('\n');
}

static bool print_entry(void *context, const struct entry_shown *entry)
{
    struct entry_listing *l = context;

    str_clear(&l->line);
    if (l->width > 0) {
        print_row(l, entry);
        return !ferror(stdout);
    }
    if (l->export)
        entry_append_export(&l->line, entry);
    else
        entry_append_json(&l->line, entry);
    str_append_char(&l->line, '\n');
    if (!l->line.failed)
        fwrite(l->line.data, 1, l->line.len, stdout);
    return !l->line.failed && !ferror(stdout);
}

static int widest_index(const json_t *indexes)
{
    size_t widest = strlen("INDEX"), i;
    const json_t *index;

    json_array_foreach(indexes, i, index)
    {
        size_t len = strlen(member_text(index, "url"));

        if (len > widest)
            widest = len;
    }
    return (int)widest;
}

static void record_none(struct cli *cli, const struct entry_wanted *wanted)
{
    if (wanted->filter.page_urls)
        cli_warn("url list", "no matching page URLs");
    else
        cli_warn("list",
                 !session_has_sites(cli) ? "no site yet; create one with `sitemapd site add ORIGIN`"
                 : wanted->list != NULL || wanted->prefix != NULL || wanted->source != NULL ||
                         wanted->filter.contains != NULL || wanted->filter.warned
                     ? "no matching entries"
                     : "no entries; register one with `sitemapd add LOC`");
}

static int list_entries(struct cli *cli, bool json, bool export)
{
    const char *contains = arguments_value(&cli->arguments, "--contains");
    size_t len = contains != NULL ? strlen(contains) : FILTER_MIN_CONTAINS;
    struct entry_listing l = {
        .line = STR_INIT, .export = export, .pages = names_kind(cli) == LIST_URLSET};
    struct entry_wanted wanted = {.prefix = arguments_value(&cli->arguments, "--prefix"),
                                  .source = arguments_value(&cli->arguments, "--source"),
                                  .filter = {.contains = contains,
                                             .warned = arguments_has(&cli->arguments, "--warned"),
                                             .page_urls = l.pages}};
    const json_t *indexes = NULL;
    int status;

    l.warned = wanted.filter.warned;
    if (len < FILTER_MIN_CONTAINS || len > FILTER_MAX_CONTAINS)
        return cli_misuse("--contains", "must be 3 to 200 bytes long");
    if (wanted.source != NULL && entry_check_name(wanted.source, strlen(wanted.source)) != RULE_OK)
        return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
    if (l.pages && !arguments_has(&cli->arguments, "--urlset"))
        return cli_misuse("--urlset", "is required: the urlset's URL, or its path with one site");
    status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = names_list_option(cli, &wanted.list);
    if (status == EXIT_DONE && !json && !export && !l.pages) {
        indexes = api_lists(cli->backend, LIST_INDEX);
        status = indexes != NULL ? EXIT_DONE : EXIT_COULD_NOT;
    }
    if (status != EXIT_DONE)
        return status;
    l.width = json || export ? 0
              : l.pages      ? (int)strlen("news,images,videos,alternates")
                             : widest_index(indexes);
    status = api_entries(cli->backend, &wanted, print_entry, &l);
    if (status == EXIT_DONE && l.line.failed)
        status = cli_fail("list", "out of memory");
    else if (status == EXIT_DONE && l.width > 0 && !l.headed)
        record_none(cli, &wanted);
    str_done(&l.line);
    return status;
}

int command_list(struct cli *cli)
{
    return list_entries(cli, arguments_has(&cli->arguments, "--json"), false);
}

int command_export(struct cli *cli)
{
    return list_entries(cli, false, true);
}

/* `render`: entries as their page. */

struct page_name {
    const json_t *list;
    uint32_t number;
};

/* Finds the list of the site with a page at the path. */
static bool find_in_site(struct cli *cli, const json_t *site, enum list_kind kind, const char *path,
                         struct page_name *out)
{
    const json_t *list;
    size_t i;

    json_array_foreach(api_lists(cli->backend, kind), i, list)
    {
        uint64_t pages = member_number(kind == LIST_URLSET ? list : site,
                                       kind == LIST_URLSET ? "max_pages" : "max_indexes");
        uint32_t number =
            strcmp(member_text(list, "site"), member_text(site, "origin")) == 0
                ? scope_page_number(names_path(list), member_text(list, "page_pattern"),
                                    (uint32_t)pages, path, strlen(path))
                : 0;

        if (number != 0) {
            *out = (struct page_name){list, number};
            return true;
        }
    }
    return false;
}

/* Finds the site of the URL `name`, and the path. Host aliases do not count: it must be the page's
 * own URL. Reports an error if there is no such site. */
static int find_site(struct cli *cli, const char *name, struct url *url, const json_t **site,
                     const char **path)
{
    const json_t *sites = api_sites(cli->backend);
    char origin[LOC_MAX_CHARS + 1];
    enum rule_code code;

    if (sites == NULL)
        return EXIT_COULD_NOT;
    if (name[0] == '/') {
        if (json_array_size(sites) != 1)
            return cli_fail(name,
                            "a path is only valid with exactly one site; give the page's URL");
        *site = json_array_get(sites, 0);
        *path = name;
        return EXIT_DONE;
    }
    code = url_parse(name, strlen(name), url, NULL);
    if (code != RULE_OK)
        return cli_fail(name, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    memcpy(origin, url->text, url->origin_len);
    origin[url->origin_len] = '\0';
    *path = url->text + url->origin_len;
    return names_site(cli, origin, site);
}

/* Finds the page at the URL `name`; reports an error if none exists. */
static int find_page(struct cli *cli, const char *name, struct page_name *out)
{
    const json_t *site = NULL;
    const char *path = "";
    struct url url;
    size_t len;
    int status = find_site(cli, name, &url, &site, &path);

    if (status != EXIT_DONE)
        return status;
    if (strcmp(path, "/robots.txt") == 0)
        return cli_fail(name, "robots.txt is not a page; request it from a running server");
    if (!find_in_site(cli, site, LIST_INDEX, path, out) &&
        !find_in_site(cli, site, LIST_URLSET, path, out))
        return names_no_page(cli, site, name, path);
    len = strlen(path);
    if (len > 3 && strcmp(path + len - 3, ".gz") == 0)
        return cli_fail(name, "the server compresses it; remove .gz from the URL to see the XML");
    return EXIT_DONE;
}

static bool write_text(void *context, const char *bytes, size_t len)
{
    struct str *out = context;

    str_append(out, bytes, len);
    return !out->failed;
}

int entries_render(struct backend *b, const json_t *list, uint64_t number, struct str *out)
{
    struct str target = STR_INIT;
    json_t *answer = NULL;
    bool urlset = json_object_get(list, "with") != NULL;
    bool good;

    str_append_text(&target, "/v1/render");
    target_add(&target, urlset ? "urlset" : "index", member_text(list, "url"));
    target_add_number(&target, "page", (int64_t)number);
    good = api_stream(b, str_text(&target), "application/xml", write_text, out, &answer) &&
           api_is_good(b);
    str_done(&target);
    if (!good && strcmp(member_text(answer, "code"), "page-empty") != 0)
        return api_report(b, answer);
    json_decref(answer);
    return EXIT_DONE;
}

int command_render(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct str out = STR_INIT;
    struct page_name page = {0};
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = find_page(cli, name, &page);
    if (status == EXIT_DONE)
        status = entries_render(cli->backend, page.list, page.number, &out);
    if (status == EXIT_DONE && out.len == 0)
        status = cli_fail(name, "has no entries; the server answers 404");
    else if (status == EXIT_DONE)
        fwrite(out.data, 1, out.len, stdout);
    str_done(&out);
    return status;
}
