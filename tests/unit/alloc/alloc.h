/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Allocations that fail, in every library of the process: malloc, calloc, realloc and strdup of the
 * test's program replace all others, also in front of a sanitizer's. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* From now on allocation number `at` (from 1) of all threads fails; `lasting`: all after it too. */
void alloc_arm(uint64_t at, bool lasting);
/* Ends it. How many have failed. */
uint64_t alloc_disarm(void);
/* How many there were since it was armed. */
uint64_t alloc_counted(void);
/* Those of the calling thread neither count nor fail while it is true. */
void alloc_pass(bool pass);

/* Runs `run` with each allocation failing, alone and with all that follow, until one run needs
 * fewer; after each failure again with none. `run` returns whether it succeeded, after it has
 * asserted what must hold either way; without a failing allocation it must succeed. Long runs leave
 * some numbers out, unless $ALLOC_ALL is set. */
void alloc_sweep(const char *what, bool (*run)(void *context), void *context);

/* Makes the file `name` in `folder`, with this text. */
void alloc_write_file(const char *folder, const char *name, const char *text);
