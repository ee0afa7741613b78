#include "server/ingest/sitemap_urlset.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "server/ingest/expat_place.h"
#include "server/ingest/memory.h"
#include "server/ingest/sitemap_prolog.h"
#include "server/ingest/sitemap_run.h"
#include "server/ingest/xml_names.h"
#include "server/rules/ascii.h"
#include "server/rules/utf8.h"

#define TOKEN_MAX_BYTES   SITEMAP_FILE_MAX_TEXT
#define PENDING_MAX_BYTES (3u * TOKEN_MAX_BYTES) /* see judge_pending */
#define DOCTYPE_MAX_BYTES 65536u                 /* from a DOCTYPE to the root element */

enum field { FIELD_NONE, FIELD_LOC, FIELD_LASTMOD };

struct sitemap_urlset {
    struct sitemap_work *work;
    XML_Parser parser;
    struct sitemap_prolog prolog;
    unsigned depth;          /* of open elements; 1: within the root */
    bool root_seen;          /* and it is a urlset */
    bool in_url;             /* the open element of depth 2 is a url */
    enum field field;        /* the open element of depth 3 */
    bool field_markup;       /* an element stands within it */
    unsigned locs, lastmods; /* of the open url */
    uint64_t bad_before;     /* bad pages before the open url */
    uint64_t pending;        /* bytes given to expat since its last event */
    uint64_t doctype_bytes;  /* bytes given to expat since the DOCTYPE */
    struct sitemap_run run;
};

static struct place place_now(const struct sitemap_urlset *u)
{
    uint64_t line = expat_line(u->parser);
    uint64_t column = expat_column(u->parser);
    if (line == 1)
        column += u->prolog.start_at.column - 1;
    return (struct place){u->prolog.start_at.line + line - 1, column};
}

/* Ends it as a broken sitemap. expat may still call a handler or two. */
static bool refuse_at(struct sitemap_urlset *u, struct place place, const char *code,
                      const char *why)
{
    XML_StopParser(u->parser, XML_FALSE);
    return core_fail(&u->work->core, READER_MALFORMED, code, place.line, place.column, "%s", why);
}

static bool refuse(struct sitemap_urlset *u, const char *code, const char *why)
{
    return refuse_at(u, place_now(u), code, why);
}

/* Ends it as something else than a urlset. */
static bool dismiss(struct sitemap_urlset *u, enum sitemap_file_kind kind)
{
    XML_StopParser(u->parser, XML_FALSE);
    return sitemap_work_other(u->work, kind);
}

/* Every handler begins so. False: it is over. */
static bool note_event(struct sitemap_urlset *u)
{
    u->pending = 0;
    return core_ok(&u->work->core);
}

/* The same for what expat holds whole, whose bound must not depend on how it arrived. */
static bool note_token(struct sitemap_urlset *u)
{
    if (!note_event(u))
        return false;
    if (expat_byte_count(u->parser) <= TOKEN_MAX_BYTES)
        return true;
    if (!u->root_seen && !sitemap_prolog_is_declared(&u->prolog))
        return dismiss(u, SITEMAP_FILE_OTHER);
    return refuse(u, "text-too-long", "a tag or comment is too long");
}

static bool begin_root(struct sitemap_urlset *u, const char *name)
{
    const char *local = xml_name_local(name);
    if (xml_name_space(name) == XML_SPACE_OTHER)
        return dismiss(u, SITEMAP_FILE_OTHER);
    if (strcmp(local, "sitemapindex") == 0)
        return dismiss(u, SITEMAP_FILE_INDEX);
    if (strcmp(local, "urlset") != 0)
        return dismiss(u, SITEMAP_FILE_OTHER);
    u->root_seen = true;
    struct sitemap_prolog_fault fault = sitemap_prolog_judge(&u->prolog);
    return !fault.code || refuse_at(u, fault.at, fault.code, fault.why);
}

/* The character data since the last tag, which a tag ends. Returns its length. */
static size_t end_run(struct sitemap_urlset *u)
{
    size_t len = sitemap_run_end(&u->run);
    u->run.len = 0;
    if (len > 0)
        sitemap_hash_field(u->work->hash, HASH_TEXT, u->run.data, len);
    return len;
}

static bool begin_url(struct sitemap_urlset *u)
{
    u->in_url = true;
    u->locs = u->lastmods = 0;
    u->bad_before = u->work->pages.bad_urls;
    struct place place = {0, 0};
    if (u->work->pages.urls == SITEMAP_FILE_MAX_URLS)
        place = place_now(u);
    return sitemap_work_add_page(u->work, place.line, place.column);
}

