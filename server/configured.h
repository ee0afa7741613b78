/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Brings the catalogue in line with the configuration: sites, those of `--site`, and a first token.
 * Idempotent: a second call changes nothing. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"
#include "server/pages/publisher.h"

/* Creates or changes the sites that the configuration declares, with their hosts and indexes; the
 * configuration manages them. When the server `starts`, also creates a site with an index for each
 * origin of SITEMAPD_SITE and --site. Sites that the configuration no longer declares become
 * ordinary ones. All of this is one change, applied whole or not at all, and no change if nothing
 * differs. For the start and for each reload. Logs what it did and what failed. False: it failed.
 */
bool bootstrap_sites(struct catalogue *c, const struct config *config, bool starts);
/* If neither the catalogue nor the configuration has a token: creates one, writes it to
 * `<database>.token` (0600), and logs that path, never the token. */
bool bootstrap_token(struct catalogue *c, const struct config *config);

/* The configured aliases and robots files of the sites, in the publisher's form; reads the files.
 * Holds a reference of `config`. Freed by its own `free`. NULL, logged: a file cannot be read,
 * or out of memory. */
struct publish_policies *configured_policies(struct config *config);

/* The crawlers that are built in and those of the configuration; reads the files of address ranges.
 * NULL: a file is not a list of ranges, which is logged, or out of memory. */
struct crawler_names *configured_crawlers(const struct config *config);
