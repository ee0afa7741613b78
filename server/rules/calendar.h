/* The proleptic Gregorian calendar in UTC: what lastmod and HTTP dates share. libc's own would
 * consult time zones and locales. Pure functions, thread safe. */
#ifndef SITEMAPD_RULES_CALENDAR_H
#define SITEMAPD_RULES_CALENDAR_H

#include <stdint.h>

#define CALENDAR_SECONDS_PER_DAY 86400

struct calendar_time {
    int64_t year;
    unsigned month; /* 1 to 12 */
    unsigned day;   /* 1 to 31 */
    unsigned hour, minute, second;
    unsigned weekday; /* 0 is Sunday; only calendar_from_unix sets it */
};

/* 28 to 31; 0 where `month` is not 1 to 12. */
unsigned calendar_days_in_month(int64_t year, unsigned month);
/* Unix seconds of a UTC time. A second of 60 is the next minute's first. */
int64_t calendar_to_unix(const struct calendar_time *t);
/* The inverse. Times outside the years 0 to 9999 become the first or last second of those. */
void calendar_from_unix(int64_t unix_seconds, struct calendar_time *out);
/* Writes `value` as `count` decimal digits with leading zeros, no NUL. Returns the end. */
char *calendar_write_digits(char *out, unsigned value, unsigned count);

#endif
