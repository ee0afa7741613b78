#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/str.h"
#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"
#include "server/rules/page/fragment.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* `add` and `remove`: one entry. */

/* Reads a loc, or tells what is wrong with it. */
static int read_loc(const char *text, struct url *out, rule_set *remarks)
{
    size_t len = strlen(text);
    enum rule_code code = url_parse(text, len, out, remarks);
    char punycode[HOST_MAX_CHARS + 1];

    /* Percent-encoded it would be a part of the path that nobody sees. */
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

/* The line of JSON; `index` is parted where its path begins. */
static void append_entry(struct str *out, const struct entry_record *record, const char *index,
                         bool pages, rule_set remarks)
{
    char origin[LOC_MAX_CHARS + 1];
    const char *path = index;
    struct url url;

    if (url_split(index, strlen(index), &url))
        path += url.origin_len;
    snprintf(origin, sizeof origin, "%.*s", (int)(path - index), index);
    const struct entry_shown shown = {
        .id = record->id,
        .loc = record->loc,
        .lastmod = record->lastmod,
        .digest = record->digest,
        .source = record->source,
        .origin = path > index ? origin : NULL,
        .path = path,
        .is_page_url = pages,
        .extensions = record->extensions,
        .page = record->page,
        .registered_at = record->registered_at,
        .changed_at = record->changed_at,
        .remarks = remarks,
    };

    entry_append_json(out, &shown);
    str_append_char(out, '\n');
}

static int print_outcome(struct cli *cli, const struct change_result *result, rule_set remarks)
{
    const struct entry_record *record = &result->entry;
    const char *done = result->created > 0   ? "added"
                       : result->updated > 0 ? "updated"
                                             : "unchanged";
    const char *index = cli->backend->calls->index_url(cli->backend, result);
    struct str out = STR_INIT;

    if (arguments_has(&cli->arguments, "--json")) {
        append_entry(&out, record, index, names_kind(cli) == LIST_URLSET, remarks);
    } else {
        str_append_format(&out, "%s: %s in %s, page %u\n", record->loc, done, index, record->page);
        /* The stored date, which stays, is not the one that was given. */
        if (remarks & RULE_BIT(RULE_LASTMOD_FUTURE))
            remarks &= ~(RULE_BIT(RULE_LASTMOD_DATE_ONLY) | RULE_BIT(RULE_LASTMOD_COARSE));
        text_warn(record->loc, remarks);
    }
    fputs(str_text(&out), stdout);
    str_done(&out);
    return EXIT_DONE;
}

/* The options that tell of news, in the order of enum news_field. */
static const char *const news_options[NEWS_FIELD_COUNT] = {"--news-name", "--news-language",
                                                           "--news-date", "--news-title"};

/* `*given`: there are some. */
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

/* Reads --image, --alternate and those of news into `fragment`, and the entry's extensions from it:
 * given, they are all. */
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

static int add_entry(struct cli *cli, struct fragment *fragment)
{
    const struct arguments *a = &cli->arguments;
    const char *source = arguments_value(a, "--source");
    struct change change = {.kind = CHANGE_ENTRY_PUT, .list = names_kind(cli), .source = source};
    bool pages = change.list == LIST_URLSET;
    struct change_result result;
    struct lastmod lastmod;
    struct url url;
    int status = read_loc(a->words[0], &url, &change.entry.remarks);

    if (status == EXIT_DONE)
        status = read_lastmod(arguments_value(a, "--lastmod"), &lastmod, &change.entry);
    if (status == EXIT_DONE)
        status = read_digest(arguments_value(a, "--digest"), &change.entry);
    if (status == EXIT_DONE && pages)
        status = read_extensions(a, fragment, &change.entry);
    if (status == EXIT_DONE && source != NULL &&
        entry_check_name(source, strlen(source)) != RULE_OK)
        return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    if (source == NULL && (change.source = cli->backend->calls->owner(cli->backend)) == NULL)
        return EXIT_COULD_NOT;
    change.entry.loc = url.text;
    change.entry.position = POSITION_NONE;
    change.entry.index = arguments_value(a, pages ? "--urlset" : "--index");
    if (pages && change.entry.index == NULL)
        return cli_misuse("--urlset", "the urlset is missing: --urlset is required");
    status = session_apply(cli, &change, url.text, &result);
    if (status == EXIT_DONE)
        status = print_outcome(cli, &result, result.remarks | change.entry.remarks);
    change_result_done(&result);
    return status;
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
    struct change change = {.kind = CHANGE_ENTRY_REMOVE,
                            .list = names_kind(cli),
                            .index_name = arguments_value(&cli->arguments, "--urlset"),
                            .max_removed = MAX_REMOVED_GUARDED};
    struct url url;
    int status = read_loc(cli->arguments.words[0], &url, NULL);

    if (status == EXIT_DONE && change.list == LIST_URLSET && change.index_name == NULL)
        return cli_misuse("--urlset", "the urlset is missing: --urlset is required");
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    change.loc = url.text;
    return session_do(cli, &change, url.text, "removed");
}

/* `list` and `export`: entries, streamed from one view. */

struct entry_listing {
    struct str line;
    int width; /* of the index, or of what page URLs have; 0: JSON or export */
    bool export;
    bool warned; /* what is odd is reported behind the loc */
    bool pages;  /* page URLs */
    bool headed;
};

/* Columns whose widths are known before the first row, so that rows stream: the loc is last. */
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
    printf("%-*s  %4u  %-*s  %s", LASTMOD_WIDTH, entry->lastmod != NULL ? entry->lastmod : "-",
           entry->page, l->width,
           has[0] != '\0' ? has
           : l->pages     ? "-"
                          : str_text(&l->line),
           entry->loc);
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

static int widest_index(const struct registry *registry)
{
    size_t widest = strlen("INDEX");

    for (size_t i = 0; i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];

        for (size_t j = 0; j < site->index_count; j++) {
            size_t len = strlen(site->origin) + strlen(site->indexes[j].path);

            if (len > widest)
                widest = len;
        }
    }
    return (int)widest;
}

