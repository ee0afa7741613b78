/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The XML of pages, of indexes and of urlsets: head, entries, tail, and what they weigh. Pure,
 * thread safe. The output is valid under siteindex.xsd, or sitemap.xsd and those of the extensions,
 * and has no byte before the XML declaration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/rules/limits.h"

/* How a browser shows a page of an index or a urlset: a processing instruction behind the XML
 * declaration with the style sheet in its address (render.c), and a newline. */
extern const char page_style[];
const char *urlset_style_of(unsigned with); /* EXTENSION_…; static */

/* Appends declaration and <sitemapindex …>, a newline behind each, between them page_style where
 * the page is `styled`. */
void render_head(struct str *out, bool styled);
/* Whether a page that weighs this (render_frame_bytes and its entries) has room for the style: it
 * (page_style, urlset_style_of) is not counted, so that no page holds fewer entries for it. */
bool render_may_style(uint64_t page_bytes, const char *style);
extern const char render_tail[]; /* </sitemapindex> and a newline */

/* Appends one `<sitemap>` element and a newline. `loc` is normalised; `& ' " < >` are escaped
 * here. `lastmod` may be NULL; one that does not render (lastmod_renders) is left out. */
void render_entry(struct str *out, const char *loc, size_t loc_len, const char *lastmod);

/* Appends a text with its `& ' " < >` escaped. */
void render_escaped(struct str *out, const char *text, size_t len);

/* What the page's byte count holds for an entry: its loc as escaped, and the longest lastmod
 * whether it has one or not, so that a later date never lifts a page over its limit. */
uint32_t render_entry_bytes(const char *loc, size_t loc_len);
/* What an empty page weighs: head and tail, without a style. */
uint32_t render_frame_bytes(void);

/* The same of a urlset, with urlset_style_of(with): `with` are the EXTENSION_… whose namespaces its
 * frame declares. */
void render_urlset_head(struct str *out, unsigned with, bool styled);
extern const char render_urlset_tail[];
/* `extensions` (NULL: none) stands as it is behind the lastmod. */
void render_url(struct str *out, const char *loc, size_t loc_len, const char *lastmod,
                const char *extensions, size_t extensions_len);
uint32_t render_url_bytes(const char *loc, size_t loc_len, size_t extensions_len);
uint32_t render_urlset_frame_bytes(unsigned with);
