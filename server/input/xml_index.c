/* A sitemap index as XML, element by element as the bytes arrive: each <sitemap> is gathered and
 * handed on at its end. */

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/input/frame.h"
#include "server/input/xml.h"
#include "server/rules/loc.h"

/* One <sitemap> element: what is gathered of it, and what becomes of that. */

#define LASTMOD_BYTES 256 /* a date has 35 at most; what is longer is none */

struct xml_item {
    uint64_t line; /* where it begins */
    unsigned locs, lastmods;
    bool loc_markup, lastmod_markup; /* an element stands within */
    struct xml_text loc, lastmod;    /* of the first of each */
    struct xml_text direct;          /* text beside the elements */
    char loc_data[READER_MAX_ITEM_BYTES], lastmod_data[LASTMOD_BYTES],
        direct_data[LOC_MAX_CHARS + 1];
};

static void xml_item_begin(struct xml_item *item, uint64_t line)
{
    item->line = line;
    item->locs = item->lastmods = 0;
    item->loc_markup = item->lastmod_markup = false;
    xml_text_init(&item->loc, item->loc_data, sizeof item->loc_data);
    xml_text_init(&item->lastmod, item->lastmod_data, sizeof item->lastmod_data);
    xml_text_init(&item->direct, item->direct_data, sizeof item->direct_data);
}

/* The loc, or what is wrong with it. */
static void read_loc(const struct xml_item *item, struct raw_entry *raw)
{
    raw->loc_len = xml_text_end(&item->loc);
    bool padded = item->loc.padded || raw->loc_len < item->loc.len;
    raw->loc = raw->loc_len > 0 ? item->loc.data : NULL;
    if (raw->loc) {
        size_t front = explain_blank_front(raw->loc, raw->loc_len);
        size_t back = explain_blank_back(raw->loc + front, raw->loc_len - front);
        padded = padded || front + back > 0;
        raw->loc_len -= front + back;
        raw->loc = raw->loc_len > 0 ? raw->loc + front : NULL;
    }
    if (padded && raw->loc)
        raw->remarks |= RULE_BIT(RULE_LOC_PADDED);
    if (item->locs > 1) {
        /* Which one was meant is anyone's guess. */
        raw->loc_fault = RULE_LOC_MALFORMED;
        raw->loc_why = "there is more than one loc in this sitemap element";
    } else if (item->loc_markup) {
        raw->loc_fault = RULE_LOC_MALFORMED;
        raw->loc_why = "there is an element within the loc";
    } else if (item->loc.overflow) {
        raw->loc_fault = RULE_LOC_TOO_LONG;
    } else if (!raw->loc) {
        raw->loc_fault = RULE_LOC_MISSING;
        raw->loc_len = xml_text_end(&item->direct);
        if (raw->loc_len > 0) {
            raw->loc = item->direct.data;
            raw->loc_why = "there is no loc; the text stands directly in the sitemap element";
        }
    }
}

/* Fills `raw`, which borrows from `item`. Returns true where text was passed over that stood
 * beside the elements. */
static bool xml_item_read(const struct xml_item *item, struct raw_entry *raw)
{
    *raw = (struct raw_entry){.position = POSITION_NONE, .line = item->line};
    read_loc(item, raw);
    raw->lastmod = item->lastmod.data;
    raw->lastmod_len = xml_text_end(&item->lastmod);
    if (item->lastmods > 1)
        raw->lastmod_why = "stands beside another lastmod";
    else if (item->lastmod_markup)
        raw->lastmod_why = "has an element within";
    else if (item->lastmod.overflow)
        raw->lastmod_why = rule_code_sentence(RULE_LASTMOD_INVALID);
    if (raw->lastmod_len > 0 || raw->lastmod_why) /* <lastmod/> is as good as none */
        raw->lastmod_state = FIELD_SET;
    return raw->loc_fault == RULE_OK && item->direct.len > 0;
}

