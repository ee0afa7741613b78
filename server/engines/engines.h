/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* [engine "google"], [engine "bing"]: requests the state of each site's sitemaps from search
 * engines, submits its indexes, and stores the results in the catalogue (db/engine.h). One thread,
 * one request at a time. Part of the assembly. */
#pragma once

#include "config/config.h"
#include "db/catalogue.h"
#include "server/api/routes.h"

struct engines;

/* NULL: none is configured, or (logged) it cannot start. The catalogue and `counts`, one for each
 * of engine_names, must outlive it. */
struct engines *engines_start(struct config *config, struct catalogue *catalogue,
                              struct engine_counts *counts);
/* Whether both configurations have the same engines. */
bool engines_are_same(const struct config *a, const struct config *b);
/* Ends the thread at once; a request under way is dropped. Accepts NULL. */
void engines_stop(struct engines *all);
