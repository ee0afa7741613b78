/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Content negotiation and preconditions of HTTP, from header values (RFC 9110 12.5.3, 13.1). Pure
 * functions, thread safe; inputs are NUL-terminated header values, NULL if absent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum coding { CODING_UNASKED, CODING_IDENTITY, CODING_GZIP, CODING_ZSTD, CODING_BR, CODINGS };
/* Whether to send gzip (RFC 9110 12.5.3): parses the whole field, with q-values, `*` and x-gzip,
 * ignoring case. The higher q wins, gzip in a tie. False (identity) if the field is absent, empty
 * or malformed, or nothing is acceptable. `*best`: the coding that the client would get if all were
 * supported: the first of br, zstd, gzip that the field names (gzip also by `*`) with a q not lower
 * than that of identity. */
bool negotiate_coding(const char *accept_encoding, enum coding *best);

/* True if If-None-Match contains `etag` (strong, with quotes) or is `*`; weak comparison (RFC 9110
 * 13.1.2). `proxy_tolerant` also matches a tag with the suffix -gzip before its closing quote,
 * which proxies add. */
bool negotiate_none_match(const char *if_none_match, const char *etag, bool proxy_tolerant);
/* True if If-Match contains `etag` by strong comparison or is `*` (RFC 9110 13.1.1). */
bool negotiate_match(const char *if_match, const char *etag);
/* True if If-Match is `*` or contains a strong tag that is `state`, or `state` followed by a dot:
 * the text after the dot distinguishes representations of one state. `state` has no quotes. */
bool negotiate_match_state(const char *if_match, const char *state);

/* Reads an HTTP-date in any of its three forms (RFC 9110 5.6.7). `now` decides the century of the
 * RFC 850 form. False, with `*out` untouched: malformed. */
bool http_date_parse(const char *text, int64_t now, int64_t *out);
/* Writes "Sun, 06 Nov 1994 08:49:37 GMT". */
void http_date_format(int64_t unix_seconds, char out[30]);

/* The conditions of a request; NULL: absent. */
struct conditions {
    const char *if_match, *if_unmodified_since, *if_none_match, *if_modified_since;
};
/* The validators of a representation. */
struct validators {
    const char *etag;    /* strong, with quotes */
    int64_t modified_at; /* Unix seconds; 0: unknown, and no Last-Modified is sent */
    bool shared_date;    /* another version may have been reported with that date */
};
enum condition_verdict {
    CONDITION_NONE,         /* no effect; evaluate Range and If-Range next */
    CONDITION_NOT_MODIFIED, /* 304 */
    CONDITION_FAILED,       /* 412 */
};
/* Evaluates preconditions in the order of RFC 9110 13.2.2, for GET and HEAD that would get 200. A
 * date gives 304 only if it equals that of the representation, its second is over, and no other
 * version has it. A later date may be that of a version that was replaced by a restored one (RFC
 * 9110 8.8.2.2). */
enum condition_verdict negotiate_conditions(const struct conditions *conditions,
                                            const struct validators *own, int64_t now);
/* True if `date` identifies the representation as reliably as its tag: the rule for 304 by date,
 * and for If-Range. */
bool negotiate_date_is_exact(const char *date, const struct validators *own, int64_t now);

/* Byte ranges of HTTP, from header values (RFC 9110 14.1.2, 14.2, 13.1.5). Pure functions, thread
 * safe; inputs are NUL-terminated header values, NULL if absent. */

enum range_kind {
    RANGE_WHOLE,         /* 200: no range, an invalid one, or several */
    RANGE_PART,          /* 206 */
    RANGE_UNSATISFIABLE, /* 416 */
};

/* Parses Range for a representation of `size` bytes. PART: `*first` and `*len` are the range, at
 * least one byte and within the representation; otherwise they are 0 and `size`. */
enum range_kind range_parse(const char *range, uint64_t size, uint64_t *first, uint64_t *len);

/* True if Range applies: If-Range is absent, or identifies the current representation by its strong
 * tag, or by a date that only this version has. */
bool range_applies(const char *if_range, const struct validators *own, int64_t now);
