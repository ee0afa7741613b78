/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What is kept of search engines (db/engine.h) as JSON: what the API answers and the command line
 * shows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/base/str.h"

/* The engines that there are. */
#define ENGINE_COUNT 2
extern const char *const engine_names[ENGINE_COUNT]; /* "google", "bing" */
/* The place of a name among them; ENGINE_COUNT: it does not exist. */
size_t engine_place(const char *name);
/* "ok", "refused", …; for anything else "waiting". Static. */
const char *engine_state_word(enum engine_state state);

/* Appends the object of one engine: how its sites stand, and what all their sitemaps come to; of
 * `only` (NULL: every site) alone. Reads the catalogue; a thread of its own view. */
enum catalogue_status engine_report_append(struct str *out, struct catalogue_view *view,
                                           const char *engine, const struct registry_site *only);
/* Appends the members "sites" and "next" of an object: up to `limit` sites by origin, behind the
 * origin `after` (NULL: from the first on), or `only` alone, each with its sitemaps and days. */
enum catalogue_status engine_report_sites(struct str *out, struct catalogue_view *view,
                                          const struct registry *registry, const char *engine,
                                          const struct registry_site *only, const char *after,
                                          uint64_t limit);

/* What is kept of an engine, in sum. */
struct engine_sums {
    uint64_t states[ENGINE_STATES]; /* sites */
    struct engine_day sum;
    int64_t asked_at; /* the last time; 0: never */
    char why[256];    /* of the worst state; "": nothing is wrong */
};
enum catalogue_status engine_sums_read(struct catalogue_view *view, const char *engine,
                                       const struct registry_site *only, struct engine_sums *out);
/* REFUSED before FAILED, FORBIDDEN, BUSY, OK, WAITING. */
enum engine_state engine_sums_state(const struct engine_sums *sums);
