/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Builds one line of bounded length, with escapes. */
#include "server/log/line.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/base/str.h"
#include "server/base/text.h"

void line_append_text(struct line *l, const char *text)
{
    line_append(l, text, strlen(text));
}

void line_append_number(struct line *l, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    line_append(l, digits + at, sizeof digits - at);
}

/* ---- escapes ---- */

/* Whether one of eight bytes may need an escape: a control, a quote, a backslash, or no ASCII.
 * The usual tricks with carries; they err on the side of true. */
static bool is_special(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\', del = eight ^ ones * 0x7f;

    return ((eight | (eight - ones * 0x20) | (quote - ones) | (backslash - ones) | (del - ones)) &
            highs) != 0;
}

/* The same of four to seven bytes: the last four may overlap the first. */
static size_t copy_plain_short(char *out, const char *s, size_t len)
{
    uint32_t first, last;

    if (len < sizeof first)
        return 0;
    memcpy(&first, s, sizeof first);
    memcpy(&last, s + len - sizeof last, sizeof last);
    if (is_special((uint64_t)first << 32 | last))
        return 0;
    memcpy(out, &first, sizeof first);
    memcpy(out + len - sizeof last, &last, sizeof last);
    return len;
}

/* Copies the plain text at the start of `s`, eight bytes at a time; both have room for `len`. The
 * last eight overlap those before, so that only a text that is very short, or special, is left
 * over.
 */
static size_t copy_plain(char *out, const char *s, size_t len)
{
    size_t at = 0;
    uint64_t eight;

    if (len < sizeof eight)
        return copy_plain_short(out, s, len);
    for (; at + sizeof eight <= len; at += sizeof eight) {
        memcpy(&eight, s + at, sizeof eight);
        if (is_special(eight))
            return at;
        memcpy(out + at, &eight, sizeof eight);
    }
    if (at == 0 || at == len)
        return at;
    memcpy(&eight, s + len - sizeof eight, sizeof eight);
    if (is_special(eight))
        return at;
    memcpy(out + len - sizeof eight, &eight, sizeof eight);
    return len;
}

static size_t format_hex(unsigned byte, const char *digits, char out[8])
{
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return 4;
}

static size_t escape_byte(unsigned byte, enum line_escape escape, char out[8])
{
    if (escape == LINE_ESCAPE_JSON || byte > 0xff)
        return (size_t)snprintf(out, 8, "\\u%04x", byte & 0xffff);
    return format_hex(byte, escape == LINE_ESCAPE_TEXT ? "0123456789abcdef" : "0123456789ABCDEF",
                      out);
}

/* The escape of the character at `s`, into `out`; sets `*used`, the bytes of `s` that it is. */
static size_t escape_char(const char *s, size_t left, enum line_escape escape, char out[8],
                          size_t *used)
{
    size_t len = escape == LINE_ESCAPE_COMBINED ? !ascii_is_high(s[0]) : utf8_char_len(s, left);

    *used = len == 0 ? 1 : len;
    if (len == 0 && escape == LINE_ESCAPE_JSON) {
        memcpy(out, "\\ufffd", 6);
        return 6;
    }
    if (len == 0 || utf8_is_unprintable(s, len))
        return escape_byte(len == 0 ? (unsigned char)s[0] : utf8_code(s, len), escape, out);
    if (s[0] == '\\' || (s[0] == '"' && escape != LINE_ESCAPE_TEXT)) {
        if (escape == LINE_ESCAPE_COMBINED)
            return escape_byte((unsigned char)s[0], escape, out);
        out[0] = '\\';
        out[1] = s[0];
        return 2;
    }
    memcpy(out, s, len);
    return len;
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

void line_append_escaped(struct line *l, const char *text, size_t max, enum line_escape escape)
{
    size_t len = strlen(text), at = 0, used, piece;
    size_t room = sizeof l->text - LINE_RESERVE - l->len;
    char out[8];

    if (max < room)
        room = max;
    while (at < len) {
        piece = copy_plain(l->text + l->len, text + at, len - at < room ? len - at : room);
        l->len += piece;
        room -= piece;
        at += piece;
        for (unsigned i = 0; i < sizeof(uint64_t) && at < len; i++, at += used) {
            if (is_plain(text[at]) && room > 0) {
                l->text[l->len++] = text[at];
                used = 1;
                room--;
                continue;
            }
            piece = escape_char(text + at, len - at, escape, out, &used);
            if (piece > room)
                return;
            memcpy(l->text + l->len, out, piece);
            l->len += piece;
            room -= piece;
        }
    }
}

/* ---- parts ---- */

void line_append_json(struct line *l, const char *value, size_t max)
{
    if (value == NULL) {
        LINE_PUT(l, "null");
        return;
    }
    LINE_PUT(l, "\"");
    line_append_escaped(l, value, max, LINE_ESCAPE_JSON);
    LINE_PUT(l, "\"");
}

void line_append_time(struct line *l, const struct timespec *time)
{
    static _Thread_local time_t second = -1;
    static _Thread_local char text[32];
    char end[8];
    struct tm utc;

    if (second != time->tv_sec) {
        second = time->tv_sec;
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.", gmtime_r(&second, &utc));
    }
    unsigned ms = (unsigned)(time->tv_nsec / 1000000);
    end[0] = (char)('0' + ms / 100 % 10);
    end[1] = (char)('0' + ms / 10 % 10);
    end[2] = (char)('0' + ms % 10);
    end[3] = 'Z';
    line_append_text(l, text);
    line_append(l, end, 4);
}

void line_end(struct line *l, const char *end)
{
    size_t len = strlen(end);

    memcpy(l->text + l->len, end, len);
    l->len += len;
}
