/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A property that a fuzz target holds its module to. Not assert: release flags compile that away.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The input as a C string (cut at its first NUL by what reads it); to be freed. */
static inline char *copy_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
