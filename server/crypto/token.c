/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Generates tokens and hashes them. */
#include "server/crypto/token.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#define PREFIX       "smd_" /* lets people and leak scanners recognise a token */
#define RANDOM_BYTES 32

/* RFC 4648 5, without padding. `out` has room for 43 characters and a NUL. */
static void write_base64url(const uint8_t bytes[RANDOM_BYTES], char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t i = 0; i < RANDOM_BYTES; i += 3) {
        size_t n = RANDOM_BYTES - i < 3 ? RANDOM_BYTES - i : 3;
        uint32_t group = (uint32_t)bytes[i] << 16;

        if (n > 1)
            group |= (uint32_t)bytes[i + 1] << 8;
        if (n > 2)
            group |= bytes[i + 2];
        for (size_t k = 0; k <= n; k++)
            *out++ = alphabet[(group >> (18 - 6 * k)) & 63];
    }
    *out = '\0';
}

bool token_make(char out[TOKEN_TEXT_SIZE])
{
    uint8_t bytes[RANDOM_BYTES];

    if (gnutls_rnd(GNUTLS_RND_KEY, bytes, sizeof bytes) != GNUTLS_E_SUCCESS)
        return false;
    memcpy(out, PREFIX, strlen(PREFIX));
    write_base64url(bytes, out + strlen(PREFIX));
    gnutls_memset(bytes, 0, sizeof bytes);
    return true;
}

bool token_sha256(const char *text, size_t len, uint8_t out[32])
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text, len, out) == GNUTLS_E_SUCCESS;
}

struct token_digest *token_digest_new(void)
{
    gnutls_hash_hd_t hash;

    return gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) == GNUTLS_E_SUCCESS
               ? (struct token_digest *)hash
               : NULL;
}

bool token_digest_add(struct token_digest *digest, const void *bytes, size_t len)
{
    return gnutls_hash((gnutls_hash_hd_t)digest, bytes, len) == GNUTLS_E_SUCCESS;
}

void token_digest_end(struct token_digest *digest, uint8_t out[32])
{
    uint8_t unwanted[32];

    if (digest != NULL)
        gnutls_hash_deinit((gnutls_hash_hd_t)digest, out != NULL ? out : unwanted);
}

bool token_equal(const uint8_t a[32], const uint8_t b[32])
{
    return gnutls_memcmp(a, b, 32) == 0;
}
