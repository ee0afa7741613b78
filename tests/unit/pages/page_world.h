/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Small pages, for the tests of what keeps them. */
#pragma once

#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/pages/gzip_page.h"
#include "server/pages/page_store.h"
#include "server/rules/page/render.h"

#define PAGE_WORLD_EPOCH "0123456789abcdef0123456789abcdef"

/* A page of `count` segments, every second of them empty, two entries in each other. */
static inline struct resource *page_world_snapshot(int level, uint32_t count)
{
    struct deflater *d = deflater_new(level);
    struct gzip_page_frame frame = {0};
    struct str pieces = STR_INIT;
    struct snapshot_segment segments[PAGE_SEGMENTS] = {0};
    bool fresh[PAGE_SEGMENTS] = {false};
    render_head(&frame.raw_head, false);
    frame.raw_tail = render_tail;
    assert_true(gzip_page_frame_init(&frame, d));
    for (uint32_t i = 0; i < count; i += 2) {
        char text[128];
        size_t offset = pieces.len;
        size_t len = (size_t)snprintf(text, sizeof text,
                                      "<sitemap>%u</sitemap>\n<sitemap>two</sitemap>\n", i);
        deflater_piece(d, text, len, &pieces);
        XXH128_hash_t hash = XXH3_128bits(text, len);
        segments[i] = (struct snapshot_segment){
            .offset = (uint32_t)offset,
            .len = (uint32_t)(pieces.len - offset),
            .raw_len = (uint32_t)len,
            .crc = (uint32_t)crc32(0, (const Bytef *)text, (uInt)len),
            .entries = 2,
            .hash = {hash.high64, hash.low64},
        };
        fresh[i] = true;
    }
    struct gzip_page_input input = {
        &frame, level, segments, fresh, count, (const uint8_t *)pieces.data, NULL};
    struct resource *s = gzip_page_snapshot(&input);
    assert_non_null(s);
    s->page_revision = 7;
    s->page_stamp = 0xfedcba9876543210u;
    s->changed_at = 1767225600;
    str_done(&pieces);
    gzip_page_frame_done(&frame);
    deflater_free(d);
    return s;
}

/* What the page is called: page 1 of index 5. */
static inline void page_world_key(const struct resource *s, struct page_key *out)
{
    memset(out, 0, sizeof *out);
    strcpy(out->epoch, PAGE_WORLD_EPOCH);
    out->index_id = 5;
    out->number = 1;
    out->entries = s->entries;
    out->revision = s->page_revision;
    out->stamp = s->page_stamp;
    out->changed_at = s->changed_at;
    out->same_second = s->same_second;
}
