/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The objects of the API as structs of C, made of the rows of objects.def and bodies.def.
 *
 * An answer is a struct json_NAME, which json_append_object (json.h) writes: a member that is NULL,
 * a time of 0, a number of JSON_NONE and a nullable flag that is false are null, or absent if the
 * row allows that. The body of a request is a struct body_NAME of json_fields, which call_body
 * fills. */
#pragma once

#include "db/urlset.h"
#include "server/api/description.h"
#include "server/base/str.h"
#include "server/input/json_fields.h"
#include "server/rules/source_settings.h"

#define JSON_NONE UINT64_MAX
static inline uint64_t json_or_none(uint64_t number) /* for a number of which 0 means none */
{
    return number != 0 ? number : JSON_NONE;
}

struct json_texts {
    const char *const *at; /* NULL: null */
    size_t count;
};

static inline struct json_texts json_texts_of(const char *const *list) /* which ends in NULL */
{
    struct json_texts texts = {list, 0};

    while (list != NULL && list[texts.count] != NULL)
        texts.count++;
    return texts;
}

/* Writes JSON directly, without an intermediate form. */
struct json_writer {
    void (*write)(struct str *out, const void *context); /* NULL: null */
    const void *context;
};

/* Rows for the settings of a urlset (db/urlset.h), in an answer and in a request. */
#define SHOWN_NUMBER(name, note) X(INTEGER, name, note, .min = 1)
#define SHOWN_AGE(name, note)    X(TEXT, name, note, .is = NULLABLE)
#define SHOWN_OF_URLSET(kind, bit, c, name, option, least, most, counts, note, ...)                \
    SHOWN_##kind(name, note)
#define ASKED_NUMBER(name, note, least, most) X(INTEGER, name, note, .min = least, .max = most)
#define ASKED_AGE(name, note, least, most)                                                         \
    X(TEXT, name, note, .is = NULLABLE, .more = JSON("pattern" : "^[0-9]{1,6}[wdhm]$"))
#define ASKED_OF_URLSET(kind, bit, c, name, option, least, most, counts, note, more, ...)          \
    ASKED_##kind(name, note " " more, least, most)

/* The same for those of a source (rules/source_settings.h). */
#define SHOWN_path(name, note)   X(TEXT, name, note)
#define SHOWN_url(name, note)    X(URI, name, note)
#define SHOWN_option(name, note) X(TEXT, name, note, .is = NULLABLE)
#define SHOWN_lines(name, note)  X(TEXTS, name, note, .is = NULLABLE)
#define SHOWN_pairs(name, note)                                                                    \
    X(RAW, name, note, .more = JSON("type" : [ "array", "null" ], "items" : {"type" : "string"}))
#define SHOWN_yes_no(name, note) X(FLAG, name, note)
#define SHOWN_span(name, note)   X(INTEGER, name, note)
#define SHOWN_OF_SOURCE(bit, kind, c, name, option, column, usual, least, most, wrong, note, ...)  \
    SHOWN_##kind(name, note)
#define ASKED_path(name, note, ...)         X(TEXT, name, note)
#define ASKED_url(name, note, ...)          X(TEXT, name, note)
#define ASKED_option(name, note, ...)       X(TEXT, name, note, .is = NULLABLE)
#define ASKED_lines(name, note, ...)        X(TEXTS, name, note)
#define ASKED_pairs(name, note, ...)        X(TEXTS, name, note)
#define ASKED_yes_no(name, note, ...)       X(FLAG, name, note)
#define ASKED_span(name, note, least, most) X(SECONDS, name, note, .min = least, .max = most)
#define ASKED_OF_SOURCE(bit, kind, c, name, option, column, usual, least, most, wrong, note, more, \
                        ...)                                                                       \
    ASKED_##kind(name, note more, least, most)

#define OF_TEXT    const char *
#define OF_URI     const char *
#define OF_TIME    int64_t /* Unix seconds */
#define OF_DATE    const char *
#define OF_INTEGER uint64_t
#define OF_FLAG    bool
#define OF_WORD    const char *
#define OF_TEXTS   struct json_texts
#define OF_LIST    struct json_writer /* writes what is between the brackets; NULL: nothing */
#define OF_ONE     struct json_writer
#define OF_RAW     struct json_writer

#define END                                                                                        \
    }                                                                                              \
    ;

#define X(type_, name_, ...) OF_##type_ name_;
#define ALL(name_)           struct json_##name_ name_;
#define PART(name_)                                                                                \
    extern const struct object json_##name_;                                                       \
    struct json_##name_ {
#define OBJECT(name_, ...) PART(name_)
#define ONLY(name_, ...)   PART(name_)
#include "server/api/objects.def"
#undef X
#undef ALL
#undef PART
#undef OBJECT
#undef ONLY

#define X(type_, name_, ...) struct json_field name_;
#define ALL(name_)           struct body_##name_ name_;
#define PART(name_)                                                                                \
    extern const struct object body_##name_;                                                       \
    struct body_##name_ {
#define BODY(name_, ...)      PART(name_)
#define OPEN_BODY(name_, ...) PART(name_)
#include "server/api/bodies.def"
#undef X
#undef END
#undef ALL
#undef PART
#undef BODY
#undef OPEN_BODY
