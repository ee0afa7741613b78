/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sets up Expat: namespaces, bounds, positions, text of elements. */
#include "server/input/xml.h"

#include <stdio.h>
#include <string.h>

#include "server/rules/page/extension.h"

#define XML_TOKEN_MAX_BYTES READER_MAX_TEXT_BYTES /* of a tag or a comment */
#define XML_NAME_SEPARATOR  '\n'                  /* expat rejects namespaces that contain it */

/* ---- one set of names for expat: 2.9 deprecates the functions of 2.5 ---- */

#define EXPAT_AT_LEAST(major, minor)                                                               \
    (XML_MAJOR_VERSION > (major) || (XML_MAJOR_VERSION == (major) && XML_MINOR_VERSION >= (minor)))

/* 1-based. */
static uint64_t expat_line(XML_Parser parser)
{
#if EXPAT_AT_LEAST(2, 9)
    return XML_GetCurrentLineNumber64(parser);
#else
    return XML_GetCurrentLineNumber(parser);
#endif
}

/* 1-based. */
static uint64_t expat_column(XML_Parser parser)
{
#if EXPAT_AT_LEAST(2, 9)
    return XML_GetCurrentColumnNumber64(parser) + 1;
#else
    return XML_GetCurrentColumnNumber(parser) + 1;
#endif
}

/* Bytes of the current event. */
static uint64_t expat_byte_count(XML_Parser parser)
{
#if EXPAT_AT_LEAST(2, 9)
    return XML_GetCurrentByteCount64(parser);
#else
    int count = XML_GetCurrentByteCount(parser);
    return count > 0 ? (uint64_t)count : 0;
#endif
}

const char *xml_rest(const struct xml *x, size_t *len)
{
#if EXPAT_AT_LEAST(2, 9)
    int64_t offset = 0;
    uint64_t size = 0;
    const char *text = XML_GetInputContext64(x->parser, &offset, &size);
    if (text == NULL || offset < 0 || (uint64_t)offset >= size)
        return NULL;
    *len = (size_t)(size - (uint64_t)offset);
#else
    int offset = 0, size = 0;
    const char *text = XML_GetInputContext(x->parser, &offset, &size);
    if (text == NULL || offset < 0 || offset >= size)
        return NULL;
    *len = (size_t)(size - offset);
#endif
    return text + offset;
}

bool xml_is_last(const struct xml *x)
{
    size_t len;
    return xml_rest(x, &len) != NULL && len == expat_byte_count(x->parser);
}

/* ---- the driver ---- */

/* Limits what expat holds: it keeps a token (a tag, a comment) until it is complete. From 2.6 on it
 * tries again only when the held bytes have doubled. xml_token rejects a token above the limit
 * itself, so only much longer ones reach this limit. */
#define PENDING_MAX_BYTES (3u * XML_TOKEN_MAX_BYTES)

struct place xml_place(const struct xml *x)
{
    uint64_t line = expat_line(x->parser);
    uint64_t column = expat_column(x->parser);
    if (line == x->given.line)
        column += x->start.column - x->given.column;
    return (struct place){x->start.line + line - x->given.line, column};
}

void xml_skip_to(struct xml *x, struct place place)
{
    x->given = (struct place){expat_line(x->parser), expat_column(x->parser)};
    x->start = place;
}

bool xml_stop(struct xml *x)
{
    XML_StopParser(x->parser, XML_FALSE);
    return false;
}

bool xml_event(struct xml *x)
{
    x->pending = 0;
    return reader_state_ok(x->core);
}

bool xml_token(struct xml *x)
{
    if (!xml_event(x))
        return false;
    return expat_byte_count(x->parser) <= XML_TOKEN_MAX_BYTES || x->hooks->token_too_long(x);
}

static void XMLCALL on_comment(void *user, const XML_Char *text)
{
    (void)text;
    xml_token(user);
}

static void XMLCALL on_instruction(void *user, const XML_Char *target, const XML_Char *text)
{
    (void)target, (void)text;
    xml_token(user);
}

static void XMLCALL on_rest(void *user, const XML_Char *text, int len)
{
    (void)text, (void)len;
    xml_event(user);
}

