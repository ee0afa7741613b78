/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads files of address ranges, sorts them, and finds an address by binary search. */
#include "server/crawlers/ranges.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/address_range.h"
#include "server/base/file.h"

/* A file is taken whole or not at all: half of a list would make impostors of the real ones. */

/* Wider ones are a mistake in the file: everybody would be verified. */
#define LEAST_BITS_4 (96u + 8u)
#define LEAST_BITS_6 16u
#define LINE_MAX     128u

/* "192.0.2.0/24"; bits behind the prefix are ignored. NULL, or what is wrong. */
static const char *parse_range(const char *text, struct range *out)
{
    bool v4 = strchr(text, ':') == NULL;
    struct address_range range;

    if (!address_range_parse(text, &range))
        return "is not an address or range";
    if (range.bits < (v4 ? LEAST_BITS_4 : LEAST_BITS_6))
        return "is wider than any crawler's range";
    memcpy(out->first, range.bytes, sizeof out->first);
    memcpy(out->last, range.bytes, sizeof out->last);
    for (unsigned i = range.bits; i < 128; i++) {
        uint8_t bit = (uint8_t)(0x80u >> (i % 8));
        out->first[i / 8] &= (uint8_t)~bit;
        out->last[i / 8] |= bit;
    }
    return NULL;
}

static bool add_range(struct ranges *r, const char *text, size_t most, char *why, size_t why_size)
{
    struct range range;
    const char *fault = parse_range(text, &range);

    if (fault != NULL) {
        snprintf(why, why_size, "\"%.60s\" %s", text, fault);
        return false;
    }
    if (r->count >= most) {
        snprintf(why, why_size, "there are more than %u ranges", RANGES_MAX);
        return false;
    }
    if (r->count == r->room) {
        size_t room = r->room == 0 ? 64 : r->room * 2;
        struct range *of = reallocarray(r->of, room, sizeof *of);
        if (of == NULL) {
            snprintf(why, why_size, "out of memory");
            return false;
        }
        r->of = of;
        r->room = room;
    }
    r->of[r->count++] = range;
    return true;
}

static bool parse_json(struct ranges *r, const char *text, size_t len, size_t most, char *why,
                       size_t why_size)
{
    json_error_t error;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error), *element;
    const json_t *prefixes = json_object_get(root, "prefixes");
    bool good = true;
    size_t i;

    if (root == NULL) {
        snprintf(why, why_size, "line %d: %.100s", error.line, error.text);
        return false;
    }
    if (!json_is_array(prefixes)) {
        snprintf(why, why_size, "has no list \"prefixes\"");
        good = false;
    }
    for (i = 0; good && i < json_array_size(prefixes); i++) {
        element = json_array_get(prefixes, i);
        const char *four = json_string_value(json_object_get(element, "ipv4Prefix"));
        const char *six = json_string_value(json_object_get(element, "ipv6Prefix"));
        if (four == NULL && six == NULL) {
            snprintf(why, why_size, "element %zu of \"prefixes\" has no ipv4Prefix or ipv6Prefix",
                     i);
            good = false;
        }
        good = good && (four == NULL || add_range(r, four, most, why, why_size)) &&
               (six == NULL || add_range(r, six, most, why, why_size));
    }
    json_decref(root);
    return good;
}

static bool parse_line(struct ranges *r, const char *text, size_t len, size_t most, char *why,
                       size_t why_size)
{
    char line[LINE_MAX];
    const char *comment = memchr(text, '#', len);

    if (comment != NULL)
        len = (size_t)(comment - text);
    while (len > 0 && strchr(" \t\r", *text) != NULL && *text != '\0')
        text++, len--;
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL && text[len - 1] != '\0')
        len--;
    if (len == 0)
        return true;
    if (len >= sizeof line || memchr(text, '\0', len) != NULL) {
        snprintf(why, why_size, "has a line that is not an address or range");
        return false;
    }
    memcpy(line, text, len);
    line[len] = '\0';
    return add_range(r, line, most, why, why_size);
}

bool ranges_parse(struct ranges *r, const char *text, size_t len, size_t most, char *why,
                  size_t why_size)
{
    size_t before = r->count, at = 0;
    bool good = true;

    while (at < len &&
           (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n'))
        at++;
    if (at < len && text[at] == '{') {
        good = parse_json(r, text, len, most, why, why_size);
    } else {
        while (good && at < len) {
            const char *end = memchr(text + at, '\n', len - at);
            size_t line = end == NULL ? len - at : (size_t)(end - text) - at;
            good = parse_line(r, text + at, line, most, why, why_size);
            at += line + 1;
        }
    }
    if (good && r->count == before) {
        snprintf(why, why_size, "holds no range");
        good = false;
    }
    if (!good)
        r->count = before;
    return good;
}

bool ranges_read(struct ranges *r, const char *path, size_t most, char *why, size_t why_size)
{
    size_t len;
    char *text = file_read(path, FILE_PLAIN, RANGES_MAX_FILE_BYTES + 1, &len, NULL);
    bool good = false;

    if (text == NULL)
        snprintf(why, why_size, "cannot be read: %s", strerror(errno));
    else if (len > RANGES_MAX_FILE_BYTES)
        snprintf(why, why_size, "is larger than %u bytes", RANGES_MAX_FILE_BYTES);
    else
        good = ranges_parse(r, text, len, most, why, why_size);
    free(text);
    return good;
}

static int compare_ranges(const void *a, const void *b)
{
    return memcmp(((const struct range *)a)->first, ((const struct range *)b)->first, 16);
}

void ranges_seal(struct ranges *r)
{
    size_t kept = 0;

    if (r->count > 0)
        qsort(r->of, r->count, sizeof *r->of, compare_ranges);
    for (size_t i = 0; i < r->count; i++) {
        if (kept > 0 && memcmp(r->of[i].first, r->of[kept - 1].last, 16) <= 0) {
            if (memcmp(r->of[i].last, r->of[kept - 1].last, 16) > 0)
                memcpy(r->of[kept - 1].last, r->of[i].last, 16);
        } else {
            r->of[kept++] = r->of[i];
        }
    }
    r->count = kept;
}

bool ranges_hold(const struct ranges *r, const char *address)
{
    uint8_t bytes[16];
    size_t from = 0, to = r->count;

    if (!address_bytes(address, bytes))
        return false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (memcmp(r->of[middle].last, bytes, 16) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < r->count && memcmp(r->of[from].first, bytes, 16) <= 0;
}

void ranges_done(struct ranges *r)
{
    free(r->of);
    *r = (struct ranges){0};
}
