/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What people name on the command line, found in what the API lists; what is not there is reported
 * with the nearest name that is. Sites and lists are the API's objects, borrowed from the backend.
 * Internal to server/cli/. */
#pragma once

#include "server/cli/backend/api.h"

/* The site whose origin the text is, of any spelling. Returns EXIT_DONE, or the status after an
 * error was reported. */
int names_site(struct cli *cli, const char *origin, const json_t **out);
/* The list of this kind with this URL or, with one site, path. Returns EXIT_DONE, or the status
 * after an error was reported. */
int names_list(struct cli *cli, const char *name, enum list_kind kind, const json_t **out);
/* The same; NULL, without a message, if it does not exist. */
const json_t *names_find_list(struct cli *cli, const char *name, enum list_kind kind);
/* The index that --index names (or the urlset that --urlset names), or NULL without it. Returns
 * EXIT_DONE, or the status after an error was reported. */
int names_list_option(struct cli *cli, const json_t **out);
/* The URL of a list that is to be made: `name`, or with one site the path that it is, written to
 * `out`. NULL, with the error reported, where it is neither. */
const char *names_new_list(struct cli *cli, const char *name, char out[LOC_MAX_CHARS + 1]);
/* What the command works on: entries of indexes, or page URLs of urlsets. */
enum list_kind names_kind(const struct cli *cli);
/* The path of a list's URL. */
const char *names_path(const json_t *list);
/* Reports that `path` of `site` is not a page, with the nearest index. Returns EXIT_COULD_NOT. */
int names_no_page(struct cli *cli, const json_t *site, const char *name, const char *path);
/* Ends `name: what; ` with the nearest name ("" or NULL: none), or else with the command that shows
 * all of them. Returns EXIT_COULD_NOT. */
int names_unknown(const char *name, const char *what, const char *near, const char *shown_by);
