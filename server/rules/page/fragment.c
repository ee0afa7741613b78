/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Builds, validates and shows the fragment of a page URL. */
#include "server/rules/page/fragment.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/render.h"
#include "server/rules/url.h"

/* Parses language tags. */

#define SUBTAGS_MAX ((LANGUAGE_MAX_BYTES + 1) / 2)

struct subtag {
    const char *at;
    size_t len;
};

/* Splits a text into subtags of 1 to 8 letters and digits. Returns their number; 0: invalid. */
static size_t split_subtags(const char *text, size_t len, struct subtag tags[SUBTAGS_MAX])
{
    size_t count = 0, begin = 0;

    if (len == 0 || len > LANGUAGE_MAX_BYTES)
        return 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && text[i] != '-') {
            if (!ascii_is_alnum(text[i]))
                return 0;
            continue;
        }
        if (i == begin || i - begin > 8)
            return 0;
        tags[count++] = (struct subtag){text + begin, i - begin};
        begin = i + 1;
    }
    return count;
}

static bool all(const struct subtag *tag, bool (*is)(char))
{
    for (size_t i = 0; i < tag->len; i++)
        if (!is(tag->at[i]))
            return false;
    return true;
}

static bool is_variant(const struct subtag *tag)
{
    return tag->len >= 5 || (tag->len == 4 && ascii_is_digit(*tag->at));
}

static bool same(const struct subtag *a, const struct subtag *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (ascii_lower(a->at[i]) != ascii_lower(b->at[i]))
            return false;
    return true;
}

/* After language, script and region: variants, then extensions and private use. No variant or
 * extension letter may occur twice (2.2.5, 2.2.6). */
static bool read_rest(const struct subtag *tags, size_t at, size_t count)
{
    uint64_t seen = 0;

    for (size_t first = at; at < count && is_variant(&tags[at]); at++)
        for (size_t i = first; i < at; i++)
            if (same(&tags[i], &tags[at]))
                return false;
    while (at < count && tags[at].len == 1) {
        char letter = ascii_lower(*tags[at].at);
        uint64_t bit = (uint64_t)1 << (ascii_is_digit(letter) ? letter - '0' : letter - 'a' + 10);
        size_t least = letter == 'x' ? 1 : 2, first = ++at;

        if ((seen & bit) != 0)
            return false;
        seen |= bit;
        while (at < count && tags[at].len >= least)
            at++;
        if (at == first)
            return false;
    }
    return at == count;
}

