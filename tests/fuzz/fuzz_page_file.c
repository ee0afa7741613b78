/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Files of stored pages, as a disk or a hand may leave them. The first byte chooses what is mended
 * behind the fuzzer's back, so that it gets past the key and the hash to the tables. */
#include "tests/fuzz/require.h"

#include <stddef.h>
#include <string.h>
#include <xxhash.h>

#include "server/pages/page_store.h"

#define HEAD_BYTES   144
#define HASH_AT      128
#define COUNT_AT     116
#define MEND_HEAD    1u
#define MEND_LENGTHS 2u
#define MEND_HASH    4u

static const uint64_t made_by[2] = {1, 2};
static const struct page_key key = {.epoch = "0123456789abcdef0123456789abcdef",
                                    .index_id = 5,
                                    .number = 1,
                                    .entries = 2,
                                    .revision = 7,
                                    .stamp = 9,
                                    .changed_at = 11};

/* A head as the program writes it, of a page without segments. */
static void mend_head(uint8_t *bytes)
{
    static const struct resource empty = {.segment_count = 0};
    struct page_pieces none;
    struct str head = STR_INIT;
    REQUIRE(page_file_encode(&key, made_by, &empty, &head, &none) && head.len == HEAD_BYTES);
    memcpy(bytes, head.data, COUNT_AT);
    str_done(&head);
}

static void mend(uint8_t *bytes, size_t len, unsigned what)
{
    if (what & MEND_HEAD)
        mend_head(bytes);
    if (what & MEND_LENGTHS) {
        uint32_t count = bytes[COUNT_AT] % (PAGE_SEGMENTS + 2);
        uint64_t pieces = len - HEAD_BYTES - (uint64_t)count * 32;
        memcpy(bytes + COUNT_AT, &count, sizeof count);
        memcpy(bytes + COUNT_AT + 4, &pieces, sizeof pieces);
    }
    if (what & MEND_HASH) {
        XXH3_state_t *state = XXH3_createState();
        XXH3_128bits_reset(state);
        XXH3_128bits_update(state, bytes, HASH_AT);
        XXH3_128bits_update(state, bytes + HEAD_BYTES, len - HEAD_BYTES);
        XXH128_hash_t hash = XXH3_128bits_digest(state);
        memcpy(bytes + HASH_AT, &hash.high64, 8);
        memcpy(bytes + HASH_AT + 8, &hash.low64, 8);
        XXH3_freeState(state);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct page_pieces pieces;
    unsigned what = size > 0 ? data[0] : 0;
    size_t len = size > 0 ? size - 1 : 0;
    uint8_t *bytes = malloc(len + (len == 0)); /* exactly: asan sees what is read beyond */

    if (len > 0)
        memcpy(bytes, data + 1, len);
    if (len >= HEAD_BYTES)
        mend(bytes, len, what);
    if (page_file_decode(bytes, len, &key, made_by, &pieces)) {
        uint64_t entries = 0;
        size_t end = 0;

        REQUIRE(pieces.count > 0 && pieces.count <= PAGE_SEGMENTS);
        REQUIRE(pieces.bytes + pieces.len == bytes + len);
        for (uint32_t i = 0; i < pieces.count; i++) {
            REQUIRE(pieces.segments[i].offset == end);
            end += pieces.segments[i].len;
            entries += pieces.segments[i].entries;
            REQUIRE(end <= pieces.len);
        }
        REQUIRE(end == pieces.len && entries == key.entries);
    }
    (void)page_file_belongs(bytes, len, key.epoch, made_by);
    free(bytes);
    return 0;
}
