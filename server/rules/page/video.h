/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A video of a page URL, as Google Search Central documents it ("Video sitemaps"), field by field,
 * each made canonical at once. Thread safe for different objects.
 *
 * Canonical: <video:video>, the fields in the order below, </video:video>, nothing between them.
 *   URLs         as url_parse writes them, of any host
 *   dates        as lastmod_parse writes them, with a day; the future is allowed
 *   duration     whole seconds from 1 to 28800 (eight hours); a fraction is cut off
 *   rating       0 to 5; at most two decimals, without trailing zeros
 *   yes or no    in lower case; "true" and "false" are accepted, too
 *   restriction  <video:restriction relationship="allow">AT DE</video:restriction>:
 *                two-letter countries (ISO 3166-1) in capitals; or "deny"
 *   platform     the same with some of web, mobile and tv
 *   uploader     a name of 255 characters; the attribute `info` is a URL or absent
 *   tag          32 at most, each an element
 * Texts are those of extension_text_read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/rules/code.h"

enum video_kind {
    VIDEO_URL,
    VIDEO_TEXT,
    VIDEO_DATE,
    VIDEO_WHOLE,
    VIDEO_DECIMAL,
    VIDEO_YES_NO,
    VIDEO_TEXTS,
    VIDEO_RELATION,
    VIDEO_NAME,
};

/* Name, kind, whether it is required. In the order of Google's schema. */
#define VIDEO_FIELDS(X)                                                                            \
    X(THUMBNAIL_LOC, thumbnail_loc, VIDEO_URL, true)                                               \
    X(TITLE, title, VIDEO_TEXT, true)                                                              \
    X(DESCRIPTION, description, VIDEO_TEXT, true)                                                  \
    X(CONTENT_LOC, content_loc, VIDEO_URL, false) /* one of these two is required */               \
    X(PLAYER_LOC, player_loc, VIDEO_URL, false)                                                    \
    X(DURATION, duration, VIDEO_WHOLE, false)                                                      \
    X(EXPIRATION_DATE, expiration_date, VIDEO_DATE, false)                                         \
    X(RATING, rating, VIDEO_DECIMAL, false)                                                        \
    X(VIEW_COUNT, view_count, VIDEO_WHOLE, false)                                                  \
    X(PUBLICATION_DATE, publication_date, VIDEO_DATE, false)                                       \
    X(TAG, tag, VIDEO_TEXTS, false)                                                                \
    X(FAMILY_FRIENDLY, family_friendly, VIDEO_YES_NO, false)                                       \
    X(RESTRICTION, restriction, VIDEO_RELATION, false)                                             \
    X(REQUIRES_SUBSCRIPTION, requires_subscription, VIDEO_YES_NO, false)                           \
    X(UPLOADER, uploader, VIDEO_NAME, false)                                                       \
    X(PLATFORM, platform, VIDEO_RELATION, false)                                                   \
    X(LIVE, live, VIDEO_YES_NO, false)

enum video_field {
#define X(enumerator, name, kind, needed) VIDEO_##enumerator,
    VIDEO_FIELDS(X)
#undef X
        VIDEO_FIELD_COUNT
};

struct video_field_facts {
    const char *name;
    enum video_kind kind;
    bool needed;
};
extern const struct video_field_facts video_fields[VIDEO_FIELD_COUNT];

/* VIDEO_FIELD_COUNT for an unknown name. */
enum video_field video_field_named(const char *name);
/* Whether Google once read this field and no longer does (price, category, gallery_loc and others).
 */
bool video_field_is_obsolete(const char *name);
/* Whether a video is published without this field if its value is invalid: not if the field is
 * required, or says where or until when the video may be shown. */
bool video_field_is_droppable(enum video_field field);
/* The attribute that belongs to a field: "relationship", "info"; NULL for most. */
const char *video_field_attribute(enum video_field field);

/* The fields so far, in their final form. Initialise with zeros. */
struct video {
    struct str fields[VIDEO_FIELD_COUNT]; /* owned */
    unsigned tags;
};

void video_clear(struct video *v);
void video_done(struct video *v);
bool video_failed(const struct video *v); /* out of memory */

/* Validates and adds a field (any bytes). `attribute`: "" for none. An empty optional field counts
 * as absent. If not RULE_OK, nothing is added, and `*sentence` (static) has the fault. */
enum rule_code video_set(struct video *v, enum video_field field, const char *attribute,
                         const char *text, size_t len, const char **sentence);
/* A missing required field; VIDEO_FIELD_COUNT: none. */
enum video_field video_missing(const struct video *v);
void video_append(struct str *out, const struct video *v);

/* ---- a canonical video; pure ---- */

/* Skips a video. False, and `*at` stays: none exists. */
bool video_step(const char **at);
/* Appends the video at `at` as a JSON object. */
void video_append_json(struct str *out, const char *at);
