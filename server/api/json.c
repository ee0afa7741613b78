#include "server/api/json.h"

#include <string.h>

#include "server/rules/lastmod.h"

void entry_json_append_time(struct str *out, int64_t unix_seconds)
{
    char text[21];

    lastmod_format_utc(unix_seconds, text);
    str_append_json_text(out, text);
}

void json_append_url(struct str *out, const char *origin, const char *path)
{
    size_t end;

    str_append_json_text(out, origin);
    end = out->len;
    str_append_json_text(out, path);
    if (out->failed)
        return;
    memmove(out->data + end - 1, out->data + end + 1, out->len - end); /* the quotes between them */
    out->len -= 2;
}

void entry_json_append(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks)
{
    const struct registry_site *site = registry_site_by_id(registry, record->site_id);
    const struct registry_index *index = registry_index_by_id(registry, record->index_id);

    if (site != NULL)
        remarks |= entry_lint(record->loc, record->lastmod, site->origin);

    str_append_text(out, "{\"id\":");
    str_append_json_text(out, record->id);
    str_append_json_member(out, "loc", record->loc);
    str_append_json_member(out, "lastmod", record->lastmod);
    str_append_json_member(out, "digest", record->digest);
    str_append_json_member(out, "source", record->source);
    str_append_text(out, ",\"index\":");
    if (site != NULL && index != NULL)
        json_append_url(out, site->origin, index->path);
    else
        str_append_text(out, "null");
    str_append_format(out, ",\"page\":%u,\"registered_at\":", record->page);
    entry_json_append_time(out, record->registered_at);
    str_append_text(out, ",\"changed_at\":");
    entry_json_append_time(out, record->changed_at);
    str_append_text(out, ",\"warnings\":");
    rule_set_append_json(out, remarks);
    str_append_char(out, '}');
}
