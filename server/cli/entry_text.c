#include "server/cli/entry_text.h"

#include <string.h>

#include "server/cli/session.h"
#include "server/rules/lastmod.h"

void text_append_json(struct str *out, const char *text)
{
    str_append_json(out, text, text != NULL ? strlen(text) : 0);
}

void text_append_member(struct str *out, const char *name, const char *text)
{
    str_append_format(out, ",\"%s\":", name);
    text_append_json(out, text);
}

void text_append_index_url(struct str *out, const struct registry_site *site,
                           const struct registry_index *index)
{
    if (site == NULL || index == NULL)
        return;
    str_append_text(out, site->origin);
    str_append_text(out, index->path);
}

static void append_time(struct str *out, const char *name, int64_t unix_seconds)
{
    char text[21];

    lastmod_format_utc(unix_seconds, text);
    text_append_member(out, name, text);
}

static void append_index(struct str *out, const struct registry *registry, int64_t index_id)
{
    const struct registry_index *index = registry_index_by_id(registry, index_id);
    const struct registry_site *site =
        index != NULL ? registry_site_by_id(registry, index->site_id) : NULL;
    struct str url = STR_INIT;

    text_append_index_url(&url, site, index);
    text_append_member(out, "index", url.len > 0 ? str_text(&url) : NULL);
    out->failed = out->failed || url.failed;
    str_done(&url);
}

static void append_codes(struct str *out, rule_set codes)
{
    bool first = true;

    str_append_char(out, '[');
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++) {
        if ((codes & RULE_BIT(code)) == 0)
            continue;
        if (!first)
            str_append_char(out, ',');
        first = false;
        text_append_json(out, rule_code_word((enum rule_code)code));
    }
    str_append_char(out, ']');
}

void text_append_entry(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks)
{
    const struct registry_site *site = registry_site_by_id(registry, record->site_id);

    if (site != NULL)
        remarks |= entry_lint(record->loc, record->lastmod, site->origin);
    str_append_text(out, "{\"id\":");
    text_append_json(out, record->id);
    text_append_member(out, "loc", record->loc);
    text_append_member(out, "lastmod", record->lastmod);
    text_append_member(out, "digest", record->digest);
    text_append_member(out, "source", record->source);
    append_index(out, registry, record->index_id);
    str_append_format(out, ",\"page\":%u", record->page);
    append_time(out, "registered_at", record->registered_at);
    append_time(out, "changed_at", record->changed_at);
    str_append_text(out, ",\"warnings\":");
    append_codes(out, remarks);
    str_append_text(out, "}\n");
}

void text_append_export(struct str *out, const struct entry_record *record,
                        const struct registry *registry)
{
    str_append_text(out, "{\"loc\":");
    text_append_json(out, record->loc);
    text_append_member(out, "lastmod", record->lastmod);
    text_append_member(out, "digest", record->digest);
    text_append_member(out, "source", record->source);
    append_index(out, registry, record->index_id);
    str_append_format(out, ",\"position\":%u}\n", record->position);
}

void text_warn(const char *what, rule_set remarks)
{
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if ((remarks & RULE_BIT(code)) != 0)
            cli_note(what, "warning: %s (%s)", rule_code_sentence((enum rule_code)code),
                     rule_code_word((enum rule_code)code));
}
