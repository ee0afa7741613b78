#include "db/id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void id_format(int64_t index, uint32_t position, int64_t serial, char out[ENTRY_ID_SIZE])
{
    snprintf(out, ENTRY_ID_SIZE, "%" PRIx64 "-%" PRIx32 "-%" PRIx64, (uint64_t)index, position,
             (uint64_t)serial);
}

/* Reads lower-case hex up to `end`, at most 16 digits. NULL where there is none. */
static const char *read_hex(const char *text, char end, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at != end; at++) {
        unsigned digit;
        if (*at >= '0' && *at <= '9')
            digit = (unsigned)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            digit = (unsigned)(*at - 'a') + 10;
        else
            return NULL;
        if (at - text == 16)
            return NULL;
        value = value << 4 | digit;
    }
    if (at == text)
        return NULL;
    *out = value;
    return at;
}

bool id_parse(const char *id, int64_t *index, uint32_t *position, int64_t *serial)
{
    uint64_t i, p, s;
    const char *at = read_hex(id, '-', &i);
    if (!at || !(at = read_hex(at + 1, '-', &p)) || !read_hex(at + 1, '\0', &s))
        return false;
    if (i > ID_MAX_INDEX || p > UINT32_MAX || s > INT64_MAX)
        return false;
    /* One entry, one id: "01-0-1" must not be another name of "1-0-1". */
    char canonical[ENTRY_ID_SIZE];
    id_format((int64_t)i, (uint32_t)p, (int64_t)s, canonical);
    if (strcmp(canonical, id) != 0)
        return false;
    *index = (int64_t)i;
    *position = (uint32_t)p;
    *serial = (int64_t)s;
    return true;
}
