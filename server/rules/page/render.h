/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The XML of the pages of indexes and urlsets: head, entries and tail, and their size in bytes.
 * Pure, thread safe. The output is valid under siteindex.xsd, or under sitemap.xsd and the schemas
 * of the extensions, and begins with the XML declaration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/rules/limits.h"

/* The processing instruction with the style sheet for browsers (render.c), and a newline; for a
 * page of an index, or of a urlset. It follows the XML declaration. */
extern const char page_style[];
const char *urlset_style_of(unsigned with); /* EXTENSION_…; static */

/* Appends the XML declaration and <sitemapindex …>, each with a newline, and between them
 * page_style if the page is `styled`. */
void render_head(struct str *out, bool styled);
/* Whether a page of this size (render_frame_bytes and its entries) has room for the style
 * (page_style, urlset_style_of). The style does not count for the size, so that no page holds fewer
 * entries because of it. */
bool render_may_style(uint64_t page_bytes, const char *style);
extern const char render_tail[]; /* </sitemapindex> and a newline */

/* Appends one `<sitemap>` element and a newline. `loc` is normalised; `& ' " < >` are escaped
 * here. `lastmod` may be NULL; one that does not render (lastmod_renders) is left out. */
void render_entry(struct str *out, const char *loc, size_t loc_len, const char *lastmod);

/* Appends a text with its `& ' " < >` escaped. */
void render_escaped(struct str *out, const char *text, size_t len);

/* The size that a page counts for an entry: its escaped loc and the longest lastmod, even if it has
 * none, so that a later date never makes a page exceed its limit. */
uint32_t render_entry_bytes(const char *loc, size_t loc_len);
/* The size of an empty page: head and tail, without a style. */
uint32_t render_frame_bytes(void);

/* The same for a urlset, with urlset_style_of(with): `with` are the EXTENSION_… whose namespaces it
 * declares. */
void render_urlset_head(struct str *out, unsigned with, bool styled);
extern const char render_urlset_tail[];
/* `extensions` (may be NULL) follows the lastmod unchanged. */
void render_url(struct str *out, const char *loc, size_t loc_len, const char *lastmod,
                const char *extensions, size_t extensions_len);
uint32_t render_url_bytes(const char *loc, size_t loc_len, size_t extensions_len);
uint32_t render_urlset_frame_bytes(unsigned with);
