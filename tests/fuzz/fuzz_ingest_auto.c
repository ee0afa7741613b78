/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Bodies whose format is detected by content: any cut, one outcome. */
#include "tests/fuzz/fuzz_ingest_cuts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CUTS_HEADER)
        return 0;
    /* Now and then a list by name, which content must not turn into something else. */
    enum reader_format format = data[1] & 64 ? READER_LIST : READER_AUTO;
    struct reader_options options = cuts_options(format, data[0]);
    options.allow_gzip = data[1] & 128;
    require_same_in_every_cut(&options, data + CUTS_HEADER, size - CUTS_HEADER, data[1]);
    return 0;
}
