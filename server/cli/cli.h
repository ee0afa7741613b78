/* The command line: reads the words, finds the command, runs it. Commands work on the catalogue
 * file directly, whether or not a server runs on it. */
#ifndef SITEMAPD_CLI_CLI_H
#define SITEMAPD_CLI_CLI_H

enum { EXIT_DONE = 0, EXIT_COULD_NOT = 1, EXIT_USAGE = 2 };

struct config;

/* `serve` is given by main(), since only the assembly (server/app.c) sees the whole server: runs
 * until SIGTERM or SIGINT; returns an exit status. */
typedef int cli_serve(const struct config *config, const char *const *sites);

/* Runs the command that argv names; returns the exit status. */
int cli_main(int argc, char **argv, cli_serve *serve);

#endif
