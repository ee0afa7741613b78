/* What people name on the command line, found in the registry; what is not there is reported with
 * the nearest name that is. Internal to server/cli/. */
#pragma once

#include "server/cli/backend/session.h"

/* The site whose origin the text is, of any spelling. Returns EXIT_DONE, or told. */
int names_site(const struct registry *registry, const char *origin,
               const struct registry_site **out);
/* The same, of the catalogue that the command works on: its id. */
int names_site_id(const struct cli *cli, const char *origin, int64_t *out);
/* The list of this kind with this URL or, with one site, path. Returns EXIT_DONE, or told. */
int names_list(const struct registry *registry, const char *name, enum list_kind kind,
               const struct registry_index **out);
/* The URL of a list that is to be made: `name`, or with one site the path that it is, written to
 * `out`. NULL, and told, where it is neither. */
const char *names_new_list(const struct cli *cli, const char *name, char out[LOC_MAX_CHARS + 1]);
/* What the command works on: entries of indexes, or page URLs of urlsets. */
enum list_kind names_kind(const struct cli *cli);
/* The lists of a site of this kind. */
const struct registry_index *names_lists(const struct registry_site *site, enum list_kind kind,
                                         size_t *count);
/* The index that --index names (or the urlset that --urlset names), or NULL without it. Returns
 * EXIT_DONE, or told. */
int names_index_option(const struct cli *cli, const struct registry *registry,
                       const struct registry_index **out);
/* Tells that `path` of `site` is not a page, with the nearest index. Returns EXIT_COULD_NOT. */
int names_no_page(const struct registry_site *site, const char *name, const char *path);
/* Ends `name: what; ` with the nearest name ("" or NULL: none), or else with the command that shows
 * all of them. Returns EXIT_COULD_NOT. */
int names_unknown(const char *name, const char *what, const char *near, const char *shown_by);
