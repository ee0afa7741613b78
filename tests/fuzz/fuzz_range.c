/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Range and If-Range as anyone on the net may send them, for files of any size: the first bytes of
 * the input are the size. */
#include "tests/fuzz/require.h"

#include "server/rules/http/negotiate.h"

#define NOW_2026 1767225600
#define ETAG     "\"abc\""

static enum range_kind try_size(const char *text, uint64_t size, uint64_t *first, uint64_t *len)
{
    enum range_kind kind = range_parse(text, size, first, len);

    /* What is sent is always there. */
    REQUIRE(*first <= size && *len <= size - *first);
    if (kind == RANGE_PART)
        REQUIRE(*len > 0);
    else
        REQUIRE(*first == 0 && *len == size);
    return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t bytes = 0, first, len, again_first, again_len;
    size_t head = size < sizeof bytes ? size : sizeof bytes;

    if (head > 0)
        memcpy(&bytes, data, head);
    char *text = copy_text(data + head, size - head);
    char canonical[64];
    enum range_kind kind = try_size(text, bytes, &first, &len);

    if (kind == RANGE_PART) {
        snprintf(canonical, sizeof canonical, "bytes=%llu-%llu", (unsigned long long)first,
                 (unsigned long long)(first + (len - 1)));
        REQUIRE(range_parse(canonical, bytes, &again_first, &again_len) == RANGE_PART);
        REQUIRE(again_first == first && again_len == len);
    }
    /* Of nothing there is no part. */
    REQUIRE(try_size(text, 0, &first, &len) != RANGE_PART);
    try_size(text, 1, &first, &len);
    /* Only its own tag is the tag; a date counts only where there is one. */
    struct validators undated = {ETAG, 0, false}, dated = {ETAG, (int64_t)(bytes >> 1), false};
    REQUIRE(!range_applies(text, &undated, NOW_2026) || strcmp(text, ETAG) == 0);
    (void)range_applies(text, &dated, NOW_2026);
    free(text);
    return 0;
}
