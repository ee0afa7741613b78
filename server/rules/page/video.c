/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Validates the fields of a video, and keeps them in canonical form. */
#include "server/rules/page/video.h"

#include <stdio.h>
#include <string.h>

#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/render.h"
#include "server/rules/url.h"

#define OPEN_VIDEO  "<video:video>"
#define CLOSE_VIDEO "</video:video>"
#define OPEN_TAG    "<video:tag>"

#define TITLE_MAX_CHARS       2048u
#define DESCRIPTION_MAX_CHARS 2048u
#define UPLOADER_MAX_CHARS    255u
#define TAG_MAX_CHARS         255u
#define TAGS_MAX              32u
#define DURATION_MAX_S        28800u
#define VIEWS_MAX_DIGITS      15u
#define COUNTRIES_MAX         250u

const struct video_field_facts video_fields[VIDEO_FIELD_COUNT] = {
#define X(enumerator, name, kind, needed) {#name, kind, needed},
    VIDEO_FIELDS(X)
#undef X
};

enum video_field video_field_named(const char *name)
{
    unsigned field = 0;
    while (field < VIDEO_FIELD_COUNT && strcmp(video_fields[field].name, name) != 0)
        field++;
    return (enum video_field)field;
}

bool video_field_is_obsolete(const char *name)
{
    static const char *const names[] = {"category",    "gallery_loc", "price",
                                        "tvshow",      "id",          "content_segment_loc",
                                        "allow_embed", "autoplay",    NULL};
    size_t i = 0;
    while (names[i] != NULL && strcmp(names[i], name) != 0)
        i++;
    return names[i] != NULL;
}

bool video_field_is_droppable(enum video_field field)
{
    return !video_fields[field].needed && field != VIDEO_RESTRICTION && field != VIDEO_PLATFORM &&
           field != VIDEO_EXPIRATION_DATE && field != VIDEO_REQUIRES_SUBSCRIPTION;
}

const char *video_field_attribute(enum video_field field)
{
    return video_fields[field].kind == VIDEO_RELATION ? "relationship"
           : video_fields[field].kind == VIDEO_NAME   ? "info"
                                                      : NULL;
}

void video_clear(struct video *v)
{
    for (size_t i = 0; i < VIDEO_FIELD_COUNT; i++)
        str_clear(&v->fields[i]);
    v->tags = 0;
}

void video_done(struct video *v)
{
    for (size_t i = 0; i < VIDEO_FIELD_COUNT; i++)
        str_done(&v->fields[i]);
}

bool video_failed(const struct video *v)
{
    bool failed = false;
    for (size_t i = 0; i < VIDEO_FIELD_COUNT; i++)
        failed |= v->fields[i].failed;
    return failed;
}

/* ---- taking fields ---- */

static enum rule_code reject_value(const char **sentence, const char *why)
{
    *sentence = why;
    return RULE_VIDEO;
}

/* `attribute` may be NULL. */
static void store_field(struct video *v, enum video_field field, const char *attribute,
                        const char *text, size_t len)
{
    struct str *out = &v->fields[field];
    const char *name = video_fields[field].name;
    str_append_format(out, "<video:%s", name);
    if (attribute != NULL) {
        str_append_format(out, " %s=\"", video_field_attribute(field));
        render_escaped(out, attribute, strlen(attribute));
        str_append_char(out, '"');
    }
    str_append_char(out, '>');
    render_escaped(out, text, len);
    str_append_format(out, "</video:%s>", name);
}

static enum rule_code parse_url(struct video *v, enum video_field field, const char *text,
                                size_t len, const char **sentence)
{
    struct url url;
    enum rule_code code = url_parse(text, len, &url, NULL);
    if (code == RULE_OK)
        store_field(v, field, NULL, url.text, url.len);
    else
        *sentence = explain_loc(code, text, len);
    return code;
}

static enum rule_code parse_date(struct video *v, enum video_field field, const char *text,
                                 size_t len, const char **sentence)
{
    struct lastmod date;
    enum rule_code code = lastmod_parse(text, len, INT64_MAX / 2, &date, NULL);
    *sentence = code != RULE_OK ? rule_code_sentence(code) : "has no day";
    if (code == RULE_OK && !date.renders)
        code = RULE_LASTMOD_INVALID;
    if (code == RULE_OK)
        store_field(v, field, NULL, date.text, strlen(date.text));
    return code;
}

