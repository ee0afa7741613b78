/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads a list as XML, a sitemap index or, for page URLs, a urlset, as the bytes arrive: each
 * <sitemap> or <url> is collected and passed on at its end. */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/input/frame.h"
#include "server/input/xml.h"
#include "server/rules/loc.h"
#include "server/rules/url.h"

/* One <sitemap> or <url> element. */

#define LASTMOD_BYTES   256   /* a date has 35 at most */
#define EXTENSION_BYTES 16384 /* of a URL or a text; shorter ones are invalid already */
/* replaces a text of a video that is too long: invalid in every field */
#define REFUSED "\x01"

struct xml_item {
    uint64_t line; /* of its beginning */
    unsigned locs, lastmods;
    bool loc_markup, lastmod_markup; /* they contain an element */
    struct xml_text loc, lastmod;    /* the first of each */
    struct xml_text direct;          /* text beside the elements */
    rule_set remarks;
    enum rule_code extension_fault; /* of its first invalid extension */
    char loc_data[READER_MAX_TEXT_BYTES], lastmod_data[LASTMOD_BYTES],
        direct_data[LOC_MAX_CHARS + 1];
};

static void xml_item_begin(struct xml_item *item, uint64_t line)
{
    item->line = line;
    item->locs = item->lastmods = 0;
    item->loc_markup = item->lastmod_markup = false;
    item->remarks = 0;
    item->extension_fault = RULE_OK;
    xml_text_init(&item->loc, item->loc_data, sizeof item->loc_data);
    xml_text_init(&item->lastmod, item->lastmod_data, sizeof item->lastmod_data);
    xml_text_init(&item->direct, item->direct_data, sizeof item->direct_data);
}

/* Reads the loc, or its fault. */
static void read_loc(const struct xml_item *item, struct raw_entry *raw)
{
    raw->loc_len = xml_text_end(&item->loc);
    bool padded = item->loc.padded || raw->loc_len < item->loc.len;
    raw->loc = raw->loc_len > 0 ? item->loc.data : NULL;
    if (raw->loc != NULL) {
        size_t front = explain_blank_front(raw->loc, raw->loc_len);
        size_t back = explain_blank_back(raw->loc + front, raw->loc_len - front);
        padded = padded || front + back > 0;
        raw->loc_len -= front + back;
        raw->loc = raw->loc_len > 0 ? raw->loc + front : NULL;
    }
    if (padded && raw->loc != NULL)
        raw->remarks |= RULE_BIT(RULE_LOC_PADDED);
    if (item->locs > 1) {
        /* It is unknown which one is intended. */
        raw->loc_fault = RULE_LOC_REPEATED;
    } else if (item->loc_markup) {
        raw->loc_fault = RULE_LOC_MARKUP;
    } else if (item->loc.overflow) {
        raw->loc_fault = RULE_LOC_TOO_LONG;
    } else if (raw->loc == NULL) {
        raw->loc_fault = RULE_LOC_MISSING;
        raw->loc_len = xml_text_end(&item->direct);
        if (raw->loc_len > 0) {
            raw->loc = item->direct.data;
            raw->loc_why = "there is no loc; the text is directly in the element";
        }
    }
}

/* Fills `raw`, which borrows from `item`. True: text beside the elements was ignored. */
static bool xml_item_read(const struct xml_item *item, struct raw_entry *raw)
{
    *raw = (struct raw_entry){.position = POSITION_NONE,
                              .line = item->line,
                              .remarks = item->remarks,
                              .has_extensions = true,
                              .extension_fault = item->extension_fault};
    read_loc(item, raw);
    raw->lastmod = item->lastmod.data;
    raw->lastmod_len = xml_text_end(&item->lastmod);
    if (item->lastmods > 1)
        raw->lastmod_why = "occurs more than once";
    else if (item->lastmod_markup)
        raw->lastmod_why = "contains an element";
    else if (item->lastmod.overflow)
        raw->lastmod_why = rule_code_sentence(RULE_LASTMOD_INVALID);
    if (raw->lastmod_len > 0 || raw->lastmod_why != NULL)
        raw->lastmod_state = FIELD_SET;
    else if (item->lastmods > 0) /* <lastmod/> is only remarked */
        raw->remarks |= RULE_BIT(RULE_LASTMOD_INVALID);
    return raw->loc_fault == RULE_OK && item->direct.len > 0;
}