bool xml_init(struct xml *x, struct reader_state *core, struct place start, const char *encoding,
              const struct xml_hooks *hooks)
{
    *x = (struct xml){.hooks = hooks, .core = core, .given = {1, 1}, .start = start};
    x->parser = memory_new_parser(encoding, XML_NAME_SEPARATOR);
    if (!x->parser)
        return false;
    XML_SetUserData(x->parser, x);
    XML_SetElementHandler(x->parser, hooks->start, hooks->end);
    XML_SetCharacterDataHandler(x->parser, hooks->text);
    XML_SetStartDoctypeDeclHandler(x->parser, hooks->doctype);
    XML_SetXmlDeclHandler(x->parser, hooks->declaration);
    XML_SetCommentHandler(x->parser, on_comment);
    XML_SetProcessingInstructionHandler(x->parser, on_instruction);
    XML_SetDefaultHandler(x->parser, on_rest);
    return true;
}

void xml_free(void *self)
{
    struct xml *x = self;
    XML_ParserFree(x->parser);
    free(self);
}

static bool fail_parse(struct xml *x)
{
    enum XML_Error error = XML_GetErrorCode(x->parser);
    char why[128];
    if (!reader_state_ok(x->core))
        return false; /* stopped by a handler, which has reported the reason */
    if (error == XML_ERROR_NO_MEMORY || memory_failed())
        return reader_state_no_memory(x->core);
    bool early = error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN ||
                 error == XML_ERROR_PARTIAL_CHAR || error == XML_ERROR_UNCLOSED_CDATA_SECTION;
    snprintf(why, sizeof why, "%s%s", early ? "the XML is truncated: " : "",
             XML_ErrorString(error));
    return x->hooks->broken(x, error, early ? "truncated" : "malformed-xml", why);
}

bool xml_feed(struct xml *x, const char *bytes, size_t len)
{
    x->pending += len;
    memory_watch();
    if (XML_Parse(x->parser, bytes, (int)len, 0) != XML_STATUS_OK)
        return fail_parse(x);
    return x->pending <= PENDING_MAX_BYTES || x->hooks->token_too_long(x);
}

bool xml_finish(void *self)
{
    struct xml *x = self;
    memory_watch();
    return XML_Parse(x->parser, "", 0, 1) == XML_STATUS_OK || fail_parse(x);
}

/* ---- names ---- */

static const char protocol[] = "http://www.sitemaps.org/schemas/sitemap/0.9";

/* Seen in the wild: https for http, no www, Google's old 0.84, a trailing slash. */
static const char *const meant[] = {
    "https://www.sitemaps.org/schemas/sitemap/", "http://www.sitemaps.org/schemas/sitemap/",
    "https://sitemaps.org/schemas/sitemap/",     "http://sitemaps.org/schemas/sitemap/",
    "https://www.google.com/schemas/sitemap/",   "http://www.google.com/schemas/sitemap/",
};

const char *xml_name_local(const char *name)
{
    const char *separator = strrchr(name, XML_NAME_SEPARATOR);
    return separator != NULL ? separator + 1 : name;
}

/* "0.9", "0.84", "0.9/": digits and a dot. Google's extensions have similar names
 * ("sitemap-news/0.9"); "sitemap/0.9x" is unknown. */
static bool is_version(const char *text, size_t len)
{
    if (len > 0 && text[len - 1] == '/')
        len--;
    return len >= 3 && strspn(text, "0123456789.") == len;
}

enum xml_space xml_name_space(const char *name)
{
    size_t len = (size_t)(xml_name_local(name) - name);
    if (len == 0)
        return XML_SPACE_MEANT;
    len--; /* the separator */
    if (len == sizeof protocol - 1 && memcmp(name, protocol, len) == 0)
        return XML_SPACE_SITEMAP;
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++) {
        size_t size = strlen(meant[i]);
        if (len > size && memcmp(name, meant[i], size) == 0 && is_version(name + size, len - size))
            return XML_SPACE_MEANT;
    }
    return XML_SPACE_OTHER;
}

