/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* API tokens: made at random, kept as SHA-256. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_TEXT_SIZE 48 /* "smd_" + 43 characters base64url of 32 random bytes, NUL */

/* False where there is no randomness. */
bool token_make(char out[TOKEN_TEXT_SIZE]);
bool token_sha256(const char *text, size_t len, uint8_t out[32]);
/* The same of what comes piece by piece. NULL: no memory. */
struct token_digest;
struct token_digest *token_digest_new(void);
bool token_digest_add(struct token_digest *digest, const void *bytes, size_t len);
/* Ends it; `out` NULL: what it came to is not wanted. Takes NULL. */
void token_digest_end(struct token_digest *digest, uint8_t out[32]);
/* Constant time. */
bool token_equal(const uint8_t a[32], const uint8_t b[32]);
