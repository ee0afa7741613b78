/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads a urlset, or a feed (sitemap_feed.c), as XML, tag by tag as the bytes arrive. Every tag and
 * text goes into the hash, and the loc and lastmod of each url are checked at their end. If the XML
 * breaks before its root, the prolog shows whether the file was intended as a sitemap. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/input/frame.h"
#include "server/input/sitemap_parts.h"
#include "server/input/xml.h"

/* ---- a url, from its tag to its end ---- */

struct sitemap_item {
    bool open;
    enum { FIELD_NONE, FIELD_LOC, FIELD_LASTMOD } field; /* the open element */
    bool markup;                                         /* it contains an element */
    struct place at;                                     /* of the beginning of the url */
    struct place field_at;                               /* of the open element */
    unsigned locs, lastmods;                             /* so far */
    enum rule_code loc_code;                             /* the result for the loc */
};

/* A url begins. False: it is one too many, which is reported to the core. */
static bool sitemap_item_begin(struct sitemap_item *item, struct sitemap_work *work,
                               struct place at)
{
    *item = (struct sitemap_item){.open = true, .at = at};
    return sitemap_work_add_page(work, at.line, at.column);
}

/* An element of the sitemap's own namespace begins within the url. */
static void sitemap_item_begin_field(struct sitemap_item *item, const char *local, struct place at)
{
    item->markup = false;
    item->field_at = at;
    if (strcmp(local, "loc") == 0) {
        item->field = FIELD_LOC;
        item->locs++;
    } else if (strcmp(local, "lastmod") == 0) {
        item->field = FIELD_LASTMOD;
        item->lastmods++;
    }
}

static void parse_loc(struct sitemap_item *item, struct sitemap_pages *pages, const char *text,
                      size_t len)
{
    if (item->locs == 1 && !item->markup)
        item->loc_code = sitemap_pages_loc(pages, item->field_at, text, len);
    else if (item->locs <= 2) /* it is unknown which one is intended */
        item->loc_code = sitemap_pages_refuse(
            pages, item->field_at, item->locs == 1 ? RULE_LOC_MARKUP : RULE_LOC_REPEATED);
}

static void parse_lastmod(struct sitemap_item *item, struct sitemap_pages *pages, const char *text,
                          size_t len)
{
    if (item->lastmods == 1 && !item->markup)
        sitemap_pages_lastmod(pages, item->field_at, text, len);
    else if (item->lastmods <= 2)
        sitemap_pages_refuse(pages, item->field_at, RULE_LASTMOD_INVALID);
}

/* The open element ends; it contained this text. */
static void sitemap_item_end_field(struct sitemap_item *item, struct sitemap_pages *pages,
                                   const char *text, size_t len)
{
    if (item->field == FIELD_LOC)
        parse_loc(item, pages, text, len);
    else if (item->field == FIELD_LASTMOD)
        parse_lastmod(item, pages, text, len);
    item->field = FIELD_NONE;
}

static void sitemap_item_end(struct sitemap_item *item, struct sitemap_pages *pages)
{
    if (item->locs == 0)
        item->loc_code = sitemap_pages_refuse(pages, item->at, RULE_LOC_MISSING);
    sitemap_pages_count(pages, item->loc_code);
    item->open = false;
}

/* ---- the prolog, before the root ---- */

struct sitemap_prolog {
    enum sitemap_start start;
    struct place start_at;
    bool urlset;              /* the tag of a urlset has begun, maybe incomplete */
    struct place declared_at; /* of the XML declaration; line 0: none exists */
    bool foreign;             /* it declares an encoding other than UTF-8 */
    char encoding[48];        /* that encoding, for people */
    bool doctype;
    struct place doctype_at;
};

struct sitemap_prolog_fault {
    const char *code; /* NULL: none */
    struct place at;
    char why[96];
};

/* Whether it is a name of UTF-8, a frequent misspelling, or a subset (ASCII). */
static bool is_utf8_name(const char *encoding)
{
    static const char *const names[] = {"utf-8", "utf8", "us-ascii", "ascii"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ascii_equals(encoding, strlen(encoding), names[i]))
            return true;
    return false;
}

/* Takes the encoding of the XML declaration (NULL: none). */
static void sitemap_prolog_declare(struct sitemap_prolog *p, struct place at, const char *encoding)
{
    p->declared_at = at;
    if (encoding == NULL)
        return;
    p->foreign = !is_utf8_name(encoding);
    entry_validate_quote(p->encoding, sizeof p->encoding, encoding, strlen(encoding));
}

