/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Character classes of ASCII, which do not depend on the locale as <ctype.h> does; hexadecimal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool ascii_is_alnum(char c)
{
    return ascii_is_alpha(c) || ascii_is_digit(c);
}

/* White space of XML 1.0 (2.3) and of JSON (RFC 8259 2). */
static inline bool ascii_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Whether a byte is 128 or more, be `char` signed or unsigned. */
static inline bool ascii_is_high(char c)
{
    return ((unsigned char)c & 0x80) != 0;
}

static inline char ascii_lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

/* RFC 9110 5.6.2. */
static inline bool ascii_is_token(char c)
{
    static const bool token[256] = {
        ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['*'] = 1, ['+'] = 1,
        ['-'] = 1, ['.'] = 1, ['^'] = 1, ['_'] = 1, ['`'] = 1, ['|'] = 1,  ['~'] = 1, ['0'] = 1,
        ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1,  ['7'] = 1, ['8'] = 1,
        ['9'] = 1, ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1, ['E'] = 1,  ['F'] = 1, ['G'] = 1,
        ['H'] = 1, ['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1, ['M'] = 1,  ['N'] = 1, ['O'] = 1,
        ['P'] = 1, ['Q'] = 1, ['R'] = 1, ['S'] = 1, ['T'] = 1, ['U'] = 1,  ['V'] = 1, ['W'] = 1,
        ['X'] = 1, ['Y'] = 1, ['Z'] = 1, ['a'] = 1, ['b'] = 1, ['c'] = 1,  ['d'] = 1, ['e'] = 1,
        ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1,  ['l'] = 1, ['m'] = 1,
        ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1,  ['t'] = 1, ['u'] = 1,
        ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1,
    };

    return token[(unsigned char)c];
}

/* Writes `count` bytes as 2 × `count` lower-case hexadecimal digits and a NUL. */
static inline void hex_write(char *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *out++ = "0123456789abcdef"[bytes[i] >> 4];
        *out++ = "0123456789abcdef"[bytes[i] & 15];
    }
    *out = '\0';
}

/* 0 to 15, or -1 for anything but a hex digit. */
static inline int ascii_hex_value(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The inverse. False unless `text` is exactly `count` bytes in hexadecimal. */
static inline bool hex_read(uint8_t *out, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = ascii_hex_value(text[2 * i]);
        int low = high < 0 ? -1 : ascii_hex_value(text[2 * i + 1]);
        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * count] == '\0';
}

/* True if `text` is `word`, ignoring case. `word` is in lower case. */
static inline bool ascii_equals(const char *text, size_t len, const char *word)
{
    if (strlen(word) != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (ascii_lower(text[i]) != word[i])
            return false;
    }
    return true;
}

/* Searches eight bytes at a time: a few operations on a word show that none of its bytes is in a
 * class. Pure, thread safe. */

#define WORD_BYTES   sizeof(uint64_t)
#define WORD_EACH(c) (0x0101010101010101u * (uint64_t)(c))

/* The eight bytes at `text`, which need not be aligned. */
static inline uint64_t word_at(const char *text)
{
    uint64_t word;

    memcpy(&word, text, WORD_BYTES);
    return word;
}

/* True if a byte is less than `limit`, which is at most 128. */
static inline bool word_has_below(uint64_t word, unsigned limit)
{
    return ((word - WORD_EACH(limit)) & ~word & WORD_EACH(0x80)) != 0;
}

static inline bool word_has(uint64_t word, char c)
{
    return word_has_below(word ^ WORD_EACH((unsigned char)c), 1);
}

/* True if a byte is 128 or more. */
static inline bool word_has_high(uint64_t word)
{
    return (word & WORD_EACH(0x80)) != 0;
}

/* The noun after a number: "1 entry", "2 entries". Pure, thread safe. */

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}
