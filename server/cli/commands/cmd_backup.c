/* `backup`, `restore` and `check`. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/backend/backend.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"

int command_backup(struct cli *cli)
{
    const char *file = cli->arguments.words[0];
    bool to_stdout = strcmp(file, "-") == 0;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    if (to_stdout && isatty(STDOUT_FILENO))
        return cli_misuse(
            "backup",
            "- is standard output, which is a terminal; redirect it into a file or a pipe");
    if (!to_stdout && access(file, F_OK) == 0)
        return cli_fail(file, "already exists; give the backup a new file");
    status = cli->backend->calls->backup(cli->backend, file);
    if (status == EXIT_DONE && !to_stdout)
        printf("%s: a copy of %s\n", file, cli->backend->name);
    return status;
}

static void print_problem(void *context, const char *sentence)
{
    const struct cli *cli = context;

    cli_fail(cli->config->database, "%s", sentence);
}

static void print_fault(void *context, const char *sentence)
{
    cli_fail(context, "%s", sentence);
}

/* `why` is `file: sentence`, of the backup or of the catalogue. */
static int report_failure(const char *why)
{
    cli_misuse_sentence(why);
    return EXIT_COULD_NOT;
}

int command_restore(struct cli *cli)
{
    char *file = (char *)cli->arguments.words[0];
    const struct catalogue_restore_options options = {
        .replace = arguments_has(&cli->arguments, "--replace"),
        .problem = print_fault,
        .context = file,
    };
    enum catalogue_status restored;
    char why[512];
    int status = session_needs_machine(cli);

    if (status == EXIT_DONE)
        status = session_read_config(cli, NULL, NULL);
    if (status != EXIT_DONE)
        return status;
    restored = catalogue_restore(file, cli->config->database, &options, why, sizeof why);
    if (restored == CATALOGUE_CONFLICT)
        return cli_fail_file(cli->config->database,
                             "already exists; --replace replaces it by the backup");
    if (restored != CATALOGUE_OK)
        return report_failure(why);
    printf("%s: restored from %s\n", cli->config->database, file);
    return EXIT_DONE;
}

int command_check(struct cli *cli)
{
    enum catalogue_status checked;
    uint64_t count = 0;
    int status = session_needs_machine(cli);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    checked = catalogue_check(cli->backend->catalogue, print_problem, cli, &count);
    if (checked != CATALOGUE_OK)
        return cli_fail(cli->backend->name, "%s", catalogue_status_row(checked)->sentence);
    if (count > 0)
        return cli_fail(cli->config->database, "problems found: %" PRIu64, count);
    struct shared_state shared;
    bool pends = catalogue_shared_state(cli->backend->catalogue, &shared) && shared.upgrade_pending;
    printf("%s: intact and consistent%s\n", cli->config->database,
           pends ? "; upgrade pending: it has the schema of the previous release" : "");
    return EXIT_DONE;
}