#define READER_MAX_DEPTH 64u /* nested elements */

/* The place in the document; deeper elements are ignored. */
enum place_in_tree {
    IN_NOTHING,
    IN_ROOT,
    IN_ITEM,
    IN_LOC,
    IN_LASTMOD,
    IN_IMAGE,
    IN_IMAGE_LOC,
    IN_NEWS,
    IN_PUBLICATION,
    IN_NEWS_FIELD,
    IN_VIDEO,
    IN_VIDEO_FIELD,
    IN_IGNORED,
};

struct xml_list {
    struct xml xml; /* first */
    unsigned depth;
    enum place_in_tree at;
    enum place_in_tree ignored_in; /* the place of the ignored element */
    unsigned ignored_depth;        /* its depth */
    bool ignored_is_reported;      /* there was a remark, but not yet for a loc in it */
    uint64_t ignored_line;
    char ignored_name[64];
    unsigned variants; /* EXTENSION_… with a remark on the namespace */
    bool stray;        /* text directly in the root since the last element */
    bool wide;         /* UTF-16 by its first bytes */
    bool plain;        /* items without prefix and attributes belong to the list */
    bool between;      /* expat has read exactly to the end of an item */
    /* For a urlset; in an index extensions are ignored. */
    bool pages;
    struct fragment *fragment;    /* the owner's */
    enum news_field field;        /* in IN_NEWS_FIELD */
    enum video_field video_field; /* in IN_VIDEO_FIELD, with its attribute */
    char attribute[LOC_MAX_CHARS + 2];
    bool image_has_loc;
    struct xml_text text; /* in IN_IMAGE_LOC, IN_NEWS_FIELD, IN_VIDEO_FIELD */
    char text_data[EXTENSION_BYTES];
    struct xml_item item;
};

static void fail_list(struct xml_list *x, enum reader_status status, const char *code,
                      const char *detail, const char *name)
{
    struct place at = xml_place(&x->xml);
    char shown[64];
    entry_validate_quote(shown, sizeof shown, name, strlen(name));
    reader_state_fail(x->xml.core, status, code, at.line, at.column, "line %" PRIu64 ": %s%s",
                      at.line, detail, shown);
    xml_stop(&x->xml);
}

static void begin_root(struct xml_list *x, const char *name)
{
    const char *local = xml_name_local(name);
    enum xml_space space = xml_name_space(name);
    const char *root = x->pages ? "urlset" : "sitemapindex";
    if (strcmp(local, root) == 0 && space != XML_SPACE_OTHER) {
        x->at = IN_ROOT;
        if (space == XML_SPACE_MEANT)
            reader_state_remark(x->xml.core, RULE_NAMESPACE, xml_place(&x->xml).line, NULL);
        return;
    }
    if (strcmp(local, root) == 0) {
        char why[XML_SPACE_WHY];
        xml_space_explain(name, why);
        fail_list(x, READER_WRONG_KIND, "wrong-namespace", why, "");
        return;
    }
    const struct reader_kind *kind = reader_kind_of(x->xml.core);
    if (strcmp(local, kind->other_root) == 0)
        fail_list(x, READER_WRONG_KIND, kind->other, kind->is_other, "");
    else if (ascii_equals(local, strlen(local), "html"))
        fail_list(x, READER_WRONG_KIND, kind->html, kind->is_html, "");
    else if (strcmp(local, "rss") == 0 || strcmp(local, "feed") == 0 || strcmp(local, "RDF") == 0)
        fail_list(x, READER_WRONG_KIND, kind->feed, kind->is_feed, "");
    else
        fail_list(x, READER_WRONG_KIND, kind->none, kind->is_none, local);
}

/* Begins an element to ignore. `is_reported`: it is unexpected. In an index, elements of extensions
 * are expected; elements of the list's own namespace are not, nor any others in a urlset. */
