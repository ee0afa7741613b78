/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The extensions of a page in a sitemap: images, alternates, news and videos. They are validated by
 * the rules of server/rules/page/fragment.h, as in `import --urlset`. A fault is only a remark:
 * crawlers read the page without that part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/input/sitemap_parts.h"
#include "server/input/xml.h"
#include "server/rules/page/fragment.h"

#define PAGE_DEPTH 2u /* of a <url> */

void sitemap_extension_done(struct sitemap_extension *e)
{
    if (e->fragment != NULL)
        fragment_done(e->fragment);
    free(e->fragment);
}

static bool begin_extension(struct sitemap_extension *e)
{
    if (e->fragment == NULL)
        e->fragment = calloc(1, sizeof *e->fragment);
    if (e->fragment != NULL && !e->begun)
        fragment_begin(e->fragment, false);
    e->begun = true;
    e->no_memory = e->no_memory || e->fragment == NULL;
    return e->fragment != NULL;
}

static void add_extension_remark(struct sitemap_pages *pages, struct place at, enum rule_code code,
                                 const char *given, size_t len)
{
    if (code != RULE_OK)
        sitemap_pages_remark(pages, at, code, given, len);
}

static void add_link(struct sitemap_extension *e, struct sitemap_pages *pages,
                     const char **attributes, struct place at)
{
    const char *rel = xml_attribute(attributes, "rel"),
               *language = xml_attribute(attributes, "hreflang");
    const char *href = xml_attribute(attributes, "href");
    size_t len = strlen(href), front = detect_space(href, len);
    if (!ascii_equals(rel, strlen(rel), "alternate") || *language == '\0' || !begin_extension(e))
        return;
    href += front;
    len -= front + detect_space_behind(href, len - front);
    enum rule_code code =
        fragment_add_alternate(e->fragment, language, strlen(language), href, len);
    bool about_language = code == RULE_LANGUAGE || code == RULE_DUPLICATE;
    add_extension_remark(pages, at, code, about_language ? language : href,
                         about_language ? strlen(language) : len);
}

static void add_image(struct sitemap_extension *e, struct sitemap_pages *pages, const char *url,
                      size_t len)
{
    e->image_has_loc = true;
    if (++e->images > LIMIT_IMAGES)
        add_extension_remark(pages, e->at,
                             e->images == LIMIT_IMAGES + 1 ? RULE_IMAGES_MANY : RULE_OK, NULL, 0);
    else if (begin_extension(e))
        add_extension_remark(pages, e->at, fragment_add_image(e->fragment, url, len), url, len);
}

static void check_news(struct sitemap_extension *e, struct sitemap_pages *pages, const char *text,
                       size_t len)
{
    char given[SITEMAP_REMARK_GIVEN];
    if (!begin_extension(e))
        return;
    enum rule_code code =
        fragment_add_news(e->fragment, (enum news_field)e->field, text, len, pages->expect.now);
    snprintf(given, sizeof given, "%.40s %.*s", e->fragment->field, (int)(len < 48 ? len : 48),
             text);
    if (code != RULE_OK)
        add_extension_remark(pages, e->at, code, given, strlen(given));
}

/* Remarks a fault in a video, with its field and the given value. */
static void remark_video(struct sitemap_extension *e, struct sitemap_pages *pages,
                         enum rule_code code, const char *text, size_t len)
{
    char given[SITEMAP_REMARK_GIVEN];
    snprintf(given, sizeof given, "%.60s%s%.*s", e->fragment->field, len > 0 ? " " : "",
             (int)(len < 48 ? len : 48), text);
    if (code != RULE_OK)
        add_extension_remark(pages, e->at, code, given, strlen(given));
}

/* An element of a video begins. */
static void open_video_field(struct sitemap_extension *e, unsigned depth, const char *local,
                             const char **attributes, struct place at)
{
    enum video_field field = video_field_named(local);
    if (field == VIDEO_FIELD_COUNT || !begin_extension(e))
        return;
    const char *wanted = video_field_attribute(field);
    const char *given = wanted != NULL ? xml_attribute(attributes, wanted) : "";
    size_t len = strlen(given), front = detect_space(given, len);
    given += front;
    len -= front + detect_space_behind(given, len - front);
    bool fits = len < sizeof e->attribute;
    /* a longer value is invalid: mark it as such */
    memcpy(e->attribute, fits ? given : "\x01", fits ? len : 1);
    e->attribute[fits ? len : 1] = '\0';
    e->open[e->open_count++] = (struct sitemap_extension_open){IN_VIDEO_FIELD, depth, at};
    e->field = (int)field;
}

/* Remarks each misspelt namespace of an extension once. */
static void record_variant(struct sitemap_extension *e, struct sitemap_pages *pages,
                           const char *name, unsigned space, struct place at)
{
    if (xml_name_is_exact(name) || (e->variants & space) != 0)
        return;
    e->variants |= space;
    add_extension_remark(pages, at, RULE_EXTENSION_NAMESPACE, name,
                         (size_t)(xml_name_local(name) - name) - 1);
}

