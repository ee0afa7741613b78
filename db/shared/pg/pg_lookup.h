/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Host names to addresses, with a deadline: libpq would wait for the resolver's own, which is many
 * seconds if a name server is silent. One thread for each lookup. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PG_LOOKUP_MOST 8 /* addresses of a name that are tried */
#define PG_NAME_SIZE   256

/* A lookup that is not finished; pg_lookup_free accepts NULL. A lookup that missed its deadline
 * continues, and its answer serves the next call for the name. */
struct pg_lookup;

/* True if `host` is a name, not an address or the path of a socket. */
bool pg_lookup_is_needed(const char *host);
/* Resolves a name into two lists of equal length for libpq: its addresses, and the name repeated.
 * Ends soon once `stop_fd` is readable. NULL, or the reason of a failure, static. */
const char *pg_lookup(struct pg_lookup **lookup, const char *name, int64_t deadline_ms, int stop_fd,
                      char addresses[PG_LOOKUP_MOST * 64],
                      char names[PG_LOOKUP_MOST * PG_NAME_SIZE]);
void pg_lookup_free(struct pg_lookup *lookup);
