/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
 * Pure functions, thread safe. */
#ifndef SITEMAPD_RULES_UTF8_H
#define SITEMAPD_RULES_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length (1 to 4) of the character that `text` begins with, 0 where it is none. `len` is at
 * least 1. */
size_t utf8_char_len(const char *text, size_t len);

/* True where all `len` bytes are UTF-8. */
bool utf8_is_valid(const char *text, size_t len);

/* True where the character of `char_len` bytes at `text` is a control: C0, DEL or C1. */
bool utf8_is_control(const char *text, size_t char_len);

#endif
