#include "server/rules/calendar.h"

#include <stdbool.h>

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

    /* Counted from 0000-01-01 the numbers stay positive, and so does the remainder. */
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
