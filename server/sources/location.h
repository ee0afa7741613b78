/* Where a source's files are on the web: a path below its folder to a URL and back.
 * Pure, thread safe. */
#ifndef SITEMAPD_SOURCES_LOCATION_H
#define SITEMAPD_SOURCES_LOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/url.h"

struct location {
    char base[LOC_MAX_CHARS + 1]; /* normalised; ends in '/' */
    size_t base_len, origin_len;
};

/* Reads the URL that the folder's top is. `why` gets a sentence where it is none. */
bool location_init(struct location *l, const char *url, char *why, size_t why_size);
/* The normalised URL of a file. RULE_LOC_… where it has none. */
enum rule_code location_loc(const struct location *l, const char *path, struct url *out);
/* The path (SOURCE_MAX_PATH_BYTES + 1 bytes) that location_loc makes this URL of; false where
 * there is none. `url_path` is percent-encoded, without query. */
bool location_path(const struct location *l, const char *origin, const char *url_path, char *out);
/* A name or path that can be shown and registered: UTF-8 without control characters. */
bool location_is_clean(const char *path, size_t len);

#endif
