/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses Cache-Control, Age, Expires and Retry-After. */
#include "server/rules/http/freshness.h"

#include <string.h>
#include <strings.h>

#include "server/base/scan.h"
#include "server/rules/http/negotiate.h"

#define STAMP_SECONDS 60

/* 1*DIGIT; larger values count as FRESHNESS_MAX_SECONDS. */
static bool read_seconds(struct scan *s, int64_t *out)
{
    int64_t value = 0;

    if (s->at == s->end || !ascii_is_digit(*s->at))
        return false;
    for (; s->at < s->end && ascii_is_digit(*s->at); s->at++)
        if (value < FRESHNESS_MAX_SECONDS)
            value = value * 10 + (*s->at - '0');
    *out = value < FRESHNESS_MAX_SECONDS ? value : FRESHNESS_MAX_SECONDS;
    return true;
}

static struct scan scan_trimmed(const char *text)
{
    struct scan s = {text, text + strlen(text)};

    scan_skip_blanks(&s);
    while (s.end > s.at && (s.end[-1] == ' ' || s.end[-1] == '\t'))
        s.end--;
    return s;
}

static bool whole_seconds(const char *text, int64_t *out)
{
    struct scan s = scan_trimmed(text);
    int64_t value;

    if (!read_seconds(&s, &value) || s.at != s.end)
        return false;
    *out = value;
    return true;
}

/* ---- Cache-Control (RFC 9111 5.2) ------------------------------------------------------ */

struct directive {
    struct scan name, value; /* a quoted value without its quotes, escapes not decoded */
};

static bool is_named(const struct directive *d, const char *name)
{
    return scan_left(&d->name) == strlen(name) &&
           strncasecmp(d->name.at, name, scan_left(&d->name)) == 0;
}

static bool read_quoted(struct scan *s, struct scan *value)
{
    value->at = s->at;
    for (; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at == '\\' && ++s->at == s->end)
            return false;
    value->end = s->at;
    return scan_char(s, '"');
}

static struct scan read_token(struct scan *s)
{
    struct scan token = {s->at, s->at};

    while (s->at < s->end && ascii_is_token(*s->at))
        s->at++;
    token.end = s->at;
    return token;
}

/* token [ "=" ( token / quoted-string ) ], up to the comma or the end. */
static bool read_directive(struct scan *s, struct directive *out)
{
    out->name = read_token(s);
    out->value = (struct scan){s->at, s->at};
    if (out->name.at == out->name.end)
        return false;
    if (scan_char(s, '=')) {
        if (!scan_char(s, '"'))
            out->value = read_token(s);
        else if (!read_quoted(s, &out->value))
            return false;
    }
    scan_skip_blanks(s);
    return s->at == s->end || *s->at == ',';
}

/* The least max-age; 0 if none exists, or if another directive or a fault of the field overrides
 * it. */
static int64_t max_age(const char *cache_control)
{
    struct scan s = {cache_control, cache_control + strlen(cache_control)};
    int64_t least = -1;

    for (;;) {
        struct directive d;
        int64_t age;

        while (s.at < s.end && (*s.at == ',' || *s.at == ' ' || *s.at == '\t'))
            s.at++;
        if (s.at == s.end)
            return least < 0 ? 0 : least;
        if (!read_directive(&s, &d) || is_named(&d, "no-store") || is_named(&d, "no-cache"))
            return 0;
        if (!is_named(&d, "max-age"))
            continue;
        if (!read_seconds(&d.value, &age) || d.value.at != d.value.end)
            return 0;
        if (least < 0 || age < least)
            least = age;
    }
}

int64_t freshness_remaining(const char *cache_control, const char *age)
{
    int64_t fresh = cache_control != NULL ? max_age(cache_control) : 0, old = 0;

    if (age != NULL)
        (void)whole_seconds(age, &old);
    return fresh > old ? fresh - old : 0;
}

/* ---- dates ----------------------------------------------------------------------------- */

bool freshness_retry_after(const char *retry_after, int64_t now, int64_t *out)
{
    int64_t at;

    if (retry_after == NULL)
        return false;
    if (whole_seconds(retry_after, out))
        return true;
    if (!http_date_parse(retry_after, now, &at))
        return false;
    if (at <= now)
        *out = 0;
    else if (now < at - FRESHNESS_MAX_SECONDS)
        *out = FRESHNESS_MAX_SECONDS;
    else
        *out = at - now;
    return true;
}

bool freshness_modified_at(const char *last_modified, const char *date, int64_t now, int64_t *out)
{
    int64_t modified, answered;

    if (last_modified == NULL || date == NULL || !http_date_parse(last_modified, now, &modified) ||
        !http_date_parse(date, now, &answered) || modified > answered - STAMP_SECONDS)
        return false;
    *out = modified;
    return true;
}
