/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What reads a fragment back: of any text JSON comes out that is well-formed as far as brackets and
 * strings go, and the parts of a text are no more than it is. */
#include "tests/fuzz/require.h"

#include "server/rules/page/fragment.h"

/* Brackets outside strings are balanced, and no string is open. */
static void require_balanced(const char *json)
{
    int depth = 0;
    bool string = false;

    for (const char *c = json; *c != '\0'; c++) {
        if (string) {
            if (*c == '\\' && c[1] != '\0')
                c++;
            else
                string = *c != '"';
        } else if (*c == '"') {
            string = true;
        } else if (strchr("{[", *c) != NULL) {
            depth++;
        } else if (strchr("}]", *c) != NULL) {
            REQUIRE(--depth >= 0);
        }
    }
    REQUIRE(depth == 0 && !string);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct str json = STR_INIT, part = STR_INIT, again = STR_INIT;
    unsigned found = 0;

    fragment_append_json(&json, text);
    require_balanced(str_text(&json));
    REQUIRE(utf8_is_valid(str_text(&json), json.len));
    fragment_append_part(&part, text, EXTENSIONS_ALL);
    REQUIRE(strncmp(str_text(&part), text, part.len) == 0);
    for (size_t i = 0; i < EXTENSION_COUNT; i++) {
        str_clear(&again);
        fragment_append_part(&again, text, extensions[i].bit);
        found |= again.len > 0 ? extensions[i].bit : 0;
    }
    REQUIRE(found == extensions_of(str_text(&part)));
    str_clear(&again);
    fragment_append_json(&again, str_text(&part));
    REQUIRE(strcmp(str_text(&again), str_text(&json)) == 0);
    str_done(&again);
    str_done(&part);
    str_done(&json);
    free(text);
    return 0;
}