static void begin_field(struct sitemap_urlset *u, const char *local)
{
    u->field_markup = false;
    if (strcmp(local, "loc") == 0) {
        u->field = FIELD_LOC;
        u->locs++;
    } else if (strcmp(local, "lastmod") == 0) {
        u->field = FIELD_LASTMOD;
        u->lastmods++;
    }
}

static void XMLCALL on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct sitemap_urlset *u = user;
    if (!note_token(u))
        return;
    if (!u->root_seen && !begin_root(u, name))
        return;
    if (++u->depth > SITEMAP_FILE_MAX_DEPTH) {
        refuse(u, "nesting-too-deep", "elements are nested too deep");
        return;
    }
    end_run(u);
    sitemap_hash_field(u->work->hash, HASH_START, name, strlen(name));
    if (attributes[0])
        sitemap_hash_attributes(u->work->hash, attributes);
    bool ours = u->depth <= 3 && xml_name_space(name) != XML_SPACE_OTHER;
    if (u->depth == 2 && ours && strcmp(xml_name_local(name), "url") == 0) {
        if (!begin_url(u))
            XML_StopParser(u->parser, XML_FALSE);
    } else if (u->depth == 3 && ours && u->in_url) {
        begin_field(u, xml_name_local(name));
    } else if (u->depth > 3) {
        u->field_markup = true;
    }
}

static void end_field(struct sitemap_urlset *u, size_t len)
{
    struct sitemap_pages *pages = &u->work->pages;
    if (u->field == FIELD_LOC && u->locs == 1 && u->field_markup)
        pages->bad_urls++;
    else if (u->field == FIELD_LOC && u->locs == 1)
        sitemap_pages_loc(pages, u->run.data, len);
    else if (u->field == FIELD_LASTMOD && u->lastmods == 1 && !u->field_markup)
        sitemap_pages_lastmod(pages, u->run.data, len);
    u->field = FIELD_NONE;
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    struct sitemap_urlset *u = user;
    (void)name;
    if (!note_token(u))
        return;
    size_t len = end_run(u);
    sitemap_hash_field(u->work->hash, HASH_END, "", 0);
    if (u->depth == 3 && u->field != FIELD_NONE) {
        end_field(u, len);
    } else if (u->depth == 2 && u->in_url) {
        /* No loc, or several: which one was meant is anyone's guess. */
        if (u->locs != 1)
            u->work->pages.bad_urls = u->bad_before + 1;
        u->in_url = false;
    }
    u->depth--;
}

/* No line ends within a piece that expat gives, unless it is one: so the column of each byte of
 * it is known, and does not depend on where the piece begins. */
static void XMLCALL on_text(void *user, const XML_Char *text, int len)
{
    struct sitemap_urlset *u = user;
    size_t at;
    if (!note_event(u) || sitemap_run_append(&u->run, text, (size_t)len, &at))
        return;
    struct place place = place_now(u);
    place_advance(&place, text, at);
    refuse_at(u, place, "text-too-long", "the text of an element is too long");
}

static void XMLCALL on_declaration(void *user, const XML_Char *version, const XML_Char *encoding,
                                   int standalone)
{
    struct sitemap_urlset *u = user;
    (void)version, (void)standalone;
    if (note_token(u))
        sitemap_prolog_declare(&u->prolog, place_now(u), encoding);
}

/* Entities can grow without end and name files of the server. The names that tell enough end it
 * here; otherwise the root does, in whose content alone an entity could be used. */
