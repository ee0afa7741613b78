/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The command line: parses the words, finds the command and runs it. Commands work on the catalogue
 * file, whether or not a server runs on it, or by the API of the server that --server names. */
#pragma once

enum { EXIT_DONE = 0, EXIT_COULD_NOT = 1, EXIT_USAGE = 2 };

struct config;
struct config_reader;

/* Runs the server until SIGTERM or SIGINT and returns an exit status; main() passes it in, since
 * only the assembly (server/serve.c) knows the whole server. `again` reads the configuration for a
 * reload. */
typedef int cli_serve(struct config *config, const struct config_reader *again);

/* Runs the command that argv names; returns the exit status. */
int cli_main(int argc, char **argv, cli_serve *serve);
