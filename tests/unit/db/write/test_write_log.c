/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* SQLite's write-ahead log begins again only where the next transaction finds no reader in it. It
 * stays short where there always is one. */
#include "tests/unit/db/log_readers.h"

static void the_log_stays_short_among_readers(void **state)
{
    struct write_fixture *f = *state;
    struct log_readers readers;
    f->options.server = true;
    fixture_reopen(f);
    log_readers_start(&readers, f);
    for (int i = 0; i < 4000; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/%d.xml", i % 400);
        assert_int_equal(put_plain(f, loc, i / 400 % 2 ? "2026-01-01" : "2026-01-02").status,
                         CATALOGUE_OK);
    }
    log_readers_stop(&readers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(the_log_stays_short_among_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
