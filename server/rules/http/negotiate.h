/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Content negotiation and preconditions of HTTP, on header text alone (RFC 9110 12.5.3, 13.1).
 * Pure functions, thread safe; inputs are NUL-terminated header values or NULL where absent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum coding { CODING_UNASKED, CODING_IDENTITY, CODING_GZIP, CODING_ZSTD, CODING_BR, CODINGS };
/* True where gzip is to be sent: parsed whole, q-values, `*`, x-gzip, case-insensitive; the higher
 * q wins, a tie goes to gzip; absent, empty, malformed or nothing acceptable: identity
 * (RFC 9110 12.5.3). `*best`: what the client would take, were there all of them: br, zstd, gzip,
 * in this order, by what the field names (of these gzip by `*` too) with no lower q than identity.
 */
bool negotiate_coding(const char *accept_encoding, enum coding *best);

/* True where If-None-Match names `etag` (strong, with quotes) or is `*`: weak comparison, lists
 * (RFC 9110 13.1.2). `proxy_tolerant` also matches a tag suffixed with -gzip before its closing
 * quote, as proxies make them. */
bool negotiate_none_match(const char *if_none_match, const char *etag, bool proxy_tolerant);
/* True where If-Match names `etag` by strong comparison or is `*` (RFC 9110 13.1.1). */
bool negotiate_match(const char *if_match, const char *etag);
/* True where If-Match names a strong tag that is `state`, or begins with it and a dot, or is `*`:
 * what is behind the dot distinguishes representations of one state. `state` has no quotes. */
bool negotiate_match_state(const char *if_match, const char *state);

/* Reads an HTTP-date in any of its three forms (RFC 9110 5.6.7). `now` decides the century of the
 * RFC 850 form. False where malformed; then `*out` is untouched. */
bool http_date_parse(const char *text, int64_t now, int64_t *out);
/* Writes "Sun, 06 Nov 1994 08:49:37 GMT". */
void http_date_format(int64_t unix_seconds, char out[30]);

/* The conditions of a request; NULL: absent. */
struct conditions {
    const char *if_match, *if_unmodified_since, *if_none_match, *if_modified_since;
};
/* What the representation is known by. */
struct validators {
    const char *etag;    /* strong, with quotes */
    int64_t modified_at; /* Unix seconds; 0: not known, and no Last-Modified is sent */
    bool shared_date;    /* another version may have been reported with that date */
};
enum condition_verdict {
    CONDITION_NONE,         /* to be answered as if there were none; Range and If-Range come next */
    CONDITION_NOT_MODIFIED, /* 304 */
    CONDITION_FAILED,       /* 412 */
};
/* RFC 9110 13.2.2 for GET and HEAD of what would be answered with 200, in its order. A date gives
 * 304 only where it is exactly the representation's, whose second is over and which means this
 * version alone: a later one may be of a version that was restored since (RFC 9110 8.8.2.2). */
enum condition_verdict negotiate_conditions(const struct conditions *conditions,
                                            const struct validators *own, int64_t now);
/* True where `date` names the representation as surely as its tag: what gives 304 by date, and what
 * If-Range asks. */
bool negotiate_date_is_exact(const char *date, const struct validators *own, int64_t now);

/* Byte ranges of HTTP, on header text alone (RFC 9110 14.1.2, 14.2, 13.1.5). Pure functions, thread
 * safe; inputs are NUL-terminated header values or NULL where absent. */

enum range_kind {
    RANGE_WHOLE,         /* 200: no range, several, or nothing that is one */
    RANGE_PART,          /* 206 */
    RANGE_UNSATISFIABLE, /* 416 */
};

/* What Range requests of a representation of `size` bytes. PART: `*first` and `*len` are the range,
 * at least one byte and within the representation; otherwise they are 0 and `size`. */
enum range_kind range_parse(const char *range, uint64_t size, uint64_t *first, uint64_t *len);

/* True where Range counts: If-Range is absent, or names exactly the representation at hand, by its
 * strong tag, or by its date where that means one version alone. */
bool range_applies(const char *if_range, const struct validators *own, int64_t now);