static bool is_tag(const struct subtag *tags, size_t count)
{
    size_t at = 1;

    if (count == 0 || tags->len < 2 || !all(tags, ascii_is_alpha))
        return false;
    if (tags->len <= 3) /* extended languages */
        for (int i = 0; i < 3 && at < count && tags[at].len == 3; i++, at++)
            if (!all(&tags[at], ascii_is_alpha))
                break;
    if (at < count && tags[at].len == 4 && all(&tags[at], ascii_is_alpha)) /* script */
        at++;
    if (at < count && ((tags[at].len == 2 && all(&tags[at], ascii_is_alpha)) ||
                       (tags[at].len == 3 && all(&tags[at], ascii_is_digit)))) /* region */
        at++;
    return read_rest(tags, at, count);
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool language_parse(const char *text, size_t len, char out[LANGUAGE_MAX_BYTES + 1])
{
    struct subtag tags[SUBTAGS_MAX];
    size_t count = split_subtags(text, len, tags);
    bool plain = true; /* no single letter before it */

    if (!is_tag(tags, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        bool spelt = i > 0 && plain && all(&tags[i], ascii_is_alpha);

        for (size_t at = 0; at < tags[i].len; at++) {
            bool high = spelt && (tags[i].len == 2 || (tags[i].len == 4 && at == 0));
            *out++ = high ? upper(tags[i].at[at]) : ascii_lower(tags[i].at[at]);
        }
        plain = plain && tags[i].len > 1;
        *out++ = i + 1 < count ? '-' : '\0';
    }
    return true;
}

#define OPEN_NEWS     "<news:news><news:publication><news:name>"
#define OPEN_LANGUAGE "</news:name><news:language>"
#define OPEN_DATE     "</news:language></news:publication><news:publication_date>"
#define OPEN_TITLE    "</news:publication_date><news:title>"
#define CLOSE_NEWS    "</news:title></news:news>"
#define OPEN_IMAGE    "<image:image><image:loc>"
#define CLOSE_IMAGE   "</image:loc></image:image>"
#define OPEN_LINK     "<xhtml:link rel=\"alternate\" hreflang=\""
#define OPEN_HREF     "\" href=\""
#define CLOSE_LINK    "\"/>"

static const char *const news_names[NEWS_FIELD_COUNT] = {
    "news.publication.name", "news.publication.language", "news.publication_date", "news.title"};

void fragment_begin(struct fragment *f, bool lenient)
{
    str_clear(&f->images);
    str_clear(&f->alternates);
    str_clear(&f->videos);
    video_clear(&f->video);
    for (size_t i = 0; i < NEWS_FIELD_COUNT; i++)
        str_clear(&f->news[i]);
    str_clear(&f->text);
    f->image_count = f->alternate_count = 0;
    memset(f->seen, 0, sizeof f->seen);
    f->loss = (struct fragment_loss){.reason_count = 0};
    f->lenient = lenient;
    f->has_news = f->news_spoilt = f->video_spoilt = f->overfull = false;
    f->remarks = 0;
    f->field[0] = f->why[0] = '\0';
}

void fragment_done(struct fragment *f)
{
    str_done(&f->images);
    str_done(&f->alternates);
    str_done(&f->videos);
    video_done(&f->video);
    for (size_t i = 0; i < NEWS_FIELD_COUNT; i++)
        str_done(&f->news[i]);
    str_done(&f->text);
}

/* ---- faults ---- */

/* Copies `text` as valid UTF-8 without controls, cut to less than `size` bytes. */
static void copy_cut(char *out, size_t size, const char *text)
{
    size_t len = strlen(text), at = 0, used = 0;

    while (at < len) {
        size_t step = utf8_char_len(text + at, len - at);
        bool shown = step > 0 && !utf8_is_unprintable(text + at, step);

        if (used + (shown ? step : 1) >= size)
            break;
        memcpy(out + used, shown ? text + at : "?", shown ? step : 1);
        used += shown ? step : 1;
        at += step > 0 ? step : 1;
    }
    out[used] = '\0';
}

static enum rule_code reject_field(struct fragment *f, enum rule_code code, const char *field,
                                   const char *sentence)
{
    copy_cut(f->field, sizeof f->field, field);
    snprintf(f->why, sizeof f->why, "%s %s", f->field, sentence);
    return code;
}

enum rule_code fragment_fault(struct fragment *f, enum rule_code code, const char *field)
{
    return reject_field(f, code, field, rule_code_sentence(code));
}

/* Places in extensions[]. */
enum { AT_NEWS, AT_IMAGES, AT_VIDEOS, AT_ALTERNATES };

static void add_reason(struct fragment *f, const struct fragment_reason *lost, const char *field)
{
    struct fragment_loss *loss = &f->loss;

    for (unsigned i = 0; i < loss->reason_count; i++) {
        struct fragment_reason *reason = &loss->reasons[i];
        if (reason->extension == lost->extension && reason->field_only == lost->field_only &&
            strcmp(reason->sentence, lost->sentence) == 0) {
            reason->count += lost->count;
            return;
        }
    }
    if (loss->reason_count == FRAGMENT_MAX_REASONS)
        return;
    struct fragment_reason *added = &loss->reasons[loss->reason_count++];
    *added = *lost;
    copy_cut(added->field, sizeof added->field, field);
}

static void drop_extension(struct fragment *f, unsigned extension, enum rule_code code,
                           const char *field, const char *sentence, uint64_t count)
{
    const struct fragment_reason lost = {
        .code = code, .extension = extension, .count = count, .sentence = sentence};

    f->loss.lost[extension] += count;
    add_reason(f, &lost, field);
}

/* Counts parts that were dropped for lack of room. */
static void lose_overfull(struct fragment *f, unsigned extension, uint64_t count)
{
    f->overfull = true;
    drop_extension(f, extension, RULE_EXTENSIONS_LONG, extensions[extension].word,
                   rule_code_sentence(RULE_EXTENSIONS_LONG), count);
}

/* A part breaks a rule. Only the first fault of a row is reported. */
static enum rule_code break_rule(struct fragment *f, unsigned extension, enum rule_code code,
                                 const char *field, const char *sentence)
{
    if (!f->lenient || f->loss.reason_count == 0)
        reject_field(f, code, field, sentence);
    if (!f->lenient)
        return code;
    drop_extension(f, extension, code, field, sentence, 1);
    f->remarks |= RULE_BIT(RULE_EXTENSION_DROPPED);
    return RULE_OK;
}

static enum rule_code break_news(struct fragment *f, enum rule_code code, enum news_field field,
                                 const char *sentence)
{
    f->news_spoilt = true;
    return break_rule(f, AT_NEWS, code, news_names[field], sentence);
}

static void cut_back(struct str *out, size_t len)
{
    out->len = len;
    if (out->data != NULL)
        out->data[len] = '\0';
}

/* ---- images and alternates ---- */

static bool keep_url(struct str *urls, bool room, const struct url *url, struct fragment_part *part)
{
    if (!room || urls->len + url->len > EXTENSIONS_MAX_BYTES)
        return false;
    part->at = (uint32_t)urls->len;
    part->len = url->len;
    str_append(urls, url->text, url->len);
    return true;
}

static bool is_url(const struct str *urls, const struct fragment_part *part, const struct url *url)
{
    return part->len == url->len && !urls->failed &&
           memcmp(urls->data + part->at, url->text, url->len) == 0;
}

/* FNV-1a */
static uint32_t hash_url(const struct url *url)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < url->len; i++)
        hash = (hash ^ (unsigned char)url->text[i]) * 16777619u;
    return hash;
}

