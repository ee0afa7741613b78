/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A cursor over borrowed text, for the small grammars of dates and header fields. Each function
 * reads what its name says and moves the cursor past it, or returns false and leaves the cursor
 * unchanged. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "server/base/text.h"

struct scan {
    const char *at;
    const char *end;
};

static inline size_t scan_left(const struct scan *s)
{
    return (size_t)(s->end - s->at);
}

static inline bool scan_char(struct scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static inline bool scan_text(struct scan *s, const char *text)
{
    size_t len = strlen(text);

    if (scan_left(s) < len || memcmp(s->at, text, len) != 0)
        return false;
    s->at += len;
    return true;
}

/* Exactly `count` (at most 9) decimal digits. */
static inline bool scan_digits(struct scan *s, unsigned count, unsigned *out)
{
    unsigned value = 0;

    if (scan_left(s) < count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (!ascii_is_digit(s->at[i]))
            return false;
        value = value * 10 + (unsigned)(s->at[i] - '0');
    }
    s->at += count;
    *out = value;
    return true;
}

/* OWS of RFC 9110 5.6.3: any number of spaces and tabs. */
static inline void scan_skip_blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
}
