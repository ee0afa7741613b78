/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The stored results of search engines (db/engine.h) as JSON, for the API and the command line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/base/str.h"

/* All engines. */
#define ENGINE_COUNT 2
extern const char *const engine_names[ENGINE_COUNT]; /* "google", "bing" */
/* The index of a name in engine_names; ENGINE_COUNT: unknown. */
size_t engine_place(const char *name);
/* "ok", "refused", …; for anything else "waiting". Static. */
const char *engine_state_word(enum engine_state state);

/* Appends the object of one engine: the states of its sites and the sums of their sitemaps, for
 * `only` (NULL: every site). Reads the catalogue; each thread needs its own view. */
enum catalogue_status engine_report_append(struct str *out, struct catalogue_view *view,
                                           const char *engine, const struct registry_site *only);
/* Appends the members "sites" and "next" of an object: up to `limit` sites by origin, after the
 * origin `after` (NULL: from the first on), or just `only`, each with its sitemaps and days. */
enum catalogue_status engine_report_sites(struct str *out, struct catalogue_view *view,
                                          const struct registry *registry, const char *engine,
                                          const struct registry_site *only, const char *after,
                                          uint64_t limit);

/* The sums of an engine. */
struct engine_sums {
    uint64_t states[ENGINE_STATES]; /* sites */
    struct engine_day sum;
    int64_t asked_at; /* the last time; 0: never */
    char why[256];    /* of the worst state; "": nothing is wrong */
};
enum catalogue_status engine_sums_read(struct catalogue_view *view, const char *engine,
                                       const struct registry_site *only, struct engine_sums *out);