void xml_name_shown(const struct xml *x, const char *name, char *out, size_t size)
{
    const char *local = xml_name_local(name);
    size_t len = 0, left = 0, local_len = strlen(local);
    const char *tag = xml_rest(x, &left);
    if (tag != NULL && left > 1 && *tag == '<')
        while (1 + len < left && strchr(" \t\r\n/>", tag[1 + len]) == NULL)
            len++;
    /* In another encoding the bytes of the tag differ from the name. */
    bool plain = len >= local_len && memcmp(tag + 1 + len - local_len, local, local_len) == 0;
    entry_validate_quote(out, size, plain ? tag + 1 : local, plain ? len : local_len);
}

void xml_space_explain(const char *name, char out[XML_SPACE_WHY])
{
    size_t len = (size_t)(xml_name_local(name) - name);
    char shown[64];
    entry_validate_quote(shown, sizeof shown, name, len > 0 ? len - 1 : 0);
    snprintf(out, XML_SPACE_WHY, "the namespace of <%.16s> is \"%s\", not \"%s\"",
             xml_name_local(name), shown, protocol);
}

/* Namespaces of extensions without "http://www.", Google's without the version. Seen in the wild:
 * https, no www, another version, a trailing slash. */
static const struct {
    const char *space;
    unsigned bit;
    bool versioned;
} extension_spaces[] = {
    {"google.com/schemas/sitemap-image/", EXTENSION_IMAGES, true},
    {"google.com/schemas/sitemap-news/", EXTENSION_NEWS, true},
    {"google.com/schemas/sitemap-video/", EXTENSION_VIDEOS, true},
    {"w3.org/1999/xhtml", EXTENSION_ALTERNATES, false},
    {"w3.org/1999/xhtml/", EXTENSION_ALTERNATES, false},
    {"w3.org/TR/xhtml11/xhtml11_schema.html", EXTENSION_ALTERNATES, false},
};

static size_t skip_prefix(const char *text, size_t len, const char *prefix)
{
    size_t size = strlen(prefix);
    return len >= size && memcmp(text, prefix, size) == 0 ? size : 0;
}

unsigned xml_name_extension(const char *name)
{
    size_t len = (size_t)(xml_name_local(name) - name);
    if (len == 0)
        return 0;
    len--; /* the separator */
    size_t skip = skip_prefix(name, len, "http://");
    skip += skip == 0 ? skip_prefix(name, len, "https://") : 0;
    skip += skip > 0 ? skip_prefix(name + skip, len - skip, "www.") : 0;
    for (size_t i = 0; skip > 0 && i < sizeof extension_spaces / sizeof extension_spaces[0]; i++) {
        const char *space = extension_spaces[i].space, *at = name + skip;
        size_t size = skip_prefix(at, len - skip, space), left = len - skip - size;
        if (size > 0 && (extension_spaces[i].versioned ? is_version(at + size, left) : left == 0))
            return extension_spaces[i].bit;
    }
    return 0;
}

bool xml_name_is_exact(const char *name)
{
    size_t len = (size_t)(xml_name_local(name) - name);
    unsigned bit = xml_name_extension(name);
    if (len == 0)
        return false;
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if (extensions[i].bit == bit)
            return strlen(extensions[i].name_space) == len - 1 &&
                   memcmp(name, extensions[i].name_space, len - 1) == 0;
    return false;
}

/* ---- text ---- */

void xml_text_init(struct xml_text *t, char *data, size_t size)
{
    *t = (struct xml_text){.data = data, .size = size};
}

size_t xml_text_append(struct xml_text *t, const char *bytes, size_t len)
{
    size_t skip = t->len == 0 ? detect_space(bytes, len) : 0;
    size_t room = t->size - t->len;
    size_t part = len - skip < room ? len - skip : room;
    if (part > 0)
        memcpy(t->data + t->len, bytes + skip, part);
    t->len += part;
    size_t blank = detect_space(bytes + skip + part, len - skip - part);
    t->padded = t->padded || skip > 0 || blank > 0;
    t->overflow = t->overflow || skip + part + blank < len;
    return skip + part + blank;
}

size_t xml_text_end(const struct xml_text *t)
{
    return t->len - detect_space_behind(t->data, t->len);
}

const char *xml_attribute(const char **attributes, const char *name)
{
    for (size_t i = 0; attributes[i] != NULL; i += 2)
        if (strcmp(attributes[i], name) == 0)
            return attributes[i + 1];
    return "";
}
