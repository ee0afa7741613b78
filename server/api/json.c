/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* JSON of entries and of objects whose members are rows of a table. */
#include "server/api/json.h"

#include <string.h>

#include "server/api/objects.h"
#include "server/rules/lastmod.h"

/* Appends a quoted RFC 3339 time. */
static void entry_json_append_time(struct str *out, int64_t unix_seconds)
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
    struct entry_shown shown = registry_describe_entry(registry, record);

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

/* Whether there is a value; if not, its member is null or absent. */
static bool is_given(const struct member *member, const void *value)
{
    switch (member->type) {
    case MEMBER_TIME:
        return *(const int64_t *)value != 0;
    case MEMBER_INTEGER:
        return *(const uint64_t *)value != JSON_NONE;
    case MEMBER_FLAG:
        return (member->is & NULLABLE) == 0 || *(const bool *)value;
    case MEMBER_TEXTS:
        return (member->is & NULLABLE) == 0 || ((const struct json_texts *)value)->at != NULL;
    case MEMBER_LIST:
    case MEMBER_ONE:
    case MEMBER_RAW:
        return ((const struct json_writer *)value)->write != NULL;
    default:
        return *(const char *const *)value != NULL;
    }
}

static void append_texts(struct str *out, const struct json_texts *texts)
{
    str_append_char(out, '[');
    for (size_t i = 0; i < texts->count; i++) {
        if (i > 0)
            str_append_char(out, ',');
        str_append_json_text(out, texts->at[i]);
    }
    str_append_char(out, ']');
}

static void append_value(struct str *out, const struct member *member, const void *value)
{
    const struct json_writer *writer = value;

    switch (member->type) {
    case MEMBER_TIME:
        entry_json_append_time(out, *(const int64_t *)value);
        break;
    case MEMBER_INTEGER:
        str_append_u64(out, *(const uint64_t *)value);
        break;
    case MEMBER_FLAG:
        str_append_text(out, *(const bool *)value ? "true" : "false");
        break;
    case MEMBER_TEXTS:
        append_texts(out, value);
        break;
    case MEMBER_LIST:
        str_append_char(out, '[');
        writer->write(out, writer->context);
        str_append_char(out, ']');
        break;
    case MEMBER_ONE:
    case MEMBER_RAW:
        writer->write(out, writer->context);
        break;
    default:
        str_append_json_text(out, *(const char *const *)value);
        break;
    }
}

static void append_members(struct str *out, const struct object *object, const void *shown,
                           const char **comma)
{
    for (const struct member *m = object->members(); m->name != NULL; m++) {
        const void *value = (const char *)shown + m->offset;
        bool given = m->type == MEMBER_ALL || is_given(m, value);

        if (m->type == MEMBER_ALL) {
            append_members(out, m->all, value, comma);
        } else if (given || (m->is & OPTIONAL) == 0) {
            str_append_format(out, "%s\"%s\":", *comma, m->name);
            *comma = ",";
            if (given)
                append_value(out, m, value);
            else
                str_append_text(out, m->type == MEMBER_LIST ? "[]" : "null");
        }
    }
}

void json_open_object(struct str *out, const struct object *object, const void *shown)
{
    const char *comma = "";

    str_append_char(out, '{');
    append_members(out, object, shown, &comma);
}

void json_append_object(struct str *out, const struct object *object, const void *shown)
{
    json_open_object(out, object, shown);
    str_append_char(out, '}');
}
