/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What an answer says of how long it stands and when to ask again, on header text alone. Pure
 * functions, thread safe; inputs are NUL-terminated header values or NULL where absent. HTTP dates
 * are read by http_date_parse (server/rules/http/negotiate.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FRESHNESS_MAX_SECONDS 2147483648 /* what is more counts as that (RFC 9111 1.2.2) */

/* For how many seconds more the answer is fresh: max-age of Cache-Control less Age, never below 0
 * (RFC 9111 4.2, 5.1, 5.2.2.1). 0 where it has no max-age, says no-store or no-cache, or the
 * directive cannot be read; of several max-age the least counts. */
int64_t freshness_remaining(const char *cache_control, const char *age);

/* How many seconds from `now` on Retry-After asks to wait, in either of its forms (RFC
 * 9110 10.2.3); 0 for a date that is over. `now` is best the answer's own Date, so that the two
 * clocks need not agree. False where absent or malformed; then `*out` is untouched. */
bool freshness_retry_after(const char *retry_after, int64_t now, int64_t *out);

/* When the answer's content was changed by its own word: Last-Modified, where that is at least 60 s
 * before the answer's Date. What is nearer is a stamp of the answer, not of the content. False
 * where it is so, or where either is absent or malformed; then `*out` is untouched. */
bool freshness_modified_at(const char *last_modified, const char *date, int64_t now, int64_t *out);