static void begin_ignored(struct xml_list *x, const char *name, bool is_reported)
{
    x->ignored_in = x->at;
    x->ignored_depth = x->depth;
    x->at = IN_IGNORED;
    x->ignored_is_reported = is_reported;
    if (!is_reported)
        return;
    x->ignored_line = xml_place(&x->xml).line;
    xml_name_shown(&x->xml, name, x->ignored_name, sizeof x->ignored_name);
    reader_state_remark(x->xml.core, RULE_EXTRA_ELEMENT, x->ignored_line, x->ignored_name);
}

/* An element within the ignored one begins. */
static void pass_ignored(struct xml_list *x, const char *name)
{
    if (!x->ignored_is_reported || strcmp(xml_name_local(name), "loc") != 0)
        return;
    x->ignored_is_reported = false;
    reader_state_remark(x->xml.core, RULE_LOC_IGNORED, x->ignored_line, x->ignored_name);
}

static void record_variant(struct xml_list *x, const char *name, unsigned space)
{
    if (xml_name_is_exact(name) || (x->variants & space) != 0)
        return;
    x->variants |= space;
    reader_state_remark(x->xml.core, RULE_EXTENSION_NAMESPACE, xml_place(&x->xml).line, NULL);
}

/* ---- extensions of a page URL ---- */

/* Only the first fault is reported; nothing is checked after it. */
static void set_code(struct xml_list *x, enum rule_code code)
{
    x->item.extension_fault = code;
}

/* Drops invisible characters around the URL, as for a loc. */
static void trim_url(struct xml_list *x, const char **url, size_t *len)
{
    size_t front = explain_blank_front(*url, *len);
    size_t back = explain_blank_back(*url + front, *len - front);
    if (hidden_front(*url + detect_space(*url, *len), *len - detect_space(*url, *len)) > 0 ||
        hidden_back(*url, *len - detect_space_behind(*url, *len)) > 0)
        x->item.remarks |= RULE_BIT(RULE_LOC_PADDED);
    *url += front;
    *len -= front + back;
}

static void begin_link(struct xml_list *x, const char *name, const XML_Char **attributes)
{
    const char *rel = xml_attribute(attributes, "rel"), *href = xml_attribute(attributes, "href");
    const char *language = xml_attribute(attributes, "hreflang");
    bool alternate = ascii_equals(rel, strlen(rel), "alternate") && *language != '\0';
    begin_ignored(x, name, !alternate);
    if (!alternate || x->item.extension_fault != RULE_OK)
        return;
    size_t len = strlen(href);
    trim_url(x, &href, &len);
    set_code(x, fragment_add_alternate(x->fragment, language, strlen(language), href, len));
}

static void begin_field(struct xml_list *x, enum place_in_tree at, enum news_field field)
{
    x->at = at;
    x->field = field;
    xml_text_init(&x->text, x->text_data, sizeof x->text_data);
}

/* An element of a video begins. One that Google no longer reads, or never did, is ignored. */
static void begin_video_field(struct xml_list *x, const char *name, const XML_Char **attributes)
{
    const char *local = xml_name_local(name);
    enum video_field field = video_field_named(local);
    if (field == VIDEO_FIELD_COUNT) {
        bool obsolete = video_field_is_obsolete(local);
        if (obsolete)
            fragment_drop_video_field(x->fragment);
        begin_ignored(x, name, !obsolete);
        return;
    }
    for (size_t i = 0; attributes[i] != NULL; i += 2)
        if (video_field_is_obsolete(attributes[i]))
            fragment_drop_video_field(x->fragment);
    const char *wanted = video_field_attribute(field);
    const char *given = wanted != NULL ? xml_attribute(attributes, wanted) : "";
    size_t len = strlen(given);
    trim_url(x, &given, &len);
    bool fits = len < sizeof x->attribute;
    memcpy(x->attribute, fits ? given : REFUSED, fits ? len : 1);
    x->attribute[fits ? len : 1] = '\0';
    x->video_field = field;
    begin_field(x, IN_VIDEO_FIELD, 0);
}

