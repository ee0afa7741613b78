/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The proleptic Gregorian calendar in UTC, for lastmod and HTTP dates. libc's functions depend on
 * time zones and locales. Pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/limits.h"

#define CALENDAR_SECONDS_PER_DAY 86400

struct calendar_time {
    int64_t year;
    unsigned month; /* 1 to 12 */
    unsigned day;   /* 1 to 31 */
    unsigned hour, minute, second;
    unsigned weekday; /* 0 is Sunday; only calendar_from_unix sets it */
};

/* 28 to 31; 0: `month` is not 1 to 12. */
unsigned calendar_days_in_month(int64_t year, unsigned month);
/* Unix seconds of a UTC time. Second 60 is the first second of the next minute. */
int64_t calendar_to_unix(const struct calendar_time *t);
/* The inverse. Times outside the years 0 to 9999 become the first or last second of that range. */
void calendar_from_unix(int64_t unix_seconds, struct calendar_time *out);
/* Writes `value` as `count` decimal digits with leading zeros, no NUL. Returns the end. */
char *calendar_write_digits(char *out, unsigned value, unsigned count);

/* W3C Datetime (https://www.w3.org/TR/NOTE-datetime), all six forms, real dates only.
 * Pure functions, thread safe. `now` is Unix time in seconds and passed in, never read. */

struct lastmod {
    char text[LASTMOD_MAX_CHARS + 1]; /* as it is stored: the given granularity, minutes with :00,
                                         at most 9 fraction digits, NUL-terminated */
    int64_t unix_seconds;             /* the instant it begins at, UTC */
    bool renders;                     /* false for YYYY and YYYY-MM, which the XSD rejects */
};

/* Reads `len` bytes. RULE_OK, RULE_LASTMOD_INVALID or RULE_LASTMOD_NO_ZONE; or RULE_LASTMOD_FUTURE
 * if it is more than LASTMOD_FUTURE_SECONDS after `now` (the caller then drops the value, with this
 * warning). Adds RULE_LASTMOD_COARSE or RULE_LASTMOD_DATE_ONLY to `*remarks` (may be NULL). `*out`
 * is untouched unless RULE_OK. */
enum rule_code lastmod_parse(const char *text, size_t len, int64_t now, struct lastmod *out,
                             rule_set *remarks);

/* The last second of the day, month or year of the value; for a time, that second. */
int64_t lastmod_last_second(const struct lastmod *value);

/* True if a stored value is not later than 1970-01-01: the zero of Unix clocks, of .NET
 * (0001-01-01) or of others. Nothing on the web is so old; the caller drops it with
 * RULE_LASTMOD_OLD. */
bool lastmod_is_too_old(const char *stored);
/* True if a stored value is written to the XML (it has a day). */
bool lastmod_renders(const char *stored);
/* True if both are stored values and the second is more than a year before the first. */
bool lastmod_is_set_back(const char *from, const char *to);
/* True if `a` is a stored value, and `b` is an earlier one or NULL. `a` may be NULL. */
bool lastmod_is_later(const char *a, const char *b);
/* The remarks on a stored value (coarse, date only). */
rule_set lastmod_remarks(const char *stored);
/* Writes Unix seconds as "2026-11-21T08:30:00Z" (RFC 3339) to `out`, 21 bytes. Years 0 to 9999. */
void lastmod_format_utc(int64_t unix_seconds, char out[21]);
/* Writes a day since 1970-01-01 as "2026-11-21". */
void lastmod_format_day(int32_t day, char out[11]);

/* The lastmod that a source gives a file. Crawlers trust a lastmod only if it is accurate, and a
 * redeploy touches every file: so it changes only with the content. */
struct lastmod_verdict {
    bool moved;  /* the content has changed, or nothing was stored */
    bool future; /* the file's date is in the future; counts as now */
    char lastmod[LASTMOD_MAX_CHARS + 1];
};

/* `stored_hash` 0, 0: the file was never good before. `stored_lastmod`: last served; NULL: none;
 * ignored if it is more than a day after `now`. Times are Unix seconds. */
void lastmod_policy(const uint64_t stored_hash[2], const uint64_t new_hash[2],
                    const char *stored_lastmod, int64_t mtime, int64_t now,
                    struct lastmod_verdict *out);
