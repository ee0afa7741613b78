#include "server/api/json.h"

#include <string.h>

#include "server/rules/lastmod.h"

void entry_json_append_time(struct str *out, int64_t unix_seconds)
{
    char text[21];

    lastmod_format_utc(unix_seconds, text);
    str_append_json_text(out, text);
}

void json_append_time_member(struct str *out, const char *name, int64_t unix_seconds)
{
    str_append_format(out, ",\"%s\":", name);
    if (unix_seconds == 0)
        str_append_text(out, "null");
    else
        entry_json_append_time(out, unix_seconds);
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

static void append_entry(struct str *out, const struct entry_record *record,
                         const struct registry *registry, rule_set remarks, bool placed)
{
    struct entry_shown shown = registry_show_entry(registry, record);

    shown.remarks = remarks;
    if (placed)
        entry_append_json_placed(out, &shown);
    else
        entry_append_json(out, &shown);
}

void entry_json_append(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks)
{
    append_entry(out, record, registry, remarks, false);
}

void entry_json_append_placed(struct str *out, const struct entry_record *record,
                              const struct registry *registry)
{
    append_entry(out, record, registry, 0, true);
}

void entry_json_append_change(struct str *out, const struct entry_record *before,
                              const struct entry_record *after, const struct registry *registry)
{
    const struct entry_record *sides[] = {before, after};

    str_append_text(out, "{\"loc\":");
    str_append_json_text(out, before != NULL ? before->loc : after->loc);
    for (size_t i = 0; i < 2; i++) {
        str_append_text(out, i == 0 ? ",\"before\":" : ",\"after\":");
        if (sides[i] != NULL)
            entry_json_append(out, sides[i], registry, 0);
        else
            str_append_text(out, "null");
    }
    str_append_char(out, '}');
}