enum rule_code fragment_add_image(struct fragment *f, const char *url, size_t len)
{
    struct url parsed;
    char field[32];
    enum rule_code code = url_parse(url, len, &parsed, NULL);

    snprintf(field, sizeof field, "images[%" PRIu64 "].loc", f->seen[AT_IMAGES]);
    f->seen[AT_IMAGES]++;
    if (code != RULE_OK)
        return break_rule(f, AT_IMAGES, code, field, explain_loc(code, url, len));
    uint32_t hash = hash_url(&parsed);
    for (unsigned i = 0; i < f->image_count; i++)
        if (f->image_hash[i] == hash && is_url(&f->images, &f->image[i], &parsed)) {
            f->remarks |= RULE_BIT(RULE_DUPLICATE);
            return RULE_OK;
        }
    bool room = f->image_count < LIMIT_IMAGES;
    if (keep_url(&f->images, room, &parsed, room ? &f->image[f->image_count] : NULL))
        f->image_hash[f->image_count++] = hash;
    else
        lose_overfull(f, AT_IMAGES, 1);
    return RULE_OK;
}

static bool read_hreflang(const char *text, size_t len, char out[LANGUAGE_MAX_BYTES + 1])
{
    if (ascii_equals(text, len, "x-default")) {
        strcpy(out, "x-default");
        return true;
    }
    return language_parse(text, len, out);
}

