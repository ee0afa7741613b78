/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* From entries to a snapshot of their page, in three steps: `deflater` compresses a piece,
 * `gzip_page` joins pieces into one gzip member with its tags, `builder` decides which pieces are
 * rendered again. Internal to pages/. */

/* Deflates one piece of a page at a time: each a fresh raw stream that ends on a byte boundary, so
 * that pieces can be joined in any order (RFC 1951 3.2.3). A reset begins and Z_SYNC_FLUSH ends it:
 * the bytes of Z_FULL_FLUSH, which would only clear again what the reset clears. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/base/str.h"
#include "server/pages/page_store.h"
#include "server/pages/resource.h"

struct deflater;

/* `level` 1 to 9. NULL when out of memory. One thread at a time. */
struct deflater *deflater_new(int level);
/* Appends the compressed piece to `out`; out->failed: out of memory. The bytes depend on input,
 * level and zlib's version alone, never on buffer sizes or on what was compressed before. */
void deflater_piece(struct deflater *d, const void *raw, size_t len, struct str *out);
void deflater_free(struct deflater *d);

/* Joins deflated pieces into one gzip member (RFC 1952) in one buffer, and derives the page's
 * etags from the hashes of its segments. */

/* The constant pieces of every page of one form. */
struct gzip_page_frame {
    struct str raw_head; /* as render_head writes it; empty: not made yet */
    const char *raw_tail;
    struct str head, tail; /* deflated */
    uint32_t head_crc, tail_crc, tail_crc_shift;
};

/* `frame` is zero but for its raw_head, which is rendered, and its raw_tail. False: out of memory.
 */
bool gzip_page_frame_init(struct gzip_page_frame *frame, struct deflater *d);
void gzip_page_frame_done(struct gzip_page_frame *frame);

struct gzip_page_input {
    const struct gzip_page_frame *frame;
    int level; /* part of gzip's etags */
    const struct snapshot_segment *segments;
    const bool *fresh; /* true: its piece is in `pieces`; false: in `old` */
    uint32_t count;    /* segments, up to the last with entries */
    const uint8_t *pieces;
    const uint8_t *old; /* buffer of the base snapshot, or NULL */
};

/* A new snapshot with buffer, lengths, entries, segments and etags set; the caller owns its one
 * reference. NULL when out of memory. */
struct resource *gzip_page_snapshot(const struct gzip_page_input *input);

/* Makes snapshots: renders and deflates the segments that changed, splices them with the untouched
 * ones of an older snapshot, and seals the whole as one gzip member. */

/* Increase it with any change of the framing: it is part of gzip's etags. */
#define BUILDER_FRAMING_VERSION 1

/* A thread's workspace: compressor and buffers, reused from page to page. */
struct builder;

/* NULL when out of memory. */
struct builder *builder_new(int level);
void builder_free(struct builder *b);
/* Sets whether pages that are built from now on are styled (render_head) if they have room; at
 * first they are not. Segments are the same either way. */
void builder_style(struct builder *b, bool style);

/* The segments to render for a snapshot of a page. */
struct page_changes {
    const struct resource *base;          /* an older snapshot of the page, or NULL; borrowed */
    uint64_t segments[PAGE_SEGMENT_BITS]; /* bit S: segment S changed since `base` */
    uint32_t count;                       /* number of these bits */
    uint64_t kept;                        /* bytes of the other segments, uncompressed */
};

/* Finds the segments that changed since `base`, without rendering anything. */
enum catalogue_status builder_changes(struct catalogue_view *v, const struct page_record *page,
                                      const struct resource *base, struct page_changes *out);
/* Builds the snapshot of `page`, as the view shows it, at the view's `revision`. `changes` are
 * those of the same view; segments that did not change are taken over. On OK the caller owns a
 * reference to `*out`; `*rendered` is how many segments were rendered. The page must have entries.
 */
enum catalogue_status builder_page(struct builder *b, struct catalogue_view *v, uint64_t revision,
                                   const struct page_record *page,
                                   const struct page_changes *changes, struct resource **out,
                                   uint32_t *rendered);

/* The same from stored segments: a snapshot of `page` as the view at `revision` shows it, if they
 * are of that state. NULL when out of memory. */
struct resource *builder_restore(struct builder *b, const struct page_pieces *pieces,
                                 uint64_t revision, const struct page_record *page);
/* A buffer to read stored pages into; owned by the builder, and valid until that is used again. */
struct str *builder_buffer(struct builder *b);
/* A hash of what decides the bytes of a page beside its entries: this program's version, how it
 * renders and frames, zlib and its level. It includes a sample page, which shows changes that no
 * version number shows. False when out of memory. */
bool builder_version(struct builder *b, uint64_t out[2]);