/* Begins an element of an extension, by `x->at` and its name. False: it is not one. */
static bool begin_extension(struct xml_list *x, const char *name, const XML_Char **attributes)
{
    static const struct {
        unsigned space;
        enum place_in_tree in;
        const char *local;
        enum place_in_tree at;
        enum news_field field;
    } elements[] = {
        {EXTENSION_IMAGES, IN_ITEM, "image", IN_IMAGE, 0},
        {EXTENSION_IMAGES, IN_IMAGE, "loc", IN_IMAGE_LOC, 0},
        {EXTENSION_NEWS, IN_ITEM, "news", IN_NEWS, 0},
        {EXTENSION_NEWS, IN_NEWS, "publication", IN_PUBLICATION, 0},
        {EXTENSION_NEWS, IN_PUBLICATION, "name", IN_NEWS_FIELD, NEWS_NAME},
        {EXTENSION_NEWS, IN_PUBLICATION, "language", IN_NEWS_FIELD, NEWS_LANGUAGE},
        {EXTENSION_NEWS, IN_NEWS, "publication_date", IN_NEWS_FIELD, NEWS_DATE},
        {EXTENSION_NEWS, IN_NEWS, "title", IN_NEWS_FIELD, NEWS_TITLE},
        {EXTENSION_VIDEOS, IN_ITEM, "video", IN_VIDEO, 0},
    };
    unsigned space = xml_name_extension(name);
    const char *local = xml_name_local(name);
    if (!x->pages || space == 0)
        return false;
    record_variant(x, name, space);
    if (space == EXTENSION_ALTERNATES && x->at == IN_ITEM && strcmp(local, "link") == 0) {
        begin_link(x, name, attributes);
        return true;
    }
    if (space == EXTENSION_VIDEOS && x->at == IN_VIDEO) {
        begin_video_field(x, name, attributes);
        return true;
    }
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (elements[i].space == space && elements[i].in == x->at &&
            strcmp(elements[i].local, local) == 0) {
            begin_field(x, elements[i].at, elements[i].field);
            if (x->at == IN_IMAGE)
                x->image_has_loc = false;
            if (x->at == IN_NEWS)
                fragment_begin_news(x->fragment);
            if (x->at == IN_VIDEO)
                fragment_begin_video(x->fragment);
            return true;
        }
    return false;
}

static void end_extension(struct xml_list *x, enum place_in_tree at)
{
    /* A text that did not fit is rejected as empty, a URL as too long. */
    size_t len = xml_text_end(&x->text);
    bool whole = !x->text.overflow;
    if (x->item.extension_fault != RULE_OK)
        return;
    if (at == IN_NEWS_FIELD) {
        set_code(x, fragment_add_news(x->fragment, x->field, x->text_data, whole ? len : 0,
                                      x->xml.core->options.now));
    } else if (at == IN_IMAGE_LOC) {
        x->image_has_loc = true;
        const char *url = x->text_data;
        trim_url(x, &url, &len);
        set_code(x, fragment_add_image(x->fragment, url, len));
    } else if (at == IN_VIDEO_FIELD) {
        const char *text = whole ? x->text_data : REFUSED;
        len = whole ? len : 1;
        if (video_fields[x->video_field].kind == VIDEO_URL)
            trim_url(x, &text, &len);
        set_code(x, fragment_add_video(x->fragment, x->video_field, x->attribute, text, len));
    } else if (at == IN_VIDEO) {
        set_code(x, fragment_end_video(x->fragment));
    } else if (at == IN_IMAGE && !x->image_has_loc) {
        set_code(x, fragment_add_image(x->fragment, "", 0));
    }
}

static bool begins_plain(const struct xml_list *x)
{
    const char *tag = x->pages ? "<url>" : "<sitemap>";
    size_t len, size = strlen(tag);
    const char *text = xml_rest(&x->xml, &len);
    return text != NULL && len >= size && memcmp(text, tag, size) == 0;
}