enum rule_code fragment_add_alternate(struct fragment *f, const char *language, size_t language_len,
                                      const char *url, size_t len)
{
    struct url parsed;
    char field[112], tag[LANGUAGE_MAX_BYTES + 1];
    size_t shown = language_len < 80 ? language_len : 80;

    snprintf(field, sizeof field, "alternates%s%.*s", shown > 0 ? "." : "", (int)shown, language);
    f->seen[AT_ALTERNATES]++;
    if (!read_hreflang(language, language_len, tag))
        return break_rule(f, AT_ALTERNATES, RULE_LANGUAGE, field,
                          rule_code_sentence(RULE_LANGUAGE));
    enum rule_code code = url_parse(url, len, &parsed, NULL);
    if (code != RULE_OK)
        return break_rule(f, AT_ALTERNATES, code, field, explain_loc(code, url, len));
    for (unsigned i = 0; i < f->alternate_count; i++) {
        if (strcmp(f->alternate[i].language, tag) != 0)
            continue;
        if (!is_url(&f->alternates, &f->alternate[i].url, &parsed))
            return break_rule(f, AT_ALTERNATES, RULE_DUPLICATE, field,
                              "occurs more than once, with different URLs");
        f->remarks |= RULE_BIT(RULE_DUPLICATE);
        return RULE_OK;
    }
    bool room = f->alternate_count < FRAGMENT_MAX_ALTERNATES;
    if (keep_url(&f->alternates, room, &parsed,
                 room ? &f->alternate[f->alternate_count].url : NULL))
        strcpy(f->alternate[f->alternate_count++].language, tag);
    else
        lose_overfull(f, AT_ALTERNATES, 1);
    return RULE_OK;
}

/* ---- news ---- */

void fragment_begin_news(struct fragment *f)
{
    f->has_news = true;
    f->seen[AT_NEWS] = 1;
}

/* Languages as in the schema of sitemap-news 0.9, ignoring case. */
static bool read_news_language(const char *text, size_t len, struct str *out)
{
    bool named = len == 2 || len == 3 || ascii_equals(text, len, "zh-cn") ||
                 ascii_equals(text, len, "zh-tw");

    for (size_t i = 0; i < len && named; i++) {
        named = ascii_is_alpha(text[i]) || text[i] == '-';
        named = named && (text[i] != '-' || len == 5);
        str_append_char(out, ascii_lower(text[i]));
    }
    return named;
}

static enum rule_code read_date(struct fragment *f, const char *text, size_t len, int64_t now)
{
    struct lastmod date;
    enum rule_code code = lastmod_parse(text, len, now, &date, NULL);

    if (code == RULE_LASTMOD_FUTURE)
        return break_news(f, code, NEWS_DATE, "is more than a day in the future");
    if (code == RULE_OK && !date.renders)
        return break_news(f, RULE_LASTMOD_INVALID, NEWS_DATE, "has no day");
    if (code != RULE_OK)
        return break_news(f, code, NEWS_DATE, rule_code_sentence(code));
    str_append_text(&f->news[NEWS_DATE], date.text);
    return RULE_OK;
}

enum rule_code fragment_add_news(struct fragment *f, enum news_field field, const char *text,
                                 size_t len, int64_t now)
{
    struct str *out = &f->news[field];

    if (f->news_spoilt)
        return RULE_OK;
    if (out->len > 0)
        return break_news(f, RULE_DUPLICATE, field, "occurs more than once");
    switch (field) {
    case NEWS_LANGUAGE:
        if (read_news_language(text, len, out))
            return RULE_OK;
        return break_news(f, RULE_LANGUAGE, field,
                          "must be two or three letters of ISO 639, or zh-cn or zh-tw");
    case NEWS_DATE:
        return read_date(f, text, len, now);
    default:
        if (extension_text_read(text, len, NEWS_TEXT_MAX_BYTES, out))
            return RULE_OK;
        return break_news(f, RULE_TEXT, field, rule_code_sentence(RULE_TEXT));
    }
}

