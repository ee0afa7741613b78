/* What people name on the command line, found in the registry; what is not there is told with the
 * nearest name that is. Internal to server/cli/. */
#ifndef SITEMAPD_CLI_NAMES_H
#define SITEMAPD_CLI_NAMES_H

#include "server/cli/session.h"

/* The site whose origin the text is, of any spelling. Returns EXIT_DONE, or told. */
int names_site(const struct registry *registry, const char *origin,
               const struct registry_site **out);
/* The index with this URL or, with one site, path. Returns EXIT_DONE, or told. */
int names_index(const struct registry *registry, const char *name,
                const struct registry_index **out);
/* The index that --index names, or NULL without it. Returns EXIT_DONE, or told. */
int names_index_option(const struct cli *cli, const struct registry *registry,
                       const struct registry_index **out);
/* Tells that `path` of `site` is no page, with the nearest index. Returns EXIT_COULD_NOT. */
int names_no_page(const struct registry_site *site, const char *name, const char *path);
/* Tells that there is no token of this name, with the nearest. Returns EXIT_COULD_NOT. */
int names_no_token(const struct registry *registry, const char *name);

#endif
