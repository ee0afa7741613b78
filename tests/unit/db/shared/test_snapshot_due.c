/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* When the nodes send a snapshot of the catalogue: a table of what the log says of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka.h needs the first four. */
#include <cmocka.h>

#include "db/shared/presence.h"

#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define HOUR (3600 * INT64_C(1000))
#define WEEK (7 * 24 * HOUR)

static void test_due_in_proportion_to_the_file(void **state)
{
    static const struct {
        uint64_t file, log; /* bytes: of the snapshot's file, of the log since */
        int64_t age_ms;
        bool due, due_with_peers;
    } rows[] = {
        {MIB, 64 * MIB - 1, HOUR, false, false}, /* a small file: 64 MiB */
        {MIB, 64 * MIB, HOUR, true, true},
        {256 * MIB, 64 * MIB - 1, HOUR, false, false}, /* where both are equal */
        {256 * MIB, 64 * MIB, HOUR, true, false},
        {20 * GIB, 64 * MIB, HOUR, false, false}, /* a large one: a quarter */
        {20 * GIB, 5 * GIB - 1, WEEK - 1, false, false},
        {20 * GIB, 5 * GIB, HOUR, true, false},
        {20 * GIB, 20 * GIB - 1, HOUR, true, false}, /* with peers: as much as the file */
        {20 * GIB, 20 * GIB, HOUR, true, true},
        {200 * GIB, 49 * GIB, HOUR, false, false},
        {20 * GIB, 1, WEEK - 1, false, false}, /* the age */
        {20 * GIB, 1, WEEK, true, true},
        {MIB, 1, WEEK, true, true},
        {0, 1, HOUR, false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct shared_overview o = {.head.seq = 11,
                                          .has_snapshot = true,
                                          .snapshot = {.position.seq = 10, .bytes = rows[i].file},
                                          .snapshot_age_ms = rows[i].age_ms,
                                          .bytes_since_snapshot = rows[i].log};
        if (presence_snapshot_is_due(&o, false) != rows[i].due ||
            presence_snapshot_is_due(&o, true) != rows[i].due_with_peers)
            fail_msg("row %zu", i);
    }
}

static void test_none_is_due_at_once_and_nothing_new_never(void **state)
{
    const struct shared_overview none = {.head.seq = 0};
    const struct shared_overview unchanged = {.head.seq = 10,
                                              .has_snapshot = true,
                                              .snapshot = {.position.seq = 10, .bytes = GIB},
                                              .snapshot_age_ms = 100 * WEEK};

    assert_true(presence_snapshot_is_due(&none, false));
    assert_true(presence_snapshot_is_due(&none, true));
    assert_false(presence_snapshot_is_due(&unchanged, false));
    assert_false(presence_snapshot_is_due(&unchanged, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due_in_proportion_to_the_file),
        cmocka_unit_test(test_none_is_due_at_once_and_nothing_new_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
