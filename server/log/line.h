/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A line that is being put together. What finds no room is left out, its end always does. Text
 * from outside goes through an escape, so that it can neither end the line nor speak to a terminal.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define LINE_BYTES   4096 /* PIPE_BUF: a write up to this is whole among others' (pipe(7)) */
#define LINE_RESERVE 4    /* of it, for what line_end puts */

struct line {
    size_t len;
    char text[LINE_BYTES];
};

enum line_escape {
    LINE_ESCAPE_TEXT,     /* for people: UTF-8 stays; controls and invalid UTF-8: \xhh */
    LINE_ESCAPE_COMBINED, /* as web servers do: all but visible ASCII, quotes, \: \xHH */
    LINE_ESCAPE_JSON,     /* within quotes; invalid UTF-8: \ufffd */
};

/* Inline: most of a line is pieces of known length. */
static inline void line_append(struct line *l, const char *bytes, size_t len)
{
    if (l->len + len <= sizeof l->text - LINE_RESERVE) {
        memcpy(l->text + l->len, bytes, len);
        l->len += len;
    }
}
/* A literal. */
#define LINE_PUT(l, literal) line_append((l), "" literal, sizeof(literal) - 1)
void line_append_text(struct line *l, const char *text);
void line_append_number(struct line *l, uint64_t number);
/* At most `max` bytes, escapes counted; the rest of `text` is left out. */
void line_append_escaped(struct line *l, const char *text, size_t max, enum line_escape escape);
/* "value", or null for a NULL value: JSON. */
void line_append_json(struct line *l, const char *value, size_t max);
/* 2026-11-21T22:52:20.123Z */
void line_append_time(struct line *l, const struct timespec *time);
/* Puts `end` (at most 3 bytes, the newline last) behind it, for which there is always room. */
void line_end(struct line *l, const char *end);
