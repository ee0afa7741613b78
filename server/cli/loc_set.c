#include "server/cli/loc_set.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024u
#define LAST_CAPACITY  (1u << 26) /* room for what max_bulk_entries may be at most */

/* FNV-1a, its bits mixed afterwards (the low ones choose the slot). Never 0. */
static uint64_t hash(const char *text)
{
    uint64_t h = 14695981039346656037ull;

    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++)
        h = (h ^ *p) * 1099511628211ull;
    h = (h ^ (h >> 32)) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
    return h != 0 ? h : 1;
}

/* Puts `h` into its place. True where it is there already. */
static bool place(uint64_t *slots, size_t capacity, uint64_t h)
{
    size_t at = (size_t)h & (capacity - 1);

    while (slots[at] != 0 && slots[at] != h)
        at = (at + 1) & (capacity - 1);
    if (slots[at] == h)
        return true;
    slots[at] = h;
    return false;
}

static bool grow(struct loc_set *s)
{
    size_t capacity = s->capacity == 0 ? FIRST_CAPACITY : s->capacity * 2;
    uint64_t *slots = capacity <= LAST_CAPACITY ? calloc(capacity, sizeof *slots) : NULL;

    if (slots == NULL)
        return false;
    for (size_t i = 0; i < s->capacity; i++)
        if (s->slots[i] != 0)
            place(slots, capacity, s->slots[i]);
    free(s->slots);
    s->slots = slots;
    s->capacity = capacity;
    return true;
}

bool loc_set_add(struct loc_set *s, const char *loc)
{
    if (s->count >= s->capacity / 4 * 3 && !grow(s))
        return false;
    if (place(s->slots, s->capacity, hash(loc)))
        return true;
    s->count++;
    return false;
}

void loc_set_done(struct loc_set *s)
{
    free(s->slots);
    memset(s, 0, sizeof *s);
}
