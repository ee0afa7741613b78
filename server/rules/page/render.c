/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes the XML of pages. */
#include <string.h>

#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/render.h"

/* For browsers, a page has a processing instruction with the style sheet in a data: URL
 * (xml-stylesheet, W3C REC 2010; RFC 2397). Crawlers skip it, and it is not an element, so the page
 * stays valid under its schema. A separate file would need a path that every proxy in front passes
 * through. */

/* page_style.css and urlset_style.css without blanks, percent-encoded (RFC 3986 2.1); a test
 * compares them. Invisible rows are not laid out (content-visibility): a page of 50,000 entries
 * appears in a fifth of the time of a browser's own XML view. XML cannot set the viewport width: a
 * phone uses 980 px and scales down to two fifths, hence the large type there. */
#define STYLE(root, sentence, row, more)                                                           \
    "<?xml-stylesheet type=\"text/css\" href=\"data:text/css," root                                \
    "{display:block;max-width:60rem;margin:2rem%20auto;padding:0%201rem;font:15px"                 \
    "/1.5%20system-ui,sans-serif;color-scheme:light%20dark;color:CanvasText;background:Canvas"     \
    "}" root "::before{content:%22" sentence "%22;display:block;margin-bottom:1rem}" row           \
    "{display:flex;flex-wrap:wrap;gap:0%201rem;justify-content:space-between;border-to"            \
    "p:1px%20solid%20%238886;padding:.3rem%200;content-visibility:auto;contain-intrinsic-size"     \
    ":auto%202.1rem}"                                                                              \
    "loc{overflow-wrap:anywhere}"                                                                  \
    "lastmod{font-variant-numeric:tabular-nums;opacity:.75}" more                                  \
    "@media%20(max-device-width:40rem){" root "{font-size:36px}}"                                  \
    "\"?>\n"

const char page_style[] =
    STYLE("sitemapindex",
          "A%20sitemap%20index%20for%20search%20engines:%20each%20line%20is%20one%20sitemap%20of"
          "%20this%20site%20and%20when%20it%20last%20changed.",
          "sitemap", "");

/* The URL of an image and the title of news have their own lines. xhtml:link belongs to HTML, so
 * browsers do not show it. */
#define URLSET_STYLE(more)                                                                         \
    STYLE("urlset",                                                                                \
          "A%20sitemap%20for%20search%20engines:%20each%20line%20is%20one%20page%20of%20this%20"   \
          "site%20and%20when%20it%20last%20changed.",                                              \
          "url",                                                                                   \
          "image,news{flex-basis:100%25;opacity:.75}publication,publication_date{display:"         \
          "none}" more)

static const char urlset_style[] = URLSET_STYLE("");

/* Shows the title of a video. */
static const char videos_style[] = URLSET_STYLE(
    "video{flex-basis:100%25;opacity:.75}video%20*{display:none}video%20title{display:block}");

const char *urlset_style_of(unsigned with)
{
    return (with & EXTENSION_VIDEOS) != 0 ? videos_style : urlset_style;
}

#define OPEN          "<sitemap><loc>"
#define OPEN_LASTMOD  "<lastmod>"
#define CLOSE_LASTMOD "</lastmod>"
#define CLOSE_LOC     "</loc>"
#define CLOSE         "</sitemap>\n"
#define OPEN_URL      "<url><loc>"
#define CLOSE_URL     "</url>\n"

#define LEN(literal) (sizeof(literal) - 1)
#define FIXED_BYTES  (LEN(OPEN) + LEN(CLOSE_LOC) + LEN(CLOSE))
#define URL_BYTES    (LEN(OPEN_URL) + LEN(CLOSE_LOC) + LEN(CLOSE_URL))
#define DATE_BYTES   (LEN(OPEN_LASTMOD) + LASTMOD_MAX_CHARS + LEN(CLOSE_LASTMOD))
#define ESCAPE_MAX   6 /* &quot; */

/* The namespace is http, on purpose: it is a name, not an address (sitemaps.org protocol). */
#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define ROOT        "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
#define TAIL        "</sitemapindex>\n"
#define URLSET_ROOT "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\""
#define URLSET_TAIL "</urlset>\n"

const char render_tail[] = TAIL;
const char render_urlset_tail[] = URLSET_TAIL;

void render_head(struct str *out, bool styled)
{
    str_append_text(out, DECLARATION);
    if (styled)
        str_append_text(out, page_style);
    str_append_text(out, ROOT);
}

void render_urlset_head(struct str *out, unsigned with, bool styled)
{
    str_append_text(out, DECLARATION);
    if (styled)
        str_append_text(out, urlset_style_of(with));
    str_append_text(out, URLSET_ROOT);
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if ((with & extensions[i].bit) != 0)
            str_append_format(out, " xmlns:%s=\"%s\"", extensions[i].prefix,
                              extensions[i].name_space);
    str_append_text(out, ">\n");
}

bool render_may_style(uint64_t page_bytes, const char *style)
{
    return page_bytes + strlen(style) <= LIMIT_PAGE_BYTES;
}

/* The five escapes of the sitemaps.org protocol; NULL: `c` needs none. */
static inline const char *find_escape(char c, size_t *len)
{
    switch (c) {
    case '&':
        *len = 5;
        return "&amp;";
    case '\'':
        *len = 6;
        return "&apos;";
    case '"':
        *len = 6;
        return "&quot;";
    case '<':
        *len = 4;
        return "&lt;";
    case '>':
        *len = 4;
        return "&gt;";
    default:
        *len = 1;
        return NULL;
    }
}

