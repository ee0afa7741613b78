/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses the three date formats of RFC 9110 5.6.7, and writes the first. */
#include <string.h>

#include "server/base/scan.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/lastmod.h"

static const char day_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const day_names_long[7] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};
static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* The names are case-sensitive (RFC 9110 5.6.7). A wrong weekday is accepted: it adds nothing to
 * the date, and senders make mistakes. */
static bool read_day_name(struct scan *s)
{
    for (unsigned i = 0; i < 7; i++) {
        if (scan_text(s, day_names[i]))
            return true;
    }
    return false;
}

static bool read_day_name_long(struct scan *s)
{
    for (unsigned i = 0; i < 7; i++) {
        if (scan_text(s, day_names_long[i]))
            return true;
    }
    return false;
}

static bool read_month(struct scan *s, unsigned *out)
{
    for (unsigned i = 0; i < 12; i++) {
        if (scan_text(s, month_names[i])) {
            *out = i + 1;
            return true;
        }
    }
    return false;
}

/* 00:00:00 to 23:59:60: a leap second is a valid time of day here. */
static bool read_clock(struct scan *s, struct calendar_time *t)
{
    return scan_digits(s, 2, &t->hour) && t->hour <= 23 && scan_char(s, ':') &&
           scan_digits(s, 2, &t->minute) && t->minute <= 59 && scan_char(s, ':') &&
           scan_digits(s, 2, &t->second) && t->second <= 60;
}

static bool read_year(struct scan *s, struct calendar_time *t)
{
    unsigned year;

    if (!scan_digits(s, 4, &year))
        return false;
    t->year = year;
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool read_imf_fixdate(struct scan s, struct calendar_time *t)
{
    return read_day_name(&s) && scan_text(&s, ", ") && scan_digits(&s, 2, &t->day) &&
           scan_char(&s, ' ') && read_month(&s, &t->month) && scan_char(&s, ' ') &&
           read_year(&s, t) && scan_char(&s, ' ') && read_clock(&s, t) && scan_text(&s, " GMT") &&
           s.at == s.end;
}

/* Two digits mean the latest year whose date is at most 50 years after `now` (RFC 9110 5.6.7). */
static void widen_year(struct calendar_time *t, unsigned two_digits, int64_t now)
{
    struct calendar_time today, fifty_years_before;

    calendar_from_unix(now, &today);
    t->year = (today.year / 100 + 1) * 100 + two_digits;
    fifty_years_before = *t;
    for (;;) {
        fifty_years_before.year = t->year - 50;
        if (calendar_to_unix(&fifty_years_before) <= now || t->year < 100)
            return;
        t->year -= 100;
    }
}

/* "Sunday, 06-Nov-94 08:49:37 GMT" */
static bool read_rfc850(struct scan s, int64_t now, struct calendar_time *t)
{
    unsigned two_digits;

    if (!read_day_name_long(&s) || !scan_text(&s, ", ") || !scan_digits(&s, 2, &t->day) ||
        !scan_char(&s, '-') || !read_month(&s, &t->month) || !scan_char(&s, '-') ||
        !scan_digits(&s, 2, &two_digits) || !scan_char(&s, ' ') || !read_clock(&s, t) ||
        !scan_text(&s, " GMT") || s.at != s.end)
        return false;
    widen_year(t, two_digits, now);
    return true;
}

/* "Sun Nov 6 08:49:37 1994": a day below 10 has a space as its first digit. */
static bool read_asctime(struct scan s, struct calendar_time *t)
{
    return read_day_name(&s) && scan_char(&s, ' ') && read_month(&s, &t->month) &&
           scan_char(&s, ' ') &&
           (scan_char(&s, ' ') ? scan_digits(&s, 1, &t->day) : scan_digits(&s, 2, &t->day)) &&
           scan_char(&s, ' ') && read_clock(&s, t) && scan_char(&s, ' ') && read_year(&s, t) &&
           s.at == s.end;
}

bool http_date_parse(const char *text, int64_t now, int64_t *out)
{
    struct scan s = {text, text + strlen(text)};
    struct calendar_time t;

    memset(&t, 0, sizeof t);
    if (!read_imf_fixdate(s, &t) && !read_rfc850(s, now, &t) && !read_asctime(s, &t))
        return false;
    if (t.day < 1 || t.day > calendar_days_in_month(t.year, t.month))
        return false;
    *out = calendar_to_unix(&t);
    return true;
}

void http_date_format(int64_t unix_seconds, char out[30])
{
    struct calendar_time t;

    calendar_from_unix(unix_seconds, &t);
    memcpy(out, day_names[t.weekday], 3);
    memcpy(out + 3, ", ", 2);
    out = calendar_write_digits(out + 5, t.day, 2);
    *out++ = ' ';
    memcpy(out, month_names[t.month - 1], 3);
    out[3] = ' ';
    out = calendar_write_digits(out + 4, (unsigned)t.year, 4);
    *out++ = ' ';
    out = calendar_write_digits(out, t.hour, 2);
    *out++ = ':';
    out = calendar_write_digits(out, t.minute, 2);
    *out++ = ':';
    out = calendar_write_digits(out, t.second, 2);
    memcpy(out, " GMT", 5);
}
