#include "server/ingest/xml_index.h"

#include <expat.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/ingest/expat_place.h"
#include "server/ingest/memory.h"
#include "server/ingest/xml_item.h"
#include "server/ingest/xml_names.h"
#include "server/rules/ascii.h"

#define FEED_BYTES        16384
#define PENDING_MAX_BYTES (2 * READER_MAX_ITEM_BYTES) /* see judge_pending */

/* Where in the document we are; deeper down is what is ignored. */
enum place_in_tree { IN_NOTHING, IN_ROOT, IN_SITEMAP, IN_LOC, IN_LASTMOD, IN_IGNORED };

struct xml_index {
    struct core *core;
    XML_Parser parser;
    struct place start;
    uint64_t fed, done; /* bytes given to expat; those of them that its events have covered */
    unsigned depth;
    enum place_in_tree at;
    enum place_in_tree ignored_in; /* where an ignored element stands */
    unsigned ignored_depth;        /* its depth */
    bool root_seen;
    bool stray; /* text directly in the root since the last element */
    struct xml_item item;
};

static uint64_t line_now(const struct xml_index *x)
{
    return x->start.line + expat_line(x->parser) - 1;
}

static uint64_t column_now(const struct xml_index *x)
{
    uint64_t column = expat_column(x->parser);
    return expat_line(x->parser) == 1 ? x->start.column + column - 1 : column;
}

/* Stops the parser once the core has an error. expat may still call a handler or two. */
static void stop(struct xml_index *x)
{
    XML_StopParser(x->parser, XML_FALSE);
}

static void fail(struct xml_index *x, enum reader_status status, const char *code,
                 const char *detail, const char *name)
{
    char shown[64];
    judge_quote(shown, sizeof shown, name, strlen(name));
    core_fail(x->core, status, code, line_now(x), column_now(x), "line %" PRIu64 ": %s%s",
              line_now(x), detail, shown);
    stop(x);
}

/* Notes how far expat has come, and bounds the one token that is held whole. */
static bool note_progress(struct xml_index *x)
{
    if (!core_ok(x->core))
        return false;
    int64_t index = expat_byte_index(x->parser);
    if (index >= 0)
        x->done = (uint64_t)index + expat_byte_count(x->parser);
    return true;
}

static bool note_token(struct xml_index *x)
{
    if (!note_progress(x))
        return false;
    if (expat_byte_count(x->parser) <= READER_MAX_ITEM_BYTES)
        return true;
    fail(x, READER_TOO_LARGE, "item-too-large", "a tag or comment is too long", "");
    return false;
}

static void begin_root(struct xml_index *x, const char *name)
{
    const char *local = xml_name_local(name);
    enum xml_space space = xml_name_space(name);
    x->root_seen = true;
    if (strcmp(local, "sitemapindex") == 0 && space != XML_SPACE_OTHER) {
        x->at = IN_ROOT;
        if (space == XML_SPACE_MEANT)
            core_remark(x->core, RULE_NAMESPACE, line_now(x));
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
        core_remark(x->core, RULE_EXTRA_ELEMENT, line_now(x));
}

static void XMLCALL on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_index *x = user;
    (void)attributes;
    if (!note_token(x))
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
        xml_item_begin(&x->item, line_now(x));
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
        core_remark(x->core, RULE_EXTRA_ELEMENT, raw.line);
    if (!core_take(x->core, &raw))
        stop(x);
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    struct xml_index *x = user;
    (void)name;
    if (!note_token(x))
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
    if (!note_progress(x))
        return;
    if (x->at == IN_LOC && x->item.locs == 1) {
        xml_text_append(&x->item.loc, text, size);
    } else if (x->at == IN_LASTMOD && x->item.lastmods == 1) {
        xml_text_append(&x->item.lastmod, text, size);
    } else if (x->at == IN_SITEMAP) {
        xml_text_append(&x->item.direct, text, size);
    } else if (x->at == IN_ROOT && !x->stray && detect_space(text, size) < size) {
        x->stray = true; /* one remark, however expat cuts the text */
        core_remark(x->core, RULE_EXTRA_ELEMENT, line_now(x));
    }
}

