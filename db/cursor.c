#include "db/cursor.h"

#include <string.h>

/* Base64url (RFC 4648 5, without padding) of: version, kind, owner, then position or loc. Numbers
 * are big-endian. */
#define CURSOR_VERSION 1
#define CURSOR_HEAD    10 /* version, kind, 8 bytes of owner */
#define CURSOR_MAX     (CURSOR_HEAD + LOC_MAX_CHARS)
_Static_assert((CURSOR_MAX * 4 + 2) / 3 < ENTRY_CURSOR_SIZE, "the longest loc fits");

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t put_number(unsigned char *out, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(number >> 8 * (bytes - 1 - i));
    return bytes;
}

static uint64_t get_number(const unsigned char *in, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | in[i];
    return number;
}

static void encode(const unsigned char *in, size_t len, char *out)
{
    uint32_t bits = 0;
    unsigned held = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | in[i];
        held += 8;
        while (held >= 6) {
            held -= 6;
            *out++ = alphabet[bits >> held & 63];
        }
    }
    if (held > 0)
        *out++ = alphabet[bits << (6 - held) & 63];
    *out = '\0';
}

/* False for characters outside the alphabet, text that is too long, and bits left over that are
 * not 0: one place has one text. */
static bool decode(const char *text, unsigned char *out, size_t size, size_t *len)
{
    uint32_t bits = 0;
    unsigned held = 0;

    for (*len = 0; *text != '\0'; text++) {
        const char *found = strchr(alphabet, *text);
        if (found == NULL)
            return false;
        bits = bits << 6 | (uint32_t)(found - alphabet);
        held += 6;
        if (held >= 8) {
            if (*len == size)
                return false;
            held -= 8;
            out[(*len)++] = (unsigned char)(bits >> held);
        }
    }
    return held < 6 && (bits & ((1u << held) - 1)) == 0;
}

void cursor_format(const struct cursor *cursor, char out[ENTRY_CURSOR_SIZE])
{
    unsigned char bytes[CURSOR_MAX];
    size_t len = 0;

    bytes[len++] = CURSOR_VERSION;
    bytes[len++] = (unsigned char)cursor->kind;
    len += put_number(bytes + len, (uint64_t)cursor->owner, 8);
    if (cursor->kind == CURSOR_POSITION) {
        len += put_number(bytes + len, cursor->position, 4);
    } else {
        size_t loc_len = strnlen(cursor->loc, LOC_MAX_CHARS);
        memcpy(bytes + len, cursor->loc, loc_len);
        len += loc_len;
    }
    encode(bytes, len, out);
}

bool cursor_parse(const char *text, struct cursor *out)
{
    unsigned char bytes[CURSOR_MAX];
    size_t len, rest;

    if (!decode(text, bytes, sizeof bytes, &len) || len < CURSOR_HEAD || bytes[0] != CURSOR_VERSION)
        return false;
    out->owner = (int64_t)get_number(bytes + 2, 8);
    rest = len - CURSOR_HEAD;
    if (bytes[1] == CURSOR_POSITION && rest == 4) {
        out->kind = CURSOR_POSITION;
        out->position = (uint32_t)get_number(bytes + CURSOR_HEAD, 4);
    } else if (bytes[1] == CURSOR_LOC && rest > 0 && memchr(bytes + CURSOR_HEAD, 0, rest) == NULL) {
        out->kind = CURSOR_LOC;
        memcpy(out->loc, bytes + CURSOR_HEAD, rest);
        out->loc[rest] = '\0';
    } else {
        return false;
    }
    return out->owner > 0;
}
