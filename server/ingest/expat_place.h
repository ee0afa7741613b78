/* Where expat is, under one set of names: 2.9 deprecates the functions that 2.5 has. Pure; see
 * expat.h for what each tells. Internal to ingest. */
#ifndef SITEMAPD_INGEST_EXPAT_PLACE_H
#define SITEMAPD_INGEST_EXPAT_PLACE_H

#include <expat.h>
#include <stddef.h>
#include <stdint.h>

#define EXPAT_AT_LEAST(major, minor)                                                               \
    (XML_MAJOR_VERSION > (major) || (XML_MAJOR_VERSION == (major) && XML_MINOR_VERSION >= (minor)))

/* From 1. */
static inline uint64_t expat_line(XML_Parser parser)
{
#if EXPAT_AT_LEAST(2, 9)
    return XML_GetCurrentLineNumber64(parser);
#else
    return XML_GetCurrentLineNumber(parser);
#endif
}

/* From 1. */
static inline uint64_t expat_column(XML_Parser parser)
{
#if EXPAT_AT_LEAST(2, 9)
    return XML_GetCurrentColumnNumber64(parser) + 1;
#else
    return XML_GetCurrentColumnNumber(parser) + 1;
#endif
}

/* Bytes before the current event; below 0 where there is none. */
static inline int64_t expat_byte_index(XML_Parser parser)
{
#if EXPAT_AT_LEAST(2, 9)
    return XML_GetCurrentByteIndex64(parser);
#else
    return XML_GetCurrentByteIndex(parser);
#endif
}

/* Bytes of the current event. */
static inline uint64_t expat_byte_count(XML_Parser parser)
{
#if EXPAT_AT_LEAST(2, 9)
    return XML_GetCurrentByteCount64(parser);
#else
    int count = XML_GetCurrentByteCount(parser);
    return count > 0 ? (uint64_t)count : 0;
#endif
}

/* What expat holds from where it is on, `*len` bytes; NULL where it holds nothing. */
static inline const char *expat_rest(XML_Parser parser, size_t *len)
{
#if EXPAT_AT_LEAST(2, 9)
    int64_t offset = 0;
    uint64_t size = 0;
    const char *text = XML_GetInputContext64(parser, &offset, &size);
    if (text == NULL || offset < 0 || (uint64_t)offset >= size)
        return NULL;
    *len = (size_t)(size - (uint64_t)offset);
#else
    int offset = 0, size = 0;
    const char *text = XML_GetInputContext(parser, &offset, &size);
    if (text == NULL || offset < 0 || offset >= size)
        return NULL;
    *len = (size_t)(size - offset);
#endif
    return text + offset;
}

#endif
