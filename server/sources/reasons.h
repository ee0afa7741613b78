/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The reasons that /readyz and `status` report about sources and watched sitemaps: codes and
 * sentences. The rule: anything that a crawler cannot use is a reason. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/check.h"

/* The state of a source, or of the registered sitemaps that are watched for sites with `check`. */
struct source_standing {
    const char *name;       /* of the source; NULL: the registered sitemaps of all sites */
    const char *failure;    /* why its folder or list could not be read; NULL: it could be */
    uint64_t held;          /* removals that the shrink guard holds back */
    bool serve;             /* a folder whose files this server serves */
    uint64_t refused;       /* refused files; if it has `states`, refused members of its list */
    const uint64_t *states; /* number of watched sitemaps by enum check_state; NULL: none */
};

/* Receives a reason. Codes: "source-failing", "source-held", "source-problems", "source-checks",
 * "registered-checks". False: out of memory, and some may be missing. */
typedef void reasons_add(void *context, const char *code, const char *detail);
bool reasons_of(const struct source_standing *standing, reasons_add *add, void *context);
