/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The ring: lines go in and come out whole, round and round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "server/log/log_writer.h"

/* Invariants 1 and 2: full is full, a line is whole, and all of it can be used again and again. */
static void a_ring_goes_round(void **state)
{
    struct ring *r = aligned_alloc(64, sizeof *r);
    char line[RING_MAX_LINE], out[3 * RING_MAX_LINE];
    unsigned put = 0, taken = 0;
    memset(r, 0, sizeof *r);
    assert_int_equal(ring_remove(r, out, sizeof out), 0);
    for (unsigned round = 0; round < 3000; round++) {
        size_t len = 1 + round * 37 % RING_MAX_LINE;
        memset(line, (int)('a' + put % 26), len);
        if (ring_add(r, line, len)) {
            put++;
            continue;
        }
        assert_true(ring_used(r) > RING_BYTES - 2 * RING_MAX_LINE);
        while ((len = ring_remove(r, out, sizeof out)) > 0)
            for (size_t at = 0; at < len; taken++)
                for (char c = (char)('a' + taken % 26); at < len && out[at] == c;)
                    at++;
        assert_int_equal(ring_used(r), 0);
        for (size_t i = 0; i < RING_BYTES; i++)
            assert_int_equal(r->bytes[i], 0);
    }
    assert_true(put > 500 && taken > 500 && taken <= put);
    /* A line that finds no room in `out` stays. */
    while (ring_remove(r, out, sizeof out) > 0)
        continue;
    memset(line, 'x', 100);
    assert_true(ring_add(r, line, 100));
    assert_int_equal(ring_remove(r, out, 99), 0);
    assert_int_equal(ring_remove(r, out, 100), 100);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_goes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
