#include "tests/unit/cli/check.h"

#include "server/cli/loc_set.h"

static void test_counts_what_repeats(void **state)
{
    struct loc_set s = {0};
    char loc[64];
    unsigned repeated = 0;

    (void)state;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 100000; i++) {
            snprintf(loc, sizeof loc, "https://www.example.com/%d.xml", i);
            repeated += loc_set_add(&s, loc);
        }
    assert_int_equal(repeated, 100000);
    assert_int_equal(s.count, 100000);
    assert_false(loc_set_add(&s, ""));
    assert_true(loc_set_add(&s, ""));
    loc_set_done(&s);
    loc_set_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_what_repeats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
