/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The assembly, the only module that knows every part: opens the catalogue, starts publisher and
 * listeners, and stops them in an order that loses nothing. */
#pragma once

struct config;
struct config_reader;

/* Serves until SIGTERM or SIGINT; SIGHUP reloads by `again`. Borrows `config`, and releases the
 * references that it takes. Returns the process's exit status. */
int app_serve(struct config *config, const struct config_reader *again);
