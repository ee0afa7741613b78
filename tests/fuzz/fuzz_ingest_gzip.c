/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Gzip: any bytes behind the magic in any cut have one outcome; and a text that is packed in
 * members (stored blocks, made here) reads as the text itself does. */
#include "tests/fuzz/fuzz_ingest_cuts.h"

static uint32_t crc(const uint8_t *data, size_t size)
{
    uint32_t value = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        value ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    }
    return ~value;
}

static void append_number(struct str *out, uint32_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        str_append_char(out, (char)(value >> 8 * i));
}

/* RFC 1952 2.3 around one stored block, RFC 1951 3.2.4. */
static void append_member(struct str *out, const uint8_t *data, uint16_t size)
{
    str_append(out, "\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);
    append_number(out, size, 2);
    append_number(out, (uint16_t)~size, 2);
    str_append(out, data, size);
    append_number(out, crc(data, size), 4);
    append_number(out, size, 4);
}

static void require_same_packed(const struct reader_options *options, const uint8_t *data,
                                size_t size, unsigned seed)
{
    struct str packed = STR_INIT;
    struct transcript plain = {.stop_at = 0}, unpacked = {.stop_at = 0};
    uint32_t state = seed;
    transcript_run(&plain, options, data, size, CUT_WHOLE);
    size_t at = 0;
    do {
        size_t piece = transcript_piece(2 + seed, &state, size - at);
        append_member(&packed, data + at, (uint16_t)piece);
        at += piece;
    } while (at < size);
    REQUIRE(!packed.failed);
    transcript_run(&unpacked, options, packed.data, packed.len, seed);
    require_same_transcript(&plain, &unpacked);
    transcript_done(&plain);
    transcript_done(&unpacked);
    str_done(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CUTS_HEADER)
        return 0;
    struct reader_options options = cuts_options(READER_AUTO, data[0]);
    const uint8_t *text = data + CUTS_HEADER;
    size_t len = size - CUTS_HEADER;
    require_same_in_every_cut(&options, text, len, data[1]);
    /* What is gzip already would be unpacked again by the plain reading. */
    if (len < 65536 && !(len >= 2 && text[0] == 0x1f && text[1] == 0x8b))
        require_same_packed(&options, text, len, data[1]);
    return 0;
}
