/* The table of commands that the command line knows. Internal to server/cli/. */
#ifndef SITEMAPD_CLI_TABLE_H
#define SITEMAPD_CLI_TABLE_H

#include "server/cli/arguments.h"

extern const struct cli_command cli_commands[]; /* ends with a NULL name */

#endif
