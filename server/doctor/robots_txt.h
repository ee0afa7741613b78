/* What a robots.txt says (RFC 9309). Pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* True where `agent` ("googlebot", lower case) may fetch `path` (with its query): the groups that
 * name it, or those of `*`; of their rules the longest that matches, Allow where two are equal. */
bool robots_txt_allows(const char *text, const char *agent, const char *path);

/* True where a pattern of a rule (`*` and a `$` at the end are special) matches `path`. */
bool robots_txt_matches(const char *pattern, size_t len, const char *path);

/* The next value of a Sitemap line from `*at` on, which moves behind it; its length, 0 at the end.
 * Start with `*at` = the text. */
size_t robots_txt_next_sitemap(const char **at, const char **value);
