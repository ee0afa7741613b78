/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses Accept-Encoding, If-None-Match, If-Modified-Since and Range, and decides the answer. */
#include "server/rules/http/negotiate.h"

#include <stdio.h>
#include <string.h>

#include "server/base/scan.h"

/* Skips OWS and any number of commas between list elements (RFC 9110 5.6.1.2). True if another
 * element follows. */
static bool find_element(struct scan *s)
{
    do
        scan_skip_blanks(s);
    while (scan_char(s, ','));
    return s->at < s->end;
}

/* 1*DIGIT; larger values count as UINT64_MAX. */
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

/* Parses "a-b", "a-" or "-n"; false: malformed. */
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
        /* Content-Range cannot describe the last bytes of an empty representation: send it whole.
         */
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
        /* Only empty elements may follow. Several ranges would need a multipart response; the whole
         * representation is always correct (RFC 9110 14.2). */
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

bool range_applies(const char *if_range, const struct validators *own, int64_t now)
{
    if (if_range == NULL)
        return true;
    /* One tag, not a list or `*`. A weak tag, or one that a proxy changed, never matches: the
     * client must have exactly these bytes (RFC 9110 13.1.5). */
    if (if_range[0] == '"' || strncmp(if_range, "W/", 2) == 0)
        return strcmp(if_range, own->etag) == 0;
    return negotiate_date_is_exact(if_range, own, now);
}

#define Q_ONE    1000 /* qvalues in thousandths: they have three decimals at most */
#define Q_ABSENT (-1)

#define PROXY_SUFFIX "-gzip"

static struct scan scan_of(const char *text)
{
    return (struct scan){text, text + strlen(text)};
}

/* After an element: OWS, then a comma or the end. */
static bool end_element(struct scan *s)
{
    scan_skip_blanks(s);
    return s->at == s->end || *s->at == ',';
}

static bool read_token(struct scan *s, struct scan *out)
{
    out->at = s->at;
    while (s->at < s->end && ascii_is_token(*s->at))
        s->at++;
    out->end = s->at;
    return out->end > out->at;
}

/* RFC 9110 12.4.2: "0" or "1", a point, up to three decimals, which are all zero after a 1. */
static bool read_qvalue(struct scan *s, int *out)
{
    int unit = Q_ONE;
    int q;

    if (scan_char(s, '0'))
        q = 0;
    else if (scan_char(s, '1'))
        q = Q_ONE;
    else
        return false;
    if (scan_char(s, '.')) {
        while (unit > 1 && s->at < s->end && ascii_is_digit(*s->at)) {
            unit /= 10;
            q += (*s->at++ - '0') * unit;
        }
    }
    if (q > Q_ONE)
        return false;
    *out = q;
    return true;
}

/* [ OWS ";" OWS "q=" qvalue ]; no other parameter exists here. */
static bool read_weight(struct scan *s, int *out)
{
    *out = Q_ONE;
    scan_skip_blanks(s);
    if (!scan_char(s, ';'))
        return true;
    scan_skip_blanks(s);
    if (!scan_char(s, 'q') && !scan_char(s, 'Q'))
        return false;
    return scan_char(s, '=') && read_qvalue(s, out);
}

struct preferences {
    int gzip, identity, any, br, zstd; /* thousandths, or Q_ABSENT */
};

static void prefer(struct preferences *p, const struct scan *coding, int q)
{
    size_t len = scan_left(coding);
    int *slot;

    if (ascii_equals(coding->at, len, "gzip") || ascii_equals(coding->at, len, "x-gzip"))
        slot = &p->gzip;
    else if (ascii_equals(coding->at, len, "identity"))
        slot = &p->identity;
    else if (ascii_equals(coding->at, len, "*"))
        slot = &p->any;
    else if (ascii_equals(coding->at, len, "br"))
        slot = &p->br;
    else if (ascii_equals(coding->at, len, "zstd"))
        slot = &p->zstd;
    else
        return;
    if (q > *slot)
        *slot = q;
}

static bool is_accepted(int q, const struct preferences *p)
{
    return q > 0 && q >= p->identity;
}

bool negotiate_coding(const char *accept_encoding, enum coding *best)
{
    struct preferences p = {Q_ABSENT, Q_ABSENT, Q_ABSENT, Q_ABSENT, Q_ABSENT};
    struct scan s;

    *best = CODING_IDENTITY;
    if (accept_encoding == NULL)
        return false;
    s = scan_of(accept_encoding);
    while (find_element(&s)) {
        struct scan coding;
        int q;

        if (!read_token(&s, &coding) || !read_weight(&s, &q) || !end_element(&s))
            return false;
        prefer(&p, &coding, q);
    }
    /* `*` means every coding that the field does not name, also identity. If neither names
     * identity, it is acceptable but not preferred. */
    if (p.gzip == Q_ABSENT)
        p.gzip = p.any;
    if (p.identity == Q_ABSENT)
        p.identity = p.any;
    *best = is_accepted(p.br, &p)     ? CODING_BR
            : is_accepted(p.zstd, &p) ? CODING_ZSTD
            : is_accepted(p.gzip, &p) ? CODING_GZIP
                                      : CODING_IDENTITY;
    return is_accepted(p.gzip, &p);
}

