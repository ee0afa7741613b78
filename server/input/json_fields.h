/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A small JSON object read by a table of its fields: what the API takes for sites and indexes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_field_type {
    JSON_FIELD_TEXT,    /* .text */
    JSON_FIELD_TEXTS,   /* .texts: an array of strings */
    JSON_FIELD_NUMBER,  /* .number: an integer from .min to .max */
    JSON_FIELD_SECONDS, /* .number: an integer from 0 on, of which no more than .max is reported */
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
    JSON_FIELDS_MALFORMED,  /* no JSON, no object, a name twice: `detail` says where */
    JSON_FIELDS_UNKNOWN,    /* `field` is not one of these */
    JSON_FIELDS_WRONG_TYPE, /* `detail` says what `field` must be */
    JSON_FIELDS_MISSING,    /* `field` is required */
    JSON_FIELDS_NO_MEMORY,
};

struct json_fields_error {
    char field[64]; /* cut where it is longer; "" where none is to blame */
    char detail[256];
};

struct json_fields;

/* Reads `text`. On OK `fields` are filled and `*out` holds what they point to, until
 * json_fields_free; otherwise `*out` is NULL and `*error` is filled. Thread safe. */
enum json_fields_status json_fields_read(const char *text, size_t len, struct json_field *fields,
                                         size_t count, struct json_fields **out,
                                         struct json_fields_error *error);
/* Copies the name of the member of an object in whose value the first `len` bytes of its text end,
 * cut where it is longer; "" where they end in none. Of what is within that member nothing is
 * named. Thread safe. */
void json_member_before(const char *text, size_t len, char *out, size_t size);
/* Takes NULL. */
void json_fields_free(struct json_fields *object);