/* Why a urlset after this prolog is invalid. */
static struct sitemap_prolog_fault sitemap_prolog_check(const struct sitemap_prolog *p)
{
    struct sitemap_prolog_fault fault = {.code = NULL};
    const char *why = "";
    if (p->doctype) {
        fault.code = "doctype";
        fault.at = p->doctype_at;
        why = "has a DOCTYPE, which is not accepted";
    } else if (p->start == START_LATE) {
        fault.code = "malformed-xml";
        fault.at = p->start_at;
        why = "white space before the XML declaration";
    } else if (p->start == START_WIDE) {
        fault.code = "not-utf8";
        fault.at = p->start_at;
        why = "is UTF-16; a sitemap must be UTF-8";
    } else if (p->foreign) {
        fault.code = "not-utf8";
        fault.at = p->declared_at;
        snprintf(fault.why, sizeof fault.why, "is declared as %s; a sitemap must be UTF-8",
                 p->encoding);
        return fault;
    }
    snprintf(fault.why, sizeof fault.why, "%s", why);
    return fault;
}

/* ---- the urlset ---- */

#define DOCTYPE_MAX_BYTES 65536u /* from the DOCTYPE to the root element */
#define FEED_MAX_DEPTH    512u   /* nested elements */

struct sitemap_urlset {
    struct xml xml; /* first */
    struct sitemap_work *work;
    struct sitemap_prolog prolog;
    unsigned depth;                     /* number of open elements; 1: within the root */
    bool root_seen;                     /* it is a urlset or a feed */
    struct sitemap_feed feed;           /* FEED_NONE: it is a urlset */
    struct sitemap_item item;           /* the open element of depth 2 if it is a url */
    struct sitemap_extension extension; /* of it */
    uint64_t doctype_bytes;             /* bytes given to expat since the DOCTYPE */
    struct xml_text run;                /* the character data since the last tag */
    char run_data[SITEMAP_FILE_MAX_TEXT];
};

/* Ends the file as a broken sitemap. */
static bool refuse_at(struct sitemap_urlset *u, struct place place, const char *code,
                      const char *why)
{
    xml_stop(&u->xml);
    return reader_state_fail(&u->work->core, READER_MALFORMED, code, place.line, place.column, "%s",
                             why);
}

static bool reject_urlset(struct sitemap_urlset *u, const char *code, const char *why)
{
    return refuse_at(u, xml_place(&u->xml), code, why);
}

/* Ends the file as something other than a sitemap. */
static bool dismiss(struct sitemap_urlset *u, const char *what)
{
    xml_stop(&u->xml);
    return sitemap_work_other(u->work, SITEMAP_FILE_OTHER, "not-a-sitemap", "%s", what);
}

static const char other_xml[] = "XML, but not a sitemap";

/* Whether the file is, or was intended as, a sitemap, as far as is known. */
static bool is_intended(const struct sitemap_urlset *u)
{
    const struct sitemap_prolog *p = &u->prolog;
    return u->root_seen || p->urlset || p->start == START_DECLARED || p->start == START_LATE ||
           p->declared_at.line > 0;
}

static bool token_too_long(struct xml *xml)
{
    struct sitemap_urlset *u = (struct sitemap_urlset *)(void *)xml;
    return is_intended(u) ? reject_urlset(u, "text-too-long", "a tag or comment is too long")
                          : dismiss(u, other_xml);
}

static bool dismiss_root(struct sitemap_urlset *u, const char *local)
{
    char shown[48], what[96];
    if (strcmp(local, "sitemapindex") == 0) {
        xml_stop(&u->xml);
        return sitemap_work_other(u->work, SITEMAP_FILE_INDEX, "nested-index",
                                  "a sitemap index, which an index may not list");
    }
    if (ascii_equals(local, strlen(local), "html")) {
        size_t len = 0;
        const char *page = xml_rest(&u->xml, &len);
        xml_stop(&u->xml);
        return sitemap_work_page(u->work, page, page != NULL ? len : 0);
    }
    entry_validate_quote(shown, sizeof shown, local, strlen(local));
    snprintf(what, sizeof what, "XML whose root is <%s>, not <urlset>", shown);
    return dismiss(u, what);
}

