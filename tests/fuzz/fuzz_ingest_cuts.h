/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* For the fuzz targets of server/input: however an input is cut, a reader says the same of it. */
#pragma once

#include "tests/fuzz/require.h"
#include "tests/unit/input/transcript.h"

/* The first byte of an input chooses the options, the second the cut. */
#define CUTS_HEADER 2u
#define CUTS_SHORT  256u

static inline struct reader_options cuts_options(enum reader_format format, uint8_t choice)
{
    struct reader_options options = test_options(format);
    options.lenient = choice & 1;
    options.drop_lastmod = (choice & 6) == 6;
    options.allow_export_fields = choice & 8;
    options.max_entries = (choice & 48) == 48 ? 3 : 0;
    options.max_bytes = (choice & 192) == 192 ? 1500 : 0;
    return options;
}

static inline void require_same_transcript(const struct transcript *a, const struct transcript *b)
{
    if (strcmp(str_text(&a->text), str_text(&b->text)) != 0)
        fprintf(stderr, "--- whole:\n%s\n--- cut:\n%s\n", str_text(&a->text), str_text(&b->text));
    REQUIRE(strcmp(str_text(&a->text), str_text(&b->text)) == 0);
    REQUIRE(a->status == b->status);
}

static inline void require_same_in_every_cut(const struct reader_options *options,
                                             const uint8_t *data, size_t size, unsigned seed)
{
    struct transcript whole = {.stop_at = 0};
    transcript_run(&whole, options, data, size, CUT_WHOLE);
    /* Byte by byte costs most: a long input has it in one of four cuts. */
    const unsigned cuts[] = {2 + seed, CUT_BYTES};
    size_t count = size <= CUTS_SHORT || seed % 4 == 0 ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        struct transcript cut = {.stop_at = 0};
        transcript_run(&cut, options, data, size, cuts[i]);
        require_same_transcript(&whole, &cut);
        transcript_done(&cut);
    }
    transcript_done(&whole);
}