/* Entities can grow without end and name files of the server, and no sitemap index needs a
 * DOCTYPE: it is refused before anything in it is read. */
static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int internal_subset)
{
    struct xml_index *x = user;
    (void)system_id, (void)public_id, (void)internal_subset;
    if (!note_progress(x))
        return;
    if (ascii_equals(name, strlen(name), "html"))
        fail(x, READER_WRONG_KIND, "html-not-index", "is an HTML page, not a sitemap index", "");
    else
        fail(x, READER_FORBIDDEN, "doctype", "has a DOCTYPE, which is not accepted", "");
}

static void XMLCALL on_comment(void *user, const XML_Char *text)
{
    (void)text;
    note_token(user);
}

static void XMLCALL on_instruction(void *user, const XML_Char *target, const XML_Char *text)
{
    (void)target, (void)text;
    note_token(user);
}

static void XMLCALL on_other(void *user, const XML_Char *text, int len)
{
    (void)text, (void)len;
    note_progress(user);
}

struct xml_index *xml_index_new(struct core *core, struct place start)
{
    struct xml_index *x = malloc(sizeof *x);
    if (!x)
        return NULL;
    memset(x, 0, offsetof(struct xml_index, item));
    x->parser = memory_new_parser(NULL, XML_NAME_SEPARATOR);
    if (!x->parser) {
        free(x);
        return NULL;
    }
    x->core = core;
    x->start = start;
    xml_item_begin(&x->item, 0);
    XML_SetUserData(x->parser, x);
    XML_SetElementHandler(x->parser, on_start, on_end);
    XML_SetCharacterDataHandler(x->parser, on_text);
    XML_SetStartDoctypeDeclHandler(x->parser, on_doctype);
    XML_SetCommentHandler(x->parser, on_comment);
    XML_SetProcessingInstructionHandler(x->parser, on_instruction);
    XML_SetDefaultHandler(x->parser, on_other);
    return x;
}

static bool fail_parse(struct xml_index *x)
{
    enum XML_Error error = XML_GetErrorCode(x->parser);
    if (!core_ok(x->core))
        return false; /* stopped by a handler, which has said why */
    if (error == XML_ERROR_NO_MEMORY || memory_failed())
        return core_no_memory(x->core);
    bool early = error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN ||
                 error == XML_ERROR_PARTIAL_CHAR || error == XML_ERROR_UNCLOSED_CDATA_SECTION;
    return core_fail(x->core, READER_MALFORMED, early ? "truncated" : "malformed-xml", line_now(x),
                     column_now(x), "line %" PRIu64 ", column %" PRIu64 ": %s%s", line_now(x),
                     column_now(x), early ? "the XML ends too early: " : "",
                     XML_ErrorString(error));
}

/* expat holds a token (a tag, a comment) until it is whole; this bounds what it may hold. From
 * 2.6 on it does not try again until what it holds has doubled, hence twice the limit; a token
 * that is longer than the limit itself is refused by note_token. */
static bool judge_pending(struct xml_index *x)
{
    if (x->fed <= x->done + PENDING_MAX_BYTES)
        return true;
    return core_fail(x->core, READER_TOO_LARGE, "item-too-large", 0, 0,
                     "a tag or comment is longer than %u bytes", READER_MAX_ITEM_BYTES);
}

bool xml_index_feed(struct xml_index *x, const char *bytes, size_t len)
{
    while (len > 0) {
        int part = len > FEED_BYTES ? FEED_BYTES : (int)len;
        x->fed += (uint64_t)part;
        memory_watch();
        if (XML_Parse(x->parser, bytes, part, 0) != XML_STATUS_OK)
            return fail_parse(x);
        if (!judge_pending(x))
            return false;
        bytes += part;
        len -= (size_t)part;
    }
    return true;
}

bool xml_index_finish(struct xml_index *x)
{
    memory_watch();
    return XML_Parse(x->parser, "", 0, 1) == XML_STATUS_OK || fail_parse(x);
}

void xml_index_free(struct xml_index *x)
{
    if (!x)
        return;
    XML_ParserFree(x->parser);
    free(x);
}