/* ---- videos ---- */

void fragment_begin_video(struct fragment *f)
{
    video_clear(&f->video);
    f->video_spoilt = false;
    f->seen[AT_VIDEOS]++;
}

static void name_video_field(const struct fragment *f, enum video_field field, char out[64])
{
    snprintf(out, 64, "videos[%" PRIu64 "].%s", f->seen[AT_VIDEOS] - 1, video_fields[field].name);
}

enum rule_code fragment_add_video(struct fragment *f, enum video_field field, const char *attribute,
                                  const char *text, size_t len)
{
    const char *sentence;
    char name[64];

    if (f->video_spoilt)
        return RULE_OK;
    enum rule_code code = video_set(&f->video, field, attribute, text, len, &sentence);
    if (code == RULE_OK)
        return code;
    name_video_field(f, field, name);
    if (f->lenient && video_field_is_droppable(field)) {
        const struct fragment_reason lost = {.code = code,
                                             .extension = AT_VIDEOS,
                                             .field_only = true,
                                             .count = 1,
                                             .sentence = sentence};
        if (f->loss.reason_count == 0)
            reject_field(f, code, name, sentence);
        add_reason(f, &lost, name);
        f->remarks |= RULE_BIT(RULE_EXTENSION_DROPPED);
        return RULE_OK;
    }
    f->video_spoilt = true;
    return break_rule(f, AT_VIDEOS, code, name, sentence);
}

void fragment_drop_video_field(struct fragment *f)
{
    f->remarks |= RULE_BIT(RULE_HINT_DROPPED);
}

enum rule_code fragment_end_video(struct fragment *f)
{
    enum video_field missing = video_missing(&f->video);
    size_t begin = f->videos.len;
    char name[64];

    f->videos.failed = f->videos.failed || video_failed(&f->video);
    if (f->video_spoilt || f->videos.failed)
        return RULE_OK;
    if (missing < VIDEO_FIELD_COUNT) {
        name_video_field(f, missing, name);
        return break_rule(f, AT_VIDEOS, RULE_FIELD_MISSING, name,
                          missing == VIDEO_CONTENT_LOC ? "is required, or player_loc"
                                                       : "is required");
    }
    video_append(&f->videos, &f->video);
    if (f->videos.len > EXTENSIONS_MAX_BYTES) {
        cut_back(&f->videos, begin);
        lose_overfull(f, AT_VIDEOS, 1);
    }
    return RULE_OK;
}

/* ---- the whole ---- */

static void append_news(const struct fragment *f, struct str *out)
{
    static const char *const before[NEWS_FIELD_COUNT] = {OPEN_NEWS, OPEN_LANGUAGE, OPEN_DATE,
                                                         OPEN_TITLE};

    for (size_t i = 0; i < NEWS_FIELD_COUNT; i++) {
        str_append_text(out, before[i]);
        render_escaped(out, str_text(&f->news[i]), f->news[i].len);
    }
    str_append_text(out, CLOSE_NEWS);
}

static enum rule_code read_news(struct fragment *f)
{
    size_t begin = f->text.len;

    for (size_t i = 0; i < NEWS_FIELD_COUNT && !f->news_spoilt; i++)
        if (f->news[i].len == 0) {
            enum rule_code code =
                break_news(f, RULE_FIELD_MISSING, (enum news_field)i, "is required");
            if (code != RULE_OK)
                return code;
        }
    if (!f->news_spoilt)
        append_news(f, &f->text);
    if (f->text.len > EXTENSIONS_MAX_BYTES) {
        lose_overfull(f, AT_NEWS, 1);
        cut_back(&f->text, begin);
    }
    return RULE_OK;
}

static int by_language(const void *a, const void *b)
{
    const struct fragment_link *left = a, *right = b;

    return strcmp(left->language, right->language);
}

