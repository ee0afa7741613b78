#include "server/rules/render.h"

#include <string.h>

#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/rules/page_style.h"

#define OPEN          "<sitemap><loc>"
#define OPEN_LASTMOD  "<lastmod>"
#define CLOSE_LASTMOD "</lastmod>"
#define CLOSE_LOC     "</loc>"
#define CLOSE         "</sitemap>\n"

#define LEN(literal) (sizeof(literal) - 1)
#define FIXED_BYTES  (LEN(OPEN) + LEN(CLOSE_LOC) + LEN(CLOSE))
#define DATE_BYTES   (LEN(OPEN_LASTMOD) + LASTMOD_MAX_CHARS + LEN(CLOSE_LASTMOD))
#define ESCAPE_MAX   6 /* &quot; */

/* The namespace is http, on purpose: it is a name, not an address (sitemaps.org protocol). */
#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define ROOT        "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
#define TAIL        "</sitemapindex>\n"

const char render_tail[] = TAIL;

void render_head(struct str *out, bool styled)
{
    str_append_text(out, DECLARATION);
    if (styled)
        str_append_text(out, page_style);
    str_append_text(out, ROOT);
}

bool render_may_style(uint64_t page_bytes)
{
    return page_bytes + strlen(page_style) <= LIMIT_PAGE_BYTES;
}

/* The five escapes that the sitemaps.org protocol asks for; NULL where `c` stands for itself. */
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

static char *put(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static char *put_escaped_bytes(char *at, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t escape_len;
        const char *escape = find_escape(text[i], &escape_len);

        if (escape == NULL)
            *at++ = text[i];
        else
            at = put(at, escape, escape_len);
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

/* False: none of the eight bytes is to be escaped. True: one may be, for these ranges hold the
 * five and a few more: below '(' lie " & ', and '<' and '>' differ in one bit alone. */
static inline bool may_need_escape(uint64_t word)
{
    return word_has_below(word, '(') || word_has(word & ~WORD_EACH('<' ^ '>'), '<' & '>');
}

/* Eight bytes at a time, as most locs have little to escape. */
static char *put_escaped(char *at, const char *text, size_t len)
{
    size_t i = 0;

    for (; i + WORD_BYTES <= len; i += WORD_BYTES) {
        if (may_need_escape(word_at(text + i)))
            at = put_escaped_bytes(at, text + i, WORD_BYTES);
        else
            at = put(at, text + i, WORD_BYTES);
    }
    return put_escaped_bytes(at, text + i, len - i);
}

/* Called once for each entry of a catalogue of millions: one bound check, then plain stores. */
void render_entry(struct str *out, const char *loc, size_t loc_len, const char *lastmod)
{
    char *at;

    if (!str_reserve(out, FIXED_BYTES + DATE_BYTES + loc_len * ESCAPE_MAX))
        return;
    at = out->data + out->len;
    at = put(at, OPEN, LEN(OPEN));
    at = put_escaped(at, loc, loc_len);
    at = put(at, CLOSE_LOC, LEN(CLOSE_LOC));
    if (lastmod != NULL && lastmod_renders(lastmod)) {
        at = put(at, OPEN_LASTMOD, LEN(OPEN_LASTMOD));
        at = put(at, lastmod, strnlen(lastmod, LASTMOD_MAX_CHARS));
        at = put(at, CLOSE_LASTMOD, LEN(CLOSE_LASTMOD));
    }
    at = put(at, CLOSE, LEN(CLOSE));
    *at = '\0';
    out->len = (size_t)(at - out->data);
}

uint32_t render_entry_bytes(const char *loc, size_t loc_len)
{
    size_t i = 0, bytes = FIXED_BYTES + DATE_BYTES;

    for (; i + WORD_BYTES <= loc_len; i += WORD_BYTES)
        bytes +=
            may_need_escape(word_at(loc + i)) ? escaped_bytes(loc + i, WORD_BYTES) : WORD_BYTES;
    return (uint32_t)(bytes + escaped_bytes(loc + i, loc_len - i));
}

uint32_t render_frame_bytes(void)
{
    return (uint32_t)(LEN(DECLARATION) + LEN(ROOT) + LEN(TAIL));
}
