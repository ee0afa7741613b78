/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* An open-addressing hash map from a key's hash to a number, such as the key's place in an array.
 * The keys are the owner's, and so is comparing them, since two may share a hash:
 *
 *     uint32_t place;
 *     for (struct map_probe p = map_probe(&map, hash); map_next(&p, &place);)
 *         if (strcmp(things[place].name, name) == 0)
 *             return &things[place];
 *
 * All zero is an empty map. Nothing is taken out: who removes things makes another. One that does
 * not change is thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint32_t hash;
    uint32_t number; /* the number + 1; 0: free */
};

struct map {
    struct map_slot *slots; /* owned; NULL, or a power of two of them, one at least free */
    size_t capacity;
    size_t count;
};

#define MAP_MAX_NUMBER (UINT32_MAX - 1)

/* Makes room for `count` in all, of which no map_add fails then. They leave it at most half full,
 * which keeps probes short where most searches find nothing. False, with the map as it was: out of
 * memory. */
bool map_reserve(struct map *m, size_t count);
/* Adds `number` (at most MAP_MAX_NUMBER) beside all that have the same hash. False, with the map as
 * it was: out of memory. */
bool map_add(struct map *m, uint32_t hash, uint32_t number);
/* Empties the map and frees what it holds. */
void map_done(struct map *m);

/* A search: of all that were added with the hash, in no order. Ends with the next change. */
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
            p->at--; /* asked again, it says so again */
            return false;
        }
        if (slot->hash == p->hash) {
            *number = slot->number - 1;
            return true;
        }
    }
}

/* FNV-1a, which can be carried on byte by byte: `hash` is MAP_HASH_BASIS, or of what went before.
 */
#define MAP_HASH_BASIS 2166136261u
static inline uint32_t map_hash(uint32_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash;
}
