#include "server/rules/lastmod.h"

#include <string.h>

#include "server/rules/calendar.h"
#include "server/rules/scan.h"

#define YEAR_CHARS       4u  /* YYYY */
#define MONTH_CHARS      7u  /* YYYY-MM */
#define DAY_CHARS        10u /* YYYY-MM-DD */
#define MINUTE_CHARS     16u /* YYYY-MM-DDThh:mm */
#define OFFSET_MAX_HOURS 14u

struct parts {
    struct calendar_time time;
    size_t kept;          /* leading bytes that are stored as they came */
    const char *fraction; /* digits behind the point */
    size_t fraction_len;  /* cut at LASTMOD_FRACTION_DIGITS */
    const char *zone;     /* "Z" or "+hh:mm"; NULL where there is no time */
    size_t zone_len;
    int64_t offset_seconds; /* east of UTC */
};

/* YYYY, YYYY-MM or YYYY-MM-DD; stops where the text does or where a time begins. */
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

/* hh:mm, hh:mm:ss or hh:mm:ss.s+. Hour 24 and second 60 are in ISO 8601, but not every reader of
 * a sitemap takes them. */
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

/* The granularity given is the one served, but for minutes: XSD's dateTime has seconds always. */
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
    /* Not now + a day: `now` may be anything, `begins` is a date of four digits. */
    if (begins - LASTMOD_FUTURE_SECONDS > now)
        return RULE_LASTMOD_FUTURE;

    write_text(text, &p, out->text);
    out->unix_seconds = begins;
    out->renders = lastmod_renders(out->text);
    if (remarks != NULL)
        *remarks |= lastmod_remarks(out->text);
    return RULE_OK;
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
