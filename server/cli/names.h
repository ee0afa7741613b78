/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds the sites and lists that the command line names, by the API; reports an unknown name with
 * the nearest existing one. Sites and lists are JSON objects of the API, borrowed from the backend.
 * Internal to server/cli/. */
#pragma once

#include "server/cli/backend/api.h"

/* The site with this origin, in any spelling. Returns EXIT_DONE, or the status after an error was
 * reported. */
int names_site(struct cli *cli, const char *origin, const json_t **out);
/* The list of this kind with this URL or, with one site, path. Returns EXIT_DONE, or the status
 * after an error was reported. */
int names_list(struct cli *cli, const char *name, enum list_kind kind, const json_t **out);
/* The same without a message; NULL: not found. */
const json_t *names_find_list(struct cli *cli, const char *name, enum list_kind kind);
/* The index that --index names (or the urlset that --urlset names), or NULL without it. Returns
 * EXIT_DONE, or the status after an error was reported. */
int names_list_option(struct cli *cli, const json_t **out);
/* The URL for a new list, written to `out`: `name` is a URL, or with only one site a path. NULL,
 * with the error reported: it is neither. */
const char *names_new_list(struct cli *cli, const char *name, char out[LOC_MAX_CHARS + 1]);
/* The kind of lists that the command works on: indexes, or urlsets. */
enum list_kind names_kind(const struct cli *cli);
/* The path of a list's URL. */
const char *names_path(const json_t *list);
/* Reports that `path` of `site` is not a page, with the nearest index. Returns EXIT_COULD_NOT. */
int names_no_page(struct cli *cli, const json_t *site, const char *name, const char *path);
/* Ends `name: what; ` with the nearest name ("" or NULL: none), or else with the command that shows
 * all of them. Returns EXIT_COULD_NOT. */
int names_unknown(const char *name, const char *what, const char *near, const char *shown_by);
