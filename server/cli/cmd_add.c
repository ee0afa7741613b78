/* `add` and `remove`: one entry. */
#include <string.h>
#include <time.h>

#include "server/cli/commands.h"
#include "server/cli/entry_text.h"
#include "server/rules/lastmod.h"
#include "server/rules/url.h"

/* Reads a loc, or tells what is wrong with it. */
static int read_loc(const char *text, struct url *out, rule_set *remarks)
{
    size_t len = strlen(text);
    enum rule_code code = url_parse(text, len, out, remarks);
    char punycode[HOST_MAX_CHARS + 1];

    if (code == RULE_OK)
        return EXIT_DONE;
    if (code == RULE_LOC_HOST_IDN && url_punycode_hint(text, len, punycode, sizeof punycode))
        return cli_fail(text, "%s: %s (%s)", rule_code_sentence(code), punycode,
                        rule_code_word(code));
    if (code == RULE_LOC_RELATIVE && text[0] != '/' &&
        memchr(text, '.', strcspn(text, "/")) != NULL)
        return cli_fail(text, "%s (%s); did you mean https://%s?", rule_code_sentence(code),
                        rule_code_word(code), text);
    return cli_fail(text, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
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

static int print_entry(struct cli *cli, const struct change_result *result, rule_set remarks)
{
    const struct entry_record *record = &result->entry;
    const char *done = result->created > 0   ? "added"
                       : result->updated > 0 ? "updated"
                                             : "unchanged";
    struct registry *registry;
    struct catalogue_view *view = session_view(cli, &registry);
    const struct registry_index *index;
    struct str out = STR_INIT;

    if (view == NULL)
        return EXIT_COULD_NOT;
    if (arguments_has(&cli->arguments, "--json")) {
        text_append_entry(&out, record, registry, remarks);
    } else {
        index = registry_index_by_id(registry, record->index_id);
        str_append_format(&out, "%s: %s in ", record->loc, done);
        text_append_index_url(&out, registry_site_by_id(registry, record->site_id), index);
        str_append_format(&out, ", page %u\n", record->page);
        text_warn(record->loc, remarks);
    }
    fputs(str_text(&out), stdout);
    str_done(&out);
    registry_unref(registry);
    catalogue_view_end(view);
    return EXIT_DONE;
}

int command_add(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    const char *source = arguments_value(a, "--source");
    struct change change = {.kind = CHANGE_ENTRY_PUT, .source = COMMAND_SOURCE};
    struct change_result result;
    struct lastmod lastmod;
    struct url url;
    int status = read_loc(a->words[0], &url, &change.entry.remarks);

    if (status == EXIT_DONE)
        status = read_lastmod(arguments_value(a, "--lastmod"), &lastmod, &change.entry);
    if (status == EXIT_DONE)
        status = read_digest(arguments_value(a, "--digest"), &change.entry);
    if (status == EXIT_DONE && source != NULL) {
        if (entry_check_name(source, strlen(source)) != RULE_OK)
            return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
        change.source = source;
    }
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    change.entry.loc = url.text;
    change.entry.position = POSITION_NONE;
    change.entry.index = arguments_value(a, "--index");
    status = session_apply(cli, &change, url.text, &result);
    if (status == EXIT_DONE)
        status = print_entry(cli, &result, result.remarks | change.entry.remarks);
    entry_record_done(&result.entry);
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
    entry_record_done(&result.entry);
    return status;
}
