/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of extensions: names and namespaces. */
#include "server/rules/page/extension.h"

#include <stdio.h>
#include <string.h>

#include "server/base/text.h"
#include "server/rules/limits.h"

const struct extension extensions[EXTENSION_COUNT] = {
    {EXTENSION_NEWS, "news", "news", "http://www.google.com/schemas/sitemap-news/0.9"},
    {EXTENSION_IMAGES, "images", "image", "http://www.google.com/schemas/sitemap-image/1.1"},
    {EXTENSION_VIDEOS, "videos", "video", "http://www.google.com/schemas/sitemap-video/1.1"},
    {EXTENSION_ALTERNATES, "alternates", "xhtml", "http://www.w3.org/1999/xhtml"},
};

unsigned extension_named(const char *word)
{
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if (strcmp(extensions[i].word, word) == 0)
            return extensions[i].bit;
    return 0;
}

unsigned extensions_of(const char *fragment)
{
    unsigned found = 0;

    /* In canonical form, every '<' begins a tag. */
    for (const char *at = fragment; (at = strchr(at, '<')) != NULL; at++)
        for (size_t i = 0; i < EXTENSION_COUNT; i++) {
            size_t len = strlen(extensions[i].prefix);
            if (strncmp(at + 1, extensions[i].prefix, len) == 0 && at[1 + len] == ':')
                found |= extensions[i].bit;
        }
    return found;
}

void extension_words(unsigned set, char out[EXTENSION_WORDS_SIZE])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if ((set & extensions[i].bit) != 0)
            len += (size_t)snprintf(out + len, EXTENSION_WORDS_SIZE - len, "%s%s",
                                    len > 0 ? "," : "", extensions[i].word);
}

uint32_t page_limit_urls(uint32_t asked, unsigned with)
{
    uint32_t most = with & EXTENSION_NEWS ? LIMIT_NEWS_ROWS : LIMIT_PAGE_ENTRIES;
    return asked == 0 || asked > most ? most : asked;
}

uint32_t page_limit_bytes(uint32_t asked)
{
    return asked == 0 || asked > LIMIT_PAGE_BYTES ? LIMIT_PAGE_BYTES : asked;
}

/* Reads and writes the texts within a fragment. */

/* XML 1.0 2.2 excludes these two, and controls. */
static bool is_noncharacter(const char *text, size_t step)
{
    return step == 3 &&
           (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0);
}

bool extension_text_read(const char *text, size_t len, size_t max_bytes, struct str *out)
{
    for (size_t at = 0; at < len;) {
        size_t step = utf8_char_len(text + at, len - at);

        if (ascii_is_space(text[at])) {
            at++;
            continue;
        }
        if (step == 0 || utf8_is_control(text + at, step) || is_noncharacter(text + at, step))
            return false;
        if (out->len > 0 && ascii_is_space(text[at - 1]))
            str_append_char(out, ' ');
        str_append(out, text + at, step);
        if (out->len > max_bytes)
            return false;
        at += step;
    }
    return out->len > 0 || out->failed;
}

static const struct {
    const char *escape;
    char c;
} escapes[] = {{"&amp;", '&'}, {"&apos;", '\''}, {"&quot;", '"'}, {"&lt;", '<'}, {"&gt;", '>'}};
#define ESCAPES (sizeof escapes / sizeof *escapes)

/* The escape at the text; ESCAPES: none. */
static size_t find_escape(const char *text)
{
    size_t i = 0;
    while (i < ESCAPES && strncmp(text, escapes[i].escape, strlen(escapes[i].escape)) != 0)
        i++;
    return i;
}

bool extension_text_is_xml(const char *text)
{
    for (size_t left = strlen(text), step; left > 0; text += step, left -= step) {
        step = utf8_char_len(text, left);
        if (step == 0 || utf8_is_control(text, step) || is_noncharacter(text, step) ||
            (*text == '&' && find_escape(text) == ESCAPES))
            return false;
    }
    return true;
}

/* Decodes the five escapes in a copy, which is appended as JSON. */
void extension_text_append_json(struct str *out, const char *text, size_t len)
{
    struct str plain = STR_INIT;

    for (size_t at = 0; at < len;) {
        size_t run = 0;
        while (at + run < len && text[at + run] != '&')
            run++;
        str_append(&plain, text + at, run);
        at += run;
        if (at == len)
            break;
        size_t i = find_escape(text + at);
        str_append_char(&plain, i < ESCAPES ? escapes[i].c : '&');
        at += i < ESCAPES ? strlen(escapes[i].escape) : 1;
    }
    str_append_json(out, str_text(&plain), plain.len);
    out->failed = out->failed || plain.failed;
    str_done(&plain);
}

bool extension_skip(const char **at, const char *wanted)
{
    size_t len = strlen(wanted);
    if (strncmp(*at, wanted, len) != 0)
        return false;
    *at += len;
    return true;
}

bool extension_read_text(const char **at, const char *behind, struct extension_span *out)
{
    *out = (struct extension_span){*at, strcspn(*at, "<\"")};
    *at += out->len;
    return extension_skip(at, behind);
}