static void XMLCALL on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_list *x = user;
    if (!xml_token(&x->xml))
        return;
    if (++x->depth > READER_MAX_DEPTH) {
        fail_list(x, READER_TOO_LARGE, "nested-too-deep", "elements are nested too deeply", "");
        return;
    }
    if (x->at == IN_IGNORED) {
        pass_ignored(x, name);
        return;
    }
    if (x->at == IN_NOTHING) {
        begin_root(x, name);
        return;
    }
    enum xml_space space = xml_name_space(name);
    const char *local = space == XML_SPACE_OTHER ? "" : xml_name_local(name);
    x->stray = false;
    if (x->at == IN_ROOT && strcmp(local, x->pages ? "url" : "sitemap") == 0) {
        x->at = IN_ITEM;
        x->plain = x->plain || begins_plain(x);
        xml_item_begin(&x->item, xml_place(&x->xml).line);
        if (x->pages)
            fragment_begin(x->fragment, x->xml.core->options.lenient);
    } else if (x->at == IN_ITEM && strcmp(local, "loc") == 0) {
        x->at = IN_LOC;
        x->item.locs++;
    } else if (x->at == IN_ITEM && strcmp(local, "lastmod") == 0) {
        x->at = IN_LASTMOD;
        x->item.lastmods++;
    } else if (x->pages && x->at == IN_ITEM &&
               (strcmp(local, "changefreq") == 0 || strcmp(local, "priority") == 0)) {
        x->item.remarks |= RULE_BIT(RULE_HINT_DROPPED);
        begin_ignored(x, name, false);
    } else if (!begin_extension(x, name, attributes)) {
        x->item.loc_markup = x->item.loc_markup || x->at == IN_LOC;
        x->item.lastmod_markup = x->item.lastmod_markup || x->at == IN_LASTMOD;
        begin_ignored(x, name, x->pages || space != XML_SPACE_OTHER);
    }
}

static void end_item(struct xml_list *x)
{
    struct raw_entry raw;
    if (xml_item_read(&x->item, &raw))
        reader_state_remark(x->xml.core, RULE_EXTRA_ELEMENT, raw.line, NULL);
    if (!reader_state_add(x->xml.core, &raw))
        xml_stop(&x->xml);
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    struct xml_list *x = user;
    (void)name;
    if (!xml_token(&x->xml))
        return;
    unsigned depth = x->depth--;
    switch (x->at) {
    case IN_IGNORED:
        if (depth == x->ignored_depth)
            x->at = x->ignored_in;
        break;
    case IN_IMAGE:
    case IN_VIDEO:
        end_extension(x, x->at); /* fall through */
    case IN_LOC:
    case IN_LASTMOD:
    case IN_NEWS:
        x->at = IN_ITEM;
        break;
    case IN_IMAGE_LOC:
        end_extension(x, IN_IMAGE_LOC);
        x->at = IN_IMAGE;
        break;
    case IN_NEWS_FIELD:
        end_extension(x, IN_NEWS_FIELD);
        x->at = x->field == NEWS_NAME || x->field == NEWS_LANGUAGE ? IN_PUBLICATION : IN_NEWS;
        break;
    case IN_VIDEO_FIELD:
        end_extension(x, IN_VIDEO_FIELD);
        x->at = IN_VIDEO;
        break;
    case IN_PUBLICATION:
        x->at = IN_NEWS;
        break;
    case IN_ITEM:
        x->at = IN_ROOT;
        x->between = xml_is_last(&x->xml);
        end_item(x);
        break;
    case IN_ROOT:
    case IN_NOTHING:
        x->at = IN_NOTHING;
        break;
    }
}

static void XMLCALL on_text(void *user, const XML_Char *text, int len)
{
    struct xml_list *x = user;
    size_t size = (size_t)len;
    if (!xml_event(&x->xml))
        return;
    if (x->at == IN_LOC && x->item.locs == 1) {
        xml_text_append(&x->item.loc, text, size);
    } else if (x->at == IN_LASTMOD && x->item.lastmods == 1) {
        xml_text_append(&x->item.lastmod, text, size);
    } else if (x->at == IN_IMAGE_LOC || x->at == IN_NEWS_FIELD || x->at == IN_VIDEO_FIELD) {
        xml_text_append(&x->text, text, size);
    } else if (x->at == IN_ITEM) {
        xml_text_append(&x->item.direct, text, size);
    } else if (x->at == IN_ROOT && !x->stray && detect_space(text, size) < size) {
        x->stray = true; /* one remark for the whole text, however expat cuts it */
        reader_state_remark(x->xml.core, RULE_EXTRA_ELEMENT, xml_place(&x->xml).line, NULL);
    }
}

