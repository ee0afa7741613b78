/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Compares a path with shell patterns in one pass over the pattern, without going back: `at` is the
 * set of all places of the path that the pattern so far can lead to. Each byte of the path has a
 * place, before it, and so has the path's end. A part of the pattern moves all places at once, 64
 * in each step. */
#include "server/sources/folder/glob.h"

#include <string.h>

static void put(uint64_t *set, size_t place)
{
    set[place / 64] |= UINT64_C(1) << (place % 64);
}

bool glob_init(struct glob_path *path, const char *text, unsigned flags)
{
    size_t len = strlen(text), words = len / 64 + 1;
    if (len > GLOB_MAX_PATH_BYTES)
        return false;
    path->words = words;
    path->len = len;
    memset(path->named, 0, sizeof path->named);
    memset(path->dotted, 0, sizeof path->dotted);
    memset(path->first, 0, sizeof path->first);
    memset(path->last, 0, sizeof path->last);
    memset(path->below, 0, 257 * words * sizeof path->below[0]);
    for (size_t i = 0; i <= len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (i == 0 || text[i - 1] == '/') {
            path->name_at = i;
            put(path->first, i);
            if (c == '.')
                put(path->dotted, i);
        }
        if (c == '/' || c == '\0')
            put(path->last, i);
        else
            put(path->named, i);
        if ((flags & GLOB_ANY_CASE) != 0 && c >= 'A' && c <= 'Z')
            c = (unsigned char)(c - 'A' + 'a');
        if (c != '\0')
            put(path->below + (c + 1u) * words, i);
    }
    for (size_t i = words; i < 257 * words; i++)
        path->below[i] |= path->below[i - words];
    return true;
}

/* Adds the bytes from `low` to `high`; none if `high` is less. */
static void add_range(const struct glob_path *path, uint64_t *set, char low, char high)
{
    const uint64_t *under = path->below + (unsigned char)low * path->words;
    const uint64_t *up_to = path->below + ((unsigned char)high + 1u) * path->words;
    for (size_t i = 0; i < path->words; i++)
        set[i] |= up_to[i] & ~under[i];
}

/* Adds a class of POSIX if `p` begins with one, such as "[:digit:]". Returns what follows it, else
 * `p`. */
static const char *add_class(const struct glob_path *path, uint64_t *set, const char *p,
                             const char *end)
{
    static const struct {
        const char *name, *ranges;
    } classes[] = {
        {"alnum", "09AZaz"},   {"alpha", "AZaz"},
        {"blank", "\t\t  "},   {"cntrl", "\x01\x1f\x7f\x7f"},
        {"digit", "09"},       {"graph", "!~"},
        {"lower", "az"},       {"print", " ~"},
        {"punct", "!/:@[`{~"}, {"space", "\t\r  "},
        {"upper", "AZ"},       {"xdigit", "09AFaf"},
    };
    const char *name = p + 2, *stop = name;
    if (end - p < 2 || p[0] != '[' || p[1] != ':')
        return p;
    while (stop < end && *stop >= 'a' && *stop <= 'z')
        stop++;
    if (end - stop < 2 || stop[0] != ':' || stop[1] != ']')
        return p;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strlen(classes[i].name) == (size_t)(stop - name) &&
            memcmp(classes[i].name, name, (size_t)(stop - name)) == 0)
            for (const char *range = classes[i].ranges; *range != '\0'; range += 2)
                add_range(path, set, range[0], range[1]);
    return stop + 2;
}

/* Adds the bytes that a bracket expression matches; `p` is what follows its bracket. Returns what
 * follows it; NULL: it does not end. */
static const char *add_bracket(const struct glob_path *path, uint64_t *set, const char *p,
                               const char *end)
{
    bool inverse = p < end && (*p == '!' || *p == '^');
    p += inverse;
    for (const char *begin = p; p < end && (*p != ']' || p == begin);) {
        const char *next = add_class(path, set, p, end);
        if (next != p) {
            p = next;
            continue;
        }
        p += *p == '\\' && end - p > 1;
        char low = *p++, high = low;
        if (end - p > 1 && p[0] == '-' && p[1] != ']') {
            p += p[1] == '\\' && end - p > 2 ? 2 : 1;
            high = *p++;
        }
        add_range(path, set, low, high);
    }
    for (size_t i = 0; i < path->words; i++)
        set[i] = (inverse ? ~set[i] : set[i]) & path->named[i];
    return p < end ? p + 1 : NULL;
}

/* Moves the places one byte on where that byte is in `set`. False: none is left. */
static bool step(const struct glob_path *path, uint64_t *at, const uint64_t *set)
{
    uint64_t carry = 0, any = 0;
    for (size_t i = 0; i < path->words; i++) {
        uint64_t moved = at[i] & set[i];
        at[i] = moved << 1 | carry;
        carry = moved >> 63;
        any |= at[i];
    }
    return any != 0;
}

/* Adds all places up to the end of the name that each place is in. The addition carries from a
 * place through the ones of `named` to the zero after them. */
static void run(const struct glob_path *path, uint64_t *at)
{
    bool carry = false;
    for (size_t i = 0; i < path->words; i++) {
        uint64_t named = path->named[i], sum;
        bool over = __builtin_add_overflow(named, at[i] & named, &sum);
        carry = __builtin_add_overflow(sum, (uint64_t)carry, &sum) || over;
        at[i] |= sum ^ named;
    }
}

static void leave_dots(const struct glob_path *path, uint64_t *at, unsigned flags)
{
    for (size_t i = 0; (flags & GLOB_DOTS) != 0 && i < path->words; i++)
        at[i] &= ~path->dotted[i];
}

bool glob_match(const struct glob_path *path, const char *pattern, size_t len, unsigned flags)
{
    const char *end = pattern + len;
    uint64_t at[GLOB_WORDS] = {0};
    bool above = (flags & GLOB_ABOVE) != 0, ends = false;
    if ((flags & GLOB_NAME) != 0 && above)
        memcpy(at, path->first, sizeof at);
    else
        put(at, (flags & GLOB_NAME) != 0 ? path->name_at : 0);
    /* A bracket that does not end is a byte like others, and so are those after it. */
    bool brackets = true;
    for (const char *p = pattern; p < end;) {
        uint64_t set[GLOB_WORDS] = {0};
        char c = *p++;
        const char *next = c == '[' && brackets ? add_bracket(path, set, p, end) : NULL;
        if (c == '*' || c == '?' || next != NULL)
            leave_dots(path, at, flags);
        if (c == '*') {
            run(path, at);
            continue;
        }
        if (next != NULL) {
            p = next;
        } else if (c == '?') {
            memcpy(set, path->named, sizeof set);
        } else {
            if (c == '[') {
                brackets = false;
                memset(set, 0, sizeof set);
            }
            if (c == '\\' && p == end)
                return false;
            c = c == '\\' ? *p++ : c;
            add_range(path, set, c, c);
        }
        if (!step(path, at, set))
            return false;
    }
    for (size_t i = 0; i < path->words; i++)
        ends = ends || (at[i] & path->last[i]) != 0;
    return above ? ends : (at[path->len / 64] >> (path->len % 64) & 1) != 0;
}
