/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The types of the rows of calls.def, objects.def and bodies.def. The server reads requests and
 * writes answers by them; openapi.c makes /openapi.json of them at build time.
 *
 * A fact is in one row. Facts that follow from it are not written down: the statuses that a call of
 * this kind may return, Idempotency-Key and Location, 304 if a GET has a tag (openapi.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a member of an object, or a parameter, is in JSON. */
enum member_type {
    MEMBER_TEXT,
    MEMBER_URI,     /* ASCII */
    MEMBER_IRI,     /* a URL before it is normalised */
    MEMBER_TIME,    /* RFC 3339, UTC */
    MEMBER_DATE,    /* 2026-01-31 */
    MEMBER_INTEGER, /* from .min to .max; .max 0: unbounded */
    MEMBER_SECONDS, /* the same in a request, validated by the writer */
    MEMBER_BIT,     /* of a query: 0 (default) or 1 */
    MEMBER_FLAG,    /* true or false */
    MEMBER_WORD,    /* one of .of: "fail|skip" */
    MEMBER_TEXTS,   /* an array of strings; .of: keywords of each, as JSON */
    MEMBER_LIST,    /* an array of objects of the kind .of */
    MEMBER_ONE,     /* an object of the kind .of: "Sitemap|PageUrl" */
    MEMBER_SWITCH,  /* a string, true or false */
    MEMBER_OPTION,  /* a string, null or false */
    MEMBER_RAW,     /* any other type: .more is its schema */
    MEMBER_ALL,     /* not a member: all those of .all */
};

enum {
    NULLABLE = 1, /* or null */
    OPTIONAL = 2, /* of an answer: may be absent */
    NEEDED = 4,   /* of a request: may not be absent */
};

struct member {
    const char *name; /* NULL: ends the list */
    enum member_type type;
    const char *note; /* a sentence */
    unsigned is;
    uint64_t min, max, usual; /* usual: of a query, if it is absent */
    const char *of;
    const char *more; /* further keywords of its schema: JSON("minLength": 3) */
    const struct object *all;
    size_t offset; /* in the object's struct (objects.h) */
};

struct object {
    const char *name;           /* in /openapi.json; NULL: a part of others */
    const char *note, *example; /* NULL: none */
    bool closed;                /* of a request: other members are rejected */
    bool request;               /* members that are not NEEDED may be absent */
    const struct member *(*members)(void);
};

/* The response of a successful call. */
struct answer {
    unsigned status; /* 0: ends the list */
    const char *note;
    const char *of;    /* an object: "Site|SiteShortened"; NULL: no body, but for .type */
    const char *list;  /* the member that is an array of such objects, beside `next` */
    const char *type;  /* the media type of a body that no object describes */
    const char *lines; /* with Accept: application/x-ndjson, what the lines are; NULL: never */
    const char *tag;   /* name of its ETag among `headers` (openapi.c); NULL: it has none */
    bool has_revision; /* lines come with X-Catalogue-Revision */
};

struct operation {
    const struct member *parameters; /* of the query; NULL: none */
    const char *if_match;            /* what If-Match does; NULL: it is rejected */
    const char *body; /* of a DOCUMENT: its object; of an UPLOAD: that of each line */
    const struct answer *answers;
    const unsigned *also; /* statuses that follow from nothing else, ends in 0 */
    bool without_key; /* changes something without the writer: no Idempotency-Key, 409, 422, 504 */
    bool without_conflict; /* no 409 */
};

#define JSON(...)       #__VA_ARGS__
#define PARAMETERS(...) ((const struct member[]){__VA_ARGS__, {.name = NULL}})
#define ANSWERS(...)    ((const struct answer[]){__VA_ARGS__, {.status = 0}})
#define ALSO(...)       ((const unsigned[]){__VA_ARGS__, 0})
/* name, type, sentence, … */
#define QUERY(name_, type_, ...)                                                                   \
    {                                                                                              \
        .name = (name_), .type = MEMBER_##type_, .note = __VA_ARGS__                               \
    }

#define NAME_PATTERN      JSON("pattern" : "^[A-Za-z0-9._-]{1,64}$")
#define CHECK_STATE_WORDS "new|good|empty|gone|not-a-sitemap|broken|refused|unreachable"

/* All objects of the API; NULL ends the list. */
extern const struct object *const api_objects[];
