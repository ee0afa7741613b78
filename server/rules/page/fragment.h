/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The fragment: the extensions of a page URL (server/rules/page/extension.h) as XML, as they follow
 * the lastmod in its <url>. It is built part by part from JSON or a sitemap, and can be written as
 * JSON again. The checks follow Google Search Central:
 *   images      ("Image sitemaps") at most 1,000 image:image, each with a URL of any host. caption,
 *               title, license and geo_location are deprecated there and not kept.
 *   alternates  ("Localized versions of your pages", by sitemap) xhtml:link with hreflang (BCP 47,
 *               or x-default) and a whole URL of any host; each language once.
 *   videos      ("Video sitemaps") see server/rules/page/video.h; obsolete fields (price,
 *               category) are dropped, with RULE_HINT_DROPPED.
 *   news        ("News sitemaps") publication with name and language (ISO 639: two or three
 *               letters, or zh-cn, zh-tw), publication_date (W3C Datetime, with a day) and title,
 *               all needed.
 *               access, genres, keywords and stock_tickers are documented no more and not kept.
 *
 * It is canonical: the same extensions always have the same form.
 *   1. News, then images in their order, each URL once, then videos in their order, then alternates
 *      in byte order of their languages; no byte between them, and none for what is not there:
 *      <news:news><news:publication><news:name>N</news:name><news:language>en</news:language>
 *        </news:publication><news:publication_date>2026-01-01</news:publication_date>
 *        <news:title>T</news:title></news:news>                    (without these line ends)
 *      <image:image><image:loc>URL</image:loc></image:image>
 *      <video:video><video:thumbnail_loc>URL</video:thumbnail_loc>…</video:video>
 *      <xhtml:link rel="alternate" hreflang="de-CH" href="URL"/>
 *   2. URLs are as url_parse writes them, languages as language_parse, x-default and the language
 *      of news in lower case, the date as lastmod_parse; a name or title has one space where there
 *      was white space within, and none around it.
 *   3. & ' " < > within are escaped (render.c); every other & or < would be markup, and is not
 *      there.
 *   4. At most EXTENSIONS_MAX_BYTES: 1,000 images with URLs of up to 200 bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/rules/code.h"
#include "server/rules/limits.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/video.h"

/* Language tags (BCP 47: RFC 5646) for hreflang and news. Valid are well-formed tags by the grammar
 * of section 2.1, except grandfathered tags (i-klingon) and tags of private use only (x-klingon).
 * Subtags need not be registered. Pure, thread safe. */

#define LANGUAGE_MAX_BYTES 35u /* RFC 5646 4.4.1 */

/* Writes the tag in the recommended spelling of section 2.1.1 ("EN-us" -> "en-US", "zh-hant" ->
 * "zh-Hant"), so that each language has one spelling. False, `out` undefined, for an invalid tag.
 */
bool language_parse(const char *text, size_t len, char out[LANGUAGE_MAX_BYTES + 1]);

#define FRAGMENT_MAX_ALTERNATES 300u
#define NEWS_TEXT_MAX_BYTES     2048u /* of a title, or of a publication's name */

enum news_field { NEWS_NAME, NEWS_LANGUAGE, NEWS_DATE, NEWS_TITLE, NEWS_FIELD_COUNT };

/* What was left out of a row, with each distinct reason once. Indexed like extensions[]
 * (extension.h). */
#define FRAGMENT_MAX_REASONS 8u
struct fragment_loss {
    uint64_t lost[EXTENSION_COUNT]; /* news items, images, videos, alternates */
    unsigned reason_count;          /* 0: nothing was left out */
    struct fragment_reason {
        enum rule_code code;
        unsigned extension; /* its index */
        bool field_only;    /* only a field of a video is left out, not the video */
        uint64_t count;
        const char *sentence; /* without the field; static */
        char field[112];      /* of the first */
    } reasons[FRAGMENT_MAX_REASONS];
};

