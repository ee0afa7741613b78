/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A growable string: appending, formatting, JSON escapes. */
#include "server/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"

#define FIRST_CAPACITY 64
#define U64_MAX_DIGITS 20

bool str_reserve(struct str *s, size_t extra)
{
    size_t need, capacity;
    char *data;

    if (s->failed)
        return false;
    if (extra >= SIZE_MAX - s->len) {
        s->failed = true;
        return false;
    }
    need = s->len + extra + 1;
    if (need <= s->capacity)
        return true;
    capacity = s->capacity > SIZE_MAX / 2 ? need : s->capacity * 2;
    if (capacity < need)
        capacity = need;
    if (capacity < FIRST_CAPACITY)
        capacity = FIRST_CAPACITY;
    data = realloc(s->data, capacity);
    if (data == NULL) {
        s->failed = true;
        return false;
    }
    s->data = data;
    s->capacity = capacity;
    s->data[s->len] = '\0';
    return true;
}

void str_append(struct str *s, const void *bytes, size_t len)
{
    if (len == 0 || !str_reserve(s, len))
        return;
    memcpy(s->data + s->len, bytes, len);
    s->len += len;
    s->data[s->len] = '\0';
}

void str_append_text(struct str *s, const char *text)
{
    str_append(s, text, strlen(text));
}

void str_append_char(struct str *s, char c)
{
    str_append(s, &c, 1);
}

void str_append_u64(struct str *s, uint64_t value)
{
    char digits[U64_MAX_DIGITS];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    str_append(s, digits + at, sizeof digits - at);
}

void str_append_format(struct str *s, const char *format, ...)
{
    va_list args, again;
    int len;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    if (len < 0) {
        s->failed = true;
    } else if (str_reserve(s, (size_t)len)) {
        (void)vsnprintf(s->data + s->len, (size_t)len + 1, format, again);
        s->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

/* RFC 8259 7: the quote, the backslash and characters below U+0020 must be escaped. DEL, C1 and
 * characters that reorder text are escaped too, because terminals obey them. */
static void append_json_escape(struct str *s, uint32_t code)
{
    char unicode[8];

    switch (code) {
    case '"':
        str_append(s, "\\\"", 2);
        return;
    case '\\':
        str_append(s, "\\\\", 2);
        return;
    case '\n':
        str_append(s, "\\n", 2);
        return;
    case '\r':
        str_append(s, "\\r", 2);
        return;
    case '\t':
        str_append(s, "\\t", 2);
        return;
    default:
        snprintf(unicode, sizeof unicode, "\\u%04x", (unsigned)code & 0xffff);
        str_append(s, unicode, 6);
    }
}

void str_append_json(struct str *s, const char *text, size_t len)
{
    size_t run = 0; /* start of the bytes that need no escape */

    if (text == NULL) {
        str_append(s, "null", 4);
        return;
    }
    str_append_char(s, '"');
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t step = utf8_char_len(text + i, len - i);

        bool control = step > 0 && utf8_is_unprintable(text + i, step);
        if (step > 0 && !control && c != '"' && c != '\\') {
            i += step;
            continue;
        }
        str_append(s, text + run, i - run);
        if (step == 0)
            str_append(s, "\xEF\xBF\xBD", 3);
        else
            append_json_escape(s, utf8_code(text + i, step));
        i += step + (step == 0);
        run = i;
    }
    str_append(s, text + run, len - run);
    str_append_char(s, '"');
}

void str_append_json_shown(struct str *s, const char *json)
{
    size_t len = strlen(json), run = 0;

    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(json + i, len - i);

        if (step > 0 && utf8_is_unprintable(json + i, step)) {
            str_append(s, json + run, i - run);
            append_json_escape(s, utf8_code(json + i, step));
            run = i + step;
        }
        i += step + (step == 0);
    }
    str_append(s, json + run, len - run);
}

