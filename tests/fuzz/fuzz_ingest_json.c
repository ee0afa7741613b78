/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* JSON bodies and NDJSON: any cut, one outcome; and a body of one object comes to the same as
 * json_entry_parse. */
#include "tests/fuzz/fuzz_ingest_cuts.h"

#include "server/input/reader.h"

/* A body that is one object says what json_entry_parse says of it. (One that is malformed behind
 * the object has handed it on before it failed: nothing to compare.) */
static void require_same_alone(const struct reader_options *options, const uint8_t *data,
                               size_t size)
{
    struct transcript body = {.stop_at = 0};
    struct transcript alone = {.stop_at = 0};
    struct json_entry e;
    struct rejection rejection;
    transcript_run(&body, options, data, size, CUT_WHOLE);
    enum rule_code code = json_entry_parse((const char *)data, size, 0, options, &e, &rejection);
    if (body.status == READER_OK) {
        if (code == RULE_OK)
            transcript_entry(&alone, &e.entry);
        else
            transcript_reject(&alone, &rejection);
        REQUIRE(strncmp(str_text(&body.text), str_text(&alone.text), alone.text.len) == 0);
        REQUIRE(str_text(&body.text)[alone.text.len] == '=');
    } else if (!options->max_bytes && size <= READER_MAX_ITEM_BYTES) {
        REQUIRE(code == RULE_JSON);
    }
    json_entry_done(&e);
    transcript_done(&body);
    transcript_done(&alone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CUTS_HEADER)
        return 0;
    enum reader_format format = data[1] & 128 ? READER_NDJSON : READER_JSON;
    struct reader_options options = cuts_options(format, data[0]);
    require_same_in_every_cut(&options, data + CUTS_HEADER, size - CUTS_HEADER, data[1]);
    const uint8_t *text = data + CUTS_HEADER;
    if (format == READER_JSON && size > CUTS_HEADER && text[0] == '{')
        require_same_alone(&options, text, size - CUTS_HEADER);
    return 0;
}