static bool begin_root(struct sitemap_urlset *u, const char *name)
{
    const char *local = xml_name_local(name);
    bool urlset = strcmp(local, "urlset") == 0;
    char why[XML_SPACE_WHY];
    if (urlset && xml_name_space(name) == XML_SPACE_OTHER) {
        xml_space_explain(name, why);
        return reject_urlset(u, "wrong-namespace", why);
    }
    u->work->feed = !urlset && sitemap_feed_begin(&u->feed, local);
    if (!urlset && !u->work->feed)
        return dismiss_root(u, local);
    u->root_seen = true;
    if (urlset && xml_name_space(name) == XML_SPACE_MEANT)
        sitemap_pages_namespace(&u->work->pages, xml_place(&u->xml), name, local);
    struct sitemap_prolog_fault fault = sitemap_prolog_check(&u->prolog);
    return fault.code == NULL || refuse_at(u, fault.at, fault.code, fault.why);
}

/* A tag ends the character data since the last tag. Returns its length. */
static size_t end_run(struct sitemap_urlset *u)
{
    size_t len = xml_text_end(&u->run);
    u->run.len = 0;
    if (len > 0 && u->item.open && u->item.field == FIELD_LASTMOD)
        sitemap_hash_date(u->work->hash, u->run.data, len);
    else if (len > 0)
        sitemap_hash_field(u->work->hash, HASH_TEXT, u->run.data, len);
    return len;
}

static void XMLCALL on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct sitemap_urlset *u = user;
    if (!xml_token(&u->xml))
        return;
    if (!u->root_seen && !begin_root(u, name))
        return;
    /* Feeds hold pages of HTML. */
    if (++u->depth > (u->work->feed ? FEED_MAX_DEPTH : SITEMAP_FILE_MAX_DEPTH)) {
        reject_urlset(u, "nesting-too-deep", "elements are nested too deeply");
        return;
    }
    if (u->work->feed) {
        u->run.len = 0;
        if (u->depth > 1 && !sitemap_feed_start(&u->feed, u->work, u->depth, xml_name_local(name),
                                                attributes, xml_place(&u->xml)))
            xml_stop(&u->xml);
        return;
    }
    end_run(u);
    sitemap_hash_field(u->work->hash, HASH_START, name, strlen(name));
    if (attributes[0] != NULL)
        sitemap_hash_attributes(u->work->hash, attributes);
    bool ours = u->depth <= 3 && xml_name_space(name) != XML_SPACE_OTHER;
    if (u->depth == 2 && ours && strcmp(xml_name_local(name), "url") == 0) {
        if (!sitemap_item_begin(&u->item, u->work, xml_place(&u->xml)))
            xml_stop(&u->xml);
    } else if (u->depth == 3 && ours && u->item.open) {
        sitemap_item_begin_field(&u->item, xml_name_local(name), xml_place(&u->xml));
    } else if (u->depth > 3) {
        u->item.markup = true;
    }
    if (u->depth >= 3 && !ours && u->item.open)
        sitemap_extension_start(&u->extension, &u->work->pages, u->depth, name, attributes,
                                xml_place(&u->xml));
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    struct sitemap_urlset *u = user;
    (void)name;
    if (!xml_token(&u->xml))
        return;
    if (u->work->feed) {
        sitemap_feed_end(&u->feed, u->work, u->depth--, u->run.data, xml_text_end(&u->run));
        u->run.len = 0;
        return;
    }
    size_t len = end_run(u);
    sitemap_hash_field(u->work->hash, HASH_END, "", 0);
    if (u->extension.open_count > 0)
        sitemap_extension_end(&u->extension, &u->work->pages, u->depth, u->run.data, len);
    if (u->depth == 2 && u->item.open)
        sitemap_extension_end_page(&u->extension, &u->work->pages);
    if (u->extension.no_memory)
        reader_state_no_memory(&u->work->core);
    if (u->depth == 3)
        sitemap_item_end_field(&u->item, &u->work->pages, u->run.data, len);
    else if (u->depth == 2 && u->item.open)
        sitemap_item_end(&u->item, &u->work->pages);
    u->depth--;
}

/* expat passes a line end as a piece of its own, so the column of each byte of a piece is known and
 * does not depend on where the piece begins. */
