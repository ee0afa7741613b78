/* Eight bytes at a time: that a text has none of some bytes takes a few operations on a word to
 * find out. Pure, thread safe. */
#ifndef SITEMAPD_RULES_WORD_H
#define SITEMAPD_RULES_WORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WORD_BYTES   sizeof(uint64_t)
#define WORD_EACH(c) (0x0101010101010101u * (uint64_t)(c))

/* The eight bytes at `text`, which need not be aligned. */
static inline uint64_t word_at(const char *text)
{
    uint64_t word;

    memcpy(&word, text, WORD_BYTES);
    return word;
}

/* True where a byte is less than `limit`, 128 at most; bytes of 128 and more are not. */
static inline bool word_has_below(uint64_t word, unsigned limit)
{
    return ((word - WORD_EACH(limit)) & ~word & WORD_EACH(0x80)) != 0;
}

static inline bool word_has(uint64_t word, char c)
{
    return word_has_below(word ^ WORD_EACH((unsigned char)c), 1);
}

/* True where a byte is 128 or more. */
static inline bool word_has_high(uint64_t word)
{
    return (word & WORD_EACH(0x80)) != 0;
}

#endif
