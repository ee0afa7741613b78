/* Makes snapshots: renders and deflates the segments that changed, splices them with the untouched
 * ones of an older snapshot, and seals the whole as one gzip member. Internal to publish. */
#ifndef SITEMAPD_PUBLISH_BUILDER_H
#define SITEMAPD_PUBLISH_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/publish/page_file.h"
#include "server/publish/snapshot.h"

/* Steps with any change of how bytes are framed: it is part of gzip's etags. */
#define BUILDER_FRAMING_VERSION 1

/* A thread's workspace: compressor and buffers, reused from page to page. */
struct builder;

/* NULL when out of memory. */
struct builder *builder_new(int level);
void builder_free(struct builder *b);

/* Builds the snapshot of `page`, as the view shows it, at the view's `revision`. `base` (may be
 * NULL) is an older snapshot of the same page, whose untouched segments are taken over. On OK the
 * caller owns a reference to `*out`; `*rendered` is how many segments were rendered. The page must
 * have entries. */
enum catalogue_status builder_page(struct builder *b, struct catalogue_view *v, uint64_t revision,
                                   const struct page_record *page, const struct snapshot *base,
                                   struct snapshot **out, uint32_t *rendered);

/* The same of segments that were stored: a snapshot of `page` as the view at `revision` shows it,
 * if they are of that state. NULL when out of memory. */
struct snapshot *builder_restore(struct builder *b, const struct page_pieces *pieces,
                                 uint64_t revision, const struct page_record *page);
/* Where stored pages are read into; the builder's own, until it is used again. */
struct str *builder_buffer(struct builder *b);
/* A hash of what decides the bytes of a page beside its entries: this program's version, how it
 * renders and frames, zlib and its level. A sample page is built for it, so that what no version
 * number tells is noticed too. False when out of memory. */
bool builder_made_by(struct builder *b, uint64_t out[2]);

/* How many segments of the page changed since `base`, without rendering any. */
enum catalogue_status builder_changed(struct catalogue_view *v, const struct page_record *page,
                                      const struct snapshot *base, uint32_t *out);

#endif
