/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* An open-addressing hash map from a key's hash to a number, such as the key's place in an array.
 * The owner keeps the keys and compares them, since two keys may share a hash:
 *
 *     uint32_t place;
 *     for (struct map_probe p = map_probe(&map, hash); map_next(&p, &place);)
 *         if (strcmp(things[place].name, name) == 0)
 *             return &things[place];
 *
 * A zeroed map is empty. Entries cannot be removed: build another map instead. Thread safe while
 * nobody changes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint32_t hash;
    uint32_t number; /* the number + 1; 0: free */
};

struct map {
    /* owned; NULL, or `capacity` (a power of two) slots, at least one of them free */
    struct map_slot *slots;
    size_t capacity;
    size_t count;
};

#define MAP_MAX_NUMBER (UINT32_MAX - 1)

/* Makes room for `count` entries in all; map_add cannot fail until there are as many. The map stays
 * at most half full, which keeps probes short when most searches find nothing. False, with the map
 * unchanged: out of memory. */
bool map_reserve(struct map *m, size_t count);
/* Adds `number` (at most MAP_MAX_NUMBER) beside the entries that have the same hash. False, with
 * the map unchanged: out of memory. */
bool map_add(struct map *m, uint32_t hash, uint32_t number);
/* Empties the map and frees what it holds. */
void map_done(struct map *m);

/* A search for all numbers that were added with a hash, in no order. Invalid after the next change
 * of the map. */
struct map_probe {
    const struct map *map;
    size_t at;
    uint32_t hash;
};

static inline struct map_probe map_probe(const struct map *m, uint32_t hash)
{
    return (struct map_probe){m, hash, hash};
}

/* False past the last one. */
static inline bool map_next(struct map_probe *p, uint32_t *number)
{
    const struct map *m = p->map;
    if (m->capacity == 0)
        return false;
    for (;;) {
        const struct map_slot *slot = &m->slots[p->at++ & (m->capacity - 1)];
        if (slot->number == 0) {
            p->at--; /* another call returns false, too */
            return false;
        }
        if (slot->hash == p->hash) {
            *number = slot->number - 1;
            return true;
        }
    }
}

/* FNV-1a of a text in pieces: `hash` is MAP_HASH_BASIS, or the result for the pieces before. */
#define MAP_HASH_BASIS 2166136261u
static inline uint32_t map_hash(uint32_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash;
}