static char *append_bytes(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static char *append_escaped_bytes(char *at, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t escape_len;
        const char *escape = find_escape(text[i], &escape_len);

        if (escape == NULL)
            *at++ = text[i];
        else
            at = append_bytes(at, escape, escape_len);
    }
    return at;
}

static size_t escaped_bytes(const char *text, size_t len)
{
    size_t bytes = 0;

    for (size_t i = 0; i < len; i++) {
        size_t escape_len;

        (void)find_escape(text[i], &escape_len);
        bytes += escape_len;
    }
    return bytes;
}

/* False: none of the eight bytes needs an escape. True: one may, since these ranges contain the
 * five and a few more: " & ' are below '(', and '<' and '>' differ in one bit. */
static inline bool may_need_escape(uint64_t word)
{
    return word_has_below(word, '(') || word_has(word & ~WORD_EACH('<' ^ '>'), '<' & '>');
}

/* Copies eight bytes at a time, since most locs have little to escape. */
static char *append_escaped(char *at, const char *text, size_t len)
{
    size_t i = 0;

    for (; i + WORD_BYTES <= len; i += WORD_BYTES) {
        if (may_need_escape(word_at(text + i)))
            at = append_escaped_bytes(at, text + i, WORD_BYTES);
        else
            at = append_bytes(at, text + i, WORD_BYTES);
    }
    return append_escaped_bytes(at, text + i, len - i);
}

void render_escaped(struct str *out, const char *text, size_t len)
{
    char *end;

    if (!str_reserve(out, len * ESCAPE_MAX))
        return;
    end = append_escaped(out->data + out->len, text, len);
    *end = '\0';
    out->len = (size_t)(end - out->data);
}

static char *append_loc_and_date(char *at, const char *loc, size_t loc_len, const char *lastmod)
{
    at = append_escaped(at, loc, loc_len);
    at = append_bytes(at, CLOSE_LOC, LEN(CLOSE_LOC));
    if (lastmod != NULL && lastmod_renders(lastmod)) {
        at = append_bytes(at, OPEN_LASTMOD, LEN(OPEN_LASTMOD));
        at = append_bytes(at, lastmod, strnlen(lastmod, LASTMOD_MAX_CHARS));
        at = append_bytes(at, CLOSE_LASTMOD, LEN(CLOSE_LASTMOD));
    }
    return at;
}

/* Called once for each entry of a catalogue of millions: one bound check, then plain stores. */
void render_entry(struct str *out, const char *loc, size_t loc_len, const char *lastmod)
{
    char *at;

    if (!str_reserve(out, FIXED_BYTES + DATE_BYTES + loc_len * ESCAPE_MAX))
        return;
    at = append_bytes(out->data + out->len, OPEN, LEN(OPEN));
    at = append_loc_and_date(at, loc, loc_len, lastmod);
    at = append_bytes(at, CLOSE, LEN(CLOSE));
    *at = '\0';
    out->len = (size_t)(at - out->data);
}

void render_url(struct str *out, const char *loc, size_t loc_len, const char *lastmod,
                const char *extensions_text, size_t extensions_len)
{
    char *at;

    if (!str_reserve(out, URL_BYTES + DATE_BYTES + loc_len * ESCAPE_MAX + extensions_len))
        return;
    at = append_bytes(out->data + out->len, OPEN_URL, LEN(OPEN_URL));
    at = append_loc_and_date(at, loc, loc_len, lastmod);
    if (extensions_len > 0)
        at = append_bytes(at, extensions_text, extensions_len);
    at = append_bytes(at, CLOSE_URL, LEN(CLOSE_URL));
    *at = '\0';
    out->len = (size_t)(at - out->data);
}

static uint32_t row_bytes(size_t fixed, const char *loc, size_t loc_len)
{
    size_t i = 0, bytes = fixed + DATE_BYTES;

    for (; i + WORD_BYTES <= loc_len; i += WORD_BYTES)
        bytes +=
            may_need_escape(word_at(loc + i)) ? escaped_bytes(loc + i, WORD_BYTES) : WORD_BYTES;
    return (uint32_t)(bytes + escaped_bytes(loc + i, loc_len - i));
}

uint32_t render_entry_bytes(const char *loc, size_t loc_len)
{
    return row_bytes(FIXED_BYTES, loc, loc_len);
}

uint32_t render_url_bytes(const char *loc, size_t loc_len, size_t extensions_len)
{
    return row_bytes(URL_BYTES + extensions_len, loc, loc_len);
}

uint32_t render_urlset_frame_bytes(unsigned with)
{
    size_t bytes = LEN(DECLARATION) + LEN(URLSET_ROOT) + LEN(">\n") + LEN(URLSET_TAIL);

    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if ((with & extensions[i].bit) != 0)
            bytes += LEN(" xmlns:=\"\"") + strlen(extensions[i].prefix) +
                     strlen(extensions[i].name_space);
    return (uint32_t)bytes;
}

uint32_t render_frame_bytes(void)
{
    return (uint32_t)(LEN(DECLARATION) + LEN(ROOT) + LEN(TAIL));
}
