/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A page joined from deflated pieces is one valid gzip member with the right content, the same
 * bytes each time, and etags that follow the content alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/pages/gzip_page.h"
#include "server/rules/page/render.h"
#include "tests/unit/pages/gunzip.h"

struct made {
    struct str pieces;
    struct snapshot_segment segments[4];
    bool fresh[4];
};

static void add_piece(struct deflater *d, struct made *m, size_t i, const char *text)
{
    size_t offset = m->pieces.len;
    deflater_piece(d, text, strlen(text), &m->pieces);
    XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    m->segments[i] = (struct snapshot_segment){
        .offset = (uint32_t)offset,
        .len = (uint32_t)(m->pieces.len - offset),
        .raw_len = (uint32_t)strlen(text),
        .crc = (uint32_t)crc32(0, (const Bytef *)text, (uInt)strlen(text)),
        .entries = 1,
        .hash = {hash.high64, hash.low64},
    };
    m->fresh[i] = true;
}

static void joined_pieces_are_one_gzip_member(void **state)
{
    struct deflater *d = deflater_new(6);
    struct gzip_page_frame frame = {0};
    struct made made = {0};
    render_head(&frame.raw_head, false);
    frame.raw_tail = render_tail;
    assert_true(gzip_page_frame_init(&frame, d));
    add_piece(d, &made, 0, "<sitemap>one</sitemap>\n");
    add_piece(d, &made, 2, "<sitemap>three</sitemap>\n");
    struct gzip_page_input input = {
        &frame, 6, made.segments, made.fresh, 3, (const uint8_t *)made.pieces.data, NULL};
    struct resource *s = gzip_page_snapshot(&input);
    char *xml = gunzip(s);
    struct str expected = STR_INIT;
    render_head(&expected, false);
    str_append_text(&expected, "<sitemap>one</sitemap>\n<sitemap>three</sitemap>\n");
    str_append_text(&expected, render_tail);
    assert_string_equal(xml, str_text(&expected));
    assert_int_equal(s->entries, 2);
    free(xml);

    /* Spliced from the old buffer, one segment new: as if made from scratch. */
    struct made change = {0};
    add_piece(d, &change, 2, "<sitemap>THREE</sitemap>\n");
    change.segments[0] = s->segments[0];
    struct gzip_page_input splice = {
        &frame, 6, change.segments, change.fresh, 3, (const uint8_t *)change.pieces.data, s->gzip};
    struct resource *spliced = gzip_page_snapshot(&splice);
    struct made whole = {0};
    add_piece(d, &whole, 0, "<sitemap>one</sitemap>\n");
    add_piece(d, &whole, 2, "<sitemap>THREE</sitemap>\n");
    struct gzip_page_input again = {
        &frame, 6, whole.segments, whole.fresh, 3, (const uint8_t *)whole.pieces.data, NULL};
    struct resource *scratch = gzip_page_snapshot(&again);
    assert_int_equal(spliced->gzip_len, scratch->gzip_len);
    assert_memory_equal(spliced->gzip, scratch->gzip, scratch->gzip_len);
    assert_string_equal(spliced->etag_gzip, scratch->etag_gzip);
    assert_string_not_equal(spliced->etag_gzip, s->etag_gzip);
    assert_string_not_equal(spliced->etag_gzip, spliced->etag_identity);
    assert_string_not_equal(spliced->etag_gzip, spliced->etag_file);

    resource_unref(spliced);
    resource_unref(scratch);
    resource_unref(s);
    str_done(&expected);
    str_done(&made.pieces);
    str_done(&change.pieces);
    str_done(&whole.pieces);
    gzip_page_frame_done(&frame);
    deflater_free(d);
}

static void gzip_tags_follow_the_level(void **state)
{
    struct deflater *d = deflater_new(6);
    struct gzip_page_frame frame = {0};
    struct made made = {0};
    render_head(&frame.raw_head, false);
    frame.raw_tail = render_tail;
    assert_true(gzip_page_frame_init(&frame, d));
    add_piece(d, &made, 0, "<sitemap>one</sitemap>\n");
    struct gzip_page_input input = {
        &frame, 6, made.segments, made.fresh, 1, (const uint8_t *)made.pieces.data, NULL};
    struct resource *six = gzip_page_snapshot(&input);
    input.level = 9;
    struct resource *nine = gzip_page_snapshot(&input);
    assert_string_equal(six->etag_identity, nine->etag_identity);
    assert_string_not_equal(six->etag_gzip, nine->etag_gzip);
    resource_unref(six);
    resource_unref(nine);
    str_done(&made.pieces);
    gzip_page_frame_done(&frame);
    deflater_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_pieces_are_one_gzip_member),
        cmocka_unit_test(gzip_tags_follow_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
