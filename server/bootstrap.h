/* What a start makes sure of in the catalogue: the configuration's sites, those of `--site`, and a
 * token. Each is safe to repeat: a second start changes nothing. */
#ifndef SITEMAPD_BOOTSTRAP_H
#define SITEMAPD_BOOTSTRAP_H

#include <stdbool.h>

#include "config/config.h"
#include "db/catalogue.h"

/* The index that a site gets where nobody says otherwise. */
#define BOOTSTRAP_INDEX_PATH "/sitemap_index.xml"

/* Makes the sites of the configuration, managed by it, with their hosts and indexes; those that
 * it no longer has become ordinary ones. Logs what it did and what went wrong. False: could not. */
bool bootstrap_managed_sites(struct catalogue *c, const struct config *config);
/* The same for a reload, from `old` to `fresh`: where it cannot, what it made is taken back (a new
 * site or index that got an entry meanwhile stays), and the sites are as `old` has them. */
bool bootstrap_reload_sites(struct catalogue *c, const struct config *old,
                            const struct config *fresh);
/* Makes sure that each origin (NULL-terminated) is a site with an index. */
bool bootstrap_sites(struct catalogue *c, const char *const *origins);
/* With no token in the catalogue and none in the configuration: makes one, writes it to
 * `<database>.token` (0600), logs that path and never the token. */
bool bootstrap_token(struct catalogue *c, const struct config *config);

#endif
