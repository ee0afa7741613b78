/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The settings of a urlset that are a number or an age, a row each. Struct members, columns, JSON
 * members, options and their documentation are generated from the rows. A new setting needs its row
 * here, its column in the schema, and code that uses it. */
#pragma once

#include <stdint.h>

#include "server/rules/limits.h"

/* X(kind, bit of URLSET_SET_…, column and C member, JSON member, option, least, most, effective
 * value, sentence, sentence on requests, help of `urlset add`, help of `urlset set`). NUMBER: from
 * least to most. AGE: seconds; in JSON and as an option a text such as 2d, and 0 is null or
 * "never". The effective value is computed from `asked` (0: not set) and the extensions `with`. */
#define URLSET_SETTINGS(X)                                                                         \
    X(NUMBER, MAX_PAGES, max_pages, max_pages, "--max-pages", 1, LIMIT_URLSET_PAGES_MAX,           \
      asked == 0 ? LIMIT_URLSET_PAGES : asked, "Maximum number of pages.", "Default: 1000.",       \
      "maximum number of pages (default: 1000)", "maximum number of pages")                        \
    X(NUMBER, PAGE_URLS, max_page_urls, max_page_urls, "--max-page-urls", LIMIT_PAGE_ENTRIES_MIN,  \
      LIMIT_PAGE_ENTRIES, page_limit_urls(asked, with),                                            \
      "Maximum number of page URLs of each page.",                                                 \
      "Default: 50000, for news 1000. Existing pages with more keep them.",                        \
      "maximum number of page URLs on a page, from 1000 (default: 50000, with news 1000)",         \
      "maximum number of page URLs on a page; existing pages with more keep them")                 \
    X(NUMBER, PAGE_BYTES, max_page_bytes, max_page_bytes, "--max-page-bytes",                      \
      LIMIT_PAGE_BYTES_MIN, LIMIT_PAGE_BYTES, page_limit_bytes(asked),                             \
      "Maximum size of each page, uncompressed.", "Default: 52428800.",                            \
      "maximum size of a page in bytes, from 1048576 (default: 52428800)",                         \
      "maximum size of a page in bytes; larger existing pages stay as they are")                   \
    X(AGE, EXPIRES, expires_s, expires, "--expires", , , asked,                                    \
      "Age at which page URLs are removed: 2d, 12h; null: never.",                                 \
      "Default: for news 2d, else null.",                                                          \
      "remove page URLs that are older: 12h, never (default: with news 2d, else never)",           \
      "remove page URLs that are older: 2d, 12h, never")

#define URLSET_TYPE_NUMBER               uint32_t
#define URLSET_TYPE_AGE                  int64_t
#define URLSET_MEMBER(kind, bit, c, ...) URLSET_TYPE_##kind c;
#define URLSET_IS(kind, bit, ...)        URLSET_IS_##bit,
#define URLSET_SET(kind, bit, ...)       URLSET_SET_##bit = 1u << URLSET_IS_##bit,
#define URLSET_COLUMN(kind, bit, c, ...) ", " #c
#define URLSET_VALUE(...)                ", ?"
#define URLSET_WRITE(kind, bit, c, ...)  ", " #c " = ?"

enum { URLSET_SETTINGS(URLSET_IS) URLSET_IS_INDEX };
enum { URLSET_SETTINGS(URLSET_SET) URLSET_SET_INDEX = 1u << URLSET_IS_INDEX };