/* The parts of one row. Initialise it with zeros; it can be used for many rows. One thread at a
 * time. */
struct fragment {
    /* URLs as url_parse writes them, concatenated; and names in their final form. Owned. */
    struct str images, alternates, news[NEWS_FIELD_COUNT];
    struct str videos; /* in their final form; owned */
    struct video video;
    unsigned image_count, alternate_count;
    uint64_t seen[EXTENSION_COUNT]; /* parts of each, accepted or not */
    struct fragment_part {
        uint32_t at, len; /* of its URL */
    } image[LIMIT_IMAGES];
    uint32_t image_hash[LIMIT_IMAGES]; /* of its URL, to find equal ones */
    struct fragment_link {
        struct fragment_part url;
        char language[LANGUAGE_MAX_BYTES + 1];
    } alternate[FRAGMENT_MAX_ALTERNATES];
    bool lenient;
    bool has_news, news_spoilt, video_spoilt;
    bool overfull; /* there were too many parts, or they were too large */
    rule_set remarks;
    char field[112]; /* of the last fault: "images[3].loc", "alternates.de-CH", "news.title" */
    char why[256];   /* its sentence, which begins with the field */
    struct fragment_loss loss; /* if it is lenient */
    struct str text;           /* the result of fragment_end; owned */
};

/* Begins a row. If `lenient`, parts that break a rule are left out and counted in `loss`, with
 * RULE_EXTENSION_DROPPED in remarks: an image or alternate, an optional field of a video, the whole
 * video or news; of too many images or videos the last ones. */
void fragment_begin(struct fragment *f, bool lenient);
void fragment_done(struct fragment *f);

/* Each validates a part (any bytes) and adds it. A refused part is not added; `field` and `why`
 * describe the fault. An equal part is added once, with RULE_DUPLICATE. */
enum rule_code fragment_add_image(struct fragment *f, const char *url, size_t len);
enum rule_code fragment_add_alternate(struct fragment *f, const char *language, size_t language_len,
                                      const char *url, size_t len);
/* Begins the news; their fields follow. `now` as in lastmod_parse. */
void fragment_begin_news(struct fragment *f);
enum rule_code fragment_add_news(struct fragment *f, enum news_field field, const char *text,
                                 size_t len, int64_t now);
/* Begins a video; its fields follow, each as in video_set, and then its end, which returns
 * RULE_FIELD_MISSING if a required one is missing. */
void fragment_begin_video(struct fragment *f);
enum rule_code fragment_add_video(struct fragment *f, enum video_field field, const char *attribute,
                                  const char *text, size_t len);
enum rule_code fragment_end_video(struct fragment *f);
/* Drops a field that Google no longer reads. */
void fragment_drop_video_field(struct fragment *f);
/* Reports a fault that a format found, even if lenient: sets field (cut if it is too long) and why.
 * Returns `code`. */
enum rule_code fragment_fault(struct fragment *f, enum rule_code code, const char *field);

/* Ends the row and writes f->text ("": no parts; text.failed: out of memory). RULE_FIELD_MISSING if
 * the news lack a field, or RULE_EXTENSIONS_LONG. */
enum rule_code fragment_end(struct fragment *f);

/* ---- a finished fragment; pure, thread safe ---- */

/* Appends its members, each after a comma:
 * `,"images":[…],"videos":[…],"alternates":{…},"news":{…}`; nothing for extensions that it does not
 * have. For an invalid fragment it appends the part before the fault, always as well-formed JSON.
 * NULL: none. */
void fragment_append_json(struct str *out, const char *fragment);
/* Whether it is one from its first byte to its last, so that a page with it is well-formed. False
 * with `*no_memory`: unknown. */
bool fragment_is_whole(const char *fragment, bool *no_memory);
/* Appends the `wanted` (EXTENSION_…) parts of it. */
void fragment_append_part(struct str *out, const char *fragment, unsigned wanted);
