/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Ids and cursors, which clients are to give back as they got them: what is read is what would be
 * written, to the byte. */
#include "tests/fuzz/require.h"

#include "db/read/row.h"

static void try_id(const char *text)
{
    int64_t index, serial;
    uint32_t position;
    char again[ENTRY_ID_SIZE];

    if (!id_parse(text, &index, &position, &serial))
        return;
    REQUIRE(index >= 0 && index <= ID_MAX_INDEX && serial >= 0);
    REQUIRE(id_address(index, position) >= 0);
    REQUIRE(id_address_index(id_address(index, position)) == index);
    id_format(index, position, serial, again);
    REQUIRE(strcmp(again, text) == 0);
}

static void try_cursor(const char *text)
{
    struct cursor cursor;
    char again[ENTRY_CURSOR_SIZE];

    if (!cursor_parse(text, &cursor))
        return;
    REQUIRE(cursor.kind == CURSOR_POSITION || cursor.kind == CURSOR_LOC);
    REQUIRE(cursor.owner > 0);
    cursor_format(&cursor, again);
    REQUIRE(strcmp(again, text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);

    try_id(text);
    try_cursor(text);
    free(text);
    return 0;
}
