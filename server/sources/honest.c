#include "server/sources/honest.h"

#include <stdio.h>
#include <string.h>

#include "server/rules/lastmod.h"

/* Container images and archives date their files 1970 or 1980; no sitemap is older than the web. */
#define FIRST_LIKELY 631152000 /* 1990-01-01T00:00:00Z */

/* False where there is none that can be compared with. */
static bool instant_of(const char *stored, int64_t *out)
{
    struct lastmod parsed;
    /* What was served is not judged again: any time is a time. */
    int64_t any_time = (int64_t)1 << 40;
    if (stored == NULL || lastmod_parse(stored, strlen(stored), any_time, &parsed, NULL) != RULE_OK)
        return false;
    *out = parsed.unix_seconds;
    return true;
}

void honest_lastmod(const uint64_t stored_hash[2], const uint64_t new_hash[2],
                    const char *stored_lastmod, int64_t mtime, int64_t now, struct honest *out)
{
    int64_t served = 0;
    bool was_read = stored_hash[0] != 0 || stored_hash[1] != 0;
    bool was_served = instant_of(stored_lastmod, &served);
    bool same = stored_hash[0] == new_hash[0] && stored_hash[1] == new_hash[1];

    *out = (struct honest){.moved = !(was_read && same), .future = mtime > now};
    if (was_served && !out->moved) {
        snprintf(out->lastmod, sizeof out->lastmod, "%s", stored_lastmod);
        return;
    }
    int64_t dated = out->future ? now : mtime;
    if (was_served && dated <= served)
        dated = now > served ? now : served; /* a clock that was put back: never backwards */
    else if (!was_served && dated < FIRST_LIKELY)
        dated = now;
    lastmod_format_utc(dated, out->lastmod);
}
