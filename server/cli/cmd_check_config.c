#include <stdlib.h>

#include "server/cli/commands.h"

/* `file:line: message` and nothing before it, so that editors can jump there. */
static void print_mistake(void *context, const char *file, unsigned line, const char *message)
{
    unsigned *count = context;

    ++*count;
    if (file != NULL && line > 0)
        fprintf(stderr, "%s:%u: ", file, line);
    else if (file != NULL)
        fprintf(stderr, "%s: ", file);
    else
        fputs("sitemapd: ", stderr);
    cli_print_escaped(stderr, message);
    putc('\n', stderr);
}

int command_check_config(struct cli *cli)
{
    unsigned count = 0;
    int status;

    /* Both `check-config FILE` and `check-config --config FILE` are what people write. */
    if (cli->arguments.word_count == 1) {
        if (arguments_has(&cli->arguments, "--config"))
            return cli_misuse("check-config", "name the file once, with --config or without");
        cli->arguments.given[cli->arguments.given_count++] =
            (struct given_option){"--config", cli->arguments.words[0]};
    }
    status = session_read_config(cli, print_mistake, &count);
    if (cli->config.database != NULL)
        config_validate(&cli->config, print_mistake, &count);
    if (count > 0 || status != EXIT_DONE)
        return EXIT_COULD_NOT;
    if (cli->config.file != NULL)
        printf("%s: no mistakes\n", cli->config.file);
    else
        printf("no configuration file; defaults and environment are good\n");
    return EXIT_DONE;
}
