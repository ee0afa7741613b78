#include "server/routes/entry_json.h"

#include <string.h>

#include "server/rules/lastmod.h"

void entry_json_append_text(struct str *out, const char *text)
{
    str_append_json(out, text, text != NULL ? strlen(text) : 0);
}

void entry_json_append_time(struct str *out, int64_t unix_seconds)
{
    char text[21];

    lastmod_format_utc(unix_seconds, text);
    entry_json_append_text(out, text);
}

void entry_json_append_codes(struct str *out, rule_set codes)
{
    bool first = true;

    str_append_char(out, '[');
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++) {
        if ((codes & RULE_BIT(code)) == 0)
            continue;
        if (!first)
            str_append_char(out, ',');
        first = false;
        entry_json_append_text(out, rule_code_word((enum rule_code)code));
    }
    str_append_char(out, ']');
}

static void append_member(struct str *out, const char *name, const char *value)
{
    str_append_format(out, ",\"%s\":", name);
    entry_json_append_text(out, value);
}

/* The index's URL, JSON-quoted; null where the registry has no such index (any more). */
static void append_index(struct str *out, const struct registry_site *site,
                         const struct registry_index *index)
{
    struct str url = STR_INIT;

    str_append_text(out, ",\"index\":");
    if (site == NULL || index == NULL) {
        str_append_text(out, "null");
        return;
    }
    str_append_text(&url, site->origin);
    str_append_text(&url, index->path);
    if (url.failed)
        out->failed = true;
    else
        str_append_json(out, url.data, url.len);
    str_done(&url);
}

void entry_json_append(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks)
{
    const struct registry_site *site = registry_site_by_id(registry, record->site_id);
    const struct registry_index *index = registry_index_by_id(registry, record->index_id);

    if (site != NULL)
        remarks |= entry_lint(record->loc, record->lastmod, site->origin);

    str_append_text(out, "{\"id\":");
    entry_json_append_text(out, record->id);
    append_member(out, "loc", record->loc);
    append_member(out, "lastmod", record->lastmod);
    append_member(out, "digest", record->digest);
    append_member(out, "source", record->source);
    append_index(out, site, index);
    str_append_format(out, ",\"page\":%u,\"registered_at\":", record->page);
    entry_json_append_time(out, record->registered_at);
    str_append_text(out, ",\"changed_at\":");
    entry_json_append_time(out, record->changed_at);
    str_append_text(out, ",\"warnings\":");
    entry_json_append_codes(out, remarks);
    str_append_char(out, '}');
}
