/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How long a response is fresh and when to request again, from header values. Pure functions,
 * thread safe; inputs are NUL-terminated header values, NULL if absent. http_date_parse
 * (server/rules/http/negotiate.h) reads HTTP dates. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FRESHNESS_MAX_SECONDS 2147483648 /* larger values count as this (RFC 9111 1.2.2) */

/* The seconds for which the response is still fresh: max-age of Cache-Control minus Age, at least 0
 * (RFC 9111 4.2, 5.1, 5.2.2.1). 0 if there is no valid max-age, or with no-store or no-cache; of
 * several max-age the least counts. */
int64_t freshness_remaining(const char *cache_control, const char *age);

/* The seconds from `now` that Retry-After asks to wait, in either of its forms (RFC 9110 10.2.3); 0
 * for a date in the past. Pass the response's Date as `now`, so that the two clocks need not agree.
 * False, with `*out` untouched: absent or malformed. */
bool freshness_retry_after(const char *retry_after, int64_t now, int64_t *out);

/* The modification time of the content: Last-Modified, if it is at least 60 s before the response's
 * Date. A later one is the time of the response, not of the content. False, with `*out` untouched:
 * that is so, or either is absent or malformed. */
bool freshness_modified_at(const char *last_modified, const char *date, int64_t now, int64_t *out);
