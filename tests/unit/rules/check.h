/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the tests of the rules share: cmocka with its prerequisites, and tables whose failing row
 * names itself. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/rules/code.h"

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

/* A string literal with its length: bytes behind a NUL count. */
#define BYTES(literal) (literal), (sizeof(literal) - 1)

static inline void check_code(const char *row, enum rule_code got, enum rule_code want)
{
    if (got != want)
        fail_msg("%s: got %s, want %s", row, rule_code_word(got), rule_code_word(want));
}

static inline void check_text(const char *row, const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        fail_msg("%s: got \"%s\", want \"%s\"", row, got, want);
}

static inline void check_number(const char *row, int64_t got, int64_t want)
{
    if (got != want)
        fail_msg("%s: got %lld, want %lld", row, (long long)got, (long long)want);
}

static inline void check_set(const char *row, rule_set got, rule_set want)
{
    if (got != want)
        fail_msg("%s: got remarks %llx, want %llx", row, (unsigned long long)got,
                 (unsigned long long)want);
}