static void open_element(struct sitemap_extension *e, enum sitemap_extension_in in, unsigned depth,
                         struct place at)
{
    e->open[e->open_count++] = (struct sitemap_extension_open){in, depth, at};
    if (in == IN_IMAGE)
        e->image_has_loc = false;
    if (in == IN_VIDEO && begin_extension(e))
        fragment_begin_video(e->fragment);
    if (in == IN_NEWS && begin_extension(e))
        fragment_begin_news(e->fragment);
}

void sitemap_extension_start(struct sitemap_extension *e, struct sitemap_pages *pages,
                             unsigned depth, const char *name, const char **attributes,
                             struct place at)
{
    static const struct {
        unsigned space;
        enum sitemap_extension_in in;
        const char *local;
        enum sitemap_extension_in at;
        enum news_field field;
    } elements[] = {
        {EXTENSION_IMAGES, IN_PAGE, "image", IN_IMAGE, 0},
        {EXTENSION_IMAGES, IN_IMAGE, "loc", IN_IMAGE_LOC, 0},
        {EXTENSION_NEWS, IN_PAGE, "news", IN_NEWS, 0},
        {EXTENSION_NEWS, IN_NEWS, "publication", IN_PUBLICATION, 0},
        {EXTENSION_NEWS, IN_PUBLICATION, "name", IN_FIELD, NEWS_NAME},
        {EXTENSION_NEWS, IN_PUBLICATION, "language", IN_FIELD, NEWS_LANGUAGE},
        {EXTENSION_NEWS, IN_NEWS, "publication_date", IN_FIELD, NEWS_DATE},
        {EXTENSION_NEWS, IN_NEWS, "title", IN_FIELD, NEWS_TITLE},
        {EXTENSION_VIDEOS, IN_PAGE, "video", IN_VIDEO, 0},
    };
    unsigned space = xml_name_extension(name);
    const char *local = xml_name_local(name);
    enum sitemap_extension_in in = e->open_count > 0 ? e->open[e->open_count - 1].in : IN_PAGE;
    unsigned parent = e->open_count > 0 ? e->open[e->open_count - 1].depth : PAGE_DEPTH;
    if (space == 0)
        return;
    record_variant(e, pages, name, space, at);
    if (depth != parent + 1)
        return;
    if (space == EXTENSION_ALTERNATES && in == IN_PAGE && strcmp(local, "link") == 0)
        add_link(e, pages, attributes, at);
    if (space == EXTENSION_VIDEOS && in == IN_VIDEO) {
        open_video_field(e, depth, local, attributes, at);
        return;
    }
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (elements[i].space == space && elements[i].in == in &&
            strcmp(elements[i].local, local) == 0) {
            open_element(e, elements[i].at, depth, at);
            e->field = (int)elements[i].field;
            return;
        }
}

static void close_element(struct sitemap_extension *e, struct sitemap_pages *pages,
                          enum sitemap_extension_in in, const char *text, size_t len)
{
    switch (in) {
    case IN_IMAGE_LOC:
        add_image(e, pages, text, len);
        break;
    case IN_IMAGE:
        if (!e->image_has_loc)
            add_image(e, pages, "", 0);
        break;
    case IN_FIELD:
        check_news(e, pages, text, len);
        break;
    case IN_NEWS:
        e->news_at = e->at;
        break;
    case IN_VIDEO_FIELD:
        if (begin_extension(e))
            remark_video(e, pages,
                         fragment_add_video(e->fragment, (enum video_field)e->field, e->attribute,
                                            text, len),
                         text, len);
        break;
    case IN_VIDEO:
        if (begin_extension(e))
            remark_video(e, pages, fragment_end_video(e->fragment), "", 0);
        break;
    case IN_PUBLICATION:
    case IN_PAGE:
        break;
    }
}

void sitemap_extension_end(struct sitemap_extension *e, struct sitemap_pages *pages, unsigned depth,
                           const char *text, size_t len)
{
    if (e->open_count == 0 || e->open[e->open_count - 1].depth != depth)
        return;
    e->open_count--;
    e->at = e->open[e->open_count].at;
    close_element(e, pages, e->open[e->open_count].in, text, len);
}

void sitemap_extension_end_page(struct sitemap_extension *e, struct sitemap_pages *pages)
{
    struct fragment *f = e->fragment;
    if (e->begun && f->has_news && !f->news_spoilt && fragment_end(f) == RULE_FIELD_MISSING)
        add_extension_remark(pages, e->news_at, RULE_FIELD_MISSING, f->field, strlen(f->field));
    pages->news += e->begun && f->has_news;
    e->no_memory = e->no_memory || (e->begun && (f->text.failed || f->images.failed ||
                                                 f->videos.failed || f->alternates.failed));
    e->begun = false;
    e->images = 0;
    e->open_count = 0;
}
