/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which index may hold a loc, and the names of the pages of an index. Pure functions, thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/limits.h"
#include "server/rules/url.h"

#define INDEX_PATH_DEFAULT   "/sitemap_index.xml" /* the default index of a site */
#define PAGE_PATTERN_DEFAULT "{stem}-{n}{suffix}"
#define PAGE_PATH_SIZE       (INDEX_PATH_MAX_CHARS + 64)

/* The length of the directory of `path`: up to and with its last slash ("/shop/x.xml" -> 6). */
size_t scope_directory_len(const char *path, size_t len);

/* True if the path of `loc` is in or below the directory of the index at `index_path`
 * (sitemaps.org, "location"). Both are normalised. Does not check hosts. */
bool scope_holds(const char *index_path, const struct url *loc);

/* Checks an index path: absolute, normalised, ends in ".xml", no query, not "/robots.txt". */
enum rule_code scope_check_index_path(const char *path);
/* Checks a page pattern: "{stem}", "{n}" and "{suffix}", each once, in this order, with literal
 * URL path characters between them (no slash), at least one between {stem} and {n}. */
enum rule_code scope_check_pattern(const char *pattern);

/* Writes the path of page `number` (1 is the index's own path) to `out` (PAGE_PATH_SIZE bytes):
 * "/sitemap_index.xml", "/sitemap_index-2.xml". With `gz` the ".gz" is appended. */
void scope_page_path(const char *index_path, const char *pattern, uint32_t number, bool gz,
                     char *out);

/* The number, 1 to `max_number`, of the index's page at `path_and_query` (with or without ".gz");
 * 0: none. A query never matches. Numbers are canonical: "-02" and "-1" are not page names. */
uint32_t scope_page_number(const char *index_path, const char *pattern, uint32_t max_number,
                           const char *path_and_query, size_t len);

/* True if two indexes of one site and directory would have pages (1 to `max_number`) with the same
 * name. The time does not depend on `max_number`. */
bool scope_pages_meet(const char *path_a, const char *pattern_a, const char *path_b,
                      const char *pattern_b, uint32_t max_number);