static void append_alternates(struct fragment *f, struct str *out)
{
    qsort(f->alternate, f->alternate_count, sizeof *f->alternate, by_language);
    for (unsigned i = 0; i < f->alternate_count; i++) {
        str_append_text(out, OPEN_LINK);
        str_append_text(out, f->alternate[i].language);
        str_append_text(out, OPEN_HREF);
        render_escaped(out, f->alternates.data + f->alternate[i].url.at, f->alternate[i].url.len);
        str_append_text(out, CLOSE_LINK);
    }
}

/* Appends as many images as fit, with the text before and `behind` bytes after them. */
static void append_images(struct fragment *f, size_t behind)
{
    for (unsigned i = 0; i < f->image_count; i++) {
        size_t begin = f->text.len;

        str_append_text(&f->text, OPEN_IMAGE);
        render_escaped(&f->text, f->images.data + f->image[i].at, f->image[i].len);
        str_append_text(&f->text, CLOSE_IMAGE);
        if (f->text.len + behind > EXTENSIONS_MAX_BYTES) {
            lose_overfull(f, AT_IMAGES, f->image_count - i);
            cut_back(&f->text, begin);
            return;
        }
    }
}

/* Cuts the videos to the first ones that fit into `room`. */
static void cut_videos(struct fragment *f, size_t room)
{
    const char *text = str_text(&f->videos), *at = text;
    uint64_t count = 0;

    for (const char *next = at; video_step(&next) && (size_t)(next - text) <= room;)
        at = next;
    for (const char *next = at; video_step(&next); count++)
        ;
    if (count > 0)
        lose_overfull(f, AT_VIDEOS, count);
    cut_back(&f->videos, (size_t)(at - text));
}

enum rule_code fragment_end(struct fragment *f)
{
    struct str alternates = STR_INIT;

    bool failed = f->images.failed || f->videos.failed || f->alternates.failed;

    for (size_t i = 0; i < NEWS_FIELD_COUNT; i++)
        failed = failed || f->news[i].failed;
    if (failed) {
        f->text.failed = true;
        return RULE_OK;
    }
    if (f->has_news) {
        enum rule_code code = read_news(f);
        if (code != RULE_OK)
            return code;
    }
    append_alternates(f, &alternates);
    if (f->text.len + alternates.len > EXTENSIONS_MAX_BYTES) {
        lose_overfull(f, AT_ALTERNATES, f->alternate_count);
        str_clear(&alternates);
    }
    cut_videos(f, EXTENSIONS_MAX_BYTES - f->text.len - alternates.len);
    append_images(f, f->videos.len + alternates.len);
    str_append(&f->text, str_text(&f->videos), f->videos.len);
    str_append(&f->text, str_text(&alternates), alternates.len);
    f->text.failed = f->text.failed || alternates.failed;
    str_done(&alternates);
    if (!f->overfull)
        return RULE_OK;
    enum rule_code code = RULE_EXTENSIONS_LONG;
    const char *field = f->loss.reasons[0].field;
    for (unsigned i = 0; i < f->loss.reason_count; i++)
        if (f->loss.reasons[i].code == code) {
            field = f->loss.reasons[i].field;
            break;
        }
    if (!f->lenient || f->loss.reasons[0].code == code)
        reject_field(f, code, field, rule_code_sentence(code));
    if (!f->lenient)
        return code;
    f->remarks |= RULE_BIT(RULE_EXTENSION_DROPPED);
    return RULE_OK;
}

/* ---- of a fragment that is kept ---- */

static bool read_news_element(const char **at, struct extension_span field[NEWS_FIELD_COUNT])
{
    const char *from = *at;
    bool whole = extension_skip(&from, OPEN_NEWS) &&
                 extension_read_text(&from, OPEN_LANGUAGE, &field[NEWS_NAME]) &&
                 extension_read_text(&from, OPEN_DATE, &field[NEWS_LANGUAGE]) &&
                 extension_read_text(&from, OPEN_TITLE, &field[NEWS_DATE]) &&
                 extension_read_text(&from, CLOSE_NEWS, &field[NEWS_TITLE]);

    if (whole)
        *at = from;
    return whole;
}

