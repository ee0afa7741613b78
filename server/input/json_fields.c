/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads a JSON object by a table of its fields. */
#include "server/input/json_fields.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/input/frame.h"

#define MAX_LISTS 8u /* JSON_FIELD_TEXTS in one table */

struct json_fields {
    json_t *root;
    size_t list_count;
    const char **lists[MAX_LISTS]; /* owned arrays; `root` owns the strings */
};

void json_fields_free(struct json_fields *object)
{
    if (object == NULL)
        return;
    for (size_t i = 0; i < object->list_count; i++)
        free(object->lists[i]);
    json_decref(object->root);
    free(object);
}

void json_member_before(const char *text, size_t len, char *out, size_t size)
{
    size_t begin = 0, end = 0; /* of the last string */
    unsigned depth = 0;

    *out = '\0';
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"') {
            begin = ++i;
            while (i < len && text[i] != '"')
                i += text[i] == '\\' ? 2 : 1;
            end = i < len ? i : begin;
        } else if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            if (--depth == 0)
                *out = '\0';
        } else if (text[i] == ':' && depth == 1) {
            size_t part = end - begin < size ? end - begin : size - 1;

            while (part > 0 && !utf8_is_valid(text + begin, part))
                part--;
            memcpy(out, text + begin, part);
            out[part] = '\0';
        }
    }
}

static enum json_fields_status wrong_type(struct json_fields_error *error, const char *expected)
{
    snprintf(error->detail, sizeof error->detail, "must be %s", expected);
    return JSON_FIELDS_WRONG_TYPE;
}

static enum json_fields_status read_texts(struct json_fields *object, const json_t *value,
                                          struct json_field *field, struct json_fields_error *error)
{
    size_t count = json_array_size(value);
    const char **texts;

    if (!json_is_array(value))
        return wrong_type(error, "an array of strings");
    texts = object->list_count < MAX_LISTS ? calloc(count + 1, sizeof *texts) : NULL;
    if (texts == NULL)
        return JSON_FIELDS_NO_MEMORY;
    object->lists[object->list_count++] = texts;
    for (size_t i = 0; i < count; i++) {
        texts[i] = json_string_value(json_array_get(value, i));
        if (texts[i] == NULL)
            return wrong_type(error, "an array of strings");
    }
    field->texts = texts;
    return JSON_FIELDS_OK;
}

static enum json_fields_status read_value(struct json_fields *object, const json_t *value,
                                          struct json_field *field, struct json_fields_error *error)
{
    char expected[64];

    field->present = true;
    switch (field->type) {
    case JSON_FIELD_TEXT:
        field->text = json_string_value(value);
        if (field->text != NULL || (field->nullable && json_is_null(value)))
            return JSON_FIELDS_OK;
        return wrong_type(error, field->nullable ? "a string or null" : "a string");
    case JSON_FIELD_TEXTS:
        return read_texts(object, value, field, error);
    case JSON_FIELD_NUMBER:
        field->number = (uint64_t)json_integer_value(value);
        if (json_is_integer(value) && json_integer_value(value) >= 0 &&
            field->number >= field->min && field->number <= field->max)
            return JSON_FIELDS_OK;
        snprintf(expected, sizeof expected, "an integer from %llu to %llu",
                 (unsigned long long)field->min, (unsigned long long)field->max);
        return wrong_type(error, expected);
    case JSON_FIELD_SECONDS:
        field->number = (uint64_t)json_integer_value(value);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return wrong_type(error, "a whole number of seconds");
        field->number = field->number < field->max ? field->number : field->max;
        return JSON_FIELDS_OK;
    case JSON_FIELD_BOOL:
        field->on = json_is_true(value);
        return json_is_boolean(value) ? JSON_FIELDS_OK : wrong_type(error, "true or false");
    case JSON_FIELD_SWITCH:
        field->text = json_string_value(value);
        field->off = json_is_false(value);
        if (field->text != NULL || json_is_boolean(value))
            return JSON_FIELDS_OK;
        break;
    case JSON_FIELD_OPTION:
        field->text = json_string_value(value);
        field->off = json_is_false(value);
        if (field->text != NULL || field->off || json_is_null(value))
            return JSON_FIELDS_OK;
        return wrong_type(error, "a string, null or false");
    }
    return wrong_type(error, "a string, true or false");
}

static enum json_fields_status read_fields(struct json_fields *object, struct json_field *fields,
                                           size_t count, struct json_fields_error *error)
{
    const char *name;
    json_t *value;

    json_object_foreach(object->root, name, value)
    {
        enum json_fields_status status;
        size_t i = 0;

        while (i < count && strcmp(fields[i].name, name) != 0)
            i++;
        status = i == count ? JSON_FIELDS_UNKNOWN : read_value(object, value, &fields[i], error);
        if (status != JSON_FIELDS_OK) {
            utf8_copy_cut(error->field, sizeof error->field, name);
            return status;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].required || fields[i].present)
            continue;
        snprintf(error->field, sizeof error->field, "%s", fields[i].name);
        return JSON_FIELDS_MISSING;
    }
    return JSON_FIELDS_OK;
}

/* Parses the text. NULL, with `status` set: it is not a JSON object. */
static json_t *load_json(const char *text, size_t len, enum json_fields_status *status,
                         struct json_fields_error *error)
{
    json_error_t fault;
    json_t *root;

    memory_watch();
    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &fault);
    if (root == NULL) {
        bool no_memory = json_error_code(&fault) == json_error_out_of_memory || memory_failed();
        *status = no_memory ? JSON_FIELDS_NO_MEMORY : JSON_FIELDS_MALFORMED;
        if (json_error_code(&fault) == json_error_numeric_overflow) {
            json_member_before(text, (size_t)fault.position, error->field, sizeof error->field);
            snprintf(error->detail, sizeof error->detail, "is a number that is too large");
            return NULL;
        }
        /* jansson's text mentions its own flag */
        bool nul = json_error_code(&fault) == json_error_null_character;
        snprintf(error->detail, sizeof error->detail, "line %d, column %d: %s", fault.line,
                 fault.column, nul ? "\\u0000 is not allowed in a string" : fault.text);
        return NULL;
    }
    if (json_is_object(root) && !memory_failed())
        return root;
    json_decref(root);
    if (memory_failed()) { /* a string that could not grow has lost a character */
        *status = JSON_FIELDS_NO_MEMORY;
        return NULL;
    }
    *status = JSON_FIELDS_MALFORMED;
    snprintf(error->detail, sizeof error->detail, "the body must be a JSON object");
    return NULL;
}

enum json_fields_status json_fields_read(const char *text, size_t len, struct json_field *fields,
                                         size_t count, struct json_fields **out,
                                         struct json_fields_error *error)
{
    enum json_fields_status status = JSON_FIELDS_OK;
    struct json_fields *object;
    json_t *root;

    *out = NULL;
    *error = (struct json_fields_error){.field = ""};
    root = load_json(text, len, &status, error);
    if (root == NULL)
        return status;
    object = calloc(1, sizeof *object);
    if (object == NULL) {
        json_decref(root);
        return JSON_FIELDS_NO_MEMORY;
    }
    object->root = root;
    status = read_fields(object, fields, count, error);
    if (status == JSON_FIELDS_OK)
        *out = object;
    else
        json_fields_free(object);
    return status;
}
