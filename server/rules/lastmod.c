/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses and normalises W3C Datetimes, and converts calendar dates. */
#include "server/rules/lastmod.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/base/scan.h"

#define UNIX_YEAR_0000 (-62167219200) /* 0000-01-01T00:00:00Z */
#define UNIX_YEAR_9999 253402300799   /* 9999-12-31T23:59:59Z */

/* The calendar repeats every 400 years ("era"); years begin in March here, so that the leap day
 * is a year's last. */
#define DAYS_PER_ERA  146097
#define DAYS_TO_1970  719468 /* from 0000-03-01 */
#define YEARS_PER_ERA 400

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

unsigned calendar_days_in_month(int64_t year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (month < 1 || month > 12)
        return 0;
    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

static int64_t days_since_1970(int64_t year, unsigned month, unsigned day)
{
    int64_t march_year = month > 2 ? year : year - 1;
    int64_t era = (march_year >= 0 ? march_year : march_year - (YEARS_PER_ERA - 1)) / YEARS_PER_ERA;
    int64_t year_of_era = march_year - era * YEARS_PER_ERA;
    int64_t march_month = month > 2 ? month - 3 : month + 9;
    int64_t day_of_year = (153 * march_month + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

int64_t calendar_to_unix(const struct calendar_time *t)
{
    return days_since_1970(t->year, t->month, t->day) * CALENDAR_SECONDS_PER_DAY +
           (int64_t)t->hour * 3600 + (int64_t)t->minute * 60 + t->second;
}

void calendar_from_unix(int64_t unix_seconds, struct calendar_time *out)
{
    int64_t since, day, day_of_era, year_of_era, day_of_year, march_month;
    unsigned second_of_day;

    if (unix_seconds < UNIX_YEAR_0000)
        unix_seconds = UNIX_YEAR_0000;
    if (unix_seconds > UNIX_YEAR_9999)
        unix_seconds = UNIX_YEAR_9999;

    /* Counted from 0000-01-01, all numbers and remainders are positive. */
    since = unix_seconds - UNIX_YEAR_0000;
    second_of_day = (unsigned)(since % CALENDAR_SECONDS_PER_DAY);
    out->hour = second_of_day / 3600;
    out->minute = second_of_day / 60 % 60;
    out->second = second_of_day % 60;
    day = since / CALENDAR_SECONDS_PER_DAY;
    out->weekday = (unsigned)((day + 6) % 7); /* 0000-01-01 was a Saturday */

    /* Era -1 ends with February of year 0, hence one era and 60 days of it added. */
    day += DAYS_PER_ERA - 60;
    day_of_era = day % DAYS_PER_ERA;
    year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / (DAYS_PER_ERA - 1)) /
        365;
    day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    march_month = (5 * day_of_year + 2) / 153;
    out->day = (unsigned)(day_of_year - (153 * march_month + 2) / 5 + 1);
    out->month = (unsigned)(march_month < 10 ? march_month + 3 : march_month - 9);
    out->year = (day / DAYS_PER_ERA - 1) * YEARS_PER_ERA + year_of_era + (out->month <= 2 ? 1 : 0);
}

char *calendar_write_digits(char *out, unsigned value, unsigned count)
{
    for (unsigned i = count; i > 0; i--) {
        out[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

#define YEAR_CHARS       4u  /* YYYY */
#define MONTH_CHARS      7u  /* YYYY-MM */
#define DAY_CHARS        10u /* YYYY-MM-DD */
#define MINUTE_CHARS     16u /* YYYY-MM-DDThh:mm */
#define OFFSET_MAX_HOURS 14u
#define SET_BACK_SECONDS (366 * INT64_C(86400))
#define AFTER_ALL        (INT64_MAX / 2) /* a `now` later than any date */

struct parts {
    struct calendar_time time;
    size_t kept;          /* leading bytes that are stored unchanged */
    const char *fraction; /* digits after the point */
    size_t fraction_len;  /* cut at LASTMOD_FRACTION_DIGITS */
    const char *zone;     /* "Z" or "+hh:mm"; NULL: there is no time */
    size_t zone_len;
    int64_t offset_seconds; /* east of UTC */
};

/* YYYY, YYYY-MM or YYYY-MM-DD; stops at the end of the text or the beginning of a time. */
static bool read_date(struct scan *s, struct parts *p)
{
    unsigned year;

    /* XSD has no year 0000 (XML Schema part 2, 3.2.7). */
    if (!scan_digits(s, 4, &year) || year == 0)
        return false;
    p->time.year = year;
    p->kept = YEAR_CHARS;
    if (s->at == s->end)
        return true;

    if (!scan_char(s, '-') || !scan_digits(s, 2, &p->time.month) || p->time.month < 1 ||
        p->time.month > 12)
        return false;
    p->kept = MONTH_CHARS;
    if (s->at == s->end)
        return true;

    if (!scan_char(s, '-') || !scan_digits(s, 2, &p->time.day) || p->time.day < 1 ||
        p->time.day > calendar_days_in_month(p->time.year, p->time.month))
        return false;
    p->kept = DAY_CHARS;
    return true;
}

/* hh:mm, hh:mm:ss or hh:mm:ss.s+. ISO 8601 allows hour 24 and second 60, but not every reader of
 * sitemaps accepts them. */
static bool read_time(struct scan *s, struct parts *p)
{
    if (!scan_digits(s, 2, &p->time.hour) || p->time.hour > 23 || !scan_char(s, ':') ||
        !scan_digits(s, 2, &p->time.minute) || p->time.minute > 59)
        return false;
    p->kept = MINUTE_CHARS;
    if (!scan_char(s, ':'))
        return true;

    if (!scan_digits(s, 2, &p->time.second) || p->time.second > 59)
        return false;
    if (!scan_char(s, '.'))
        return true;

    p->fraction = s->at;
    while (s->at < s->end && ascii_is_digit(*s->at))
        s->at++;
    p->fraction_len = (size_t)(s->at - p->fraction);
    if (p->fraction_len == 0)
        return false;
    if (p->fraction_len > LASTMOD_FRACTION_DIGITS)
        p->fraction_len = LASTMOD_FRACTION_DIGITS;
    return true;
}

/* Z or an offset within XSD's ±14:00. */
static bool read_zone(struct scan *s, struct parts *p)
{
    unsigned hours, minutes;
    bool west;

    p->zone = s->at;
    p->zone_len = scan_left(s);
    if (scan_char(s, 'Z'))
        return s->at == s->end;

    west = scan_char(s, '-');
    if (!west && !scan_char(s, '+'))
        return false;
    if (!scan_digits(s, 2, &hours) || !scan_char(s, ':') || !scan_digits(s, 2, &minutes) ||
        s->at != s->end)
        return false;
    if (minutes > 59 || hours > OFFSET_MAX_HOURS || (hours == OFFSET_MAX_HOURS && minutes > 0))
        return false;
    p->offset_seconds = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    if (west)
        p->offset_seconds = -p->offset_seconds;
    return true;
}

static enum rule_code read_parts(const char *text, size_t len, struct parts *p)
{
    struct scan s = {text, text + len};

    if (!read_date(&s, p))
        return RULE_LASTMOD_INVALID;
    if (s.at == s.end)
        return RULE_OK;
    if (!scan_char(&s, 'T') || !read_time(&s, p))
        return RULE_LASTMOD_INVALID;
    if (s.at == s.end)
        return RULE_LASTMOD_NO_ZONE;
    return read_zone(&s, p) ? RULE_OK : RULE_LASTMOD_INVALID;
}

/* The given granularity is kept, except that minutes get seconds, which XSD's dateTime requires. */
static void write_text(const char *text, const struct parts *p, char *out)
{
    memcpy(out, text, p->kept);
    out += p->kept;
    if (p->zone != NULL) {
        *out++ = ':';
        out = calendar_write_digits(out, p->time.second, 2);
        if (p->fraction_len > 0) {
            *out++ = '.';
            memcpy(out, p->fraction, p->fraction_len);
            out += p->fraction_len;
        }
        memcpy(out, p->zone, p->zone_len);
        out += p->zone_len;
    }
    *out = '\0';
}

enum rule_code lastmod_parse(const char *text, size_t len, int64_t now, struct lastmod *out,
                             rule_set *remarks)
{
    struct parts p = {.time = {.month = 1, .day = 1}};
    enum rule_code code = read_parts(text, len, &p);
    int64_t begins;

    if (code != RULE_OK)
        return code;
    begins = calendar_to_unix(&p.time) - p.offset_seconds;
    /* Not now + a day, which may overflow; `begins` has a four-digit year. */
    if (begins - LASTMOD_FUTURE_SECONDS > now)
        return RULE_LASTMOD_FUTURE;

    write_text(text, &p, out->text);
    out->unix_seconds = begins;
    out->renders = lastmod_renders(out->text);
    if (remarks != NULL)
        *remarks |= lastmod_remarks(out->text);
    return RULE_OK;
}

int64_t lastmod_last_second(const struct lastmod *value)
{
    size_t len = strnlen(value->text, DAY_CHARS + 1);
    struct calendar_time begin;

    if (len > DAY_CHARS)
        return value->unix_seconds;
    calendar_from_unix(value->unix_seconds, &begin);
    if (len == YEAR_CHARS)
        begin.month = 12;
    if (len < DAY_CHARS)
        begin.day = calendar_days_in_month(begin.year, begin.month);
    return calendar_to_unix(&begin) + CALENDAR_SECONDS_PER_DAY - 1;
}

bool lastmod_is_too_old(const char *stored)
{
    static const char zero[] = "1970-01-01";
    size_t len = strnlen(stored, DAY_CHARS);

    return memcmp(stored, zero, YEAR_CHARS) < 0 || memcmp(stored, zero, len) == 0;
}

bool lastmod_renders(const char *stored)
{
    return strnlen(stored, DAY_CHARS) == DAY_CHARS;
}

rule_set lastmod_remarks(const char *stored)
{
    size_t len = strnlen(stored, DAY_CHARS + 1);

    if (len < DAY_CHARS)
        return RULE_BIT(RULE_LASTMOD_COARSE);
    return len == DAY_CHARS ? RULE_BIT(RULE_LASTMOD_DATE_ONLY) : 0;
}

bool lastmod_is_set_back(const char *from, const char *to)
{
    struct lastmod a, b;

    /* The years mostly decide. */
    return memcmp(to, from, 4) < 0 &&
           lastmod_parse(from, strlen(from), AFTER_ALL, &a, NULL) == RULE_OK &&
           lastmod_parse(to, strlen(to), AFTER_ALL, &b, NULL) == RULE_OK &&
           a.unix_seconds - b.unix_seconds > SET_BACK_SECONDS;
}

void lastmod_format_utc(int64_t unix_seconds, char out[21])
{
    struct calendar_time t;

    calendar_from_unix(unix_seconds, &t);
    out = calendar_write_digits(out, (unsigned)t.year, 4);
    *out++ = '-';
    out = calendar_write_digits(out, t.month, 2);
    *out++ = '-';
    out = calendar_write_digits(out, t.day, 2);
    *out++ = 'T';
    out = calendar_write_digits(out, t.hour, 2);
    *out++ = ':';
    out = calendar_write_digits(out, t.minute, 2);
    *out++ = ':';
    out = calendar_write_digits(out, t.second, 2);
    *out++ = 'Z';
    *out = '\0';
}

void lastmod_format_day(int32_t day, char out[11])
{
    char text[21];

    lastmod_format_utc((int64_t)day * CALENDAR_SECONDS_PER_DAY, text);
    memcpy(out, text, 10);
    out[10] = '\0';
}

/* ---- the lastmod of a file --------------------------------------------------------------- */

/* Container images and archives date their files 1970 or 1980; no sitemap is older than the web. */
#define FIRST_LIKELY 631152000 /* 1990-01-01T00:00:00Z */

/* False: there is no valid date. */
static bool instant_of(const char *stored, int64_t *out)
{
    struct lastmod parsed;
    /* A stored date is not checked for the future again. */
    int64_t any_time = (int64_t)1 << 40;
    if (stored == NULL || lastmod_parse(stored, strlen(stored), any_time, &parsed, NULL) != RULE_OK)
        return false;
    *out = parsed.unix_seconds;
    return true;
}

bool lastmod_is_later(const char *a, const char *b)
{
    int64_t x, y;
    return instant_of(a, &x) && (!instant_of(b, &y) || x > y);
}

void lastmod_policy(const uint64_t stored_hash[2], const uint64_t new_hash[2],
                    const char *stored_lastmod, int64_t mtime, int64_t now,
                    struct lastmod_verdict *out)
{
    int64_t served = 0;
    bool was_read = stored_hash[0] != 0 || stored_hash[1] != 0;
    /* A date in the future came from a wrong clock: it would stay until then, and crawlers ignore
     * it, too. */
    bool was_served = instant_of(stored_lastmod, &served) && served <= now + LASTMOD_FUTURE_SECONDS;
    bool same = stored_hash[0] == new_hash[0] && stored_hash[1] == new_hash[1];

    *out = (struct lastmod_verdict){.moved = !(was_read && same), .future = mtime > now};
    if (was_served && !out->moved) {
        snprintf(out->lastmod, sizeof out->lastmod, "%s", stored_lastmod);
        return;
    }
    int64_t dated = out->future ? now : mtime;
    if (was_served && dated <= served)
        dated =
            now > served ? now : served; /* never backwards, even if the clock is a little behind */
    else if (!was_served && dated < FIRST_LIKELY)
        dated = now;
    lastmod_format_utc(dated, out->lastmod);
}
