/* The text of a robots.txt (RFC 9309), as its owner gives it. Pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* RFC 9309 2.5: crawlers read 500 KiB at least; Google reads no further. */
#define ROBOTS_MAX_BYTES (500u * 1024)

/* Why `text` can be no robots.txt, as a sentence that follows its name: too long, not UTF-8, with
 * control characters, a page of HTML. NULL where it can be one. Static. */
const char *robots_fault(const char *text, size_t len);

/* The line at `text`, of `len` bytes with or without its end: true where it is a Sitemap line (any
 * case), then `*url` and `*url_len` are its value without white space and comment. */
bool robots_sitemap_line(const char *text, size_t len, const char **url, size_t *url_len);
