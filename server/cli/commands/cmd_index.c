#include <inttypes.h>
#include <string.h>

#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/http/query.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/extension.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

int command_index_add(struct cli *cli)
{
    struct change change = {.kind = CHANGE_INDEX_ADD,
                            .page_pattern = arguments_value(&cli->arguments, "--pattern")};
    char url[LOC_MAX_CHARS + 1];
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    change.index_url = names_new_list(cli, cli->arguments.words[0], url);
    if (change.index_url == NULL)
        return EXIT_COULD_NOT;
    return session_do(cli, &change, change.index_url, "added");
}

/* ---- urlsets ----------------------------------------------------------------------------- */

/* Reads the number of an option, from `least` to `most`; without the option it stays 0. */
static int read_number(const struct arguments *a, const char *option, uint32_t least, uint32_t most,
                       uint32_t *out)
{
    const char *text = arguments_value(a, option);
    uint64_t value = 0;

    if (text != NULL && (!query_number(text, most, &value) || value < least))
        return cli_misuse(option, "must be a number from %u to %u", least, most);
    *out = (uint32_t)value;
    return EXIT_DONE;
}

/* Reads what a urlset is made with, or changed to, into the change. */
static int read_urlset(const struct arguments *a, struct change *change)
{
    const char *expires = arguments_value(a, "--expires");
    struct urlset_fields *urlset = &change->urlset;
    int status = read_number(a, "--max-pages", 1, LIMIT_URLSET_PAGES_MAX, &urlset->max_pages);

    urlset->index = arguments_value(a, "--index");
    if (status == EXIT_DONE)
        status = read_number(a, "--max-page-urls", LIMIT_PAGE_ENTRIES_MIN, LIMIT_PAGE_ENTRIES,
                             &urlset->max_page_urls);
    if (status == EXIT_DONE)
        status = read_number(a, "--max-page-bytes", LIMIT_PAGE_BYTES_MIN, LIMIT_PAGE_BYTES,
                             &urlset->max_page_bytes);
    if (status != EXIT_DONE)
        return status;
    if (expires != NULL && strcmp(expires, "never") != 0 &&
        !grant_read_span(expires, &urlset->expires_s))
        return cli_misuse("--expires", "must be a duration such as 2d, 12h or 90m, or never");
    urlset->set = (urlset->index != NULL ? URLSET_SET_INDEX : 0) |
                  (urlset->max_pages != 0 ? URLSET_SET_MAX_PAGES : 0) |
                  (expires != NULL ? URLSET_SET_EXPIRES : 0) |
                  (urlset->max_page_urls != 0 ? URLSET_SET_PAGE_URLS : 0) |
                  (urlset->max_page_bytes != 0 ? URLSET_SET_PAGE_BYTES : 0);
    return EXIT_DONE;
}

/* Reads --with: words with commas between. */
static int read_with(const char *text, unsigned *out)
{
    char word[16];

    for (; text != NULL && *text != '\0'; text += *text == ',') {
        size_t len = strcspn(text, ",");
        unsigned bit;

        snprintf(word, sizeof word, "%.*s", (int)(len < 15 ? len : 15), text);
        bit = extension_named(word);
        if (bit == 0)
            return cli_misuse(
                "--with", "unknown extension \"%s\"; use images, videos, alternates or news", word);
        *out |= bit;
        text += len;
    }
    return EXIT_DONE;
}

int command_urlset_add(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    struct change change = {.kind = CHANGE_URLSET_ADD,
                            .list = LIST_URLSET,
                            .page_pattern = arguments_value(a, "--pattern")};
    char url[LOC_MAX_CHARS + 1];
    int status = read_urlset(a, &change);

    if (status == EXIT_DONE)
        status = read_with(arguments_value(a, "--with"), &change.urlset.with);
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    change.index_url = names_new_list(cli, a->words[0], url);
    if (change.index_url == NULL)
        return EXIT_COULD_NOT;
    return session_do(cli, &change, change.index_url, "added");
}

/* The id of the list named; told where there is none. */
static int find_list(struct cli *cli, const char *name, enum list_kind kind, int64_t *out)
{
    struct registry *registry = session_registry(cli, 0);
    const struct registry_index *index;
    int status;

    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = names_list(registry, name, kind, &index);
    if (status == EXIT_DONE)
        *out = index->id;
    registry_unref(registry);
    return status;
}

int command_index_remove(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_INDEX_REMOVE, .list = names_kind(cli)};
    struct change_result result;
    int status = session_max_removed(cli, &change.max_removed);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = find_list(cli, name, change.list, &change.index_id);
    if (status != EXIT_DONE)
        return status;
    status = session_apply(cli, &change, name, &result);
    if (status == EXIT_DONE)
        printf("%s: removed; %s that went with it: %" PRIu64 "\n", name,
               change.list == LIST_URLSET ? "page URLs" : "entries", result.removed);
    change_result_done(&result);
    return status;
}

