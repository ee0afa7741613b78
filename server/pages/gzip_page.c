/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The compressor (deflater_), the joining of pieces, with their CRCs combined (gzip_page_), and the
 * builder of snapshots (builder_), one after another. */
#include "server/pages/gzip_page.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/base/str.h"
#include "server/pages/publisher.h"
#include "server/rules/limits.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/render.h"

/* A flush writes at most a pending bit block and the empty stored block behind it. */
#define FLUSH_ROOM 16

struct deflater {
    z_stream z;
};

struct deflater *deflater_new(int level)
{
    struct deflater *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    if (deflateInit2(&d->z, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(d);
        return NULL;
    }
    return d;
}

void deflater_piece(struct deflater *d, const void *raw, size_t len, struct str *out)
{
    /* A piece is at most a segment of a few hundred entries, far below what zlib's counters hold.
     */
    if (len > UINT_MAX / 2) {
        out->failed = true;
        return;
    }
    if (deflateReset(&d->z) != Z_OK) {
        out->failed = true;
        return;
    }
    if (!str_reserve(out, deflateBound(&d->z, len) + FLUSH_ROOM))
        return;
    d->z.next_in = (z_const Bytef *)raw;
    d->z.avail_in = (uInt)len;
    do {
        if (!str_reserve(out, FLUSH_ROOM))
            return;
        size_t room = out->capacity - out->len - 1;
        if (room > UINT_MAX)
            room = UINT_MAX;
        d->z.next_out = (Bytef *)out->data + out->len;
        d->z.avail_out = (uInt)room;
        int result = deflate(&d->z, Z_SYNC_FLUSH);
        out->len += room - d->z.avail_out;
        if (result != Z_OK && result != Z_BUF_ERROR) {
            out->failed = true;
            return;
        }
    } while (d->z.avail_out == 0);
}

void deflater_free(struct deflater *d)
{
    if (d == NULL)
        return;
    deflateEnd(&d->z);
    free(d);
}

/* RFC 1952 2.3: deflate, no flags, no time, no level hint, OS unknown: the same bytes everywhere.
 */
static const uint8_t gzip_header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
/* RFC 1951 3.2.6: an empty last block with fixed codes. */
static const uint8_t final_block[2] = {0x03, 0x00};
#define GZIP_TRAILER_LEN 8

bool gzip_page_frame_init(struct gzip_page_frame *frame, struct deflater *d)
{
    size_t tail_len = strlen(frame->raw_tail);
    if (frame->raw_head.failed)
        return false;
    deflater_piece(d, frame->raw_head.data, frame->raw_head.len, &frame->head);
    deflater_piece(d, frame->raw_tail, tail_len, &frame->tail);
    frame->head_crc =
        (uint32_t)crc32_z(0, (const Bytef *)frame->raw_head.data, frame->raw_head.len);
    frame->tail_crc = (uint32_t)crc32_z(0, (const Bytef *)frame->raw_tail, tail_len);
    frame->tail_crc_shift = (uint32_t)crc32_combine_gen((z_off_t)tail_len);
    return !frame->head.failed && !frame->tail.failed;
}

void gzip_page_frame_done(struct gzip_page_frame *frame)
{
    str_done(&frame->raw_head);
    str_done(&frame->head);
    str_done(&frame->tail);
}

static uint8_t *append_bytes(uint8_t *at, const void *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static uint8_t *append_u32_little_endian(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

/* `"` + 32 hex digits + `"`. */
static void etag_write(char out[RESOURCE_ETAG_SIZE], XXH3_state_t *state, const char *label)
{
    XXH3_128bits_update(state, label, strlen(label) + 1);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(out, RESOURCE_ETAG_SIZE, "\"%016llx%016llx\"", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* The tag covers the content (segments' hashes in their places, head and tail) and, for gzip, all
 * that decides its bytes; never a counter, a time or a process. */
static bool etags_write(struct resource *s, const struct gzip_page_frame *frame, int level)
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return false;
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, frame->raw_head.data, frame->raw_head.len);
    XXH3_128bits_update(state, frame->raw_tail, strlen(frame->raw_tail));
    for (uint32_t i = 0; i < s->segment_count; i++) {
        if (s->segments[i].len == 0)
            continue;
        uint64_t word[3] = {i, s->segments[i].hash[0], s->segments[i].hash[1]};
        XXH3_128bits_update(state, word, sizeof word);
    }
    etag_write(s->etag_identity, state, "identity");
    char made_by[96];
    snprintf(made_by, sizeof made_by, "gzip zlib-%s level-%d segment-%u framing-%d", zlibVersion(),
             level, SEGMENT_POSITIONS, BUILDER_FRAMING_VERSION);
    etag_write(s->etag_gzip, state, made_by);
    etag_write(s->etag_file, state, "file");
    XXH3_freeState(state);
    return true;
}

struct resource *gzip_page_snapshot(const struct gzip_page_input *input)
{
    const struct gzip_page_frame *frame = input->frame;
    if (frame == NULL)
        return NULL;
    size_t size = sizeof gzip_header + frame->head.len + frame->tail.len + sizeof final_block +
                  GZIP_TRAILER_LEN;
    for (uint32_t i = 0; i < input->count; i++)
        size += input->segments[i].len;

    struct resource *s = resource_new(HELD_PAGE);
    uint8_t *buffer = malloc(size);
    struct snapshot_segment *segments = calloc(input->count + 1, sizeof *segments);
    if (s == NULL || buffer == NULL || segments == NULL) {
        free(buffer);
        free(segments);
        resource_unref(s);
        return NULL;
    }
    s->gzip = buffer;
    s->segments = segments;
    s->segment_count = input->count;
    memcpy(segments, input->segments, input->count * sizeof *segments);

    uint8_t *at = append_bytes(buffer, gzip_header, sizeof gzip_header);
    at = append_bytes(at, frame->head.data, frame->head.len);
    uLong crc = frame->head_crc;
    s->raw_len = frame->raw_head.len;
    for (uint32_t i = 0; i < input->count; i++) {
        struct snapshot_segment *segment = &segments[i];
        if (segment->len == 0)
            continue;
        const uint8_t *from = input->fresh[i] ? input->pieces : input->old;
        const uint8_t *piece = from + segment->offset;
        segment->offset = (uint32_t)(at - buffer);
        at = append_bytes(at, piece, segment->len);
        /* Most of the work of joining two CRCs depends only on the length of the second part: it is
         * done once for a segment and kept with it. */
        if (segment->crc_shift == 0)
            segment->crc_shift = (uint32_t)crc32_combine_gen((z_off_t)segment->raw_len);
        crc = crc32_combine_op(crc, segment->crc, segment->crc_shift);
        s->raw_len += segment->raw_len;
        s->entries += segment->entries;
    }
    at = append_bytes(at, frame->tail.data, frame->tail.len);
    crc = crc32_combine_op(crc, frame->tail_crc, frame->tail_crc_shift);
    s->raw_len += strlen(frame->raw_tail);
    at = append_bytes(at, final_block, sizeof final_block);
    at = append_u32_little_endian(at, (uint32_t)crc);
    at = append_u32_little_endian(at, (uint32_t)s->raw_len);
    s->gzip_len = (size_t)(at - buffer);
    if (!etags_write(s, frame, input->level)) {
        resource_unref(s);
        return NULL;
    }
    return s;
}

#ifndef SITEMAPD_VERSION
#define SITEMAPD_VERSION "unknown"
#endif

struct builder {
    int level;
    struct deflater *deflater;
    struct gzip_page_frame plain, styled; /* head and tail, deflated once */
    /* The frames of plain and styled pages, made when they are first needed. */
    struct gzip_page_frame urlsets[2][EXTENSIONS_ALL + 1];
    bool style;        /* pages with enough room are styled */
    struct str raw;    /* the XML of the current segment */
    struct str pieces; /* the deflated segments of the current page */
};

void builder_style(struct builder *b, bool style)
{
    b->style = style;
}

static bool make_frame(struct builder *b, struct gzip_page_frame *frame, const char *tail)
{
    frame->raw_tail = tail;
    if (gzip_page_frame_init(frame, b->deflater))
        return true;
    gzip_page_frame_done(frame);
    memset(frame, 0, sizeof *frame);
    return false;
}

/* NULL: out of memory. */
static const struct gzip_page_frame *frame_of(struct builder *b, const struct page_record *page)
{
    if (page->kind == LIST_INDEX)
        return b->style && render_may_style(page->bytes, page_style) ? &b->styled : &b->plain;
    bool styled = b->style && render_may_style(page->bytes, urlset_style_of(page->with));
    struct gzip_page_frame *frame = &b->urlsets[styled][page->with & EXTENSIONS_ALL];
    if (frame->raw_head.len > 0)
        return frame;
    render_urlset_head(&frame->raw_head, page->with & EXTENSIONS_ALL, styled);
    return make_frame(b, frame, render_urlset_tail) ? frame : NULL;
}

struct builder *builder_new(int level)
{
    struct builder *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->level = level;
    b->deflater = deflater_new(level);
    render_head(&b->plain.raw_head, false);
    render_head(&b->styled.raw_head, true);
    if (b->deflater == NULL || !make_frame(b, &b->plain, render_tail) ||
        !make_frame(b, &b->styled, render_tail)) {
        builder_free(b);
        return NULL;
    }
    return b;
}

void builder_free(struct builder *b)
{
    if (b == NULL)
        return;
    gzip_page_frame_done(&b->plain);
    gzip_page_frame_done(&b->styled);
    for (unsigned with = 0; with <= EXTENSIONS_ALL; with++)
        for (int styled = 0; styled < 2; styled++)
            gzip_page_frame_done(&b->urlsets[styled][with]);
    str_done(&b->raw);
    str_done(&b->pieces);
    deflater_free(b->deflater);
    free(b);
}

struct collect {
    struct str *raw;
    enum list_kind kind;
    uint32_t entries;
};

static bool collect_row(void *context, const char *loc, size_t loc_len, const char *lastmod,
                        const char *extensions_text, size_t extensions_len)
{
    struct collect *c = context;
    if (c->kind == LIST_URLSET)
        render_url(c->raw, loc, loc_len, lastmod, extensions_text, extensions_len);
    else
        render_entry(c->raw, loc, loc_len, lastmod);
    c->entries++;
    return !c->raw->failed;
}

/* Appends the deflated `raw` to `pieces`. False when out of memory. */
static bool deflate_raw(struct builder *b, uint32_t entries, struct snapshot_segment *out)
{
    size_t offset = b->pieces.len;
    deflater_piece(b->deflater, b->raw.data, b->raw.len, &b->pieces);
    if (b->pieces.failed)
        return false;
    XXH128_hash_t hash = XXH3_128bits(b->raw.data, b->raw.len);
    *out = (struct snapshot_segment){
        .offset = (uint32_t)offset,
        .len = (uint32_t)(b->pieces.len - offset),
        .raw_len = (uint32_t)b->raw.len,
        .crc = (uint32_t)crc32_z(0, (const Bytef *)b->raw.data, b->raw.len),
        .entries = entries,
        .hash = {hash.high64, hash.low64},
    };
    return true;
}

static void stamp_snapshot(struct resource *s, uint64_t revision, const struct page_record *page)
{
    s->index_id = page->index_id;
    s->site_id = page->site_id;
    s->number = page->number;
    s->revision = revision;
    s->page_revision = page->revision;
    s->page_stamp = page->stamp;
    s->changed_at = page->changed_at;
    s->same_second = page->same_second;
}

/* Renders and deflates segment `number` of the page, appended to `pieces`; its offset is relative
 * to `pieces` until the page is sealed. */
static enum catalogue_status render_segment(struct builder *b, struct catalogue_view *v,
                                            const struct page_record *page, uint32_t number,
                                            struct snapshot_segment *out)
{
    struct collect collect = {.raw = &b->raw, .kind = page->kind};
    uint32_t first = (page->number - 1) * LIMIT_PAGE_ENTRIES + number * SEGMENT_POSITIONS;
    str_clear(&b->raw);
    enum catalogue_status status = catalogue_view_positions(
        v, page->kind, page->index_id, first, SEGMENT_POSITIONS, collect_row, &collect);
    if (status != CATALOGUE_OK)
        return status;
    memset(out, 0, sizeof *out);
    if (collect.entries == 0)
        return CATALOGUE_OK;
    return deflate_raw(b, collect.entries, out) ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

static bool bit_is_set(const uint64_t bits[PAGE_SEGMENT_BITS], uint32_t n)
{
    return (bits[n / 64] >> (n % 64)) & 1;
}

enum catalogue_status builder_changes(struct catalogue_view *v, const struct page_record *page,
                                      const struct resource *base, struct page_changes *out)
{
    *out = (struct page_changes){.base = base};
    enum catalogue_status status = catalogue_view_segments_since(
        v, page->index_id, page->number, base == NULL ? 0 : base->revision, out->segments);
    for (size_t i = 0; i < PAGE_SEGMENT_BITS; i++)
        out->count += (uint32_t)__builtin_popcountll(out->segments[i]);
    for (uint32_t i = 0; base != NULL && i < base->segment_count; i++)
        out->kept += bit_is_set(out->segments, i) ? 0 : base->segments[i].raw_len;
    return status;
}

enum catalogue_status builder_page(struct builder *b, struct catalogue_view *v, uint64_t revision,
                                   const struct page_record *page,
                                   const struct page_changes *changes, struct resource **out,
                                   uint32_t *rendered)
{
    const struct resource *base = changes->base;
    struct snapshot_segment segments[PAGE_SEGMENTS];
    bool fresh[PAGE_SEGMENTS] = {false};
    uint32_t count = 0;
    uint32_t fresh_count = 0;
    memset(segments, 0, sizeof segments);
    str_clear(&b->pieces);
    for (uint32_t i = 0; i < PAGE_SEGMENTS; i++) {
        if (bit_is_set(changes->segments, i)) {
            enum catalogue_status status = render_segment(b, v, page, i, &segments[i]);
            if (status != CATALOGUE_OK)
                return status;
            fresh[i] = true;
            fresh_count += segments[i].len > 0;
        } else if (base != NULL && i < base->segment_count) {
            segments[i] = base->segments[i];
        }
        if (segments[i].len > 0)
            count = i + 1;
    }

    struct gzip_page_input input = {
        .frame = frame_of(b, page),
        .level = b->level,
        .segments = segments,
        .fresh = fresh,
        .count = count,
        .pieces = (const uint8_t *)b->pieces.data,
        .old = base == NULL ? NULL : base->gzip,
    };
    struct resource *s = gzip_page_snapshot(&input);
    if (s == NULL)
        return CATALOGUE_NO_MEMORY;
    stamp_snapshot(s, revision, page);
    *out = s;
    *rendered = fresh_count;
    return CATALOGUE_OK;
}

struct str *builder_buffer(struct builder *b)
{
    return &b->pieces;
}

static struct resource *gzip_page_fresh(const struct builder *b,
                                        const struct gzip_page_frame *frame,
                                        const struct snapshot_segment *segments, uint32_t count,
                                        const uint8_t *pieces)
{
    bool fresh[PAGE_SEGMENTS];
    memset(fresh, true, sizeof fresh);
    struct gzip_page_input input = {
        .frame = frame,
        .level = b->level,
        .segments = segments,
        .fresh = fresh,
        .count = count,
        .pieces = pieces,
    };
    return gzip_page_snapshot(&input);
}

struct resource *builder_restore(struct builder *b, const struct page_pieces *pieces,
                                 uint64_t revision, const struct page_record *page)
{
    struct resource *s =
        gzip_page_fresh(b, frame_of(b, page), pieces->segments, pieces->count, pieces->bytes);
    if (s != NULL)
        stamp_snapshot(s, revision, page);
    return s;
}

/* Writes a sample: dates of every form, an absent date, all escaped characters; long enough for the
 * bytes to depend on the compression level. */
static void render_sample(struct str *out)
{
    static const char *const dates[] = {
        NULL, "2026", "2026-01", "2026-01-02", "2026-01-02T03:04Z", "2026-01-02T03:04:05.678+01:00",
    };
    char loc[128];
    for (unsigned i = 0; i < SEGMENT_POSITIONS; i++) {
        int len = snprintf(loc, sizeof loc, "https://example.com/%u/s%u.xml?a=<%c>&b='\"%u\"",
                           i / 7, i * 7919, 'a' + i % 26, i % 13);
        render_entry(out, loc, (size_t)len, dates[i % (sizeof dates / sizeof *dates)]);
    }
}

bool builder_version(struct builder *b, uint64_t out[2])
{
    struct snapshot_segment segment;
    char label[128];
    str_clear(&b->raw);
    str_clear(&b->pieces);
    render_sample(&b->raw);
    if (b->raw.failed || !deflate_raw(b, SEGMENT_POSITIONS, &segment))
        return false;
    struct resource *s =
        gzip_page_fresh(b, &b->plain, &segment, 1, (const uint8_t *)b->pieces.data);
    XXH3_state_t *state = XXH3_createState();
    if (s != NULL && state != NULL) {
        snprintf(label, sizeof label, "sitemapd-%s zlib-%s level-%d segment-%u framing-%d",
                 SITEMAPD_VERSION, zlibVersion(), b->level, SEGMENT_POSITIONS,
                 BUILDER_FRAMING_VERSION);
        XXH3_128bits_reset(state);
        XXH3_128bits_update(state, label, strlen(label));
        XXH3_128bits_update(state, s->gzip, s->gzip_len);
        XXH128_hash_t hash = XXH3_128bits_digest(state);
        out[0] = hash.high64;
        out[1] = hash.low64;
    }
    bool done = s != NULL && state != NULL;
    XXH3_freeState(state);
    resource_unref(s);
    return done;
}

enum catalogue_status publish_render_page(struct catalogue_view *v, int64_t index_id,
                                          uint32_t number, bool style, struct str *out)
{
    struct page_record page;
    enum catalogue_status status = catalogue_view_page(v, index_id, number, &page);
    if (status == CATALOGUE_OK && page.removed)
        status = CATALOGUE_NOT_FOUND;
    if (status != CATALOGUE_OK)
        return status;
    struct collect collect = {.raw = out, .kind = page.kind};
    if (page.kind == LIST_URLSET)
        render_urlset_head(out, page.with & EXTENSIONS_ALL,
                           style && render_may_style(page.bytes, urlset_style_of(page.with)));
    else
        render_head(out, style && render_may_style(page.bytes, page_style));
    status = catalogue_view_positions(v, page.kind, index_id, (number - 1) * LIMIT_PAGE_ENTRIES,
                                      LIMIT_PAGE_ENTRIES, collect_row, &collect);
    str_append_text(out, page.kind == LIST_URLSET ? render_urlset_tail : render_tail);
    return status == CATALOGUE_OK && out->failed ? CATALOGUE_NO_MEMORY : status;
}
