/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A page's file is believed only where every byte of it is as it was written, for this state of
 * this page, by a program that makes the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "server/pages/page_store.h"
#include "tests/unit/pages/page_world.h"

/* Where fields stand, written down apart from the code: 8 magic, 4 byte order, 4 version, 16 made
 * by, 40 epoch, 8 index, 4 number, 4 entries, 8 revision, 8 stamp, 8 changed at, 4 same second, 4
 * segments, 8 length of the pieces, 16 hash; then 32 for each segment. */
#define HEAD_BYTES    144
#define HASH_AT       128
#define COUNT_AT      116
#define PIECES_LEN_AT 120

static const uint64_t made_by[2] = {11, 12};

struct file {
    struct resource *page;
    struct page_key key;
    uint8_t *bytes; /* exactly so many: whatever is read beyond them is found by asan */
    size_t len;
};

static void make_file(struct file *f)
{
    struct str head = STR_INIT;
    struct page_pieces pieces;
    f->page = page_world_snapshot(6, 3);
    page_world_key(f->page, &f->key);
    assert_true(page_file_encode(&f->key, made_by, f->page, &head, &pieces));
    assert_int_equal(head.len, HEAD_BYTES + 3 * 32);
    str_append(&head, pieces.bytes, pieces.len);
    f->len = head.len;
    f->bytes = malloc(head.len);
    memcpy(f->bytes, head.data, head.len);
    str_done(&head);
}

static void drop_file(struct file *f)
{
    resource_unref(f->page);
    free(f->bytes);
}

static bool decodes(const struct file *f)
{
    struct page_pieces pieces;
    return page_file_decode(f->bytes, f->len, &f->key, made_by, &pieces);
}

/* Writes the hash that belongs to what the file now says: for lies that were reported on purpose.
 */
static void gzip_page_again(struct file *f)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, f->bytes, HASH_AT);
    XXH3_128bits_update(state, f->bytes + HEAD_BYTES, f->len - HEAD_BYTES);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    memcpy(f->bytes + HASH_AT, &hash.high64, 8);
    memcpy(f->bytes + HASH_AT + 8, &hash.low64, 8);
    XXH3_freeState(state);
}

static void what_was_written_comes_back(void **state)
{
    struct file f;
    struct page_pieces pieces;
    make_file(&f);
    assert_true(page_file_decode(f.bytes, f.len, &f.key, made_by, &pieces));
    assert_int_equal(pieces.count, 3);
    assert_ptr_equal(pieces.bytes, f.bytes + HEAD_BYTES + 3 * 32);
    assert_int_equal(pieces.len, f.len - HEAD_BYTES - 3 * 32);
    for (uint32_t i = 0; i < 3; i++) {
        const struct snapshot_segment *was = &f.page->segments[i], *is = &pieces.segments[i];
        assert_int_equal(is->len, was->len);
        assert_int_equal(is->raw_len, was->raw_len);
        assert_int_equal(is->crc, was->crc);
        assert_int_equal(is->entries, was->entries);
        assert_memory_equal(is->hash, was->hash, sizeof is->hash);
        if (was->len > 0)
            assert_memory_equal(pieces.bytes + is->offset, f.page->gzip + was->offset, was->len);
    }
    gzip_page_again(&f); /* the test's own idea of the hash is the code's */
    assert_true(decodes(&f));
    drop_file(&f);
}

static void another_state_of_the_page_is_refused(void **state)
{
    struct file f;
    struct page_key key;
    uint64_t other[2] = {11, 13};
    struct page_pieces pieces;
    make_file(&f);
#define REFUSED_WITH(change)                                                                       \
    key = f.key;                                                                                   \
    key.change;                                                                                    \
    assert_false(page_file_decode(f.bytes, f.len, &key, made_by, &pieces))
    REFUSED_WITH(epoch[31] ^= 1);
    REFUSED_WITH(index_id++);
    REFUSED_WITH(number++);
    REFUSED_WITH(entries++);
    REFUSED_WITH(revision++);
    REFUSED_WITH(stamp++);
    REFUSED_WITH(changed_at--);
    REFUSED_WITH(same_second = true);
    assert_false(page_file_decode(f.bytes, f.len, &f.key, other, &pieces));
    assert_true(decodes(&f));
    drop_file(&f);
}

