/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a start makes sure of in the catalogue: the configuration's sites, those of `--site`, and a
 * token. Each is safe to repeat: a second start changes nothing. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"
#include "server/pages/publisher.h"

/* Makes the sites as the configuration declares them, managed by it, with their hosts and indexes;
 * where the server `starts`, makes sure that each origin of SITEMAPD_SITE and --site is a site with
 * an index; sites that the configuration no longer has become ordinary ones. One change, applied
 * whole or not at all, and none where nothing differs: for a start and for every reload. Logs what
 * it did and what went wrong. False: could not. */
bool bootstrap_sites(struct catalogue *c, const struct config *config, bool starts);
/* With no token in the catalogue and none in the configuration: makes one, writes it to
 * `<database>.token` (0600), logs that path and never the token. */
bool bootstrap_token(struct catalogue *c, const struct config *config);

/* What the configuration says of its sites, in the publisher's form: aliases and robots files, each
 * of which is read now. Holds a reference of `config`. Freed by its own `free`. NULL: a file could
 * not be read, which is logged, or no memory. */
struct publish_policies *configured_policies(struct config *config);

/* Who is a crawler, by what is built in and what the configuration says; its files are read now.
 * NULL: one of them is not a list of ranges, which is logged, or no memory. */
struct crawler_names *configured_crawlers(const struct config *config);
