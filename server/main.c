/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Runs the command line. */
#include "server/cli/cli.h"
#include "server/serve.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv, app_serve);
}
