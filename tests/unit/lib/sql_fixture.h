/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Plain SQL on the file of a catalogue, behind its back. Fails the test where that is not possible.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* Runs SQL, made as by sqlite3_mprintf(). */
void fixture_sql(sqlite3 *db, const char *format, ...);

/* The number in the first column of the only row that is needed. */
int64_t fixture_number(sqlite3 *db, const char *format, ...);
