/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The command line: reads the words, finds the command, runs it. Commands work on the catalogue
 * file directly, whether or not a server runs on it. */
#pragma once

enum { EXIT_DONE = 0, EXIT_COULD_NOT = 1, EXIT_USAGE = 2 };

struct config;
struct config_reader;

/* `serve` is given by main(), since only the assembly (server/serve.c) sees the whole server: runs
 * until SIGTERM or SIGINT; returns an exit status. `again` reads the configuration for a reload. */
typedef int cli_serve(struct config *config, const struct config_reader *again);

/* Runs the command that argv names; returns the exit status. */
int cli_main(int argc, char **argv, cli_serve *serve);
