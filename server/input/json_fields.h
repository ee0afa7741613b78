/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads a small JSON object by a table of its fields, for bodies of API requests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_field_type {
    JSON_FIELD_TEXT,    /* .text */
    JSON_FIELD_TEXTS,   /* .texts: an array of strings */
    JSON_FIELD_NUMBER,  /* .number: an integer from .min to .max */
    JSON_FIELD_SECONDS, /* .number: an integer from 0 on; larger ones count as .max */
    JSON_FIELD_BOOL,    /* .on: true or false */
    JSON_FIELD_SWITCH,  /* a string (.text), true, or false (.off) */
    JSON_FIELD_OPTION,  /* a string (.text), null (.text NULL), or false (.off) */
};

struct json_field {
    const char *name;
    enum json_field_type type;
    bool required;
    bool nullable;     /* JSON_FIELD_TEXT: null is .text NULL */
    uint64_t min, max; /* JSON_FIELD_NUMBER, JSON_FIELD_SECONDS */
    bool present;
    const char *text;         /* borrowed from the object */
    const char *const *texts; /* NULL-terminated; owned by the object */
    uint64_t number;
    bool on, off;
};

enum json_fields_status {
    JSON_FIELDS_OK,
    /* not JSON, not an object, or a name occurs twice: `detail` says where */
    JSON_FIELDS_MALFORMED,
    JSON_FIELDS_UNKNOWN,    /* `field` is not one of these */
    JSON_FIELDS_WRONG_TYPE, /* `detail` says what `field` must be */
    JSON_FIELDS_MISSING,    /* `field` is required */
    JSON_FIELDS_NO_MEMORY,
};

struct json_fields_error {
    char field[64]; /* cut if it is longer; "": no field is at fault */
    char detail[256];
};

struct json_fields;

/* Reads `text`. On OK `fields` are filled and `*out` owns their texts until json_fields_free;
 * otherwise `*out` is NULL and `*error` is filled. Thread safe. */
enum json_fields_status json_fields_read(const char *text, size_t len, struct json_field *fields,
                                         size_t count, struct json_fields **out,
                                         struct json_fields_error *error);
/* Copies the name of the top-level member of an object in whose value the offset `len` of its text
 * is, cut if it is longer; "": in none. Thread safe. */
void json_member_before(const char *text, size_t len, char *out, size_t size);
/* Accepts NULL. */
void json_fields_free(struct json_fields *object);
