/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* [engine "google"], [engine "bing"]: asks search engines what they say of the sitemaps of each
 * site, submits its indexes, and keeps the answers in the catalogue (db/engine.h). One thread, one
 * request at a time. Part of the assembly. */
#pragma once

#include "config/config.h"
#include "db/catalogue.h"
#include "server/api/routes.h"

struct engines;

/* NULL where none is configured, or, logged, where it cannot start. The catalogue and `counts`, one
 * for each of engine_names, live longer. */
struct engines *engines_start(struct config *config, struct catalogue *catalogue,
                              struct engine_counts *counts);
/* Whether the two ask alike. */
bool engines_are_same(const struct config *a, const struct config *b);
/* Ends the thread at once; a request under way is dropped. Takes NULL. */
void engines_stop(struct engines *all);
