/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Descriptors: connections never take all of them (sockets.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/resource.h>

#include "server/sockets.h"

static void enough_for_everybody(void **state)
{
    uint64_t wanted = descriptors_wanted(10000, 4);
    struct descriptor_share share = descriptors_share(wanted, 10000, 4);
    assert_int_equal(share.public_connections, 10000);
    assert_int_equal(share.admin_connections, 10000);
    share = descriptors_share(wanted - 1, 10000, 4);
    assert_true(share.admin_connections < 10000);
}

/* Whatever the limit, what both listeners may take, an admin connection with its spool file, leaves
 * some for the catalogue; and a low limit is used. */
static void something_is_left(void **state)
{
    static const uint64_t limits[] = {256, 1024, 4096, 20000, 65536, UINT64_MAX};
    static const uint32_t most[] = {1, 10, 500, 10000, 1000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (size_t k = 0; k < sizeof most / sizeof *most; k++)
            for (unsigned threads = 2; threads <= 32; threads += 10) {
                struct descriptor_share share = descriptors_share(limits[i], most[k], threads);
                uint64_t taken =
                    share.public_connections + (uint64_t)share.admin_connections * 2 + 6 * threads;
                assert_true(share.public_connections >= 1 && share.admin_connections >= 1);
                assert_true(share.public_connections <= most[k]);
                assert_true(share.admin_connections <= most[k]);
                if (limits[i] >= 1024)
                    assert_true(taken + 64 <= limits[i]);
                if (limits[i] == 1024 && most[k] >= 10000)
                    assert_true(taken >= 1024 - 128);
            }
}

static void hopeless_limits(void **state)
{
    struct descriptor_share share = descriptors_share(0, 10000, 64);
    assert_int_equal(share.public_connections, 4);
    assert_int_equal(share.admin_connections, 4);
}

static void the_soft_limit_is_raised_and_never_lowered(void **state)
{
    struct rlimit before, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit low = {.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(descriptors_raise(100), 100);
    assert_int_equal(descriptors_raise(50), 100);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, 100);
    assert_int_equal(descriptors_raise(UINT64_MAX - 1), before.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enough_for_everybody),
        cmocka_unit_test(something_is_left),
        cmocka_unit_test(hopeless_limits),
        cmocka_unit_test(the_soft_limit_is_raised_and_never_lowered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