/* Entities can expand without limit and refer to files of the server, and no list needs a DOCTYPE:
 * it is rejected before anything in it is read. */
static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int internal_subset)
{
    struct xml_list *x = user;
    (void)system_id, (void)public_id, (void)internal_subset;
    if (!xml_event(&x->xml))
        return;
    const struct reader_kind *kind = reader_kind_of(x->xml.core);
    if (ascii_equals(name, strlen(name), "html"))
        fail_list(x, READER_WRONG_KIND, kind->html, kind->is_html, "");
    else
        fail_list(x, READER_FORBIDDEN, "doctype", "has a DOCTYPE, which is not accepted", "");
}

static bool token_too_long(struct xml *xml)
{
    fail_list((struct xml_list *)(void *)xml, READER_TOO_LARGE, "item-too-large",
              "a tag or comment is too long", "");
    return false;
}

static bool fail_xml(struct xml *x, enum XML_Error error, const char *code, const char *why)
{
    struct place at = xml_place(x);
    if (error == XML_ERROR_INCORRECT_ENCODING && ((struct xml_list *)(void *)x)->wide) {
        code = "not-utf8";
        why = "is UTF-16, and declared otherwise; a sitemap must be UTF-8";
    }
    return reader_state_fail(x->core, READER_MALFORMED, code, at.line, at.column,
                             "line %" PRIu64 ", column %" PRIu64 ": %s", at.line, at.column, why);
}

/* ---- plain items, most of a large list ----
 *
 * A plain item, as programs write them, is read without expat: tags without prefix, attributes and
 * odd spaces, each at most once, with texts of printable ASCII without markup. Expat would give the
 * same result, and the rest is as well-formed as the whole:
 *   - expat itself has shown that such an item is ours (`plain`): the prefixes of the root hold for
 *     all, and what is printable ASCII is that in every encoding in which the tag is;
 *   - and that it has read to the end of an item (`between`), so neither a comment nor CDATA is
 *     around it. What is not plain goes to expat up to the next end of an item. */

struct run {
    const char *at, *end;
    struct place place; /* of `at` */
};

static void run_space(struct run *r)
{
    for (; r->at < r->end; r->at++) {
        bool newline = *r->at == '\n';
        bool feed = *r->at == '\r' && r->end - r->at > 1 && r->at[1] == '\n';
        if (!newline && !feed && *r->at != ' ' && *r->at != '\t')
            return;
        r->place.line += newline;
        r->place.column = newline ? 1 : r->place.column + 1;
    }
}

static void run_on(struct run *r, size_t len)
{
    r->at += len;
    r->place.column += len;
}

static bool run_tag(struct run *r, const char *tag, size_t len)
{
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, tag, len) != 0)
        return false;
    run_on(r, len);
    return true;
}

/* The length of the text up to the next tag; 0: it is not plain, or incomplete. */
static size_t run_text(struct run *r)
{
    const char *text = r->at, *end = memchr(text, '<', (size_t)(r->end - text));
    size_t len = end != NULL ? (size_t)(end - text) : 0;
    bool plain = len > 0 && len <= LOC_MAX_CHARS && text[0] != ' ' && text[len - 1] != ' ';
    for (size_t i = 0; plain && i < len; i++)
        plain = text[i] >= 0x20 && text[i] <= 0x7e && text[i] != '&' && text[i] != '>';
    run_on(r, plain ? len : 0);
    return plain ? len : 0;
}

#define TAG(text) text, sizeof text - 1

