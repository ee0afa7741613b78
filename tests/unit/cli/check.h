/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* cmocka with its prerequisites, for the tests of the command line. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof(table)[0])
