/* `site list`, `index list`, `token list`: what the registry holds, as a table or as one JSON
 * object for each line. Internal to server/cli/. */
#ifndef SITEMAPD_CLI_LISTING_H
#define SITEMAPD_CLI_LISTING_H

#include "server/cli/session.h"
#include "server/rules/str.h"

struct listing {
    struct catalogue_view *view;
    const struct registry *registry;
    bool json;
    struct str out;
};

/* Appends all rows to `l->out`. */
typedef enum catalogue_status listing_append(struct listing *l);

/* Opens the catalogue, lets `append` write and prints that, whole or not at all. `heading` stands
 * above a table, NULL for none; `none` is told on stderr where a table has no row. Returns an exit
 * status. */
int listing_print(struct cli *cli, const char *heading, const char *none, listing_append *append);

#endif