static bool read_image(const char **at, struct extension_span *url)
{
    const char *from = *at;
    bool whole = extension_skip(&from, OPEN_IMAGE) && extension_read_text(&from, CLOSE_IMAGE, url);

    if (whole)
        *at = from;
    return whole;
}

static bool read_link(const char **at, struct extension_span *language, struct extension_span *url)
{
    const char *from = *at;
    bool whole = extension_skip(&from, OPEN_LINK) &&
                 extension_read_text(&from, OPEN_HREF, language) &&
                 extension_read_text(&from, CLOSE_LINK, url);

    if (whole)
        *at = from;
    return whole;
}

static void append_text(struct str *out, struct extension_span text)
{
    extension_text_append_json(out, text.at, text.len);
}

void fragment_append_json(struct str *out, const char *fragment)
{
    struct extension_span news[NEWS_FIELD_COUNT], url, language;
    const char *at = fragment != NULL ? fragment : "";
    bool has_news = read_news_element(&at, news);
    const char *separator = ",\"images\":[";

    for (; read_image(&at, &url); separator = ",") {
        str_append_text(out, separator);
        append_text(out, url);
    }
    if (*separator != '\0' && separator[1] == '\0')
        str_append_char(out, ']');
    separator = ",\"videos\":[";
    for (const char *video = at; video_step(&at); video = at, separator = ",") {
        str_append_text(out, separator);
        video_append_json(out, video);
    }
    if (separator[1] == '\0')
        str_append_char(out, ']');
    separator = ",\"alternates\":{";
    for (; read_link(&at, &language, &url); separator = ",") {
        str_append_text(out, separator);
        append_text(out, language);
        str_append_char(out, ':');
        append_text(out, url);
    }
    if (separator[1] == '\0')
        str_append_char(out, '}');
    if (!has_news)
        return;
    str_append_text(out, ",\"news\":{\"publication\":{\"name\":");
    append_text(out, news[NEWS_NAME]);
    str_append_text(out, ",\"language\":");
    append_text(out, news[NEWS_LANGUAGE]);
    str_append_text(out, "},\"publication_date\":");
    append_text(out, news[NEWS_DATE]);
    str_append_text(out, ",\"title\":");
    append_text(out, news[NEWS_TITLE]);
    str_append_char(out, '}');
}

void fragment_append_part(struct str *out, const char *fragment, unsigned wanted)
{
    struct extension_span fields[NEWS_FIELD_COUNT];
    const char *at = fragment, *begin = at;

    if (fragment == NULL)
        return;
    read_news_element(&at, fields);
    if ((wanted & EXTENSION_NEWS) != 0)
        str_append(out, begin, (size_t)(at - begin));
    begin = at;
    while (read_image(&at, &fields[0]))
        ;
    if ((wanted & EXTENSION_IMAGES) != 0)
        str_append(out, begin, (size_t)(at - begin));
    begin = at;
    while (video_step(&at))
        ;
    if ((wanted & EXTENSION_VIDEOS) != 0)
        str_append(out, begin, (size_t)(at - begin));
    begin = at;
    while (read_link(&at, &fields[0], &fields[1]))
        ;
    if ((wanted & EXTENSION_ALTERNATES) != 0)
        str_append(out, begin, (size_t)(at - begin));
}

bool fragment_is_whole(const char *fragment, bool *no_memory)
{
    struct str parts = STR_INIT;
    fragment_append_part(&parts, fragment, EXTENSIONS_ALL);
    *no_memory = parts.failed;
    bool whole = !parts.failed && parts.len > 0 && strcmp(str_text(&parts), fragment) == 0;
    str_done(&parts);
    return whole && extension_text_is_xml(fragment);
}
