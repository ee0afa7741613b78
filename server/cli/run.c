/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses the command line and runs the command. */
#include "server/cli/cli.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "server/cli/backend/session.h"

static bool reader_has_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/* If the output could not be written (a full disk), the command fails. If the reader of a pipe has
 * ended (`list | head`), the process ends by SIGPIPE without a message, even if SIGPIPE is blocked.
 */
static int finish_output(int status)
{
    bool failed = ferror(stdout) != 0;

    failed = fflush(stdout) != 0 || failed;
    if (failed && reader_has_gone())
        raise(SIGPIPE);
    if (failed && status == EXIT_DONE)
        return cli_fail("standard output",
                        "write failed: the output is incomplete (no space left?)");
    return status;
}

#ifndef SITEMAPD_COMMIT
#define SITEMAPD_COMMIT "" /* of the source; "": unknown */
#endif

int cli_main(int argc, char **argv, cli_serve *serve)
{
    struct cli cli = {.serve = serve};
    char why[512];
    int status;

    if (!arguments_parse(argc, argv, cli_commands, &cli.arguments, why, sizeof why)) {
        status = cli_misuse_sentence(why);
    } else if (cli.arguments.version) {
        printf("sitemapd %s%s\n", SITEMAPD_VERSION,
               *SITEMAPD_COMMIT != '\0' ? " (commit " SITEMAPD_COMMIT ")" : "");
        status = EXIT_DONE;
    } else if (cli.arguments.help) {
        help_print(&cli.arguments, cli_commands);
        status = EXIT_DONE;
    } else {
        status = cli.arguments.command->run(&cli);
    }
    session_done(&cli);
    return finish_output(status);
}
