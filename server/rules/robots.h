/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses robots.txt (RFC 9309), for a site's own file, `doctor` and `migrate`. The text may have
 * any encoding: bytes that are not UTF-8 are part of a value. Pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/url.h"

/* RFC 9309 2.5: crawlers read 500 KiB at least; Google reads no further. */
#define ROBOTS_MAX_BYTES (500u * 1024)

/* Why `text` must not be served as robots.txt, a sentence that follows its name: too long, not
 * UTF-8, control characters, an HTML page. NULL: it may be served. Static. */
const char *robots_fault(const char *text, size_t len);
/* True if `text` is HTML or XML, which many servers return for a missing file. */
bool robots_is_page(const char *text, size_t len);
/* Replaces each byte in comments that is not UTF-8 by '?'. In files with an old encoding, only
 * comments mostly have such bytes, and crawlers skip them. */
void robots_repair_comments(char *text, size_t len);

/* One line. Lines end with CR, LF or CRLF (2.2). */
struct robots_line {
    const char *text; /* as written */
    size_t len;       /* with its line end */
    uint64_t number;  /* from 1; start with 0 */
    /* For a line with a colon, without white space and comment; else both empty. */
    const char *key, *value;
    size_t key_len, value_len;
};
/* Advances `*line` to the next line, or to the first one if its `text` is NULL. False at the end of
 * `text`. */
bool robots_next_line(const char *text, size_t len, struct robots_line *line);
/* True if the line is `key: …`, ignoring case. */
bool robots_has_key(const struct robots_line *line, const char *key);

/* True if `agent` ("googlebot", lower case) may fetch `path` (with its query, as url_parse writes
 * it): by the groups of the agent, or else those of `*`. The longest matching rule decides, Allow
 * if two are equal. */
bool robots_allows(const char *text, size_t len, const char *agent, const char *path);
/* True if the pattern of a rule (`*`, and `$` at the end, are special) matches `path`. */
bool robots_matches(const char *pattern, size_t len, const char *path);

/* A URL of a Sitemap line. */
struct robots_sitemap {
    const char *url; /* as written, without quotes */
    size_t url_len;
    uint64_t line;
    bool quoted; /* in quotes, which crawlers read as part of the URL */
    bool shared; /* the line has several URLs, which crawlers read as one */
};
/* The position of robots_next_sitemap. Start with {0}. */
struct robots_cursor {
    struct robots_line line;
    size_t done; /* bytes of the line's value */
    bool shared; /* as in struct robots_sitemap */
};
/* The next URL of the Sitemap lines. False at the end. All calls together take time in proportion
 * to `len`, whatever the text. */
bool robots_next_sitemap(const char *text, size_t len, struct robots_cursor *at,
                         struct robots_sitemap *out);
/* The URL that crawlers read. False if they read none: `*code` is then a stable word for the
 * reason, `*why` a sentence that follows the text; both static. */
bool robots_sitemap_url(const struct robots_sitemap *sitemap, struct url *out, const char **code,
                        const char **why);
/* The URL that was probably intended: without quotes, and relative URLs resolved against `base`,
 * the URL of the robots.txt. False: that is not a URL either. */
bool robots_sitemap_guess(const struct robots_sitemap *sitemap, const struct url *base,
                          struct url *out);