#define READER_MAX_DEPTH 64u /* of elements */

/* Where in the document we are; deeper down is what is ignored. */
enum place_in_tree { IN_NOTHING, IN_ROOT, IN_SITEMAP, IN_LOC, IN_LASTMOD, IN_IGNORED };

struct xml_index {
    struct xml xml; /* first */
    unsigned depth;
    enum place_in_tree at;
    enum place_in_tree ignored_in; /* where an ignored element stands */
    unsigned ignored_depth;        /* its depth */
    bool stray;                    /* text directly in the root since the last element */
    struct xml_item item;
};

static void fail(struct xml_index *x, enum reader_status status, const char *code,
                 const char *detail, const char *name)
{
    struct place at = xml_place(&x->xml);
    char shown[64];
    entry_validate_quote(shown, sizeof shown, name, strlen(name));
    reader_state_fail(x->xml.core, status, code, at.line, at.column, "line %" PRIu64 ": %s%s",
                      at.line, detail, shown);
    xml_stop(&x->xml);
}

static void begin_root(struct xml_index *x, const char *name)
{
    const char *local = xml_name_local(name);
    enum xml_space space = xml_name_space(name);
    if (strcmp(local, "sitemapindex") == 0 && space != XML_SPACE_OTHER) {
        x->at = IN_ROOT;
        if (space == XML_SPACE_MEANT)
            reader_state_remark(x->xml.core, RULE_NAMESPACE, xml_place(&x->xml).line);
        return;
    }
    if (strcmp(local, "urlset") == 0)
        fail(x, READER_WRONG_KIND, "urlset-not-index", "is a sitemap (urlset), not a sitemap index",
             "");
    else if (ascii_equals(local, strlen(local), "html"))
        fail(x, READER_WRONG_KIND, "html-not-index", "is an HTML page, not a sitemap index", "");
    else if (strcmp(local, "rss") == 0 || strcmp(local, "feed") == 0 || strcmp(local, "RDF") == 0)
        fail(x, READER_WRONG_KIND, "feed-not-index", "is a feed, not a sitemap index", "");
    else
        fail(x, READER_WRONG_KIND, "not-an-index", "is not a sitemap index; its root is ", local);
}

/* An element that is none of ours. An extension's is its own business; one of our namespace has
 * no place here. */
static void begin_ignored(struct xml_index *x, enum xml_space space)
{
    x->ignored_in = x->at;
    x->ignored_depth = x->depth;
    x->at = IN_IGNORED;
    if (space != XML_SPACE_OTHER)
        reader_state_remark(x->xml.core, RULE_EXTRA_ELEMENT, xml_place(&x->xml).line);
}

static void XMLCALL on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_index *x = user;
    (void)attributes;
    if (!xml_token(&x->xml))
        return;
    if (++x->depth > READER_MAX_DEPTH) {
        fail(x, READER_TOO_LARGE, "nested-too-deep", "elements are nested too deep", "");
        return;
    }
    if (x->at == IN_IGNORED)
        return;
    if (x->at == IN_NOTHING) {
        begin_root(x, name);
        return;
    }
    enum xml_space space = xml_name_space(name);
    const char *local = space == XML_SPACE_OTHER ? "" : xml_name_local(name);
    x->stray = false;
    if (x->at == IN_ROOT && strcmp(local, "sitemap") == 0) {
        x->at = IN_SITEMAP;
        xml_item_begin(&x->item, xml_place(&x->xml).line);
    } else if (x->at == IN_SITEMAP && strcmp(local, "loc") == 0) {
        x->at = IN_LOC;
        x->item.locs++;
    } else if (x->at == IN_SITEMAP && strcmp(local, "lastmod") == 0) {
        x->at = IN_LASTMOD;
        x->item.lastmods++;
    } else {
        x->item.loc_markup = x->item.loc_markup || x->at == IN_LOC;
        x->item.lastmod_markup = x->item.lastmod_markup || x->at == IN_LASTMOD;
        begin_ignored(x, space);
    }
}

