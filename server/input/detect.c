/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Detects what a file is that does not begin like a sitemap: damaged, packed in a format that
 * crawlers do not read, or another kind of file. Declared in frame.h. */
#include <stdint.h>
#include <string.h>

#include "server/base/text.h"
#include "server/input/entry_validate.h"
#include "server/input/frame.h"

/* ---- something before the root ---- */

static bool is_name(char c)
{
    return ascii_is_alnum(c) || ascii_is_high(c) || c == '-' || c == '.' || c == '_' || c == ':';
}

/* Elements of HTML without an end tag; PHP's warnings contain some. */
static bool is_void(const char *name, size_t len)
{
    static const char *const names[] = {"br", "hr", "img", "meta", "link", "input"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ascii_equals(name, len, names[i]))
            return true;
    return false;
}

static bool is_root(const char *name, size_t len)
{
    const char *colon = memchr(name, ':', len);
    if (colon != NULL) {
        len -= (size_t)(colon + 1 - name);
        name = colon + 1;
    }
    return (len == 6 && memcmp(name, "urlset", 6) == 0) ||
           (len == 12 && memcmp(name, "sitemapindex", 12) == 0);
}

/* The offset after the comment, declaration or instruction at `at`; 0: none exists. */
static size_t skip_declaration(const char *head, size_t len, size_t at)
{
    static const struct {
        const char *begin, *end;
    } forms[] = {{"<!--", "-->"}, {"<?", "?>"}, {"<!", ">"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t size = strlen(forms[i].begin);
        if (len - at < size || memcmp(head + at, forms[i].begin, size) != 0)
            continue;
        const char *close = memchr(head + at, '>', len - at), *end_of = forms[i].end;
        size_t to = close != NULL ? (size_t)(close - head) : len;
        if (i == 2 && memchr(head + at, '[', to - at) != NULL) /* a DOCTYPE's internal subset */
            end_of = "]>";
        const char *end = memmem(head + at, len - at, end_of, strlen(end_of));
        return end != NULL ? (size_t)(end - head) + strlen(end_of) : len;
    }
    return 0;
}

size_t detect_stray(const char *head, size_t len, size_t *root)
{
    unsigned depth = 0;
    size_t stray = SIZE_MAX;
    *root = SIZE_MAX;
    if (detect_format(head, len) != NULL)
        return SIZE_MAX;
    for (size_t at = 0; at < len;) {
        size_t past = head[at] == '<' ? skip_declaration(head, len, at) : 0;
        if (past > 0) {
            at = past;
            continue;
        }
        if (head[at] != '<') {
            if (stray == SIZE_MAX && detect_space(head + at, 1) == 0)
                stray = at;
            at++;
            continue;
        }
        bool end = at + 1 < len && head[at + 1] == '/';
        size_t name = at + 1 + end, name_len = 0;
        while (name + name_len < len && is_name(head[name + name_len]))
            name_len++;
        if (!end && depth == 0 && is_root(head + name, name_len)) {
            *root = at;
            return stray;
        }
        const char *close = memchr(head + name, '>', len - name);
        size_t to = close != NULL ? (size_t)(close - head) : len;
        if (end)
            depth -= depth > 0;
        else if (name_len > 0)
            depth += to > name && head[to - 1] != '/' && !is_void(head + name, name_len);
        stray = stray == SIZE_MAX ? at : stray;
        at = to < len ? to + 1 : len;
    }
    return SIZE_MAX;
}

bool detect_refuse_stray(struct frame *f, const char *head, size_t stray, size_t root)
{
    const char *text = head + stray, *newline = memchr(text, '\n', root - stray);
    size_t len = newline != NULL ? (size_t)(newline - text) : root - stray;
    struct place at = f->place;
    char shown[48];
    place_advance(&at, head, stray);
    entry_validate_quote(shown, sizeof shown, text, len - detect_space_behind(text, len));
    return reader_state_fail(f->core, READER_MALFORMED, "malformed-xml", at.line, at.column,
                             "\"%s\" is before the root element", shown);
}

/* ---- a list with something before it ---- */

static bool is_url_line(const char *line, size_t len)
{
    if (len > 0 && (*line == '"' || *line == '\'' || *line == '<')) {
        line++;
        len--;
    }
    return (len > 7 && ascii_equals(line, 7, "http://")) ||
           (len > 8 && ascii_equals(line, 8, "https://"));
}

bool detect_list(const char *head, size_t len, const char **line, size_t *line_len)
{
    size_t lines = 0, urls = 0;
    *line = NULL;
    for (size_t at = 0; at < len;) {
        const char *newline = memchr(head + at, '\n', len - at);
        size_t size = newline != NULL ? (size_t)(newline - head) - at : len - at;
        size_t front = detect_space(head + at, size);
        const char *text = head + at + front;
        size_t text_len = size - front - detect_space_behind(text, size - front);
        bool url = is_url_line(text, text_len);
        lines += text_len > 0;
        urls += url;
        if (text_len > 0 && *line == NULL && (!url || !ascii_is_alpha(*text))) {
            *line = text;
            *line_len = text_len;
        }
        at += size + 1;
    }
    return *line != NULL && urls >= 2 && 2 * urls >= lines;
}

/* ---- other formats ---- */

bool detect_gzip(const char *head, size_t len)
{
    return len >= 2 && memcmp(head, "\x1f\x8b", 2) == 0;
}

bool detect_wide_text(const char *head, size_t len)
{
    size_t mark = detect_utf16(head, len) ? 2 : 0;
    head += mark;
    len -= mark;
    bool little = len >= 8, big = len >= 8;
    for (size_t i = 0; i < 8 && i < len; i++) {
        bool zero = head[i] == '\0';
        little = little && zero == (i % 2 == 1);
        big = big && zero == (i % 2 == 0);
    }
    return (little || big) && head[0] != '<' && head[1] != '<';
}

const char *detect_format(const char *head, size_t len)
{
    static const struct {
        size_t at, len;
        const char *bytes, *what;
    } formats[] = {
        {0, 6, "\xfd\x37zXZ", "an xz archive"}, /* with the NUL that follows */
        {0, 3, "BZh", "a bzip2 archive"},
        {0, 4, "\x28\xb5\x2f\xfd", "a zstd archive"},
        {0, 4, "PK\x03\x04", "a ZIP archive"},
        {0, 4, "7z\xbc\xaf", "a 7-Zip archive"},
        {0, 4, "Rar!", "a RAR archive"},
        {0, 2, "\x1f\x9d", "a compress(1) archive"},
        {0, 4, "\x04\x22\x4d\x18", "an LZ4 archive"},
        {257, 5, "ustar", "a tar archive"},
        {0, 5, "%PDF-", "a PDF document"},
        {0, 4, "\x89PNG", "a PNG image"},
        {0, 3, "\xff\xd8\xff", "a JPEG image"},
        {0, 4, "GIF8", "a GIF image"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (len >= formats[i].at + formats[i].len &&
            memcmp(head + formats[i].at, formats[i].bytes, formats[i].len) == 0)
            return formats[i].what;
    return detect_gzip(head, len) ? "gzip data" : NULL;
}
