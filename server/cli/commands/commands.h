/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands, one function each, and what they share. Internal to server/cli/. */
#pragma once

#include "server/cli/backend/api.h"

/* Why the server or catalogue is not well: an array of the API's reasons, the caller's. NULL, and
 * reported, where that cannot be asked. */
json_t *status_reasons(struct backend *b, bool *healthy);
/* Appends the page's XML as it would be served; nothing where it has no entries. An exit status. */
int entries_render(struct backend *b, const json_t *list, uint64_t number, struct str *out);

/* Each command of commands.def: an exit status, and it has reported what went wrong. */
#define COMMAND(run_, ...) int run_(struct cli *cli);
#include "server/cli/commands.def"
#undef COMMAND
