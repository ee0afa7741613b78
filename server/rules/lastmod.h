/* W3C Datetime (https://www.w3.org/TR/NOTE-datetime), all six forms, real dates only.
 * Pure functions, thread safe. `now` is Unix time in seconds and passed in, never read. */
#ifndef SITEMAPD_RULES_LASTMOD_H
#define SITEMAPD_RULES_LASTMOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/limits.h"

struct lastmod {
    char text[LASTMOD_MAX_CHARS + 1]; /* as it is stored: the given granularity, minutes with :00,
                                         at most 9 fraction digits, NUL-terminated */
    int64_t unix_seconds;             /* the instant it begins at, UTC */
    bool renders;                     /* false for YYYY and YYYY-MM, which the XSD refuses */
};

/* Reads `len` bytes. RULE_OK, RULE_LASTMOD_INVALID or RULE_LASTMOD_NO_ZONE; or
 * RULE_LASTMOD_FUTURE where it is more than LASTMOD_FUTURE_SECONDS after `now` (the value is then
 * to be dropped, with that word as the warning). `*remarks` (may be NULL) gets
 * RULE_LASTMOD_COARSE or RULE_LASTMOD_DATE_ONLY or'ed in. `*out` is untouched unless RULE_OK. */
enum rule_code lastmod_parse(const char *text, size_t len, int64_t now, struct lastmod *out,
                             rule_set *remarks);

/* True where a stored value goes into the XML (it has a day). */
bool lastmod_renders(const char *stored);
/* The remarks that a stored value always bears (coarse, date only). */
rule_set lastmod_remarks(const char *stored);
/* Writes Unix seconds as "2026-11-21T08:30:00Z" (RFC 3339) to `out`, 21 bytes. Years 0 to 9999. */
void lastmod_format_utc(int64_t unix_seconds, char out[21]);

#endif
