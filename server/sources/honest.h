/* The lastmod of a file's entry. Crawlers trust it only where it is accurate, and redeploys touch
 * every file: so it moves only when the content does. Pure, thread safe. */
#ifndef SITEMAPD_SOURCES_HONEST_H
#define SITEMAPD_SOURCES_HONEST_H

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/limits.h"

struct honest {
    bool moved;  /* the content is another than what was stored, or nothing was stored */
    bool future; /* the file is dated in the future; taken as now */
    char lastmod[LASTMOD_MAX_CHARS + 1];
};

/* `stored_hash` 0, 0: nothing was read well before. `stored_lastmod`: last served; NULL: none.
 * Times are Unix seconds. */
void honest_lastmod(const uint64_t stored_hash[2], const uint64_t new_hash[2],
                    const char *stored_lastmod, int64_t mtime, int64_t now, struct honest *out);

#endif
