/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Host names to addresses, with an end: the resolver's own is many seconds where a name server is
 * silent, and libpq would wait for it. One thread for one look-up. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PG_LOOKUP_MOST 8 /* addresses of a name that are tried */
#define PG_NAME_SIZE   256

/* The one under way, or NULL; pg_lookup_free takes that too. One that was not waited for goes on by
 * itself, and its answer serves the next call for the name. */
struct pg_lookup;

/* True where `host` is a name that somebody has to be asked for: no address, no socket's path. */
bool pg_lookup_is_needed(const char *host);
/* Makes of a name two lists that libpq takes, equally long: its addresses, and the name as often.
 * Ends soon once `stop_fd` is readable.
 * Static text that says why not, or NULL: done. */
const char *pg_lookup(struct pg_lookup **lookup, const char *name, int64_t deadline_ms, int stop_fd,
                      char addresses[PG_LOOKUP_MOST * 64],
                      char names[PG_LOOKUP_MOST * PG_NAME_SIZE]);
void pg_lookup_free(struct pg_lookup *lookup);
