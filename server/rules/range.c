#include "server/rules/range.h"

#include <string.h>

#include "server/rules/negotiate.h"
#include "server/rules/scan.h"

/* Between list elements: OWS and any number of commas (RFC 9110 5.6.1.2). True where another
 * element follows. */
static bool find_element(struct scan *s)
{
    do
        scan_skip_blanks(s);
    while (scan_char(s, ','));
    return s->at < s->end;
}

/* 1*DIGIT; what is too large for 64 bits is as good as their largest. */
static bool read_position(struct scan *s, uint64_t *out)
{
    uint64_t value = 0;
    const char *start = s->at;

    for (; s->at < s->end && ascii_is_digit(*s->at); s->at++) {
        uint64_t digit = (uint64_t)(*s->at - '0');
        value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
    }
    *out = value;
    return s->at > start;
}

/* Units are case-insensitive (RFC 9110 14.1). */
static bool read_unit(struct scan *s)
{
    static const char unit[] = "bytes=";

    for (size_t i = 0; i < sizeof unit - 1; i++) {
        if (s->at == s->end || ascii_lower(*s->at) != unit[i])
            return false;
        s->at++;
    }
    return true;
}

/* "a-b", "a-" or "-n", taken for what it says; false where malformed. */
static bool read_range(struct scan *s, uint64_t size, enum range_kind *kind, uint64_t *first,
                       uint64_t *len)
{
    uint64_t from, last = UINT64_MAX;

    if (scan_char(s, '-')) {
        uint64_t suffix;
        if (!read_position(s, &suffix))
            return false;
        if (suffix > size)
            suffix = size;
        /* No Content-Range can name the last bytes of nothing: that is sent whole. */
        *kind = suffix > 0 ? RANGE_PART : size == 0 ? RANGE_WHOLE : RANGE_UNSATISFIABLE;
        *first = size - suffix;
        *len = suffix;
        return true;
    }
    if (!read_position(s, &from) || !scan_char(s, '-'))
        return false;
    if (s->at < s->end && ascii_is_digit(*s->at) && (!read_position(s, &last) || last < from))
        return false;
    *kind = from < size ? RANGE_PART : RANGE_UNSATISFIABLE;
    *first = from;
    if (from < size)
        *len = (last < size - 1 ? last : size - 1) - from + 1;
    return true;
}

enum range_kind range_parse(const char *range, uint64_t size, uint64_t *first, uint64_t *len)
{
    enum range_kind kind = RANGE_WHOLE;
    bool one = false;

    if (range != NULL) {
        struct scan s = {range, range + strlen(range)};
        one = read_unit(&s) && find_element(&s) && read_range(&s, size, &kind, first, len);
        /* Behind it nothing, or empty elements. Several ranges would be a multipart reply, which
         * nobody needs of a sitemap: the whole is always a right answer (RFC 9110 14.2). */
        if (one) {
            scan_skip_blanks(&s);
            one = s.at == s.end || (*s.at == ',' && !find_element(&s));
        }
    }
    if (!one)
        kind = RANGE_WHOLE;
    if (kind != RANGE_PART) {
        *first = 0;
        *len = size;
    }
    return kind;
}

bool range_applies(const char *if_range, const char *etag, int64_t modified_at, bool same_second,
                   int64_t now)
{
    int64_t date;

    if (if_range == NULL)
        return true;
    /* One tag, no list and no star; a weak one, or one that a proxy changed, never counts: the
     * bytes that the client has must be these to the letter (RFC 9110 13.1.5). */
    if (if_range[0] == '"' || strncmp(if_range, "W/", 2) == 0)
        return strcmp(if_range, etag) == 0;
    return http_date_parse(if_range, now, &date) && date == modified_at && modified_at > 0 &&
           modified_at < now && !same_second;
}