int command_urlset_set(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_URLSET_UPDATE, .list = LIST_URLSET};
    struct change_result result;
    int status = read_urlset(&cli->arguments, &change);

    if (status == EXIT_DONE && change.urlset.set == 0)
        return cli_misuse(
            name,
            "nothing to change; give --index, --max-pages, --max-page-urls, --max-page-bytes or "
            "--expires");
    if (status == EXIT_DONE)
        status = session_max_removed(cli, &change.max_removed);
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = find_list(cli, name, LIST_URLSET, &change.index_id);
    if (status != EXIT_DONE)
        return status;
    status = session_apply(cli, &change, name, &result);
    if (status == EXIT_DONE && result.removed > 0)
        printf("%s: changed; page URLs removed: %" PRIu64 "\n", name, result.removed);
    else if (status == EXIT_DONE)
        printf("%s: changed\n", name);
    change_result_done(&result);
    return status;
}

/* ---- freeze and thaw ------------------------------------------------------------------- */

static bool is_urlset(struct cli *cli, const char *name)
{
    struct registry *registry = session_registry(cli, 0);
    bool found =
        registry != NULL && registry_list_by_name(registry, name, LIST_URLSET, NULL) != NULL;

    registry_unref(registry);
    return found;
}

/* What is meant by `name`: a site by its origin, a urlset, else an index. */
static int find_either(struct cli *cli, const char *name, struct change *change)
{
    struct url origin;

    if (url_parse_origin(name, strlen(name), &origin) != RULE_OK) {
        change->list = is_urlset(cli, name) ? LIST_URLSET : LIST_INDEX;
        return find_list(cli, name, change->list, &change->index_id);
    }
    change->kind = CHANGE_SITE_UPDATE;
    return names_site_id(cli, name, &change->site_id);
}

static int set_frozen(struct cli *cli, bool frozen)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_INDEX_FREEZE,
                            .frozen = frozen,
                            .site = {.set = SITE_SET_FROZEN, .frozen = frozen}};
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = find_either(cli, name, &change);
    if (status != EXIT_DONE)
        return status;
    return session_do(cli, &change, name, frozen ? "frozen; changes are rejected" : "thawed");
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

/* As the API's, but for ETags, which only a server has. */
static void append_page(struct str *out, const struct registry_site *site,
                        const struct registry_index *index, uint32_t number,
                        const struct backend_page *page)
{
    char changed[21], path[PAGE_PATH_SIZE];
    struct str url = STR_INIT;

    scope_page_path(index->path, index->page_pattern, number, false, path);
    str_append_format(&url, "%s%s", site->origin, path);
    str_append_format(out, "%s{\"number\":%" PRIu32, out->len > 0 ? "," : "", number);
    str_append_json_member(out, "url", str_text(&url));
    output_append_json_count(out, "entries", page->entries, page->untold);
    output_append_json_count(out, "bytes", page->bytes, page->untold);
    if (page->changed_at != 0)
        lastmod_format_utc(page->changed_at, changed);
    str_append_json_member(out, "changed_at", page->changed_at != 0 ? changed : NULL);
    str_append_char(out, '}');
    out->failed = out->failed || url.failed;
    str_done(&url);
}

static int add_up(struct backend *b, const struct registry_site *site,
                  const struct registry_index *index, struct backend_page *out, struct str *pages)
{
    int status = EXIT_DONE;

    *out = (struct backend_page){0};
    for (size_t i = 0; status == EXIT_DONE && i < index->page_count; i++) {
        struct backend_page page;

        status = b->calls->page(b, index, index->pages[i], &page);
        if (status != EXIT_DONE)
            break;
        append_page(pages, site, index, index->pages[i], &page);
        out->untold |= page.untold;
        out->entries += page.entries;
        out->bytes += page.bytes;
        if (page.changed_at > out->changed_at)
            out->changed_at = page.changed_at;
    }
    return status;
}

