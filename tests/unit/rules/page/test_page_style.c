/* The style of a page is the sheet that lies beside it, in an address that no parser stumbles over.
 */
#include "tests/unit/rules/check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/str.h"
#include "server/rules/page/page_style.h"

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

static void test_it_is_the_sheet(void **state)
{
    struct str sheet = STR_INIT, style = STR_INIT;
    FILE *file = fopen("server/rules/page/page_style.css", "r");
    size_t len = strlen(page_style);

    (void)state;
    assert_non_null(file);
    squeeze(file, &sheet);
    fclose(file);
    assert_memory_equal(page_style, BEGIN, strlen(BEGIN));
    assert_string_equal(page_style + len - strlen(END), END);
    decode(page_style + strlen(BEGIN), len - strlen(BEGIN) - strlen(END), &style);
    assert_string_equal(str_text(&style), str_text(&sheet));
    str_done(&sheet);
    str_done(&style);
}

/* Nothing in it ends the instruction, the attribute or the address (RFC 3986 2.2), or opens an
 * element for a reader that looks for bytes only. */
static void test_bytes(void **state)
{
    size_t first = strlen(BEGIN), last = strlen(page_style) - strlen(END);

    (void)state;
    for (size_t i = first; i < last; i++)
        assert_true(isgraph((unsigned char)page_style[i]) &&
                    strchr("\"<>&#?'\\^`|", page_style[i]) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_the_sheet),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
