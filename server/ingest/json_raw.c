#include "server/ingest/json_raw.h"

#include <stdio.h>
#include <string.h>

#include "server/ingest/json_flat.h"
#include "server/ingest/memory.h"

/* Depth by counting, before jansson recurses. */
static bool too_deep(const char *text, size_t len)
{
    unsigned depth = 0;
    bool string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                string = false;
        } else if (c == '"') {
            string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_ENTRY_MAX_DEPTH)
                return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static enum json_raw_status fail_json(const json_error_t *error, const struct raw_entry *raw,
                                      struct judged *judged, struct rejection *rejection,
                                      uint64_t *line, uint64_t *column)
{
    enum json_error_code code = json_error_code(error);
    if (code == json_error_out_of_memory || memory_failed())
        return JSON_RAW_NO_MEMORY;
    *line = error->line > 0 ? (uint64_t)error->line : 1;
    *column = error->column > 0 ? (uint64_t)error->column : 1;
    char shown[JSON_ERROR_TEXT_LENGTH + 8], why[256];
    judge_quote(shown, sizeof shown, error->text, strlen(error->text));
    if (*line > 1)
        snprintf(why, sizeof why, "line %d, column %d of it: %s", error->line, error->column,
                 shown);
    else
        snprintf(why, sizeof why, "column %d: %s", error->column, shown);
    judge_reject(raw, judged, rejection, RULE_JSON, NULL, why);
    /* The text is whole JSON all the same: only this entry is at fault. */
    return code == json_error_duplicate_key || code == json_error_null_byte_in_key
               ? JSON_RAW_REJECTED
               : JSON_RAW_SYNTAX;
}

/* What `export` writes beside the entry and belongs to the catalogue that it was in; `position` and
 * `source` are read. */
static bool is_export_field(const char *name)
{
    static const char *const names[] = {"id",         "page",     "registered_at",
                                        "changed_at", "warnings", NULL};
    for (const char *const *n = names; *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

/* A string, or null where that has a meaning. False: another type. */
static bool read_text(const json_t *value, bool nullable, const char **text, size_t *len,
                      enum field_state *state)
{
    if (nullable && json_is_null(value)) {
        *state = FIELD_NULL;
        return true;
    }
    if (!json_is_string(value))
        return false;
    *text = json_string_value(value);
    *len = json_string_length(value);
    *state = FIELD_SET;
    return true;
}

struct fields {
    const struct reader_options *options;
    struct raw_entry *raw;
    struct judged *judged;
    struct rejection *rejection;
};

static enum rule_code read_position(const struct fields *f, const json_t *value)
{
    if (!json_is_integer(value))
        return judge_reject(f->raw, f->judged, f->rejection, RULE_FIELD_TYPE, "position", NULL);
    json_int_t position = json_integer_value(value);
    if (position < 0 || position >= (json_int_t)POSITION_NONE)
        return judge_reject(f->raw, f->judged, f->rejection, RULE_POSITION, "position", NULL);
    f->raw->position = (uint32_t)position;
    return RULE_OK;
}

static enum rule_code reject_unknown(const struct fields *f, const char *name)
{
    char shown[96], why[256];
    judge_quote(shown, sizeof shown, name, strlen(name));
    snprintf(why, sizeof why, "\"%s\" %s", shown, rule_code_sentence(RULE_FIELD_UNKNOWN));
    return judge_reject(f->raw, f->judged, f->rejection, RULE_FIELD_UNKNOWN, NULL, why);
}

static enum rule_code read_field(const struct fields *f, const char *name, const json_t *value)
{
    struct raw_entry *raw = f->raw;
    const char *field;
    enum field_state state; /* of a field that has none */
    bool fits;
    if (strcmp(name, "loc") == 0) {
        field = "loc"; /* read first, so that every rejection can name it */
        fits = json_is_string(value);
    } else if (strcmp(name, "lastmod") == 0) {
        field = "lastmod";
        fits = f->options->drop_lastmod ||
               read_text(value, true, &raw->lastmod, &raw->lastmod_len, &raw->lastmod_state);
    } else if (strcmp(name, "digest") == 0) {
        field = "digest";
        fits = read_text(value, true, &raw->digest, &raw->digest_len, &raw->digest_state);
    } else if (strcmp(name, "index") == 0) {
        field = "index";
        fits = read_text(value, false, &raw->index, &raw->index_len, &state);
    } else if (f->options->allow_export_fields && strcmp(name, "position") == 0) {
        return read_position(f, value);
    } else if (f->options->allow_export_fields && strcmp(name, "source") == 0) {
        field = "source";
        fits = read_text(value, true, &raw->source, &raw->source_len, &state);
    } else if (f->options->allow_export_fields && is_export_field(name)) {
        return RULE_OK;
    } else {
        return reject_unknown(f, name);
    }
    return fits ? RULE_OK
                : judge_reject(raw, f->judged, f->rejection, RULE_FIELD_TYPE, field, NULL);
}

static enum rule_code read_object(const struct fields *f, json_t *root)
{
    const char *name;
    json_t *value;
    if (!json_is_object(root))
        return judge_reject(f->raw, f->judged, f->rejection, RULE_FIELD_TYPE, NULL,
                            "is not a JSON object");
    value = json_object_get(root, "loc");
    if (json_is_string(value)) {
        f->raw->loc = json_string_value(value);
        f->raw->loc_len = json_string_length(value);
    }
    json_object_foreach(root, name, value)
    {
        enum rule_code code = read_field(f, name, value);
        if (code != RULE_OK)
            return code;
    }
    return RULE_OK;
}

enum json_raw_status json_raw_read(const char *text, size_t len, uint64_t line_number,
                                   const struct reader_options *options, struct judged *judged,
                                   json_t **root, struct raw_entry *raw,
                                   struct rejection *rejection, uint64_t *line, uint64_t *column)
{
    *root = NULL;
    *raw = (struct raw_entry){.position = POSITION_NONE, .line = line_number};
    if (json_flat_read(text, len, options, raw))
        return JSON_RAW_OK;
    if (too_deep(text, len)) {
        judge_reject(raw, judged, rejection, RULE_JSON, NULL, "is nested too deep");
        return JSON_RAW_REJECTED;
    }
    /* A NUL in a string is let through here so that the field's own rule can refuse it by name. */
    json_error_t error;
    memory_watch();
    *root =
        json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!*root)
        return fail_json(&error, raw, judged, rejection, line, column);
    struct fields fields = {options, raw, judged, rejection};
    enum json_raw_status status = JSON_RAW_REJECTED;
    if (memory_failed()) /* a string that found no room to grow has lost a character */
        status = JSON_RAW_NO_MEMORY;
    else if (read_object(&fields, *root) == RULE_OK)
        return JSON_RAW_OK;
    json_decref(*root);
    *root = NULL;
    return status;
}
