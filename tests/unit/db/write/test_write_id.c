/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Ids: what was written is read, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/read/row.h"

static void reads_what_it_writes(void **state)
{
    static const struct {
        int64_t index;
        uint32_t position;
        int64_t serial;
    } cases[] = {{1, 0, 1}, {77, 49999, 123456789}, {ID_MAX_INDEX, UINT32_MAX, INT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[ENTRY_ID_SIZE];
        int64_t index, serial;
        uint32_t position;
        id_format(cases[i].index, cases[i].position, cases[i].serial, id);
        assert_true(id_parse(id, &index, &position, &serial));
        assert_int_equal(index, cases[i].index);
        assert_int_equal(position, cases[i].position);
        assert_int_equal(serial, cases[i].serial);
        int64_t address = id_address(index, position);
        assert_true(address > 0);
        assert_int_equal(id_address_index(address), index);
        assert_int_equal(id_address_position(address), position);
    }
}

static void reads_nothing_else(void **state)
{
    static const char *const bad[] = {
        "",
        "-",
        "--",
        "1-2",
        "1-2-",
        "-1-2-3",
        "1--3",
        "1-2-3-",
        "01-2-3",
        "1-02-3",
        "1-2-03",
        "A-2-3",
        "1-2-3 ",
        " 1-2-3",
        "+1-2-3",
        "1-100000000-3",
        "80000000-0-1",
        "1-0-8000000000000000",
        "1-0-10000000000000001",
        "11111111111111111-0-1",
        "1-2-3x",
        "0x1-2-3",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t index = -5, serial = -5;
        uint32_t position = 5;
        if (id_parse(bad[i], &index, &position, &serial))
            fail_msg("\"%s\" was taken", bad[i]);
        assert_true(index == -5 && serial == -5 && position == 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_what_it_writes),
                                       cmocka_unit_test(reads_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
