/* Character classes of ASCII alone: <ctype.h> follows the locale, protocols do not. */
#ifndef SITEMAPD_RULES_ASCII_H
#define SITEMAPD_RULES_ASCII_H

#include <stdbool.h>
#include <stddef.h>
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

/* `char` is signed here and unsigned there; this is neither's matter. */
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

/* RFC 9110 5.6.2: what is visible, but for the delimiters. */
static inline bool ascii_is_token(char c)
{
    static const bool delimiter[128] = {
        ['"'] = true, ['('] = true, [')'] = true, [','] = true, ['/'] = true,  [':'] = true,
        [';'] = true, ['<'] = true, ['='] = true, ['>'] = true, ['?'] = true,  ['@'] = true,
        ['['] = true, [']'] = true, ['{'] = true, ['}'] = true, ['\\'] = true,
    };
    unsigned char byte = (unsigned char)c;

    return byte > ' ' && byte < 0x7f && !delimiter[byte];
}

/* 0 to 15, or -1 where `c` is no hex digit. */
static inline int ascii_hex_value(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* True where `text` is `word` (given in lower case), whatever its case. */
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

#endif
