/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands, one function each, and shared functions. Internal to server/cli/. */
#pragma once

#include "server/cli/backend/api.h"

/* The API's reasons why the server or catalogue is degraded, an array for the caller to free. NULL,
 * with the error reported, if the request fails. `*state` is the word of /readyz, static. */
json_t *status_reasons(struct backend *b, const char **state);
bool status_is_ok(const char *state);
/* Appends the page's XML as it would be served; nothing if it has no entries. Returns an exit
 * status. */
int entries_render(struct backend *b, const json_t *list, uint64_t number, struct str *out);

/* The commands of commands.def. Each returns an exit status, with any error reported. */
#define COMMAND(run_, ...) int run_(struct cli *cli);
#include "server/cli/commands.def"
#undef COMMAND
