/* Content negotiation and preconditions of HTTP, on header text alone (RFC 9110 12.5.3, 13.1).
 * Pure functions, thread safe; inputs are NUL-terminated header values or NULL where absent. */
#ifndef SITEMAPD_RULES_NEGOTIATE_H
#define SITEMAPD_RULES_NEGOTIATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True where gzip is to be sent: parsed whole, q-values, `*`, x-gzip, case-insensitive; the higher
 * q wins, a tie goes to gzip; absent, empty, malformed or nothing acceptable: identity
 * (RFC 9110 12.5.3). */
bool negotiate_gzip(const char *accept_encoding);

/* True where If-None-Match names `etag` (strong, with quotes) or is `*`: weak comparison, lists
 * (RFC 9110 13.1.2). `proxy_tolerant` also matches a tag suffixed with -gzip before its closing
 * quote, as proxies make them. */
bool negotiate_none_match(const char *if_none_match, const char *etag, bool proxy_tolerant);
/* True where If-Match names `etag` by strong comparison or is `*` (RFC 9110 13.1.1). */
bool negotiate_match(const char *if_match, const char *etag);

/* Reads an HTTP-date in any of its three forms (RFC 9110 5.6.7). `now` decides the century of the
 * RFC 850 form. False where malformed; then `*out` is untouched. */
bool http_date_parse(const char *text, int64_t now, int64_t *out);
/* Writes "Sun, 06 Nov 1994 08:49:37 GMT". */
void http_date_format(int64_t unix_seconds, char out[30]);

/* The whole of RFC 9110 13.2.2 for GET and HEAD of a page: true where the answer is 304.
 * `changed_at` and `same_second` are the page's; a time ahead of `now` never gives 304. */
bool negotiate_not_modified(const char *if_none_match, const char *if_modified_since,
                            const char *etag, int64_t changed_at, bool same_second, int64_t now);

#endif
