#include "server/publish/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/publish/deflater.h"
#include "server/publish/seal.h"
#include "server/rules/render.h"
#include "server/rules/str.h"

#ifndef SITEMAPD_VERSION
#define SITEMAPD_VERSION "unknown"
#endif

struct builder {
    int level;
    struct deflater *deflater;
    struct seal_frame frame; /* head and tail, deflated once */
    struct str raw;          /* the XML of the segment at hand */
    struct str pieces;       /* the deflated segments of the page at hand */
};

struct builder *builder_new(int level)
{
    struct builder *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->level = level;
    b->deflater = deflater_new(level);
    if (b->deflater == NULL || !seal_frame_init(&b->frame, b->deflater)) {
        builder_free(b);
        return NULL;
    }
    return b;
}

void builder_free(struct builder *b)
{
    if (b == NULL)
        return;
    seal_frame_done(&b->frame);
    str_done(&b->raw);
    str_done(&b->pieces);
    deflater_free(b->deflater);
    free(b);
}

struct collect {
    struct str *raw;
    uint32_t entries;
};

static bool collect_entry(void *context, uint32_t position, const char *loc, size_t loc_len,
                          const char *lastmod)
{
    struct collect *c = context;
    (void)position;
    render_entry(c->raw, loc, loc_len, lastmod);
    c->entries++;
    return !c->raw->failed;
}

/* Deflates what `raw` holds behind what `pieces` does. False when out of memory. */
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

static void stamp_snapshot(struct snapshot *s, uint64_t revision, const struct page_record *page)
{
    s->revision = revision;
    s->page_revision = page->revision;
    s->page_stamp = page->stamp;
    s->changed_at = page->changed_at;
    s->same_second = page->same_second;
}

/* Renders and deflates segment `number` of the page behind what `pieces` holds; its offset is
 * relative to `pieces` until the page is sealed. */
static enum catalogue_status render_segment(struct builder *b, struct catalogue_view *v,
                                            const struct page_record *page, uint32_t number,
                                            struct snapshot_segment *out)
{
    struct collect collect = {&b->raw, 0};
    uint32_t first = (page->number - 1) * LIMIT_PAGE_ENTRIES + number * SEGMENT_POSITIONS;
    str_clear(&b->raw);
    enum catalogue_status status = catalogue_view_positions(
        v, page->index_id, first, SEGMENT_POSITIONS, collect_entry, &collect);
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

enum catalogue_status builder_changed(struct catalogue_view *v, const struct page_record *page,
                                      const struct snapshot *base, uint32_t *out)
{
    uint64_t changed[PAGE_SEGMENT_BITS] = {0};
    enum catalogue_status status =
        catalogue_view_segments_since(v, page->index_id, page->number, base->revision, changed);
    uint32_t count = 0;
    for (size_t i = 0; i < PAGE_SEGMENT_BITS; i++)
        count += (uint32_t)__builtin_popcountll(changed[i]);
    *out = count;
    return status;
}

enum catalogue_status builder_page(struct builder *b, struct catalogue_view *v, uint64_t revision,
                                   const struct page_record *page, const struct snapshot *base,
                                   struct snapshot **out, uint32_t *rendered)
{
    uint64_t changed[PAGE_SEGMENT_BITS] = {0};
    enum catalogue_status status = catalogue_view_segments_since(
        v, page->index_id, page->number, base == NULL ? 0 : base->revision, changed);
    if (status != CATALOGUE_OK)
        return status;

    struct snapshot_segment segments[PAGE_SEGMENTS];
    bool fresh[PAGE_SEGMENTS] = {false};
    uint32_t count = 0;
    uint32_t fresh_count = 0;
    memset(segments, 0, sizeof segments);
    str_clear(&b->pieces);
    for (uint32_t i = 0; i < PAGE_SEGMENTS; i++) {
        if (bit_is_set(changed, i)) {
            status = render_segment(b, v, page, i, &segments[i]);
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

    struct seal_input input = {
        .frame = &b->frame,
        .level = b->level,
        .segments = segments,
        .fresh = fresh,
        .count = count,
        .pieces = (const uint8_t *)b->pieces.data,
        .old = base == NULL ? NULL : base->gzip,
    };
    struct snapshot *s = seal_snapshot(&input);
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

static struct snapshot *seal_fresh(struct builder *b, const struct snapshot_segment *segments,
                                   uint32_t count, const uint8_t *pieces)
{
    bool fresh[PAGE_SEGMENTS];
    memset(fresh, true, sizeof fresh);
    struct seal_input input = {
        .frame = &b->frame,
        .level = b->level,
        .segments = segments,
        .fresh = fresh,
        .count = count,
        .pieces = pieces,
    };
    return seal_snapshot(&input);
}

struct snapshot *builder_restore(struct builder *b, const struct page_pieces *pieces,
                                 uint64_t revision, const struct page_record *page)
{
    struct snapshot *s = seal_fresh(b, pieces->segments, pieces->count, pieces->bytes);
    if (s != NULL)
        stamp_snapshot(s, revision, page);
    return s;
}

/* Dates of every form, a date left out, and all that is escaped; enough of it for deflate to show
 * its level. */
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

bool builder_made_by(struct builder *b, uint64_t out[2])
{
    struct snapshot_segment segment;
    char label[128];
    str_clear(&b->raw);
    str_clear(&b->pieces);
    render_sample(&b->raw);
    if (b->raw.failed || !deflate_raw(b, SEGMENT_POSITIONS, &segment))
        return false;
    struct snapshot *s = seal_fresh(b, &segment, 1, (const uint8_t *)b->pieces.data);
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
    snapshot_unref(s);
    return done;
}
