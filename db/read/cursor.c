/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Makes and parses the opaque ids of entries, and the cursors of their lists (row.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "db/read/row.h"
#include "server/rules/limits.h"

void id_format(int64_t index, uint32_t position, int64_t serial, char out[ENTRY_ID_SIZE])
{
    snprintf(out, ENTRY_ID_SIZE, "%" PRIx64 "-%" PRIx32 "-%" PRIx64, (uint64_t)index, position,
             (uint64_t)serial);
}

/* Reads lower-case hex up to `end`, at most 16 digits. NULL: malformed. */
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
    if (at == NULL || (at = read_hex(at + 1, '-', &p)) == NULL ||
        read_hex(at + 1, '\0', &s) == NULL)
        return false;
    if (i > ID_MAX_INDEX || p > UINT32_MAX || s > INT64_MAX)
        return false;
    /* An entry has only one id: "01-0-1" must not be accepted for "1-0-1". */
    char canonical[ENTRY_ID_SIZE];
    id_format((int64_t)i, (uint32_t)p, (int64_t)s, canonical);
    if (strcmp(canonical, id) != 0)
        return false;
    *index = (int64_t)i;
    *position = (uint32_t)p;
    *serial = (int64_t)s;
    return true;
}

/* Base64url (RFC 4648 5, without padding) of: version, kind, owner, then position or loc. Numbers
 * are big-endian. */
#define CURSOR_VERSION 1
#define CURSOR_HEAD    10 /* version, kind, 8 bytes of owner */
#define CURSOR_MAX     (CURSOR_HEAD + LOC_MAX_CHARS)
_Static_assert((CURSOR_MAX * 4 + 2) / 3 < ENTRY_CURSOR_SIZE, "the longest loc fits");

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t store_number(unsigned char *out, uint64_t number, size_t bytes)
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

/* False for characters outside the alphabet, text that is too long, and trailing bits that are not
 * 0: a place has only one text. */
static bool decode_address(const char *text, unsigned char *out, size_t size, size_t *len)
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
    len += store_number(bytes + len, (uint64_t)cursor->owner, 8);
    if (cursor->kind == CURSOR_POSITION) {
        len += store_number(bytes + len, cursor->position, 4);
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

    if (!decode_address(text, bytes, sizeof bytes, &len) || len < CURSOR_HEAD ||
        bytes[0] != CURSOR_VERSION)
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
