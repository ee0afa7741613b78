/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The JWT of a service account, read back with the public half of a key that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <jansson.h>

#include "server/engines/engine.h"

#define NOW 1700000000

/* PEM of a new key; the caller's, for gnutls_free. */
static gnutls_datum_t make_key(gnutls_pk_algorithm_t algorithm, unsigned bits,
                               gnutls_pubkey_t *public)
{
    gnutls_x509_privkey_t key;
    gnutls_privkey_t private;
    gnutls_datum_t pem;
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(key, algorithm, bits, 0), 0);
    assert_int_equal(
        gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &pem),
        0);
    assert_int_equal(gnutls_privkey_init(&private), 0);
    assert_int_equal(gnutls_privkey_import_x509(private, key, 0), 0);
    assert_int_equal(gnutls_pubkey_init(public), 0);
    assert_int_equal(gnutls_pubkey_import_privkey(*public, private, 0, 0), 0);
    gnutls_privkey_deinit(private);
    gnutls_x509_privkey_deinit(key);
    return pem;
}

/* Reads base64url without padding; the caller's, for gnutls_free. */
static gnutls_datum_t decoded(const char *text, size_t len)
{
    char *padded = malloc(len + 4);
    gnutls_datum_t raw;
    assert_non_null(padded);
    for (size_t i = 0; i < len; i++) {
        assert_null(memchr("+/=", text[i], 3));
        padded[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    }
    size_t whole = len;
    while (whole % 4 != 0)
        padded[whole++] = '=';
    const gnutls_datum_t in = {(unsigned char *)padded, (unsigned)whole};
    assert_int_equal(gnutls_base64_decode2(&in, &raw), 0);
    free(padded);
    return raw;
}

static json_t *decoded_json(const char *text, size_t len)
{
    gnutls_datum_t raw = decoded(text, len);
    json_t *read = json_loadb((const char *)raw.data, raw.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(read);
    gnutls_free(raw.data);
    return read;
}

static const char *member(const json_t *of, const char *name)
{
    const char *text = json_string_value(json_object_get(of, name));
    assert_non_null(text);
    return text;
}

static void it_says_who_asks_whom_and_is_signed(void **state)
{
    gnutls_pubkey_t public;
    gnutls_datum_t pem = make_key(GNUTLS_PK_RSA, 2048, &public);
    /* Several texts, so that each length of padding and each character comes. */
    for (int i = 0; i < 12; i++) {
        char iss[64];
        struct str jwt = STR_INIT;
        snprintf(iss, sizeof iss, "robot\"%.*s@example.iam", i, "aaaaaaaaaaaa");
        assert_null(engine_jwt(&jwt, (const char *)pem.data, i % 2 ? "key-1" : "", iss,
                               "https://token.example/token", "https://scope.example/webmasters",
                               NOW));
        const char *first = strchr(jwt.data, '.'), *second = strrchr(jwt.data, '.');
        assert_true(first != NULL && second > first);
        json_t *header = decoded_json(jwt.data, (size_t)(first - jwt.data));
        json_t *claims = decoded_json(first + 1, (size_t)(second - first - 1));
        assert_string_equal(member(header, "alg"), "RS256");
        assert_string_equal(member(header, "typ"), "JWT");
        if (i % 2)
            assert_string_equal(member(header, "kid"), "key-1");
        else
            assert_null(json_object_get(header, "kid"));
        assert_string_equal(member(claims, "iss"), iss);
        assert_string_equal(member(claims, "aud"), "https://token.example/token");
        assert_string_equal(member(claims, "scope"), "https://scope.example/webmasters");
        assert_int_equal(json_integer_value(json_object_get(claims, "iat")), NOW);
        assert_int_equal(json_integer_value(json_object_get(claims, "exp")), NOW + 3600);
        gnutls_datum_t signature = decoded(second + 1, strlen(second + 1));
        const gnutls_datum_t signed_text = {(unsigned char *)jwt.data,
                                            (unsigned)(second - jwt.data)};
        assert_true(gnutls_pubkey_verify_data2(public, GNUTLS_SIGN_RSA_SHA256, 0, &signed_text,
                                               &signature) >= 0);
        gnutls_free(signature.data);
        json_decref(header);
        json_decref(claims);
        str_done(&jwt);
    }
    gnutls_pubkey_deinit(public);
    gnutls_free(pem.data);
}

static void a_key_that_cannot_sign_is_an_error(void **state)
{
    gnutls_pubkey_t public;
    gnutls_datum_t curve = make_key(GNUTLS_PK_EDDSA_ED25519, 0, &public);
    const char *const keys[] = {"", "a key",
                                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                                (const char *)curve.data};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct str jwt = STR_INIT;
        const char *why = engine_jwt(&jwt, keys[i], "", "robot", "a", "s", NOW);
        assert_non_null(why);
        assert_string_equal(why, "its private_key is not an RSA key in PEM");
        str_done(&jwt);
    }
    gnutls_pubkey_deinit(public);
    gnutls_free(curve.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_who_asks_whom_and_is_signed),
        cmocka_unit_test(a_key_that_cannot_sign_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