static void each_bit_counts(void **state)
{
    struct file f;
    make_file(&f);
    for (size_t bit = 0; bit < f.len * 8; bit++) {
        f.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_false(decodes(&f));
        f.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    assert_true(decodes(&f));
    drop_file(&f);
}

static void each_length_counts(void **state)
{
    struct file f, cut;
    make_file(&f);
    cut = f;
    for (cut.len = 0; cut.len < f.len; cut.len++) {
        cut.bytes = malloc(cut.len + 1);
        memcpy(cut.bytes, f.bytes, cut.len);
        assert_false(decodes(&cut));
        free(cut.bytes);
    }
    cut.len = f.len + 1;
    cut.bytes = calloc(1, cut.len);
    memcpy(cut.bytes, f.bytes, f.len);
    assert_false(decodes(&cut));
    free(cut.bytes);
    drop_file(&f);
}

/* Lengths and counts that lie, under a hash that fits them: none leads out of the bytes. */
static void lies_are_refused(void **state)
{
    static const struct {
        const char *what;
        size_t at;
        uint64_t value;
        size_t size;
    } lies[] = {
        {"no segment", COUNT_AT, 0, 4},
        {"a segment too many", COUNT_AT, PAGE_SEGMENTS + 1, 4},
        {"4294967295 segments", COUNT_AT, UINT32_MAX, 4},
        {"one segment less", COUNT_AT, 2, 4},
        {"pieces without end", PIECES_LEN_AT, UINT64_MAX, 8},
        {"no pieces", PIECES_LEN_AT, 0, 8},
        {"a first segment without end", HEAD_BYTES, UINT32_MAX, 4},
        {"a first segment one longer", HEAD_BYTES, 0, 4},
        {"XML without end", HEAD_BYTES + 4, UINT32_MAX, 4},
        {"no XML", HEAD_BYTES + 4, 0, 4},
        {"an entry too many", HEAD_BYTES + 12, SEGMENT_POSITIONS + 1, 4},
        {"no entries", HEAD_BYTES + 12, 0, 4},
        {"entries of nothing", HEAD_BYTES + 32 + 12, 1, 4},
        {"a last segment of nothing", HEAD_BYTES + 64, 0, 32},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct file f;
        make_file(&f);
        memset(f.bytes + lies[i].at, 0, lies[i].size);
        memcpy(f.bytes + lies[i].at, &lies[i].value, lies[i].size < 8 ? lies[i].size : 8);
        gzip_page_again(&f);
        if (decodes(&f))
            fail_msg("believed: %s", lies[i].what);
        drop_file(&f);
    }
}

static void a_peek_tells_other_catalogues_and_programs(void **state)
{
    struct file f;
    uint64_t other[2] = {11, 13};
    make_file(&f);
    assert_true(page_file_belongs(f.bytes, PAGE_FILE_PEEK_BYTES, PAGE_WORLD_EPOCH, made_by));
    assert_false(page_file_belongs(f.bytes, PAGE_FILE_PEEK_BYTES - 1, PAGE_WORLD_EPOCH, made_by));
    assert_false(page_file_belongs(f.bytes, PAGE_FILE_PEEK_BYTES, "another", made_by));
    assert_false(page_file_belongs(f.bytes, PAGE_FILE_PEEK_BYTES, PAGE_WORLD_EPOCH, other));
    f.bytes[0] ^= 1;
    assert_false(page_file_belongs(f.bytes, PAGE_FILE_PEEK_BYTES, PAGE_WORLD_EPOCH, made_by));
    drop_file(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_comes_back),
        cmocka_unit_test(another_state_of_the_page_is_refused),
        cmocka_unit_test(each_bit_counts),
        cmocka_unit_test(each_length_counts),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(a_peek_tells_other_catalogues_and_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