static size_t count_digits(const char *text, size_t len)
{
    size_t count = 0;
    while (count < len && ascii_is_digit(text[count]))
        count++;
    return count;
}

/* The length of "." and digits; 0 for anything else. */
static size_t count_decimals(const char *text, size_t len)
{
    size_t count = len > 1 && text[0] == '.' ? count_digits(text + 1, len - 1) : 0;
    return count > 0 ? count + 1 : 0;
}

static enum rule_code parse_whole_number(struct video *v, enum video_field field, const char *text,
                                         size_t len, const char **sentence)
{
    uint64_t value = 0;
    size_t digits = count_digits(text, len);
    bool good = digits > 0 && digits <= VIEWS_MAX_DIGITS &&
                digits + count_decimals(text + digits, len - digits) == len;
    for (size_t i = 0; good && i < digits; i++)
        value = value * 10 + (uint64_t)(text[i] - '0');
    if (field == VIDEO_DURATION && (!good || value == 0 || value > DURATION_MAX_S))
        return reject_value(sentence, "must be whole seconds from 1 to 28800");
    if (!good)
        return reject_value(sentence, "must be a whole number of at most 15 digits");
    char canonical[24];
    int size = snprintf(canonical, sizeof canonical, "%llu", (unsigned long long)value);
    store_field(v, field, NULL, canonical, (size_t)size);
    return RULE_OK;
}

static enum rule_code parse_rating(struct video *v, const char *text, size_t len,
                                   const char **sentence)
{
    size_t digits = count_digits(text, len), decimals = count_decimals(text + digits, len - digits);
    bool more = false; /* more than a whole number; the text has no NUL */
    for (size_t i = 1; i < digits + decimals; i++)
        more |= text[i] != '.' && text[i] != '0';
    if (digits != 1 || digits + decimals != len || text[0] > '5' || (text[0] == '5' && more))
        return reject_value(sentence, "must be a number from 0 to 5");
    decimals = decimals > 3 ? 3 : decimals; /* including the point */
    while (decimals > 0 && (text[decimals] == '.' || text[decimals] == '0'))
        decimals--;
    store_field(v, VIDEO_RATING, NULL, text, 1 + decimals);
    return RULE_OK;
}

static enum rule_code parse_yes_no(struct video *v, enum video_field field, const char *text,
                                   size_t len, const char **sentence)
{
    if (ascii_equals(text, len, "yes") || ascii_equals(text, len, "true"))
        store_field(v, field, NULL, "yes", 3);
    else if (ascii_equals(text, len, "no") || ascii_equals(text, len, "false"))
        store_field(v, field, NULL, "no", 2);
    else
        return reject_value(sentence, "must be yes or no");
    return RULE_OK;
}

static bool is_word_of(enum video_field field, const char *word, size_t len)
{
    if (field == VIDEO_RESTRICTION)
        return len == 2 && ascii_is_alpha(word[0]) && ascii_is_alpha(word[1]);
    return ascii_equals(word, len, "web") || ascii_equals(word, len, "mobile") ||
           ascii_equals(word, len, "tv");
}

static enum rule_code parse_relation(struct video *v, enum video_field field, const char *relation,
                                     const char *text, size_t len, const char **sentence)
{
    static const char space[] = " \t\r\n,";
    char words[3 * COUNTRIES_MAX + 8];
    size_t used = 0;
    const char *must = field == VIDEO_RESTRICTION ? "must be countries of two letters (ISO 3166-1)"
                                                  : "must be some of web, mobile and tv";
    bool allow = ascii_equals(relation, strlen(relation), "allow");
    if (!allow && !ascii_equals(relation, strlen(relation), "deny"))
        return reject_value(sentence, "needs the relationship allow or deny");
    for (size_t at = 0, end; at < len; at = end) {
        for (end = at; end < len && memchr(space, text[end], sizeof space - 1) == NULL;)
            end++;
        if (end == at) {
            end++;
            continue;
        }
        if (!is_word_of(field, text + at, end - at) || used + (end - at) + 2 > sizeof words)
            return reject_value(sentence, must);
        if (used > 0)
            words[used++] = ' ';
        for (; at < end; at++) {
            bool capital = field == VIDEO_RESTRICTION && ascii_lower(text[at]) == text[at];
            words[used++] = capital                      ? (char)(text[at] - 'a' + 'A')
                            : field == VIDEO_RESTRICTION ? text[at]
                                                         : ascii_lower(text[at]);
        }
    }
    if (used == 0)
        return reject_value(sentence, must);
    store_field(v, field, allow ? "allow" : "deny", words, used);
    return RULE_OK;
}