static void record_none(const struct registry *registry, const struct backend_list *list)
{
    if (list->filter.page_urls)
        cli_note("url list", "no such page URLs");
    else
        cli_note("list", registry->site_count == 0
                             ? "no site yet; create one with `sitemapd site add ORIGIN`"
                         : list->index != NULL || list->prefix != NULL ||
                                 list->filter.contains != NULL || list->filter.warned
                             ? "no such entries"
                             : "no entries; register one with `sitemapd add LOC`");
}

static int list_entries(struct cli *cli, bool json, bool export)
{
    const char *contains = arguments_value(&cli->arguments, "--contains");
    size_t len = contains != NULL ? strlen(contains) : FILTER_MIN_CONTAINS;
    struct entry_listing l = {
        .line = STR_INIT, .export = export, .pages = names_kind(cli) == LIST_URLSET};
    struct backend_list list = {.prefix = arguments_value(&cli->arguments, "--prefix"),
                                .filter = {.contains = contains,
                                           .warned = arguments_has(&cli->arguments, "--warned"),
                                           .page_urls = l.pages}};
    struct registry *registry;
    int status;

    l.warned = list.filter.warned;
    if (len < FILTER_MIN_CONTAINS || len > FILTER_MAX_CONTAINS)
        return cli_misuse("--contains", "must be 3 to 200 bytes long");
    if (l.pages && !arguments_has(&cli->arguments, "--urlset"))
        return cli_misuse("--urlset", "the urlset is missing: --urlset is required");
    status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    registry = session_registry(cli, REGISTRY_HELD);
    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = names_index_option(cli, registry, &list.index);
    if (status == EXIT_DONE) {
        l.width = json || export ? 0
                  : l.pages      ? (int)strlen("news,images,videos,alternates")
                                 : widest_index(registry);
        status = cli->backend->calls->list(cli->backend, &list, print_entry, &l);
    }
    if (status == EXIT_DONE && l.line.failed)
        status = cli_fail("list", "out of memory");
    else if (status == EXIT_DONE && l.width > 0 && !l.headed)
        record_none(registry, &list);
    str_done(&l.line);
    registry_unref(registry);
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
            return cli_fail(name,
                            "a path is only valid with exactly one site; give the page's URL");
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
        return cli_fail(name, "robots.txt is not a page; request it from a running server");
    if (!find_in_site(registry, site, path, out))
        return names_no_page(site, name, path);
    len = strlen(path);
    if (len > 3 && strcmp(path + len - 3, ".gz") == 0)
        return cli_fail(name, "the server compresses it; remove .gz from the URL to see the XML");
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
    registry = session_registry(cli, REGISTRY_HELD);
    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = find_page(registry, name, &page);
    if (status == EXIT_DONE) {
        assert(page.index != NULL);
        status = cli->backend->calls->render(cli->backend, page.index, page.number, &found, &out);
        if (status == EXIT_DONE && !found)
            status = cli_fail(name, "has no entries; the server answers 404");
        else if (status == EXIT_DONE)
            fwrite(out.data, 1, out.len, stdout);
    }
    str_done(&out);
    registry_unref(registry);
    return status;
}
