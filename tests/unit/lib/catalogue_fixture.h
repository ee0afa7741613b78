/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue for a unit test. Each function fails the test where what
 * it does is not possible. */
#pragma once

#include "db/catalogue.h"
#include "tests/unit/lib/sql_fixture.h"

/* Those of most tests: no server, no history, a guard at 30 percent. The caller changes members. */
struct catalogue_options fixture_options(const char *path);

/* The caller closes it. */
struct catalogue *fixture_catalogue(const struct catalogue_options *options);

/* Applies a change that must succeed. Returns its revision. */
uint64_t fixture_apply(struct catalogue *c, const struct change *change);

/* Adds a site, and the index at `path` of it. */
void fixture_add_site(struct catalogue *c, const char *origin, const char *path);

/* Those of a view of now. */
struct catalogue_revisions fixture_revisions(struct catalogue *c);

/* What `sitemapd check` checks: no problem. */
void fixture_assert_sound(struct catalogue *c);