static size_t count_chars(const struct str *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->len; i++)
        count += ((unsigned char)text->data[i] & 0xc0) != 0x80;
    return count;
}

static enum rule_code parse_text(struct video *v, enum video_field field, const char *attribute,
                                 const char *text, size_t len, const char **sentence)
{
    struct str read = STR_INIT;
    struct url url;
    enum rule_code code = RULE_OK;
    size_t max = field == VIDEO_TITLE         ? TITLE_MAX_CHARS
                 : field == VIDEO_DESCRIPTION ? DESCRIPTION_MAX_CHARS
                 : field == VIDEO_UPLOADER    ? UPLOADER_MAX_CHARS
                                              : TAG_MAX_CHARS;
    bool has_info = field == VIDEO_UPLOADER && attribute[0] != '\0';
    if (!extension_text_read(text, len, 4 * max, &read) || count_chars(&read) > max)
        code =
            reject_value(sentence, max > UPLOADER_MAX_CHARS
                                       ? "must be 1 to 2048 characters, without control characters"
                                       : "must be 1 to 255 characters, without control characters");
    else if (has_info && url_parse(attribute, strlen(attribute), &url, NULL) != RULE_OK)
        code = reject_value(sentence, "has an info that is not a URL");
    else if (field == VIDEO_TAG && v->tags == TAGS_MAX)
        code = reject_value(sentence, "may occur 32 times at most");
    if (code == RULE_OK) {
        v->tags += field == VIDEO_TAG;
        store_field(v, field, has_info ? url.text : NULL, str_text(&read), read.len);
    }
    v->fields[field].failed = v->fields[field].failed || read.failed;
    str_done(&read);
    return code;
}

enum rule_code video_set(struct video *v, enum video_field field, const char *attribute,
                         const char *text, size_t len, const char **sentence)
{
    *sentence = "";
    if (len == 0)
        return RULE_OK;
    if (v->fields[field].len > 0 && field != VIDEO_TAG) {
        *sentence = "occurs more than once";
        return RULE_DUPLICATE;
    }
    switch (video_fields[field].kind) {
    case VIDEO_URL:
        return parse_url(v, field, text, len, sentence);
    case VIDEO_DATE:
        return parse_date(v, field, text, len, sentence);
    case VIDEO_WHOLE:
        return parse_whole_number(v, field, text, len, sentence);
    case VIDEO_DECIMAL:
        return parse_rating(v, text, len, sentence);
    case VIDEO_YES_NO:
        return parse_yes_no(v, field, text, len, sentence);
    case VIDEO_RELATION:
        return parse_relation(v, field, attribute, text, len, sentence);
    case VIDEO_TEXT:
    case VIDEO_TEXTS:
    case VIDEO_NAME:
        break;
    }
    return parse_text(v, field, attribute, text, len, sentence);
}

enum video_field video_missing(const struct video *v)
{
    unsigned field = 0;
    while (field < VIDEO_FIELD_COUNT && (!video_fields[field].needed || v->fields[field].len > 0))
        field++;
    if (field == VIDEO_FIELD_COUNT && v->fields[VIDEO_CONTENT_LOC].len == 0 &&
        v->fields[VIDEO_PLAYER_LOC].len == 0)
        return VIDEO_CONTENT_LOC;
    return (enum video_field)field;
}

void video_append(struct str *out, const struct video *v)
{
    str_append_text(out, OPEN_VIDEO);
    for (size_t i = 0; i < VIDEO_FIELD_COUNT; i++)
        str_append(out, str_text(&v->fields[i]), v->fields[i].len);
    str_append_text(out, CLOSE_VIDEO);
}

/* ---- reading one back ---- */