struct tag {
    struct scan opaque; /* between the quotes */
    bool weak;
};

/* RFC 9110 8.8.3: no escapes within the quotes, no spaces either; `W/` is case-sensitive. */
static bool read_tag(struct scan *s, struct tag *out)
{
    out->weak = scan_text(s, "W/");
    if (!scan_char(s, '"'))
        return false;
    out->opaque.at = s->at;
    while (s->at < s->end && *s->at != '"') {
        unsigned char c = (unsigned char)*s->at;

        if (c <= 0x20 || c == 0x7F)
            return false;
        s->at++;
    }
    out->opaque.end = s->at;
    return scan_char(s, '"');
}

static bool same_text(const struct scan *a, const struct scan *b)
{
    return scan_left(a) == scan_left(b) && memcmp(a->at, b->at, scan_left(a)) == 0;
}

/* Apache's mod_deflate and others change "abc" to "abc-gzip". */
static bool same_text_suffixed(const struct scan *given, const struct scan *own)
{
    size_t suffix_len = strlen(PROXY_SUFFIX);
    struct scan cut = *given;

    if (scan_left(given) < suffix_len ||
        memcmp(given->end - suffix_len, PROXY_SUFFIX, suffix_len) != 0)
        return false;
    cut.end -= suffix_len;
    return same_text(&cut, own);
}

/* How the tags of a field are compared with the representation's tag. */
struct comparison {
    bool strong;
    bool proxy_tolerant;
    bool of_state; /* ignore the text after a dot */
};

static bool tags_equal(const struct tag *given, const struct tag *own, struct comparison how)
{
    if (how.strong && (given->weak || own->weak))
        return false;
    if (how.of_state) {
        struct scan state = given->opaque;
        const char *dot = memchr(state.at, '.', scan_left(&state));

        state.end = dot != NULL ? dot : state.end;
        return same_text(&state, &own->opaque);
    }
    return same_text(&given->opaque, &own->opaque) ||
           (how.proxy_tolerant && same_text_suffixed(&given->opaque, &own->opaque));
}

/* "*" or a list of entity-tags. A malformed field matches nothing. */
static bool field_names_tag(const char *field, const char *etag, struct comparison how)
{
    struct scan s = scan_of(field);
    struct scan etag_scan = scan_of(etag);
    struct tag own, given;
    bool found = false;

    if (!read_tag(&etag_scan, &own) || etag_scan.at != etag_scan.end)
        return false;
    scan_skip_blanks(&s);
    if (scan_char(&s, '*')) {
        scan_skip_blanks(&s);
        return s.at == s.end;
    }
    while (find_element(&s)) {
        if (!read_tag(&s, &given) || !end_element(&s))
            return false;
        found = found || tags_equal(&given, &own, how);
    }
    return found;
}

bool negotiate_none_match(const char *if_none_match, const char *etag, bool proxy_tolerant)
{
    struct comparison weak = {.strong = false, .proxy_tolerant = proxy_tolerant};

    if (if_none_match == NULL)
        return false;
    /* Most clients send the tag back unchanged. */
    return strcmp(if_none_match, etag) == 0 || field_names_tag(if_none_match, etag, weak);
}

bool negotiate_match(const char *if_match, const char *etag)
{
    struct comparison strong = {.strong = true, .proxy_tolerant = false};

    return if_match != NULL && field_names_tag(if_match, etag, strong);
}

bool negotiate_match_state(const char *if_match, const char *state)
{
    struct comparison how = {.strong = true, .of_state = true};
    char etag[128];
    int len = snprintf(etag, sizeof etag, "\"%s\"", state);

    return if_match != NULL && len > 0 && (size_t)len < sizeof etag &&
           field_names_tag(if_match, etag, how);
}

bool negotiate_date_is_exact(const char *date, const struct validators *own, int64_t now)
{
    int64_t at;

    return own->modified_at > 0 && own->modified_at < now && !own->shared_date &&
           http_date_parse(date, now, &at) && at == own->modified_at;
}

/* A date is not a condition if it is invalid or there is nothing to compare it with (RFC 9110
 * 13.1.4). */
static bool is_modified_since(const char *date, const struct validators *own, int64_t now)
{
    int64_t at;

    return own->modified_at > 0 && http_date_parse(date, now, &at) && own->modified_at > at;
}

enum condition_verdict negotiate_conditions(const struct conditions *conditions,
                                            const struct validators *own, int64_t now)
{
    if (conditions->if_match != NULL) {
        if (!negotiate_match(conditions->if_match, own->etag))
            return CONDITION_FAILED;
    } else if (conditions->if_unmodified_since != NULL &&
               is_modified_since(conditions->if_unmodified_since, own, now)) {
        return CONDITION_FAILED;
    }
    /* If present, it alone decides, even if it is malformed (RFC 9110 13.1.3). */
    if (conditions->if_none_match != NULL)
        return negotiate_none_match(conditions->if_none_match, own->etag, true)
                   ? CONDITION_NOT_MODIFIED
                   : CONDITION_NONE;
    return conditions->if_modified_since != NULL &&
                   negotiate_date_is_exact(conditions->if_modified_since, own, now)
               ? CONDITION_NOT_MODIFIED
               : CONDITION_NONE;
}
