/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The assembly: the one place that sees every part. Opens the catalogue, starts publisher and
 * listeners, and ends them in the order that loses nothing. */
#pragma once

struct config;
struct config_reader;

/* Serves until SIGTERM or SIGINT; SIGHUP reloads through `again`. `config` is borrowed; references
 * that are taken are given back. Returns the process's exit status. */
int app_serve(struct config *config, const struct config_reader *again);
