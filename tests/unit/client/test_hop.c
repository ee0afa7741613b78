/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "server/client/client.h"

static bool allow_examples(void *context, const struct url *to)
{
    (void)context;
    return strstr(to->text, "//www.example.com/") != NULL ||
           strstr(to->text, "//cdn.example.com:8443/") != NULL;
}

static void test_next(void **state)
{
    static const struct {
        unsigned status;
        const char *location, *from;
        unsigned hops;
        enum hop_verdict verdict;
        const char *to;
    } rows[] = {
        {200, "http://www.example.com/b", "http://www.example.com/a", 0, HOP_END, NULL},
        {300, "http://www.example.com/b", "http://www.example.com/a", 0, HOP_END, NULL},
        {304, "http://www.example.com/b", "http://www.example.com/a", 0, HOP_END, NULL},
        {404, "http://www.example.com/b", "http://www.example.com/a", 3, HOP_END, NULL},
        {301, "http://www.example.com/b", "http://www.example.com/a", 0, HOP_FOLLOW,
         "http://www.example.com/b"},
        {302, "https://www.example.com/b", "http://www.example.com/a", 1, HOP_FOLLOW,
         "https://www.example.com/b"},
        {303, "https://cdn.example.com:8443/b", "https://www.example.com/a", 2, HOP_FOLLOW,
         "https://cdn.example.com:8443/b"},
        {307, "HTTPS://WWW.EXAMPLE.COM:443/b/../c#part", "https://www.example.com/a", 0, HOP_FOLLOW,
         "https://www.example.com/c"},
        {308, "https://www.example.com/b", "https://www.example.com/a", 3, HOP_TOO_MANY, NULL},
        {301, "http://www.example.com/b", "https://www.example.com/a", 0, HOP_PLAIN, NULL},
        {301, "http://127.0.0.1/secret", "http://www.example.com/a", 0, HOP_FOREIGN, NULL},
        {301, "https://www.example.com.evil.example/", "https://www.example.com/a", 0, HOP_FOREIGN,
         NULL},
        {301, "https://cdn.example.com/b", "https://www.example.com/a", 0, HOP_FOREIGN, NULL},
        {301, "https://www.example.com@evil.example/", "https://www.example.com/a", 0, HOP_NOWHERE,
         NULL},
        {301, "ftp://www.example.com/b", "http://www.example.com/a", 0, HOP_NOWHERE, NULL},
        {301, "file:///etc/passwd", "http://www.example.com/a", 0, HOP_NOWHERE, NULL},
        {301, "/b", "http://www.example.com/a", 0, HOP_NOWHERE, NULL},
        {301, "", "http://www.example.com/a", 0, HOP_NOWHERE, NULL},
        {301, NULL, "http://www.example.com/a", 0, HOP_NOWHERE, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct url from, to = {.text = "untouched"};
        enum hop_verdict verdict;

        assert_int_equal(url_parse(rows[i].from, strlen(rows[i].from), &from, NULL), RULE_OK);
        verdict = hop_next(rows[i].status, rows[i].location, &from, rows[i].hops, allow_examples,
                           NULL, &to);
        if (verdict != rows[i].verdict)
            fail_msg("row %zu: %d", i, (int)verdict);
        assert_string_equal(to.text, rows[i].to != NULL ? rows[i].to : "untouched");
        assert_int_equal(hop_sentence(verdict)[0] == '\0',
                         verdict == HOP_END || verdict == HOP_FOLLOW);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
