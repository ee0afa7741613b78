/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The style of a page is the sheet that lies beside it, in an address that no parser stumbles over.
 */
#include "tests/unit/rules/check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/str.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/render.h"

#define BEGIN "<?xml-stylesheet type=\"text/css\" href=\"data:text/css,"
#define END   "\"?>\n"

/* Without comments, and blanks only where a word or a text has them. */
static void squeeze(FILE *sheet, struct str *out)
{
    bool quoted = false, blank = false;
    int c;

    while ((c = fgetc(sheet)) != EOF) {
        if (!quoted && isspace(c)) {
            blank = true;
            continue;
        }
        char last = out->len > 0 ? out->data[out->len - 1] : '{';
        bool joins = strchr("{};:,", last) != NULL || (!quoted && strchr("{};:,", c) != NULL);
        if (blank && !joins)
            str_append(out, " ", 1);
        blank = false;
        quoted ^= c == '"';
        if (c == '}' && last == ';')
            out->len--;
        char byte = (char)c;
        str_append(out, &byte, 1);
    }
}

static void decode(const char *text, size_t len, struct str *out)
{
    for (size_t i = 0; i < len; i++) {
        char byte = text[i];
        if (byte == '%') {
            byte = (char)strtol((char[]){text[i + 1], text[i + 2], '\0'}, NULL, 16);
            i += 2;
        }
        str_append(out, &byte, 1);
    }
}

static void compare(const char *text, const char *path)
{
    struct str sheet = STR_INIT, style = STR_INIT;
    FILE *file = fopen(path, "r");
    size_t len = strlen(text);

    assert_non_null(file);
    squeeze(file, &sheet);
    fclose(file);
    assert_memory_equal(text, BEGIN, strlen(BEGIN));
    assert_string_equal(text + len - strlen(END), END);
    decode(text + strlen(BEGIN), len - strlen(BEGIN) - strlen(END), &style);
    assert_string_equal(str_text(&style), str_text(&sheet));
    str_done(&sheet);
    str_done(&style);
}

static void test_it_is_the_sheet(void **state)
{
    compare(page_style, "server/rules/page/page_style.css");
    compare(urlset_style_of(0), "server/rules/page/urlset_style.css");
}

/* That of videos has rules of theirs before its last, and no other difference. */
static void test_videos(void **state)
{
    const char *plain = urlset_style_of(EXTENSIONS_ALL & ~EXTENSION_VIDEOS);
    const char *videos = urlset_style_of(EXTENSION_VIDEOS), *more = strstr(videos, "video{");
    const char *end = more != NULL ? strstr(more, "@media") : NULL;
    assert_ptr_equal(plain, urlset_style_of(0));
    assert_non_null(end);
    assert_memory_equal(videos, plain, (size_t)(more - videos));
    assert_string_equal(plain + (more - videos), end);
}

/* Nothing in it ends the instruction, the attribute or the address (RFC 3986 2.2), or opens an
 * element for a reader that looks for bytes only. */
static void test_bytes(void **state)
{
    const char *const styles[] = {page_style, urlset_style_of(0),
                                  urlset_style_of(EXTENSION_VIDEOS)};

    for (size_t n = 0; n < 3; n++)
        for (size_t i = strlen(BEGIN); i < strlen(styles[n]) - strlen(END); i++)
            assert_true(isgraph((unsigned char)styles[n][i]) &&
                        strchr("\"<>&#?'\\^`|", styles[n][i]) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_the_sheet),
        cmocka_unit_test(test_videos),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
