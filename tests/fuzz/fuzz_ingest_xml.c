/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Index XML: any cut, one outcome; whatever is taken is fit for the catalogue. */
#include "tests/fuzz/fuzz_ingest_cuts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CUTS_HEADER)
        return 0;
    struct reader_options options = cuts_options(READER_XML, data[0]);
    require_same_in_every_cut(&options, data + CUTS_HEADER, size - CUTS_HEADER, data[1]);
    return 0;
}
