/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/http/traceparent.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void test_parse(void **state)
{
    static const struct {
        const char *value, *text; /* NULL: invalid */
    } rows[] = {
        {"00-" TRACE "-" PARENT "-01", "00-" TRACE "-" PARENT "-01"},
        {"00-" TRACE "-" PARENT "-00", "00-" TRACE "-" PARENT "-00"},
        /* unknown flags are dropped */
        {"00-" TRACE "-" PARENT "-ff", "00-" TRACE "-" PARENT "-01"},
        {"00-" TRACE "-" PARENT "-02", "00-" TRACE "-" PARENT "-00"},
        /* later versions */
        {"01-" TRACE "-" PARENT "-01", "00-" TRACE "-" PARENT "-01"},
        {"cc-" TRACE "-" PARENT "-01-what-will-be", "00-" TRACE "-" PARENT "-01"},
        {"cc-" TRACE "-" PARENT "-01.what", NULL},
        {"ff-" TRACE "-" PARENT "-01", NULL},
        {NULL, NULL},
        {"", NULL},
        {"00", NULL},
        {"00-" TRACE "-" PARENT, NULL},
        {"00-" TRACE "-" PARENT "-0", NULL},
        {"00-" TRACE "-" PARENT "-01-", NULL},
        {"00-" TRACE "-" PARENT "-01, 00-" TRACE "-" PARENT "-01", NULL},
        {" 00-" TRACE "-" PARENT "-01", NULL},
        {"00-" TRACE "-" PARENT "-01 ", NULL},
        {"0x-" TRACE "-" PARENT "-01", NULL},
        {"00-" TRACE "-" PARENT "-0g", NULL},
        {"00_" TRACE "-" PARENT "-01", NULL},
        {"00-" TRACE "_" PARENT "-01", NULL},
        {"00-" TRACE "-" PARENT "_01", NULL},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", NULL},
        {"00-" TRACE "-00F067AA0BA902B7-01", NULL},
        {"00-00000000000000000000000000000000-" PARENT "-01", NULL},
        {"00-" TRACE "-0000000000000000-01", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct traceparent t;
        bool valid = traceparent_parse(rows[i].value, &t);

        if (valid != (rows[i].text != NULL) || (valid && strcmp(t.text, rows[i].text) != 0) ||
            traceparent_is_set(&t) != valid)
            fail_msg("row %zu: %s", i, t.text);
    }
}

static void test_parts(void **state)
{
    struct traceparent t = {""};

    assert_false(traceparent_is_sampled(&t));
    traceparent_make(TRACE, PARENT, true, &t);
    assert_true(traceparent_is_sampled(&t));
    assert_memory_equal(traceparent_trace_id(&t), TRACE, TRACE_ID_CHARS);
    assert_memory_equal(traceparent_span_id(&t), PARENT, SPAN_ID_CHARS);
    traceparent_make(TRACE, PARENT, false, &t);
    assert_false(traceparent_is_sampled(&t));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