static void end_sitemap(struct xml_index *x)
{
    struct raw_entry raw;
    if (xml_item_read(&x->item, &raw))
        reader_state_remark(x->xml.core, RULE_EXTRA_ELEMENT, raw.line);
    if (!reader_state_take(x->xml.core, &raw))
        xml_stop(&x->xml);
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    struct xml_index *x = user;
    (void)name;
    if (!xml_token(&x->xml))
        return;
    unsigned depth = x->depth--;
    switch (x->at) {
    case IN_IGNORED:
        if (depth == x->ignored_depth)
            x->at = x->ignored_in;
        break;
    case IN_LOC:
    case IN_LASTMOD:
        x->at = IN_SITEMAP;
        break;
    case IN_SITEMAP:
        x->at = IN_ROOT;
        end_sitemap(x);
        break;
    case IN_ROOT:
    case IN_NOTHING:
        x->at = IN_NOTHING;
        break;
    }
}

static void XMLCALL on_text(void *user, const XML_Char *text, int len)
{
    struct xml_index *x = user;
    size_t size = (size_t)len;
    if (!xml_event(&x->xml))
        return;
    if (x->at == IN_LOC && x->item.locs == 1) {
        xml_text_append(&x->item.loc, text, size);
    } else if (x->at == IN_LASTMOD && x->item.lastmods == 1) {
        xml_text_append(&x->item.lastmod, text, size);
    } else if (x->at == IN_SITEMAP) {
        xml_text_append(&x->item.direct, text, size);
    } else if (x->at == IN_ROOT && !x->stray && detect_space(text, size) < size) {
        x->stray = true; /* one remark, however expat cuts the text */
        reader_state_remark(x->xml.core, RULE_EXTRA_ELEMENT, xml_place(&x->xml).line);
    }
}

/* Entities can grow without end and name files of the server, and no sitemap index needs a
 * DOCTYPE: it is refused before anything in it is read. */
static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int internal_subset)
{
    struct xml_index *x = user;
    (void)system_id, (void)public_id, (void)internal_subset;
    if (!xml_event(&x->xml))
        return;
    if (ascii_equals(name, strlen(name), "html"))
        fail(x, READER_WRONG_KIND, "html-not-index", "is an HTML page, not a sitemap index", "");
    else
        fail(x, READER_FORBIDDEN, "doctype", "has a DOCTYPE, which is not accepted", "");
}

static bool token_too_long(struct xml *xml)
{
    fail((struct xml_index *)(void *)xml, READER_TOO_LARGE, "item-too-large",
         "a tag or comment is too long", "");
    return false;
}

static bool broken(struct xml *x, enum XML_Error error, const char *code, const char *why)
{
    struct place at = xml_place(x);
    (void)error;
    return reader_state_fail(x->core, READER_MALFORMED, code, at.line, at.column,
                             "line %" PRIu64 ", column %" PRIu64 ": %s", at.line, at.column, why);
}

static bool index_feed(void *self, const char *bytes, size_t len)
{
    return xml_feed(self, bytes, len);
}

static bool index_finish(void *self)
{
    return xml_finish(self);
}

static void index_free(void *self)
{
    xml_done(self);
    free(self);
}

static const struct handler index_handler = {index_feed, index_finish, index_free};

static const struct xml_hooks hooks = {
    .start = on_start,
    .end = on_end,
    .text = on_text,
    .doctype = on_doctype,
    .token_too_long = token_too_long,
    .broken = broken,
};

bool xml_index_open(struct frame *f)
{
    struct xml_index *x = malloc(sizeof *x);
    if (x) {
        memset(x, 0, offsetof(struct xml_index, item));
        xml_item_begin(&x->item, 0);
        if (!xml_init(&x->xml, f->core, f->place, NULL, &hooks)) {
            free(x);
            x = NULL;
        }
    }
    return frame_use(f, &index_handler, x);
}
