/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses Content-Encoding. */
#include "server/input/content_coding.h"

#include <string.h>

#include "server/base/text.h"
#include "server/input/entry_validate.h"
#include "server/input/frame.h"

/* The registered codings other than gzip (IANA, "HTTP Content Coding Registry"), and their old
 * names. */
static bool is_registered(const char *word, size_t len)
{
    static const char *const words[] = {"br",   "compress", "x-compress", "dcb",         "dcz",
                                        "zstd", "deflate",  "exi",        "pack200-gzip"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (ascii_equals(word, len, words[i]))
            return true;
    return false;
}

static void read_word(const char *word, size_t len, struct content_coding *out)
{
    bool gzip = ascii_equals(word, len, "gzip") || ascii_equals(word, len, "x-gzip");
    if (len == 0 || ascii_equals(word, len, "identity"))
        return;
    if (gzip && out->gzip < FRAME_MAX_CODINGS) {
        out->gzip++;
        return;
    }
    bool unreadable = gzip || is_registered(word, len);
    if ((unreadable && !out->unreadable) || out->word[0] == '\0')
        entry_validate_quote(out->word, sizeof out->word, word, len);
    out->unreadable = out->unreadable || unreadable;
    out->odd = out->odd || !unreadable;
}

void content_coding_read(const char *value, struct content_coding *out)
{
    *out = (struct content_coding){0};
    while (value != NULL && *value != '\0') {
        size_t len = strcspn(value, ",");
        size_t front = detect_space(value, len);
        read_word(value + front, len - front - detect_space_behind(value + front, len - front),
                  out);
        value += len + (value[len] == ',');
    }
}
