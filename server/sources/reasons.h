/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What /readyz and `status` report about sources and watched sitemaps: the codes and sentences, and
 * what counts as a problem. One rule: whatever a crawler cannot use is a reason. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/check.h"

/* How a source is doing, or the registered sitemaps that sites with `check` have watched. */
struct standing {
    const char *name;       /* of the source; NULL: the registered sitemaps of all sites */
    const char *failure;    /* why its folder or list could not be read; NULL: it could */
    uint64_t held;          /* removals that the shrink guard holds back */
    uint64_t refused;       /* files, or members of the list of one that has `states` */
    const uint64_t *states; /* of the sitemaps that are watched, by enum check_state; NULL: none */
};

/* Calls `add` once for each reason: "source-failing", "source-held", "source-problems",
 * "source-checks", "registered-checks". False: out of memory, and some may be missing. */
typedef void reasons_add(void *context, const char *code, const char *detail);
bool reasons_of(const struct standing *standing, reasons_add *add, void *context);