/* Reads one element of an item. */
static bool run_element(struct run *r, const struct xml_list *x, struct raw_entry *raw)
{
    bool loc = run_tag(r, TAG("<loc>")), lastmod = !loc && run_tag(r, TAG("<lastmod>"));
    bool often = !loc && !lastmod && x->pages && run_tag(r, TAG("<changefreq>"));
    bool hint = often || (!loc && !lastmod && x->pages && run_tag(r, TAG("<priority>")));
    const char *text = r->at;
    size_t len = loc || lastmod || hint ? run_text(r) : 0;
    if (len == 0 || (loc && raw->loc != NULL) || (lastmod && raw->lastmod != NULL))
        return false;
    if (loc) {
        raw->loc = text;
        raw->loc_len = len;
        return run_tag(r, TAG("</loc>"));
    }
    if (lastmod) {
        raw->lastmod = text;
        raw->lastmod_len = len;
        raw->lastmod_state = FIELD_SET;
        return len < LASTMOD_BYTES && run_tag(r, TAG("</lastmod>"));
    }
    raw->remarks |= RULE_BIT(RULE_HINT_DROPPED);
    return often ? run_tag(r, TAG("</changefreq>")) : run_tag(r, TAG("</priority>"));
}

/* Reads an item into `raw`, which borrows from the run. False: the item is not plain, or
 * incomplete; the run has not moved. */
static bool run_item(struct run *run, const struct xml_list *x, struct raw_entry *raw)
{
    struct run r = *run;
    *raw = (struct raw_entry){.position = POSITION_NONE, .has_extensions = true};
    run_space(&r);
    raw->line = r.place.line;
    if (!(x->pages ? run_tag(&r, TAG("<url>")) : run_tag(&r, TAG("<sitemap>"))))
        return false;
    for (;;) {
        run_space(&r);
        if (x->pages ? run_tag(&r, TAG("</url>")) : run_tag(&r, TAG("</sitemap>")))
            break;
        if (!run_element(&r, x, raw))
            return false;
    }
    *run = r;
    return true;
}

static bool parse_plain(struct xml_list *x, struct run *run)
{
    struct raw_entry raw;
    const char *from = run->at;
    run->place = xml_place(&x->xml);
    while (run_item(run, x, &raw)) {
        if (x->pages)
            fragment_begin(x->fragment, x->xml.core->options.lenient);
        if (!reader_state_add(x->xml.core, &raw))
            return false;
    }
    if (run->at > from)
        xml_skip_to(&x->xml, run->place);
    return true;
}

/* How much of the run goes to expat. */
static size_t odd_part(const struct xml_list *x, const struct run *run)
{
    const char *tag = x->pages ? "</url>" : "</sitemap>";
    size_t len = (size_t)(run->end - run->at), size = strlen(tag);
    const char *found = memmem(run->at, len, tag, size);
    return found != NULL ? (size_t)(found - run->at) + size : len;
}

static bool index_feed(void *self, const char *bytes, size_t len)
{
    struct xml_list *x = self;
    struct run run = {.at = bytes, .end = bytes + len};
    while (run.at < run.end) {
        const char *from = run.at;
        if (x->plain && x->between && !parse_plain(x, &run))
            return false;
        /* After two items in a row that are not plain, the rest of the block goes to expat. */
        bool rest = !x->plain || (x->between && run.at == from);
        size_t part = rest ? (size_t)(run.end - run.at) : odd_part(x, &run);
        x->between = x->between && part == 0;
        if (part > 0 && !xml_feed(&x->xml, run.at, part))
            return false;
        run.at += part;
    }
    return true;
}

static const struct handler index_handler = {index_feed, xml_finish, xml_free};

static const struct xml_hooks hooks = {
    .start = on_start,
    .end = on_end,
    .text = on_text,
    .doctype = on_doctype,
    .token_too_long = token_too_long,
    .broken = fail_xml,
};

bool xml_list_open(struct frame *f, bool wide)
{
    struct xml_list *x = malloc(sizeof *x);
    if (x != NULL) {
        memset(x, 0, offsetof(struct xml_list, text_data));
        x->pages = f->core->options.pages;
        x->wide = wide;
        x->fragment = f->core->validated->fragment;
        xml_item_begin(&x->item, 0);
        if (!xml_init(&x->xml, f->core, f->place, NULL, &hooks)) {
            free(x);
            x = NULL;
        }
    }
    return frame_use(f, &index_handler, x);
}
