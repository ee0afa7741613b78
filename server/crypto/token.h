/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* API tokens: generated at random, stored as SHA-256. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_TEXT_SIZE 48 /* "smd_" + 43 characters base64url of 32 random bytes, NUL */

/* False: no random numbers are available. */
bool token_make(char out[TOKEN_TEXT_SIZE]);
bool token_sha256(const char *text, size_t len, uint8_t out[32]);
/* The SHA-256 of bytes that arrive in pieces. NULL: no memory. */
struct token_digest;
struct token_digest *token_digest_new(void);
bool token_digest_add(struct token_digest *digest, const void *bytes, size_t len);
/* Writes the hash to `out` (NULL: it is not needed) and frees the digest. Accepts NULL. */
void token_digest_end(struct token_digest *digest, uint8_t out[32]);
/* Compares in constant time. */
bool token_equal(const uint8_t a[32], const uint8_t b[32]);
