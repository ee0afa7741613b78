/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* robots.txt (RFC 9309): the only reader of it, for a site's own text, `doctor` and `migrate`. A
 * text is read as it is sent, of any encoding: bytes that are not UTF-8 are bytes of a value. Pure
 * functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/url.h"

/* RFC 9309 2.5: crawlers read 500 KiB at least; Google reads no further. */
#define ROBOTS_MAX_BYTES (500u * 1024)

/* Why `text` is not a robots.txt that may be served, as a sentence that follows its name: too long,
 * not UTF-8, with control characters, a page of HTML. NULL where it may be. Static. */
const char *robots_fault(const char *text, size_t len);
/* True where `text` is a page of HTML or XML, as many servers answer for a file that is missing. */
bool robots_is_page(const char *text, size_t len);
/* Replaces each byte of a comment that is not UTF-8 by '?': of a file in an old encoding that is
 * mostly all, and crawlers skip comments. */
void robots_repair_comments(char *text, size_t len);

/* One line. Lines end with CR, LF or CRLF (2.2). */
struct robots_line {
    const char *text; /* as written */
    size_t len;       /* with its end */
    uint64_t number;  /* from 1; start with 0 */
    /* Of a line with a colon, without white space and comment; else both empty. */
    const char *key, *value;
    size_t key_len, value_len;
};
/* Reads the line behind `*line` into it, the first one where its `text` is NULL. False at the end
 * of the `len` bytes of `text`. */
bool robots_next_line(const char *text, size_t len, struct robots_line *line);
/* True where the line is `key: …`, in any case. */
bool robots_has_key(const struct robots_line *line, const char *key);

/* True where `agent` ("googlebot", lower case) may fetch `path` (with its query, as url_parse
 * writes it): the groups that name it, or those of `*`; of their rules the longest that matches,
 * Allow where two are equal. */
bool robots_allows(const char *text, size_t len, const char *agent, const char *path);
/* True where a pattern of a rule (`*` and a `$` at the end are special) matches `path`. */
bool robots_matches(const char *pattern, size_t len, const char *path);

/* A URL of a Sitemap line. */
struct robots_sitemap {
    const char *url; /* as written, without quotes */
    size_t url_len;
    uint64_t line;
    bool quoted; /* in quotes, which crawlers take for a part of the URL */
    bool shared; /* the line names several, which crawlers take for one URL */
};
/* Where robots_next_sitemap is. Start with {0}. */
struct robots_cursor {
    struct robots_line line;
    size_t done; /* of the line's value */
};
/* The next URL that a Sitemap line names. False at the end. */
bool robots_next_sitemap(const char *text, size_t len, struct robots_cursor *at,
                         struct robots_sitemap *out);
/* The URL that crawlers read there. False where they read none: then `*code` is a stable word for
 * why,
 * `*why` a sentence that follows the text; both static. */
bool robots_sitemap_url(const struct robots_sitemap *sitemap, struct url *out, const char **code,
                        const char **why);
/* What its author meant: the quotes are left out, and a relative URL is resolved against `base`,
 * the URL of the robots.txt. False where that is not a URL either. */
bool robots_sitemap_guess(const struct robots_sitemap *sitemap, const struct url *base,
                          struct url *out);