void str_append_json_text(struct str *s, const char *text)
{
    str_append_json(s, text, text != NULL ? strlen(text) : 0);
}

void str_append_json_member(struct str *s, const char *name, const char *text)
{
    str_append_format(s, ",\"%s\":", name);
    str_append_json_text(s, text);
}

void str_append_json_texts(struct str *s, const char *name, const char *const *texts, size_t count)
{
    str_append_format(s, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            str_append_char(s, ',');
        str_append_json_text(s, texts[i]);
    }
    str_append_char(s, ']');
}

const char *str_text(const struct str *s)
{
    return s->data != NULL ? s->data : "";
}

void str_clear(struct str *s)
{
    s->len = 0;
    s->failed = false;
    if (s->data != NULL)
        s->data[0] = '\0';
}

void str_done(struct str *s)
{
    if (s == NULL)
        return;
    free(s->data);
    *s = (struct str)STR_INIT;
}

bool text_equal(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool texts_equal(const char *const *a, const char *const *b)
{
    size_t i = 0;

    while (a != NULL && b != NULL && a[i] != NULL && text_equal(a[i], b[i]))
        i++;
    return (a == NULL || a[i] == NULL) && (b == NULL || b[i] == NULL);
}

char *text_copy(const char *text, bool *failed)
{
    char *copy = text != NULL ? strdup(text) : NULL;

    *failed |= text != NULL && copy == NULL;
    return copy;
}

const char *const *texts_copy(const char *const *texts, bool *failed)
{
    size_t count = 0;

    if (texts == NULL)
        return NULL;
    while (texts[count] != NULL)
        count++;
    const char **copy = calloc(count + 1, sizeof *copy);
    *failed |= copy == NULL;
    for (size_t i = 0; i < count && !*failed; i++)
        copy[i] = text_copy(texts[i], failed);
    return copy;
}

void texts_free(const char *const *texts)
{
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++)
        free((char *)texts[i]);
    free((void *)texts);
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The table of RFC 3629 4: besides the first byte, only the second has special bounds. */
static bool second_is_valid(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0: /* below A0: overlong */
        return second >= 0xA0 && second <= 0xBF;
    case 0xED: /* above 9F: a surrogate */
        return second >= 0x80 && second <= 0x9F;
    case 0xF0: /* below 90: overlong */
        return second >= 0x90 && second <= 0xBF;
    case 0xF4: /* above 8F: past U+10FFFF */
        return second >= 0x80 && second <= 0x8F;
    default:
        return second >= 0x80 && second <= 0xBF;
    }
}

size_t utf8_char_len(const char *text, size_t len)
{
    unsigned char first = (unsigned char)text[0];
    size_t want;

    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    want = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (len < want || !second_is_valid(first, (unsigned char)text[1]))
        return 0;
    for (size_t i = 2; i < want; i++) {
        if (!is_continuation(text[i]))
            return 0;
    }
    return want;
}

void utf8_copy_cut(char *out, size_t size, const char *text)
{
    size_t len = strlen(text), at = 0, step;

    while (at < len && (step = utf8_char_len(text + at, len - at)) != 0 && at + step < size)
        at += step;
    memcpy(out, text, at);
    out[at] = '\0';
}

bool utf8_is_valid(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(text + i, len - i);

        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

bool utf8_is_control(const char *text, size_t char_len)
{
    unsigned char first = (unsigned char)text[0];

    if (char_len == 1)
        return first < 0x20 || first == 0x7F;
    return char_len == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0;
}

uint32_t utf8_code(const char *text, size_t char_len)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (unsigned char)text[0] & masks[char_len];

    for (size_t i = 1; i < char_len; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    return code;
}

bool utf8_is_unprintable(const char *text, size_t char_len)
{
    uint32_t code = utf8_code(text, char_len);

    return utf8_is_control(text, char_len) || code == 0x00AD || code == 0x061C || code == 0x180E ||
           code == 0x200B || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
           code == 0xFEFF;
}
