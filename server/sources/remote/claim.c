/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Decides the date of a sitemap after a poll. */
#include "server/sources/remote/claim.h"

#include <string.h>

#include "server/rules/lastmod.h"

#define NOW_SECONDS 60

/* When a date begins; false if it is invalid, or ahead of the clock. */
static bool begins(const char *date, int64_t now, struct lastmod *out)
{
    if (date == NULL || *date == '\0' ||
        lastmod_parse(date, strlen(date), now, out, NULL) != RULE_OK)
        return false;
    return out->unix_seconds <= now + NOW_SECONDS;
}

static bool is_same(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

static bool is_stamp(const struct claim_content *a, const struct claim_content *b)
{
    return a->one_lastmod && b->one_lastmod && is_same(a->dateless, b->dateless);
}

/* The first that may stand, into out->lastmod. */
static void choose(const struct claim_content *content, const struct claim_dates *dates,
                   int64_t now, struct claim_verdict *out)
{
    char modified[21] = "";
    struct lastmod served, date;
    bool dated = dates->served != NULL &&
                 lastmod_parse(dates->served, strlen(dates->served), now, &served, NULL) == RULE_OK;
    if (dates->modified_at > 0)
        lastmod_format_utc(dates->modified_at, modified);
    const char *const all[] = {dates->claim, content->stamp ? NULL : dates->newest, modified};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (begins(all[i], now, &date) && (!dated || date.unix_seconds > served.unix_seconds)) {
            memcpy(out->lastmod, date.text, sizeof out->lastmod);
            return;
        } else if (out->first && i == 0 && begins(all[i], now, &date)) {
            return; /* it is served as claimed, and that says more than a page's date */
        }
    /* Not even the clock sets a date back. */
    if (!out->first && !(dated && served.unix_seconds >= now))
        lastmod_format_utc(now, out->lastmod);
}

void claim_check(const struct claim_content *before, const struct claim_content *now_content,
                 const struct claim_dates *dates, int64_t now, struct claim_verdict *out)
{
    memset(out, 0, sizeof *out);
    out->first = before->hash[0] == 0 && before->hash[1] == 0;
    if (!out->first && (is_same(before->hash, now_content->hash) || is_stamp(before, now_content)))
        return;
    out->changed = !out->first;
    choose(now_content, dates, now, out);
}

static bool is_near(const char *claim, int64_t answered)
{
    struct lastmod date;
    if (claim == NULL || answered == 0 ||
        lastmod_parse(claim, strlen(claim), answered + CALENDAR_SECONDS_PER_DAY, &date, NULL) !=
            RULE_OK)
        return false;
    int64_t apart = date.unix_seconds - answered;
    return strchr(claim, 'T') != NULL && apart >= -NOW_SECONDS && apart <= NOW_SECONDS;
}

bool claim_is_now(const char *before, int64_t answered_before, const char *claim, int64_t answered)
{
    return is_near(before, answered_before) && is_near(claim, answered) &&
           strcmp(before, claim) != 0;
}