static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int internal_subset)
{
    struct sitemap_urlset *u = user;
    const char *colon = strrchr(name, ':');
    const char *local = colon ? colon + 1 : name;
    (void)system_id, (void)public_id, (void)internal_subset;
    if (!note_event(u))
        return;
    u->prolog.doctype = true;
    u->prolog.doctype_at = place_now(u);
    if (strcmp(local, "urlset") == 0)
        refuse(u, "doctype", "has a DOCTYPE, which is not accepted");
    else if (ascii_equals(local, strlen(local), "html"))
        dismiss(u, SITEMAP_FILE_OTHER);
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

static void XMLCALL on_rest(void *user, const XML_Char *text, int len)
{
    (void)text, (void)len;
    note_event(user);
}

struct sitemap_urlset *sitemap_urlset_new(struct sitemap_work *work, struct place place,
                                          enum sitemap_start start)
{
    struct sitemap_urlset *u = malloc(sizeof *u);
    if (!u)
        return NULL;
    memset(u, 0, offsetof(struct sitemap_urlset, run));
    u->run.len = 0;
    /* Whatever is declared, the bytes are read as UTF-8: a declaration that expat does not know
     * ("utf8", "windows-1251") must not hide what the root is. */
    u->parser = memory_new_parser(start == START_WIDE ? NULL : "UTF-8", XML_NAME_SEPARATOR);
    if (!u->parser) {
        free(u);
        return NULL;
    }
    u->work = work;
    u->prolog.start = start;
    u->prolog.start_at = place;
    XML_SetUserData(u->parser, u);
    XML_SetElementHandler(u->parser, on_start, on_end);
    XML_SetCharacterDataHandler(u->parser, on_text);
    XML_SetXmlDeclHandler(u->parser, on_declaration);
    XML_SetStartDoctypeDeclHandler(u->parser, on_doctype);
    XML_SetCommentHandler(u->parser, on_comment);
    XML_SetProcessingInstructionHandler(u->parser, on_instruction);
    XML_SetDefaultHandler(u->parser, on_rest);
    return u;
}

/* True where expat has stopped at bytes that are no UTF-8 (Latin-1, mostly). */
static bool is_bad_utf8(const struct sitemap_urlset *u)
{
    size_t len;
    const char *rest = expat_rest(u->parser, &len);
    return u->prolog.start != START_WIDE && rest != NULL && utf8_char_len(rest, len) == 0;
}

static bool fail_parse(struct sitemap_urlset *u)
{
    enum XML_Error error = XML_GetErrorCode(u->parser);
    if (!core_ok(&u->work->core))
        return false; /* stopped by a handler, which has said why */
    if (error == XML_ERROR_NO_MEMORY || memory_failed())
        return core_no_memory(&u->work->core);
    if (!u->root_seen && (u->prolog.doctype || !sitemap_prolog_is_declared(&u->prolog)))
        return sitemap_work_other(u->work, SITEMAP_FILE_OTHER);
    struct place place = place_now(u);
    bool early = error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN ||
                 error == XML_ERROR_PARTIAL_CHAR || error == XML_ERROR_UNCLOSED_CDATA_SECTION;
    bool bad_utf8 = error == XML_ERROR_INVALID_TOKEN && is_bad_utf8(u);
    return core_fail(&u->work->core, READER_MALFORMED,
                     early      ? "truncated"
                     : bad_utf8 ? "not-utf8"
                                : "malformed-xml",
                     place.line, place.column, "%s%s", early ? "the XML ends too early: " : "",
                     bad_utf8 ? "not UTF-8" : XML_ErrorString(error));
}

/* expat holds a token (a tag, a comment) until it is whole; this bounds what it may hold. From
 * 2.6 on it does not try again until what it holds has doubled; a token that is longer than the
 * limit itself is refused by note_token, so that this is met by what is twice as long. */
static bool judge_pending(struct sitemap_urlset *u)
{
    if (!u->root_seen && u->prolog.doctype && u->doctype_bytes > DOCTYPE_MAX_BYTES)
        return sitemap_work_other(u->work, SITEMAP_FILE_OTHER);
    if (u->pending <= PENDING_MAX_BYTES)
        return true;
    if (!u->root_seen && !sitemap_prolog_is_declared(&u->prolog))
        return sitemap_work_other(u->work, SITEMAP_FILE_OTHER);
    return refuse(u, "text-too-long", "a tag or comment is too long");
}

bool sitemap_urlset_feed(struct sitemap_urlset *u, const char *bytes, size_t len)
{
    u->pending += len;
    u->doctype_bytes += u->prolog.doctype ? len : 0;
    memory_watch();
    if (XML_Parse(u->parser, bytes, (int)len, 0) != XML_STATUS_OK)
        return fail_parse(u);
    return judge_pending(u);
}

bool sitemap_urlset_finish(struct sitemap_urlset *u)
{
    memory_watch();
    return XML_Parse(u->parser, "", 0, 1) == XML_STATUS_OK || fail_parse(u);
}

void sitemap_urlset_free(struct sitemap_urlset *u)
{
    if (!u)
        return;
    XML_ParserFree(u->parser);
    free(u);
}
