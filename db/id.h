/* The opaque text id of an entry: index, position and serial. Found by its address without an
 * index of its own, and never valid for another entry, since a serial is given once.
 * Internal to db/. Pure functions, thread safe. */
#ifndef SITEMAPD_DB_ID_H
#define SITEMAPD_DB_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"

/* Addresses are signed 64 bit numbers of the engine, so an index id has 31 bits. */
#define ID_MAX_INDEX INT32_MAX

/* The address (rowid) of a position of an index. */
static inline int64_t id_address(int64_t index, uint32_t position)
{
    return (int64_t)((uint64_t)index << 32 | position);
}
static inline int64_t id_address_index(int64_t address)
{
    return address >> 32;
}
static inline uint32_t id_address_position(int64_t address)
{
    return (uint32_t)(address & UINT32_MAX);
}

void id_format(int64_t index, uint32_t position, int64_t serial, char out[ENTRY_ID_SIZE]);
/* Reads an id in exactly the form that id_format writes. False, with nothing written, otherwise. */
bool id_parse(const char *id, int64_t *index, uint32_t *position, int64_t *serial);

#endif
