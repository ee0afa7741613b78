/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses language tags. */
#include "server/rules/page/language.h"

#include <stdint.h>

#include "server/base/text.h"

#define SUBTAGS_MAX ((LANGUAGE_MAX_BYTES + 1) / 2)

struct subtag {
    const char *at;
    size_t len;
};

/* The subtags of a text, 1 to 8 letters and digits each; 0 where it is not made of such. */
static size_t split_subtags(const char *text, size_t len, struct subtag tags[SUBTAGS_MAX])
{
    size_t count = 0, begin = 0;

    if (len == 0 || len > LANGUAGE_MAX_BYTES)
        return 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && text[i] != '-') {
            if (!ascii_is_alnum(text[i]))
                return 0;
            continue;
        }
        if (i == begin || i - begin > 8)
            return 0;
        tags[count++] = (struct subtag){text + begin, i - begin};
        begin = i + 1;
    }
    return count;
}

static bool all(const struct subtag *tag, bool (*is)(char))
{
    for (size_t i = 0; i < tag->len; i++)
        if (!is(tag->at[i]))
            return false;
    return true;
}

static bool is_variant(const struct subtag *tag)
{
    return tag->len >= 5 || (tag->len == 4 && ascii_is_digit(*tag->at));
}

static bool same(const struct subtag *a, const struct subtag *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (ascii_lower(a->at[i]) != ascii_lower(b->at[i]))
            return false;
    return true;
}

/* Variants, then extensions and private use, behind language, script and region. No variant and no
 * extension's letter occurs twice (2.2.5, 2.2.6). */
static bool read_rest(const struct subtag *tags, size_t at, size_t count)
{
    uint64_t seen = 0;

    for (size_t first = at; at < count && is_variant(&tags[at]); at++)
        for (size_t i = first; i < at; i++)
            if (same(&tags[i], &tags[at]))
                return false;
    while (at < count && tags[at].len == 1) {
        char letter = ascii_lower(*tags[at].at);
        uint64_t bit = (uint64_t)1 << (ascii_is_digit(letter) ? letter - '0' : letter - 'a' + 10);
        size_t least = letter == 'x' ? 1 : 2, first = ++at;

        if ((seen & bit) != 0)
            return false;
        seen |= bit;
        while (at < count && tags[at].len >= least)
            at++;
        if (at == first)
            return false;
    }
    return at == count;
}

static bool is_tag(const struct subtag *tags, size_t count)
{
    size_t at = 1;

    if (count == 0 || tags->len < 2 || !all(tags, ascii_is_alpha))
        return false;
    if (tags->len <= 3) /* extended languages */
        for (int i = 0; i < 3 && at < count && tags[at].len == 3; i++, at++)
            if (!all(&tags[at], ascii_is_alpha))
                break;
    if (at < count && tags[at].len == 4 && all(&tags[at], ascii_is_alpha)) /* script */
        at++;
    if (at < count && ((tags[at].len == 2 && all(&tags[at], ascii_is_alpha)) ||
                       (tags[at].len == 3 && all(&tags[at], ascii_is_digit)))) /* region */
        at++;
    return read_rest(tags, at, count);
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool language_parse(const char *text, size_t len, char out[LANGUAGE_MAX_BYTES + 1])
{
    struct subtag tags[SUBTAGS_MAX];
    size_t count = split_subtags(text, len, tags);
    bool plain = true; /* no single letter stands before */

    if (!is_tag(tags, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        bool spelt = i > 0 && plain && all(&tags[i], ascii_is_alpha);

        for (size_t at = 0; at < tags[i].len; at++) {
            bool high = spelt && (tags[i].len == 2 || (tags[i].len == 4 && at == 0));
            *out++ = high ? upper(tags[i].at[at]) : ascii_lower(tags[i].at[at]);
        }
        plain = plain && tags[i].len > 1;
        *out++ = i + 1 < count ? '-' : '\0';
    }
    return true;
}
