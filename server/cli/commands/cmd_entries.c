#include <string.h>
#include <time.h>

#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"
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
    if (code == RULE_LOC_RELATIVE && text[0] != '/' &&
        explain_loc(code, text, len) == rule_code_sentence(code) &&
        memchr(text, '.', strcspn(text, "/")) != NULL)
        return cli_fail(text, "%s (%s); did you mean https://%s?", rule_code_sentence(code),
                        rule_code_word(code), text);
    return cli_fail(text, "%s (%s)", explain_loc(code, text, len), rule_code_word(code));
}

/* Fills the entry's lastmod; a date in the future is dropped and remarked, like everywhere. */
static int read_lastmod(const char *text, struct lastmod *lastmod, struct entry *entry)
{
    enum rule_code code;

    if (text == NULL)
        return EXIT_DONE;
    code = lastmod_parse(text, strlen(text), (int64_t)time(NULL), lastmod, &entry->remarks);
    if (code == RULE_LASTMOD_FUTURE) {
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
                         rule_set remarks)
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
    const char *index = backend_index_url(cli->backend, result);
    struct str out = STR_INIT;

    if (arguments_has(&cli->arguments, "--json")) {
        append_entry(&out, record, index, remarks);
    } else {
        str_append_format(&out, "%s: %s in %s, page %u\n", record->loc, done, index, record->page);
        text_warn(record->loc, remarks);
    }
    fputs(str_text(&out), stdout);
    str_done(&out);
    return EXIT_DONE;
}

int command_add(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    const char *source = arguments_value(a, "--source");
    struct change change = {.kind = CHANGE_ENTRY_PUT, .source = source};
    struct change_result result;
    struct lastmod lastmod;
    struct url url;
    int status = read_loc(a->words[0], &url, &change.entry.remarks);

    if (status == EXIT_DONE)
        status = read_lastmod(arguments_value(a, "--lastmod"), &lastmod, &change.entry);
    if (status == EXIT_DONE)
        status = read_digest(arguments_value(a, "--digest"), &change.entry);
    if (status == EXIT_DONE && source != NULL &&
        entry_check_name(source, strlen(source)) != RULE_OK)
        return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    if (source == NULL && (change.source = backend_owner(cli->backend)) == NULL)
        return EXIT_COULD_NOT;
    change.entry.loc = url.text;
    change.entry.position = POSITION_NONE;
    change.entry.index = arguments_value(a, "--index");
    status = session_apply(cli, &change, url.text, &result);
    if (status == EXIT_DONE)
        status = print_outcome(cli, &result, result.remarks | change.entry.remarks);
    change_result_done(&result);
    return status;
}

int command_remove(struct cli *cli)
{
    struct change change = {.kind = CHANGE_ENTRY_REMOVE, .max_removed = MAX_REMOVED_GUARDED};
    struct change_result result;
    struct url url;
    int status = read_loc(cli->arguments.words[0], &url, NULL);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    change.loc = url.text;
    status = session_apply(cli, &change, url.text, &result);
    if (status == EXIT_DONE)
        printf("%s: removed\n", url.text);
    change_result_done(&result);
    return status;
}

/* `list` and `export`: entries, streamed from one view. */

struct entry_listing {
    struct str line;
    int index_width; /* 0: JSON or export */
    bool export;
    bool warned; /* what is odd is told behind the loc */
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
    if (!l->headed)
        printf("%s%-*s  %4s  %-*s  %s%s\n", ink_on(stdout, INK_HEADING), LASTMOD_WIDTH, "LASTMOD",
               "PAGE", l->index_width, "INDEX", l->warned ? "LOC (WARNINGS)" : "LOC",
               ink_off(stdout));
    l->headed = true;
    str_append_format(&l->line, "%s%s", entry->origin != NULL ? entry->origin : "",
                      entry->path != NULL ? entry->path : "");
    printf("%-*s  %4u  %-*s  %s", LASTMOD_WIDTH, entry->lastmod != NULL ? entry->lastmod : "-",
           entry->page, l->index_width, str_text(&l->line), entry->loc);
    if (l->warned)
        print_warnings(entry_lint(entry->loc, entry->lastmod, entry->origin));
    putchar('\n');
}

static bool print_entry(void *context, const struct entry_shown *entry)
{
    struct entry_listing *l = context;

    str_clear(&l->line);
    if (l->index_width > 0) {
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

static void note_none(const struct registry *registry, const struct backend_list *list)
{
    cli_note("list", registry->site_count == 0
                         ? "no site yet; make one with `sitemapd site add ORIGIN`"
                     : list->index != NULL || list->prefix != NULL ||
                             list->filter.contains != NULL || list->filter.warned
                         ? "no such entries"
                         : "no entries; register one with `sitemapd add LOC`");
}

static int list_entries(struct cli *cli, bool json, bool export)
{
    const char *contains = arguments_value(&cli->arguments, "--contains");
    size_t len = contains != NULL ? strlen(contains) : FILTER_MIN_CONTAINS;
    struct entry_listing l = {.line = STR_INIT, .export = export};
    struct backend_list list = {
        .prefix = arguments_value(&cli->arguments, "--prefix"),
        .filter = {.contains = contains, .warned = arguments_has(&cli->arguments, "--warned")}};
    struct registry *registry;
    int status;

    l.warned = list.filter.warned;
    if (len < FILTER_MIN_CONTAINS || len > FILTER_MAX_CONTAINS)
        return cli_misuse("--contains", "must have from 3 to 200 bytes");
    status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    registry = backend_registry(cli->backend, REGISTRY_HELD);
    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = names_index_option(cli, registry, &list.index);
    if (status == EXIT_DONE) {
        l.index_width = json || export ? 0 : widest_index(registry);
        status = backend_list(cli->backend, &list, print_entry, &l);
    }
    if (status == EXIT_DONE && l.line.failed)
        status = cli_fail("list", "out of memory");
    else if (status == EXIT_DONE && l.index_width > 0 && !l.headed)
        note_none(registry, &list);
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
