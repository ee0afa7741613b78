/* Words for people that follow a number: "1 entry", "2 entries". Pure; any thread. */
#ifndef SITEMAPD_RULES_PLURAL_H
#define SITEMAPD_RULES_PLURAL_H

#include <stdint.h>

/* `one` where `count` is 1, else `many`. */
static inline const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

#endif
