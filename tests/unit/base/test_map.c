/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A map from hashes to numbers: what was added is found, whatever shares its hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/base/map.h"

#define MANY 100000u

static bool holds(const struct map *m, uint32_t hash, uint32_t wanted)
{
    uint32_t number;

    for (struct map_probe p = map_probe(m, hash); map_next(&p, &number);)
        if (number == wanted)
            return true;
    return false;
}

static uint32_t hash_of(uint32_t number)
{
    char text[64];
    int len = snprintf(text, sizeof text, "https://www.example.com/%u.xml", number);

    return map_hash(MAP_HASH_BASIS, text, (size_t)len);
}

static void test_finds_what_was_added(void **state)
{
    struct map m = {0};

    for (uint32_t i = 0; i < MANY; i++) {
        assert_false(holds(&m, hash_of(i), i));
        assert_true(map_add(&m, hash_of(i), i));
    }
    assert_int_equal(m.count, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_true(holds(&m, hash_of(i), i));
    for (uint32_t i = MANY; i < 2 * MANY; i++)
        assert_false(holds(&m, hash_of(i), i));
    map_done(&m);
    assert_false(holds(&m, hash_of(0), 0));
    map_done(&m);
}

static void test_hashes_may_be_shared(void **state)
{
    static const uint32_t hashes[] = {0, 7, UINT32_MAX};
    struct map m = {0};

    for (uint32_t i = 0; i < 300; i++)
        assert_true(map_add(&m, hashes[i % 3], i % 299 == 0 ? MAP_MAX_NUMBER - i : i));
    for (uint32_t h = 0; h < 3; h++) {
        struct map_probe p = map_probe(&m, hashes[h]);
        uint32_t number, found = 0;
        while (map_next(&p, &number)) {
            uint32_t i = number < 300 ? number : MAP_MAX_NUMBER - number;
            assert_int_equal(i % 3, h);
            found++;
        }
        assert_int_equal(found, 100);
        assert_false(map_next(&p, &number));
    }
    map_done(&m);
}

static void test_room_is_made_once(void **state)
{
    struct map m = {0};
    struct map_slot *slots;

    assert_true(map_reserve(&m, 1000));
    slots = m.slots;
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(map_add(&m, hash_of(i), i));
    assert_ptr_equal(m.slots, slots);
    assert_true(m.count * 2 <= m.capacity);
    assert_true(map_reserve(&m, 10));
    assert_ptr_equal(m.slots, slots);
    assert_true(map_reserve(&m, 10000)); /* and keeps what it has */
    assert_true(holds(&m, hash_of(999), 999));
    map_done(&m);
}

static void test_hash_is_carried_on(void **state)
{
    uint32_t begun = map_hash(MAP_HASH_BASIS, "foo", 3);

    assert_int_equal(map_hash(MAP_HASH_BASIS, "", 0), 0x811c9dc5);
    assert_int_equal(map_hash(MAP_HASH_BASIS, "a", 1), 0xe40c292c);
    assert_int_equal(map_hash(begun, "bar", 3), 0xbf9cf968); /* of "foobar", as FNV-1a has it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_what_was_added),
        cmocka_unit_test(test_hashes_may_be_shared),
        cmocka_unit_test(test_room_is_made_once),
        cmocka_unit_test(test_hash_is_carried_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
