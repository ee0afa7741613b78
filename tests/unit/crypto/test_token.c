/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Tokens: random, of one form, hashed as SHA-256 (FIPS 180-4), compared whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "server/crypto/token.h"

static void tokens_have_one_form_and_differ(void **state)
{
    char made[64][TOKEN_TEXT_SIZE];
    for (int i = 0; i < 64; i++) {
        assert_true(token_make(made[i]));
        assert_int_equal(strlen(made[i]), TOKEN_TEXT_SIZE - 1);
        assert_memory_equal(made[i], "smd_", 4);
        assert_int_equal(strspn(made[i] + 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                             "0123456789-_"),
                         TOKEN_TEXT_SIZE - 5);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(made[i], made[k]);
    }
}

static void the_hash_is_sha256(void **state)
{
    static const uint8_t of_abc[32] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                       0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                       0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                       0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t hash[32];
    assert_true(token_sha256("abc", 3, hash));
    assert_memory_equal(hash, of_abc, 32);
    assert_true(token_equal(hash, of_abc));
    for (int i = 0; i < 32; i++) {
        hash[i] ^= 1;
        assert_false(token_equal(hash, of_abc));
        hash[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_one_form_and_differ),
        cmocka_unit_test(the_hash_is_sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
