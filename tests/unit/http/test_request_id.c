/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which ids are taken from clients, and that ours differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/headers.h"

static void which_are_taken(void **state)
{
    static const char *const good[] = {
        "a",
        "0",
        "7b9d1c3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "Root=1-67891233:abc/def+ghi@host~x_y.z",
    };
    static const char *const bad[] = {"",      " ",        "a b", "a\"b",     "a\\b", "a\nb",
                                      "a\x7f", "\xc3\xa9", "a,b", "<script>", "a;b",  "a'b"};
    char text[REQUEST_ID_MAX + 2];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(request_id_check(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(request_id_check(bad[i]));
    memset(text, 'a', sizeof text);
    text[REQUEST_ID_MAX] = '\0';
    assert_true(request_id_check(text));
    text[REQUEST_ID_MAX] = 'a';
    text[REQUEST_ID_MAX + 1] = '\0';
    assert_false(request_id_check(text));
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, REQUEST_ID_SIZE);
}

static void ours_differ(void **state)
{
    static char ids[20000][REQUEST_ID_SIZE];
    size_t count = sizeof ids / sizeof ids[0];
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(request_id_make(ids[i]), ids[i]);
        assert_int_equal(strlen(ids[i]), REQUEST_ID_SIZE - 1);
        assert_int_equal(strspn(ids[i], "0123456789abcdef"), REQUEST_ID_SIZE - 1);
        assert_true(request_id_check(ids[i]));
    }
    qsort(ids, count, REQUEST_ID_SIZE, compare);
    for (size_t i = 1; i < count; i++)
        assert_string_not_equal(ids[i - 1], ids[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_are_taken),
        cmocka_unit_test(ours_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