/* Reads the field at `*at`, if it is there: its attribute, which may be empty, and its text. */
static bool read_field(const char **at, enum video_field field, struct extension_span *attribute,
                       struct extension_span *text)
{
    char open[64], middle[64], close[64];
    const char *from = *at, *name = video_field_attribute(field);
    snprintf(open, sizeof open, "<video:%s", video_fields[field].name);
    snprintf(middle, sizeof middle, " %s=\"", name != NULL ? name : "");
    snprintf(close, sizeof close, "</video:%s>", video_fields[field].name);
    *attribute = (struct extension_span){"", 0};
    bool whole = extension_skip(&from, open) &&
                 (name == NULL || !extension_skip(&from, middle) ||
                  extension_read_text(&from, "\"", attribute)) &&
                 extension_skip(&from, ">") && extension_read_text(&from, close, text);
    if (whole)
        *at = from;
    return whole;
}

bool video_step(const char **at)
{
    const char *from = *at;
    struct extension_span attribute, text;
    if (!extension_skip(&from, OPEN_VIDEO))
        return false;
    for (unsigned i = 0; i < VIDEO_FIELD_COUNT; i++)
        while (read_field(&from, (enum video_field)i, &attribute, &text) && i == VIDEO_TAG)
            ;
    if (!extension_skip(&from, CLOSE_VIDEO))
        return false;
    *at = from;
    return true;
}

/* Appends it unchanged if it is a JSON number, else as a string. */
static void append_number(struct str *out, struct extension_span text)
{
    size_t digits = count_digits(text.at, text.len);
    bool number = digits > 0 &&
                  digits + count_decimals(text.at + digits, text.len - digits) == text.len &&
                  (digits == 1 || text.at[0] != '0');
    if (number)
        str_append(out, text.at, text.len);
    else
        extension_text_append_json(out, text.at, text.len);
}

/* Appends words separated by spaces as an array. */
static void append_words(struct str *out, struct extension_span text)
{
    const char *separator = "[";
    for (size_t at = 0, len; at <= text.len; at += len + 1) {
        const char *space = memchr(text.at + at, ' ', text.len - at);
        len = space != NULL ? (size_t)(space - text.at) - at : text.len - at;
        str_append_text(out, separator);
        extension_text_append_json(out, text.at + at, len);
        separator = ",";
    }
    str_append_char(out, ']');
}

static void append_value(struct str *out, enum video_kind kind, struct extension_span attribute,
                         struct extension_span text)
{
    switch (kind) {
    case VIDEO_WHOLE:
    case VIDEO_DECIMAL:
        append_number(out, text);
        break;
    case VIDEO_YES_NO:
        str_append_text(out, text.len == 3 ? "true" : "false");
        break;
    case VIDEO_RELATION:
        str_append_char(out, '{');
        extension_text_append_json(out, attribute.at, attribute.len);
        str_append_char(out, ':');
        append_words(out, text);
        str_append_char(out, '}');
        break;
    case VIDEO_NAME:
        str_append_text(out, "{\"name\":");
        extension_text_append_json(out, text.at, text.len);
        if (attribute.len > 0) {
            str_append_text(out, ",\"info\":");
            extension_text_append_json(out, attribute.at, attribute.len);
        }
        str_append_char(out, '}');
        break;
    case VIDEO_URL:
    case VIDEO_TEXT:
    case VIDEO_DATE:
    case VIDEO_TEXTS:
        extension_text_append_json(out, text.at, text.len);
        break;
    }
}

void video_append_json(struct str *out, const char *at)
{
    const char *separator = "{", *end = at;
    struct extension_span attribute, text;
    if (!video_step(&end) || !extension_skip(&at, OPEN_VIDEO))
        return;
    for (unsigned i = 0; i < VIDEO_FIELD_COUNT; i++) {
        enum video_field field = (enum video_field)i;
        bool several = video_fields[i].kind == VIDEO_TEXTS;
        for (unsigned n = 0; read_field(&at, field, &attribute, &text); n++) {
            if (n == 0)
                str_append_format(out, "%s\"%s\":%s", separator, video_fields[i].name,
                                  several ? "[" : "");
            else
                str_append_char(out, ',');
            append_value(out, video_fields[i].kind, attribute, text);
            separator = ",";
            if (!several)
                break;
            if (strncmp(at, OPEN_TAG, strlen(OPEN_TAG)) != 0) {
                str_append_char(out, ']');
                break;
            }
        }
    }
    str_append_text(out, *separator == '{' ? "{}" : "}");
}
