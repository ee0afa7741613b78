/* The bytes of an effects' stream (effects.h), for who writes and who reads them. */
#ifndef SITEMAPD_DB_SHARED_EFFECTS_STREAM_H
#define SITEMAPD_DB_SHARED_EFFECTS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_operation {
    STREAM_TABLE = 1,
    STREAM_INSERT,
    STREAM_UPDATE,
    STREAM_DELETE,
    STREAM_SQL,
    STREAM_SCHEMA
};
enum stream_type { STREAM_NULL, STREAM_INTEGER, STREAM_REAL, STREAM_TEXT, STREAM_BLOB };

#define STREAM_NUMBER_MAX 10

/* Writes `n`; how many bytes it took. */
static inline size_t stream_number(uint8_t out[STREAM_NUMBER_MAX], uint64_t n)
{
    size_t len = 0;
    for (; n >= 0x80; n >>= 7)
        out[len++] = (uint8_t)(n | 0x80);
    out[len++] = (uint8_t)n;
    return len;
}

static inline uint64_t stream_zigzag(int64_t n)
{
    return (uint64_t)n << 1 ^ (uint64_t)(n >> 63);
}

static inline int64_t stream_unzigzag(uint64_t n)
{
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

#endif
