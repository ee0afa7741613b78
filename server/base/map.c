/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A hash map with linear probing; entries are never removed. */
#include "server/base/map.h"

#include <stdlib.h>

#define FIRST_CAPACITY 8u

static void place_slot(struct map *m, struct map_slot slot)
{
    size_t at = slot.hash & (m->capacity - 1);
    while (m->slots[at].number != 0)
        at = (at + 1) & (m->capacity - 1);
    m->slots[at] = slot;
}

static bool resize_map(struct map *m, size_t capacity)
{
    struct map old = *m;
    struct map_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    m->slots = slots;
    m->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].number != 0)
            place_slot(m, old.slots[i]);
    free(old.slots);
    return true;
}

bool map_reserve(struct map *m, size_t count)
{
    size_t capacity = m->capacity != 0 ? m->capacity : FIRST_CAPACITY;
    while (capacity / 2 < count)
        capacity *= 2;
    return capacity == m->capacity || resize_map(m, capacity);
}

bool map_add(struct map *m, uint32_t hash, uint32_t number)
{
    if (m->count >= m->capacity / 4 * 3 &&
        !resize_map(m, m->capacity != 0 ? m->capacity * 2 : FIRST_CAPACITY))
        return false;
    place_slot(m, (struct map_slot){hash, number + 1});
    m->count++;
    return true;
}

void map_done(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}
