/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The rows of objects.def and bodies.def, and the sentences that several of them have. */
#include "server/api/objects.h"

#include "server/rules/limits.h"

#define CODE_PATTERN       JSON("pattern" : "^[a-z0-9]+(-[a-z0-9]+)*$")
#define ENGINE_NAMES       "google|bing"
#define ENGINE_STATE_WORDS "waiting|ok|refused|forbidden|busy|failed"
#define EXTENSIONS         JSON("enum" : [ "images", "videos", "alternates", "news" ])

#define NEXT       "Pass it as `after` to continue; null at the end."
#define WHOLE_ONLY "Null for a token with a prefix."
#define AS_COUNTED "Number, as the engine counts it."
#define FROZEN_BY                                                                                  \
    "What froze it: a token for the site, or one for all sites (only such a token can thaw it); "  \
    "or a move between servers."
#define IMAGES                                                                                     \
    "URLs of images on the page, of any host, 1,000 at most. Images, videos, alternates and news " \
    "together are at most 262,144 bytes of XML."
#define ALTERNATES                                                                                 \
    "The page in other languages: hreflang (BCP 47 or x-default) to URL, 300 at most."
#define CROSS_HOSTS  "Other hosts whose sitemaps its indexes may list."
#define HOST_ALIASES "Other Host names that the site answers to."
#define MAX_INDEXES  "Maximum number of index files of all its indexes."
#define CHECKED      "True: the server polls the registered sitemaps."
#define WITH         "Extensions that its page URLs may have."

/* The members, each object's in a function, where `here` is its struct. */
#define ROWS(kind_, name_)                                                                         \
    static const struct member *kind_##_##name_##_members(void)                                    \
    {                                                                                              \
        typedef struct kind_##_##name_ here;                                                       \
        static const struct member rows[] = {
#define ROW(kind_, name_)                                                                          \
    {.all = &kind_##_##name_, .type = MEMBER_ALL, .name = "", .offset = offsetof(here, name_)},
#define X(type_, name_, ...)                                                                       \
    {.name = #name_, .type = MEMBER_##type_, .note = __VA_ARGS__, .offset = offsetof(here, name_)},
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }                                                                                              \
    }                                                                                              \
    ;                                                                                              \
    return rows;                                                                                   \
    }

#define PART(name_)        ROWS(json, name_)
#define OBJECT(name_, ...) ROWS(json, name_)
#define ONLY(name_, ...)   ROWS(json, name_)
#define ALL(name_)         ROW(json, name_)
#include "server/api/objects.def"
#undef PART
#undef OBJECT
#undef ONLY
#undef ALL

#define PART(name_)           ROWS(body, name_)
#define BODY(name_, ...)      ROWS(body, name_)
#define OPEN_BODY(name_, ...) ROWS(body, name_)
#define ALL(name_)            ROW(body, name_)
#include "server/api/bodies.def"
#undef PART
#undef BODY
#undef OPEN_BODY
#undef ALL
#undef X
#undef END

/* The objects. */
#define X(...)
#define ALL(...)
#define END
#define PART(name_) const struct object json_##name_ = {.members = json_##name_##_members};
#define OBJECT(name_, in_document_, note_)                                                         \
    const struct object json_##name_ = {                                                           \
        .name = in_document_, .note = note_, .members = json_##name_##_members};
#define ONLY(name_, in_document_, note_)                                                           \
    const struct object json_##name_ = {                                                           \
        .name = in_document_, .note = note_, .closed = true, .members = json_##name_##_members};
#include "server/api/objects.def"
#undef PART
#undef OBJECT
#undef ONLY

#define PART(name_)                                                                                \
    const struct object body_##name_ = {.request = true, .members = body_##name_##_members};
#define BODY(name_, in_document_, note_, example_)                                                 \
    const struct object body_##name_ = {.name = in_document_,                                      \
                                        .note = note_,                                             \
                                        .example = example_,                                       \
                                        .closed = true,                                            \
                                        .request = true,                                           \
                                        .members = body_##name_##_members};
#define OPEN_BODY(name_, in_document_, note_)                                                      \
    const struct object body_##name_ = {                                                           \
        .name = in_document_, .note = note_, .request = true, .members = body_##name_##_members};
#include "server/api/bodies.def"
#undef PART
#undef BODY
#undef OPEN_BODY

/* All but parts. */
const struct object *const api_objects[] = {
#define PART(...)
#define OBJECT(name_, ...)    &json_##name_,
#define ONLY(name_, ...)      &json_##name_,
#define BODY(name_, ...)      &body_##name_,
#define OPEN_BODY(name_, ...) &body_##name_,
#include "server/api/bodies.def"
#include "server/api/objects.def"
    NULL};