/* What a urlset has more. */
static void append_urlset(struct str *out, const struct registry_site *site,
                          const struct registry_index *urlset)
{
    struct str index_url = STR_INIT, with = STR_INIT;
    char span[24];

    for (size_t i = 0; i < site->index_count; i++)
        if (site->indexes[i].id == urlset->of_index)
            text_append_index_url(&index_url, site, &site->indexes[i]);
    str_append_json_member(out, "index", index_url.len > 0 ? str_text(&index_url) : NULL);
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if ((urlset->with & extensions[i].bit) != 0)
            str_append_format(&with, "%s\"%s\"", with.len > 0 ? "," : "", extensions[i].word);
    grant_write_span(urlset->expires_s, span);
    str_append_format(out,
                      ",\"with\":[%s],\"max_pages\":%" PRIu32 ",\"max_page_urls\":%" PRIu32
                      ",\"max_page_bytes\":%" PRIu32,
                      str_text(&with), urlset->max_pages, urlset->max_page_urls,
                      urlset->max_page_bytes);
    str_append_json_member(out, "expires", urlset->expires_s > 0 ? span : NULL);
    str_done(&with);
    str_done(&index_url);
}

static void append_index(struct str *out, const struct registry_site *site,
                         const struct registry_index *index, const struct backend_page *totals,
                         const struct str *pages, const char *state, bool json)
{
    char changed[21] = "-";
    struct str url = STR_INIT;
    enum freeze frozen = site->frozen > index->frozen ? site->frozen : index->frozen;

    if (totals->changed_at != 0)
        lastmod_format_utc(totals->changed_at, changed);
    text_append_index_url(&url, site, index);
    if (json) {
        str_append_text(out, "{\"url\":");
        str_append_json_text(out, str_text(&url));
        str_append_json_member(out, "page_pattern", index->page_pattern);
        if (index->kind == LIST_URLSET)
            append_urlset(out, site, index);
        output_append_json_count(out, "entries", totals->entries, totals->untold);
        str_append_format(out, ",\"pages\":[%s]", str_text(pages));
        out->failed = out->failed || pages->failed;
        output_append_json_count(out, "bytes", totals->bytes, totals->untold);
        str_append_json_member(out, "changed_at", totals->changed_at != 0 ? changed : NULL);
        str_append_format(out, ",\"frozen\":%s", frozen ? "true" : "false");
        str_append_json_member(out, "frozen_by", freeze_word(frozen));
        str_append_json_member(out, "state", state[0] != '\0' ? state : NULL);
        str_append_text(out, "}\n");
    } else {
        char entries[24], bytes[24], with[EXTENSION_WORDS_SIZE], span[24];

        output_count(entries, totals->entries, totals->untold);
        output_count(bytes, totals->bytes, totals->untold);
        str_append_format(out, "%10s  %5zu  %12s  %-20s  ", entries, index->page_count, bytes,
                          changed);
        if (index->kind == LIST_URLSET) {
            extension_words(index->with, with);
            grant_write_span(index->expires_s, span);
            str_append_format(out, "%-22s  %-7s  ", with[0] != '\0' ? with : "-",
                              index->expires_s > 0 ? span : "-");
        }
        str_append_text(out, str_text(&url));
        for (size_t i = 0; i < site->index_count; i++)
            if (index->kind == LIST_URLSET && site->indexes[i].id == index->of_index)
                str_append_format(out, "  (of %s)", site->indexes[i].path);
        str_append_text(out, frozen ? "  (frozen)\n" : "\n");
    }
    str_done(&url);
}

static int append_indexes(struct listing *l)
{
    enum list_kind kind = names_kind(l->backend->cli);
    int status = EXIT_DONE;

    for (size_t i = 0; status == EXIT_DONE && i < l->registry->site_count; i++) {
        const struct registry_site *site = &l->registry->sites[i];
        size_t count;
        const struct registry_index *lists = names_lists(site, kind, &count);

        for (size_t j = 0; status == EXIT_DONE && j < count; j++) {
            struct backend_page totals;
            char state[INDEX_STATE_SIZE] = "";
            struct str pages = STR_INIT;

            status = add_up(l->backend, site, &lists[j], &totals, &pages);
            if (status == EXIT_DONE && l->json)
                status = l->backend->calls->state(l->backend, &lists[j], state);
            append_index(&l->out, site, &lists[j], &totals, &pages, state, l->json);
            str_done(&pages);
        }
    }
    return status;
}

int command_index_list(struct cli *cli)
{
    bool urlsets = names_kind(cli) == LIST_URLSET;
    char heading[120];

    snprintf(heading, sizeof heading, "%10s  %5s  %12s  %-20s  %s%s", urlsets ? "URLS" : "ENTRIES",
             "PAGES", "BYTES", "CHANGED", urlsets ? "WITH                    EXPIRES  " : "",
             urlsets ? "URL (OF INDEX)" : "URL");
    return listing_print(cli, 0, heading,
                         urlsets ? "no urlsets yet; create one with `sitemapd urlset add URL`"
                                 : "no indexes yet; create one with `sitemapd index add URL`",
                         append_indexes);
}
