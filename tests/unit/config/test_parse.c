/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a line of the file may be: nothing is cut, joined or guessed in silence. */
#include "tests/unit/config/fixture.h"

#define COMMENT(mark)                                                                              \
    "a \" " mark "\" would be part of the value; a comment needs a line of its own"
#define NO_SETTING "is not a setting; write key = value"

static void test_shapes_that_are_taken(void **state)
{
    static const struct file_row rows[] = {
        {"", ""},
        {"\n\n\r\n", ""},
        {"; a comment\n# another\n   ; indented\n\t# too\n", ""},
        {"[server]\nlisten = 127.0.0.1:1\n", ""},
        {"[server]\r\nlisten = 127.0.0.1:1\r\n", ""},
        {"[server]\nlisten=127.0.0.1:1", ""},
        {"[server]\nlisten   =\t127.0.0.1:1  \t\n", ""},
        {"\xef\xbb\xbf[server]\nlisten = 127.0.0.1:1\n", ""},
        {"[server] ; the public side\nlisten = 127.0.0.1:1\n", ""},
        {"[server]\nlisten = 127.0.0.1:1\n[log]\n[server]\nthreads = 1\n", ""},
        {"[server]\ncache_control = a;b#c\n", ""},
        {"[site \"a\"]\norigin = https://a.example\n", ""},
        {"[site\t\"a\"]\norigin = https://a.example\n", ""},
    };

    check_rows(rows, ROWS(rows));
}

/* What another reader of such files may understand otherwise. */
static void test_traps(void **state)
{
    static const struct file_row rows[] = {
        {" [server]\n  listen = 127.0.0.1:1\n\tlisten = 127.0.0.1:2\n",
         "3: listen is set twice; first in line 2\n"}, /* not more of the line above */
        {"[server]\ncache_control = public ; max-age=1\n", "2: " COMMENT(";") "\n"},
        {"[server]\ncache_control =\t;x\n", "2: " COMMENT(";") "\n"},
        {"[catalogue]\ndatabase = /a ;b/c.db\n", "2: " COMMENT(";") "\n"},
        {"[catalogue]\ndatabase = /a/c.db  # mine\n", "2: " COMMENT("#") "\n"},
        {"[catalogue]\ndatabase = \"/a b.db\"\n",
         "2: write the value without quotes; they would be part of it\n"},
        {"[server] listen = 127.0.0.1:1\n", "1: a section header must be alone on its line\n"},
        {"[server]]\n", "1: a section header must be alone on its line\n"},
        {"[server\nlisten = x\n", "1: a section needs its closing ]\n"},
        {"[server]\nlisten\n", "2: " NO_SETTING "\n"},
        {"[server]\nlisten: 127.0.0.1:1\n", "2: " NO_SETTING "\n"},
        {"[server]\n= 127.0.0.1:1\n", "2: " NO_SETTING "\n"},
        {"[server]\ncache_control = a\x1b[0m\n", "2: has a control character\n"},
        {"[server]\ncache_control = a\rb\n", "2: has a control character\n"},
        {"listen = 127.0.0.1:1\n", "1: \"listen\" is before the first section\n"},
        {"[server]\nlisten = 127.0.0.1:1\nlisten = 127.0.0.1:2\n",
         "3: listen is set twice; first in line 2\n"},
        {"[server]\nthreads = 1\n[log]\n[server]\nthreads = 1\n",
         "5: threads is set twice; first in line 2\n"},
    };

    check_rows(rows, ROWS(rows));
}

static void test_long_lines(void **state)
{
    static char text[8192];
    struct config *c;
    struct mistake_list mistakes;

    for (int len = 4090; len < 4105; len++) {
        int head =
            snprintf(text, sizeof text, "[server]\ncache_control = ") - (int)strlen("[server]\n");

        memset(text + strlen(text), 'x', (size_t)(len - head));
        strcpy(text + strlen("[server]\n") + len, "\nthreads = 3\n");
        assert_non_null(c = config_new());
        read_text(c, text, &mistakes);
        if (len <= 4096) {
            check_mistakes("fits", &mistakes, "");
            assert_int_equal(strlen(c->cache_control), (size_t)(len - head));
        } else {
            check_mistakes("long", &mistakes, "2: the line is longer than 4096 bytes\n");
        }
        assert_int_equal(c->threads, 3);
        config_unref(c);
        memset(text, 0, sizeof text);
    }
}

/* The mark counts neither for the length nor as part of the line. */
static void test_a_long_line_behind_a_mark(void **state)
{
    static char text[8192] = "\xef\xbb\xbf;";
    struct config *c;
    struct mistake_list mistakes;

    memset(text + 4, 'x', 5000);
    strcpy(text + 5004, "\n[server]\nthreads = 3\n");
    assert_non_null(c = config_new());
    read_text(c, text, &mistakes);
    check_mistakes("a comment", &mistakes, "");
    config_unref(c);

    assert_non_null(c = config_new());
    memset(text + 3, 'x', 4096);
    strcpy(text + 3 + 4096, "\n[server]\nthreads = 3\n");
    read_text(c, text, &mistakes);
    check_mistakes("4,096 bytes behind the mark", &mistakes,
                   "1: is not a setting; write key = value\n");
    config_unref(c);
}

static void test_long_comments_and_sections(void **state)
{
    static char text[8192];
    char name[128];
    struct config *c;
    struct mistake_list mistakes;

    assert_non_null(c = config_new());
    memset(text, ';', 1000);
    strcpy(text + 1000, "\n[server]\nthreads = 3\n");
    read_text(c, text, &mistakes);
    check_mistakes("long comment", &mistakes, "");
    assert_int_equal(c->threads, 3);

    memset(name, 'n', sizeof name);
    name[42] = '\0'; /* [site "…"]: 49 bytes */
    snprintf(text, sizeof text, "[site \"%s\"]\norigin = https://a\n", name);
    read_text(c, text, &mistakes);
    check_mistakes("49 bytes", &mistakes, "");
    assert_string_equal(c->sites[0].named.name, name);

    name[42] = 'n';
    name[43] = '\0';
    snprintf(text, sizeof text, "[site \"%s\"]\norigin = nonsense\n", name);
    read_text(c, text, &mistakes);
    check_mistakes("50 bytes", &mistakes, "1: the section's name is longer than 49 bytes\n");
    memset(text, 0, sizeof text);
    text[0] = '[';
    memset(text + 1, 'n', 5000);
    strcpy(text + 5001, "]\nthreads = nonsense\n");
    read_text(c, text, &mistakes);
    check_mistakes("a header longer than a line", &mistakes,
                   "1: the line is longer than 4096 bytes\n");
    config_unref(c);
}

static void test_nul_bytes(void **state)
{
    static const char text[] = "[server]\nthreads = 3\0 9\nstrict_host = yes\n";
    struct config *c;
    struct mistake_list mistakes;

    assert_non_null(c = config_new());
    read_bytes(c, text, sizeof text - 1, &mistakes);
    check_mistakes("NUL", &mistakes, "2: has a NUL byte\n");
    assert_int_equal(c->threads, 0);
    assert_true(c->strict_host);
    config_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_that_are_taken),
        cmocka_unit_test(test_traps),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_a_long_line_behind_a_mark),
        cmocka_unit_test(test_long_comments_and_sections),
        cmocka_unit_test(test_nul_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