static void XMLCALL on_text(void *user, const XML_Char *text, int len)
{
    struct sitemap_urlset *u = user;
    if (!xml_event(&u->xml) || (u->work->feed && u->feed.field == FEED_NO_FIELD))
        return;
    size_t at = xml_text_append(&u->run, text, (size_t)len);
    if (at == (size_t)len)
        return;
    struct place place = xml_place(&u->xml);
    place_advance(&place, text, at);
    refuse_at(u, place, "text-too-long", "the text of an element is too long");
}

static void XMLCALL on_declaration(void *user, const XML_Char *version, const XML_Char *encoding,
                                   int standalone)
{
    struct sitemap_urlset *u = user;
    (void)version, (void)standalone;
    if (xml_token(&u->xml))
        sitemap_prolog_declare(&u->prolog, xml_place(&u->xml), encoding);
}

/* Entities can expand without limit and refer to files of the server. If the names are conclusive
 * the document ends here, otherwise at the root: an entity can only be used in its content. */
static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int internal_subset)
{
    struct sitemap_urlset *u = user;
    const char *colon = strrchr(name, ':');
    const char *local = colon != NULL ? colon + 1 : name;
    (void)system_id, (void)public_id, (void)internal_subset;
    if (!xml_event(&u->xml))
        return;
    u->prolog.doctype = true;
    u->prolog.doctype_at = xml_place(&u->xml);
    if (strcmp(local, "urlset") == 0)
        reject_urlset(u, "doctype", "has a DOCTYPE, which is not accepted");
    else if (ascii_equals(local, strlen(local), "html"))
        dismiss_root(u, "html");
}

/* True if expat has stopped at bytes that are not UTF-8 (mostly Latin-1). */
static bool is_bad_utf8(const struct sitemap_urlset *u)
{
    size_t len;
    const char *rest = xml_rest(&u->xml, &len);
    return u->prolog.start != START_WIDE && rest != NULL && utf8_char_len(rest, len) == 0;
}

static bool fail_xml(struct xml *xml, enum XML_Error error, const char *code, const char *why)
{
    struct sitemap_urlset *u = (struct sitemap_urlset *)(void *)xml;
    if ((!u->root_seen && u->prolog.doctype) || !is_intended(u))
        return dismiss(u, other_xml);
    if (error == XML_ERROR_INCORRECT_ENCODING && u->prolog.start == START_WIDE)
        return reject_urlset(u, "not-utf8",
                             "is UTF-16, and declared otherwise; a sitemap must be UTF-8");
    if (error == XML_ERROR_INVALID_TOKEN && is_bad_utf8(u))
        return reject_urlset(u, "not-utf8", "not UTF-8");
    return reject_urlset(u, code, why);
}

static bool urlset_feed(void *self, const char *bytes, size_t len)
{
    struct sitemap_urlset *u = self;
    u->doctype_bytes += u->prolog.doctype ? len : 0;
    if (!xml_feed(&u->xml, bytes, len))
        return false;
    if (!u->root_seen && u->prolog.doctype && u->doctype_bytes > DOCTYPE_MAX_BYTES)
        return dismiss(u, other_xml);
    return true;
}

static void urlset_free(void *self)
{
    struct sitemap_urlset *u = self;
    sitemap_extension_done(&u->extension);
    xml_free(self);
}

static const struct handler urlset_handler = {urlset_feed, xml_finish, urlset_free};

static const struct xml_hooks hooks = {
    .start = on_start,
    .end = on_end,
    .text = on_text,
    .doctype = on_doctype,
    .declaration = on_declaration,
    .token_too_long = token_too_long,
    .broken = fail_xml,
};

bool sitemap_urlset_open(struct frame *f, struct sitemap_work *work, enum sitemap_start start,
                         bool begun)
{
    struct sitemap_urlset *u = malloc(sizeof *u);
    if (u != NULL) {
        /* Read the bytes as UTF-8 whatever is declared: an encoding that expat does not know
         * ("utf8", "windows-1251") must not hide the root. */
        const char *encoding = start == START_WIDE ? NULL : "UTF-8";
        memset(u, 0, offsetof(struct sitemap_urlset, run_data));
        xml_text_init(&u->run, u->run_data, sizeof u->run_data);
        u->work = work;
        u->prolog = (struct sitemap_prolog){.start = start, .urlset = begun, .start_at = f->place};
        if (!xml_init(&u->xml, f->core, f->place, encoding, &hooks)) {
            free(u);
            u = NULL;
        }
    }
    return frame_use(f, &urlset_handler, u);
}
